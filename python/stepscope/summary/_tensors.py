"""Values that are written as tensors: scalars of the new style, whole tensors, texts and meshes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _messages as messages
from ._arrays import numpy, to_numpy, to_real
from ._messages import DataType
from ._protobuf import data, doubles, floats, integer, integers

if TYPE_CHECKING:
    import numpy as np

_MAX_BYTES = 1 << 31  # the limit of protocol buffers

# The type of TensorFlow, and the field for its values, of each type of numpy.
_TYPES = {
    "bool": (DataType.BOOL, messages.BOOL_VAL),
    "int8": (DataType.INT8, messages.INT_VAL),
    "int16": (DataType.INT16, messages.INT_VAL),
    "int32": (DataType.INT32, messages.INT_VAL),
    "int64": (DataType.INT64, messages.INT64_VAL),
    "uint8": (DataType.UINT8, messages.UINT32_VAL),
    "uint16": (DataType.UINT16, messages.INT_VAL),
    "uint32": (DataType.UINT32, messages.UINT32_VAL),
    "uint64": (DataType.UINT64, messages.UINT64_VAL),
    "float16": (DataType.HALF, messages.HALF_VAL),
    "bfloat16": (DataType.BFLOAT16, messages.HALF_VAL),
    "float32": (DataType.FLOAT, messages.FLOAT_VAL),
    "float64": (DataType.DOUBLE, messages.DOUBLE_VAL),
    "complex64": (DataType.COMPLEX64, messages.SCOMPLEX_VAL),
    "complex128": (DataType.COMPLEX128, messages.DCOMPLEX_VAL),
}

_MESH_VERTICES, _MESH_FACES, _MESH_COLOURS = 1, 2, 3  # MeshPluginData.ContentType


def scalar(tag: str, value: float, new_style: bool, double: bool, display_name: str, description: str) -> bytes:
    """Makes the summary of a scalar that is not just a tag and a number."""
    if not new_style:
        metadata = messages.metadata(display_name=display_name, description=description)
        return messages.summary(messages.value(tag, messages.simple_value(value), metadata))
    if double:
        content = messages.tensor(DataType.DOUBLE, None, data(messages.DOUBLE_VAL, doubles((value,))))
    else:
        content = messages.tensor(DataType.FLOAT, None, data(messages.FLOAT_VAL, floats((value,))))
    metadata = messages.metadata("scalars", display_name=display_name, description=description)
    return messages.summary(messages.value(tag, content, metadata))


def tensor(tag: str, values: Any) -> bytes:
    """Makes the summary of a whole tensor, in its own type."""
    array = to_numpy(values, tag)
    # numpy may lack the type of the tensor; then the array has another one.
    name = str(getattr(values, "dtype", array.dtype)).rpartition(".")[2]
    if name not in _TYPES:
        raise ValueError(f"{tag}: TensorBoard has no tensors of the type {name}")
    if array.nbytes >= _MAX_BYTES:
        raise ValueError(f"{tag}: {array.nbytes} bytes are beyond the 2 GiB of a protocol buffer")
    dtype, field = _TYPES[name]
    content = messages.tensor(dtype, array.shape, data(field, _payload(array.reshape(-1), dtype)))
    return messages.summary(messages.value(tag, content, messages.metadata("tensor")))


def _payload(array: np.ndarray[Any, Any], dtype: DataType) -> bytes:
    if dtype is DataType.BFLOAT16:  # the upper half of single precision
        return integers((array.view("uint32") >> 16).tolist())
    if dtype is DataType.HALF:
        return integers(array.view("uint16").tolist())
    if array.dtype.kind in "fc":
        return array.astype(array.dtype.newbyteorder("<")).tobytes()
    return integers(array.tolist())


def text(tag: str, content: str) -> bytes:
    """Makes the summary of a text (Markdown)."""
    if not isinstance(content, str):
        raise TypeError(f"{tag}: expected a string, not {type(content).__name__}: {content!r}")
    tensor = messages.tensor(DataType.STRING, (1,), data(messages.STRING_VAL, content, keep=True))
    return messages.summary(messages.value(tag, tensor, messages.metadata("text"), "/text_summary"))


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Mapping[str, Any] | None) -> bytes:
    """Makes the summary of meshes or point clouds; each part is a value with a tag of its own."""
    numpy("add_mesh")
    parts = [
        (kind, name, to_real(part, tag))
        for kind, name, part in (
            (_MESH_VERTICES, "VERTEX", vertices),
            (_MESH_FACES, "FACE", faces),
            (_MESH_COLOURS, "COLOR", colors),
        )
        if part is not None
    ]
    present = sum(1 << kind for kind, _, _ in parts)
    json_config = "{}" if config is None else json.dumps(config, sort_keys=True)
    values = []
    for kind, name, array in parts:
        if array.ndim != 3:
            raise ValueError(f"{tag}: {name} must have the shape (batch, number, 3), not {array.shape}")
        sizes = data(6, integers(array.shape))
        plugin = data(2, tag) + integer(3, kind) + data(5, json_config) + sizes + integer(7, present)
        content = messages.tensor(DataType.FLOAT, array.shape, data(messages.FLOAT_VAL, array.astype("<f4").tobytes()))
        values.append(messages.value(tag, content, messages.metadata("mesh", plugin), f"_{name}"))
    return messages.summary(*values)
