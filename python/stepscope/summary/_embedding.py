"""Files of the plugin "projector": vectors, their labels and images, and the list of all embeddings of a run."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._arrays import ShapeError, numpy, to_numpy
from ._images import grid, to_png

if TYPE_CHECKING:
    import numpy as np

# In the names of folders, as percent signs and the code of the character.
_ENCODED = str.maketrans({character: f"%{ord(character):02x}" for character in "%/\\"})
_ESCAPED = str.maketrans({"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "'": r"\'", "\\": r"\\"})


def write_embedding(
    logdir: str,
    tag: str,
    vectors: Any,
    metadata: Sequence[Any] | None,
    label_img: Any,
    global_step: int,
    metadata_header: Sequence[str] | None,
) -> tuple[str, bool]:
    """Writes the files of one embedding.

    Returns:
        Its entry for `projector_config.pbtxt`, and whether its folder was there already.

    Raises:
        ShapeError: If the shapes or numbers of vectors, labels and images do not fit.
    """
    vectors = to_numpy(vectors, tag)
    if vectors.ndim != 2:
        raise ShapeError(f"{tag}: the embedding must have two dimensions (points, features), not {vectors.shape}")
    images = None if label_img is None else to_numpy(label_img, tag)
    labels = None if metadata is None else _lines(tag, metadata, metadata_header)
    for what, items in (("labels", metadata), ("images", images)):
        if items is not None and len(items) != len(vectors):
            raise ShapeError(f"{tag}: {len(items)} {what} do not fit {len(vectors)} points")
    if images is not None and (images.ndim != 4 or images.shape[1] not in (1, 3)):
        raise ShapeError(f"{tag}: label_img must have the shape (points, 1 or 3, height, width), not {images.shape}")

    folder = f"{str(global_step).zfill(5)}/{tag.translate(_ENCODED)}"
    path = os.path.join(logdir, folder)
    existed = os.path.isdir(path)
    os.makedirs(path, exist_ok=True)
    entry = [f'tensor_name: "{_escaped(f"{tag}:{str(global_step).zfill(5)}")}"']
    if labels is not None:
        _write(path, "metadata.tsv", _tsv(labels))
        entry.append(f'metadata_path: "{_escaped(folder)}/metadata.tsv"')
    if images is not None:
        _write(path, "sprite.png", to_png(_sprite(images)))
        dims = [f"  single_image_dim: {size}" for size in (images.shape[3], images.shape[2])]
        entry += ["sprite {", f'  image_path: "{_escaped(folder)}/sprite.png"', *dims, "}"]
    _write(path, "tensors.tsv", _tsv("\t".join(map(str, row)) for row in vectors.tolist()))
    entry.append(f'tensor_path: "{_escaped(folder)}/tensors.tsv"')
    return "".join(f"  {line}\n" for line in entry), existed


def write_config(logdir: str, entries: Sequence[str]) -> None:
    """Writes the list of all embeddings, in the text format of protocol buffers."""
    text = "".join(f"embeddings {{\n{entry}}}\n" for entry in entries)
    _write(logdir, "projector_config.pbtxt", text.encode())


def _lines(tag: str, metadata: Sequence[Any], header: Sequence[str] | None) -> list[str]:
    if not header:
        return [str(label) for label in metadata]
    for row in metadata:
        if len(row) != len(header):
            raise ShapeError(f"{tag}: {len(row)} columns of {row!r} do not fit {len(header)} of metadata_header")
    return ["\t".join(map(str, row)) for row in (header, *metadata)]


def _sprite(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Arranges images (NCHW) row by row in a square; images that are higher than wide make it higher."""
    np = numpy("add_embedding")
    side = math.ceil(math.sqrt(len(images)))
    pixels = grid(images.repeat(3, axis=1) if images.shape[1] == 1 else images, side).transpose(1, 2, 0)
    if pixels.dtype != "uint8":
        # In double precision, as torch does here, unlike in other images.
        pixels = np.uint8((pixels.astype("float64") * 255).clip(0, 255))
    missing = max(0, pixels.shape[1] - pixels.shape[0])
    return np.pad(pixels, [(0, missing), (0, 0), (0, 0)])


def _tsv(lines: Any) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _escaped(text: str) -> str:
    return text.translate(_ESCAPED)


def _write(folder: str, name: str, content: bytes) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)
