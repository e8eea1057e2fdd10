"""The messages of TensorFlow that event files are made of.

A function that is named after a member of `Summary.Value` returns that field; `value` puts the parts together and
`summary` makes the `Summary` that `EventWriter.add_summary` takes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from ._protobuf import data, double, doubles, float32, integer, message


class DataType(enum.IntEnum):
    """tensorflow.DataType."""

    FLOAT = 1
    DOUBLE = 2
    INT32 = 3
    UINT8 = 4
    INT16 = 5
    INT8 = 6
    STRING = 7
    COMPLEX64 = 8
    INT64 = 9
    BOOL = 10
    BFLOAT16 = 14
    UINT16 = 17
    COMPLEX128 = 18
    HALF = 19
    UINT32 = 22
    UINT64 = 23


# The fields of TensorProto for the values of each type.
FLOAT_VAL, DOUBLE_VAL, INT_VAL, STRING_VAL, SCOMPLEX_VAL, INT64_VAL, BOOL_VAL, DCOMPLEX_VAL = range(5, 13)
HALF_VAL, UINT32_VAL, UINT64_VAL = 13, 16, 17


def summary(*values: bytes) -> bytes:
    """A `Summary`, of what `value` returned."""
    return b"".join(message(1, value) for value in values)


def value(tag: str, content: bytes = b"", metadata: bytes = b"", suffix: str = "") -> bytes:
    """A `Summary.Value`; one without content has all it says in its metadata."""
    if not isinstance(tag, str):
        raise TypeError(f"the tag must be a string, not {type(tag).__name__}: {tag!r}")
    return data(1, tag + suffix) + content + metadata


def metadata(plugin: str = "", content: bytes = b"", display_name: str = "", description: str = "") -> bytes:
    """The metadata of a value: the plugin that shows it, that plugin's content, and the display texts."""
    plugin_data = message(1, data(1, plugin), data(2, content)) if plugin else b""
    return message(9, plugin_data, data(2, display_name), data(3, description))


def simple_value(number: float) -> bytes:
    """A scalar in single precision."""
    return float32(2, number, keep=True)


def image(height: int, width: int, channels: int, encoded: bytes) -> bytes:
    """An encoded image (PNG) or animation (GIF)."""
    return message(4, integer(1, height), integer(2, width), integer(3, channels), data(4, encoded))


def histogram(numbers: Iterable[float], limits: Iterable[float], counts: Iterable[float]) -> bytes:
    """A histogram.

    Args:
        numbers: The lowest and the highest value, their number, their sum, and that of their squares.
        limits: The upper limits of the buckets.
        counts: The number of values in each bucket.
    """
    fields = [double(number, value) for number, value in enumerate(numbers, start=1)]
    return message(5, *fields, data(6, doubles(limits)), data(7, doubles(counts)))


def audio(sample_rate: float, channels: int, frames: int, encoded: bytes, content_type: str) -> bytes:
    """An encoded sound."""
    return message(
        6, float32(1, sample_rate), integer(2, channels), integer(3, frames), data(4, encoded), data(5, content_type)
    )


def shape(sizes: Iterable[int]) -> bytes:
    """The fields of a `TensorShapeProto`."""
    return b"".join(message(2, integer(1, int(size))) for size in sizes)


def tensor(dtype: DataType, sizes: Sequence[int] | None, values: bytes) -> bytes:
    """A tensor; `values` is the field for the values of this type, and `sizes` is None where no shape is written."""
    return message(8, integer(1, dtype), b"" if sizes is None else message(2, shape(sizes)), values)


# Members of the `what` of an Event, for `FileWriter.add_event`.


def file_version() -> bytes:
    """The version of the file format."""
    return data(3, "brain.Event:2")


def graph(graph_def: bytes) -> bytes:
    """A serialised GraphDef."""
    return data(4, graph_def, keep=True)


def session_start() -> bytes:
    """A SessionLog that says START: TensorBoard drops the events at and after the step of its event."""
    return message(7, integer(1, 1))


def run_metadata(tag: str, metadata: bytes) -> bytes:
    """A tagged, serialised RunMetadata."""
    return message(8, data(1, tag), data(2, metadata))


def stamp(walltime: float, step: int | None) -> bytes:
    """The time (seconds since 1970) and the step of an Event."""
    return double(1, walltime) + (b"" if step is None else integer(2, step))
