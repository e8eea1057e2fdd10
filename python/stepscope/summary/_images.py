"""Images: the order of their dimensions, their scale, boxes, and their encoding as PNG."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stepscope._native import png

from . import _messages as messages
from ._arrays import ShapeError, numpy, to_numpy

if TYPE_CHECKING:
    import numpy as np

_GRID_COLUMNS = 8
_BOX_COLOUR, _BOX_WIDTH = "Red", 2


def pillow(purpose: str) -> Any:
    """Imports Pillow, or says what needs it."""
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
    except ImportError as error:
        raise ImportError(f"{purpose} needs Pillow: pip install pillow") from error
    return PIL


def image(
    tag: str, values: Any, dataformats: str, rescale: float = 1, boxes: Any = None, labels: Sequence[str] | None = None
) -> bytes:
    """Makes the summary of an image; a batch of images becomes a grid of eight columns.

    Args:
        tag: The tag.
        values: Bytes in 0..255 (uint8), or values in 0..1 of any other type; values beyond are clipped.
        dataformats: A letter for each dimension of `values`: N, C, H, W in any order.
        rescale: The factor by which the image is enlarged.
        boxes: Rows of left, top, right, bottom in pixels, to be drawn in red.
        labels: A text for each box.
    """
    pixels = to_bytes(to_hwc(to_numpy(values, tag), dataformats, tag))
    height, width, channels = pixels.shape
    if channels not in (1, 2, 3, 4):
        raise ValueError(f"{tag}: an image must have 1 to 4 channels, not {channels} (dataformats={dataformats!r})")
    if boxes is None and rescale == 1:
        encoded = to_png(pixels)
    else:
        encoded = _draw(pixels, rescale, [] if boxes is None else to_numpy(boxes, tag), labels)
    return messages.summary(messages.value(tag, messages.image(height, width, channels, encoded)))


def to_png(pixels: np.ndarray[Any, Any]) -> bytes:
    """Encodes bytes in the order height, width, channels."""
    return png(pixels.tobytes(), *pixels.shape)


def to_bytes(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Scales 0..1 to 0..255, unless the values are bytes already."""
    if values.dtype == "uint8":
        return values
    if values.dtype.kind == "c":
        raise TypeError("an image cannot have complex values; pass their magnitude or their real part")
    # In single precision, and rounded towards zero, as torch does.
    return (values.astype("float32") * 255).clip(0, 255).astype("uint8")


def reorder(values: np.ndarray[Any, Any], dataformats: str, wanted: str, tag: str) -> np.ndarray[Any, Any]:
    """Transposes from the order of dimensions in `dataformats` to that in `wanted`."""
    letters = dataformats.upper()
    if sorted(letters) != sorted(wanted):
        raise ShapeError(f"{tag}: dataformats must name each of {wanted} once, not {dataformats!r}")
    if values.ndim != len(letters):
        raise ShapeError(f"{tag}: dataformats={dataformats!r} does not describe values of the shape {values.shape}")
    return values.transpose([letters.index(letter) for letter in wanted])


def to_hwc(values: np.ndarray[Any, Any], dataformats: str, tag: str) -> np.ndarray[Any, Any]:
    """Puts images in the order height, width, channels; one channel becomes three."""
    wanted = {2: "HW", 3: "HWC", 4: "NCHW"}.get(len(dataformats))
    if wanted is None:
        raise ValueError(f"{tag}: dataformats must have 2 to 4 letters, such as HW, CHW or NHWC, not {dataformats!r}")
    values = reorder(values, dataformats, wanted, tag)
    if values.size == 0:
        raise ValueError(f"{tag}: the image has no pixels: its shape is {values.shape} ({wanted})")
    if wanted == "NCHW":
        values = grid(values, _GRID_COLUMNS).transpose(1, 2, 0)
    elif wanted == "HW":
        values = values[:, :, None]
    return values.repeat(3, axis=2) if values.shape[2] == 1 else values


def grid(images: np.ndarray[Any, Any], columns: int) -> np.ndarray[Any, Any]:
    """Arranges images (NCHW) row by row in one (CHW); what remains of the last row is black."""
    n_images, channels, height, width = images.shape
    columns = min(n_images, columns)
    rows = -(-n_images // columns)
    canvas = numpy("SummaryWriter, for images,").zeros((channels, rows * height, columns * width), images.dtype)
    for index, one in enumerate(images):
        top, left = index // columns * height, index % columns * width
        canvas[:, top : top + height, left : left + width] = one
    return canvas


def rendered(figures: Any, close: bool) -> np.ndarray[Any, Any]:
    """Renders a matplotlib figure (to CHW) or a list of them (to NCHW, all of one size)."""
    np = numpy("add_figure")
    if isinstance(figures, (list, tuple)):
        return np.stack([rendered(figure, close) for figure in figures])
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise ImportError("add_figure needs matplotlib: pip install matplotlib") from error
    canvas = FigureCanvasAgg(figures)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1).copy()
    # Only pyplot keeps figures alive; if it was never imported, there is nothing to close.
    if close and "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figures)
    return pixels


def _draw(pixels: np.ndarray[Any, Any], rescale: float, boxes: Any, labels: Sequence[str] | None) -> bytes:
    pil = pillow("add_image_with_boxes")
    picture = pil.Image.fromarray(pixels)
    draw = pil.ImageDraw.Draw(picture)
    for index, (left, top, right, bottom) in enumerate(boxes):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(corners, width=_BOX_WIDTH, fill=_BOX_COLOUR)
        if labels is not None and labels[index]:
            _draw_label(draw, pil.ImageFont.load_default(), labels[index], left, bottom)
    size = (int(picture.width * rescale), int(picture.height * rescale))
    file = io.BytesIO()
    picture.resize(size, pil.Image.Resampling.LANCZOS).save(file, format="PNG")
    return file.getvalue()


def _draw_label(draw: Any, font: Any, label: str, left: float, bottom: float) -> None:
    """Writes in black on red, in the lower left corner of the box."""
    x0, y0, x1, y1 = font.getbbox(label)
    margin = -(-(y1 - y0) // 20)  # a twentieth of the height, rounded up
    top = bottom - (y1 - y0) - 2 * margin
    draw.rectangle([(left, top), (left + x1 - x0, bottom)], fill=_BOX_COLOUR)
    draw.text((left + margin, top + margin), label, fill="black", font=font)
