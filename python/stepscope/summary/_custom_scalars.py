"""The layout of charts of the plugin "custom scalars"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _messages as messages
from ._arrays import ShapeError
from ._protobuf import data, message

Layout = Mapping[str, Mapping[str, Sequence[Any]]]


def custom_scalars(layout: Layout) -> bytes:
    """Makes the summary of a layout: charts by title, by category; a chart is its kind and its tags."""
    categories = (
        message(2, data(1, category), *(message(2, _chart(title, *chart)) for title, chart in charts.items()))
        for category, charts in layout.items()
    )
    config = data(messages.STRING_VAL, b"".join(categories), keep=True)
    tensor = messages.tensor(messages.DataType.STRING, (), config)
    return messages.summary(messages.value("custom_scalars__config__", tensor, messages.metadata("custom_scalars")))


def _chart(title: str, kind: str, tags: Sequence[str]) -> bytes:
    if isinstance(tags, str):
        raise TypeError(f"chart {title!r}: expected a list of tags, not the text {tags!r}")
    if kind == "Multiline":
        return data(1, title) + message(2, *(data(1, tag, keep=True) for tag in tags))
    if kind != "Margin":
        raise ValueError(f"chart {title!r}: its kind must be 'Multiline' or 'Margin', not {kind!r}")
    if len(tags) != 3:
        raise ShapeError(f"chart {title!r}: a margin chart has 3 tags (value, lower, upper limit), not {len(tags)}")
    return data(1, title) + message(3, message(1, *(data(number, tag) for number, tag in enumerate(tags, start=1))))
