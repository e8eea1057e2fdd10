"""Histograms whose buckets numpy computes; those with TensorFlow's buckets are made by the native module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _messages as messages
from ._arrays import numpy

if TYPE_CHECKING:
    import numpy as np


def tensorflow_bins() -> list[float]:
    """The edges of TensorFlow's buckets: each is a tenth wider than the one before."""
    edges, edge = [], 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-edge for edge in reversed(edges)] + [0] + edges


def histogram(tag: str, values: np.ndarray[Any, Any], bins: Any, max_bins: int | None) -> bytes:
    """Makes the summary of a histogram.

    Args:
        tag: The tag.
        values: The values, in one dimension.
        bins: What `numpy.histogram` takes.
        max_bins: If there are more, neighbours are merged.
    """
    np = numpy("add_histogram")
    try:
        counts, edges = np.histogram(values, bins)
    except ValueError as error:  # for instance, values that are not finite
        raise ValueError(f"{tag}: no histogram with bins={bins!r}: {error}") from error
    if max_bins is not None and len(counts) > max_bins:
        counts, edges = _merged(np, counts, edges, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    if len(filled) == 0:
        raise ValueError(f"{tag}: no value lies in the bins from {edges[0]} to {edges[-1]}")
    first, last = filled[0], filled[-1]
    # An event file has upper limits only, so the lower limit of the first bucket is that of an empty one before it.
    numbers = (values.min(), values.max(), len(values), values.sum(), values.dot(values))
    content = messages.histogram(numbers, edges[first : last + 2], [0.0, *counts[first : last + 1]])
    return messages.summary(messages.value(tag, content))


def _merged(np: Any, counts: Any, edges: Any, factor: int) -> tuple[Any, Any]:
    starts = np.arange(0, len(counts), factor)
    return np.add.reduceat(counts, starts), np.append(edges[starts], edges[-1])
