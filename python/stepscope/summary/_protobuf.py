"""Fields of protocol buffers, encoded as bytes.

A message is the concatenation of its fields, so `b"".join` is all it takes to build one. As proto3 demands, a field
with its default value (zero, nothing) takes no bytes, unless `keep` is set: a member of a `oneof` is always written.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """Encodes a 64-bit integer, seven bits a byte; negative ones as two's complement."""
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError(f"{value} does not fit in 64 bits")
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def integer(number: int, value: int, keep: bool = False) -> bytes:
    """A field of type int32, int64, uint32, uint64, bool or an enumeration."""
    return varint(number << 3 | _VARINT) + varint(value) if value or keep else b""


def double(number: int, value: float, keep: bool = False) -> bytes:
    """A field of type double."""
    return _fixed(number << 3 | _FIXED64, doubles((value,)), keep)


def float32(number: int, value: float, keep: bool = False) -> bytes:
    """A field of type float; values beyond its range become infinite, as in C."""
    return _fixed(number << 3 | _FIXED32, floats((value,)), keep)


def data(number: int, value: bytes | str, keep: bool = False) -> bytes:
    """A field of type string, bytes, a packed repeated type or a message that may be absent."""
    if isinstance(value, str):
        value = value.encode()
    return b"".join((varint(number << 3 | _BYTES), varint(len(value)), value)) if value or keep else b""


def message(number: int, *fields: bytes) -> bytes:
    """A field that contains a message; it is present even if the message is empty."""
    return data(number, b"".join(fields), keep=True)


def integers(values: Iterable[int]) -> bytes:
    """The payload of a packed repeated integer field, for `data`."""
    return b"".join(map(varint, values))


def floats(values: Iterable[float]) -> bytes:
    """The payload of a packed repeated float field, for `data`."""
    return _little_endian(array("f", values))


def doubles(values: Iterable[float]) -> bytes:
    """The payload of a packed repeated double field, for `data`."""
    return _little_endian(array("d", values))


def _little_endian(values: array[float]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _fixed(key: int, value: bytes, keep: bool) -> bytes:
    # Negative zero is not the default, hence the comparison of bits.
    return varint(key) + value if keep or any(value) else b""
