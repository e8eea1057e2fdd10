"""Precision and recall at thresholds, for the plugin "pr_curves"."""

from __future__ import annotations

import warnings
from typing import Any

from . import _messages as messages
from ._arrays import numpy, to_numpy
from ._protobuf import data, floats, integer

_MAX_THRESHOLDS = 127  # the limit of torch's and tensorboardX's writers
_SMALLEST_COUNT = 1e-7  # avoids divisions by zero


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int, weights: Any) -> bytes:
    """Makes the summary of the curve for labels (0, 1 or bool) and predicted probabilities."""
    np = numpy("add_pr_curve")
    num_thresholds = _checked(tag, num_thresholds)
    labels, predictions = to_numpy(labels, tag), to_numpy(predictions, tag)
    if labels.shape != predictions.shape:
        raise ValueError(f"{tag}: {labels.shape} labels do not fit {predictions.shape} predictions")
    if not ((predictions >= 0) & (predictions <= 1)).all():
        warnings.warn(f"{tag}: predictions beyond 0..1 are left out of the curve", stacklevel=3)
    weights = 1.0 if weights is None else to_numpy(weights, tag)
    buckets = np.int32(np.floor(predictions * (num_thresholds - 1)))
    positive = labels.astype(np.float64)

    def at_least(weights: Any) -> Any:
        """The weight of the predictions at or above each threshold."""
        counts, _ = np.histogram(buckets, num_thresholds, (0, num_thresholds - 1), weights=weights)
        return np.cumsum(counts[::-1])[::-1]

    true_positives = at_least(positive * weights)
    false_positives = at_least((1.0 - positive) * weights)
    true_negatives = false_positives[0] - false_positives
    false_negatives = true_positives[0] - true_positives
    precision = true_positives / np.maximum(_SMALLEST_COUNT, true_positives + false_positives)
    recall = true_positives / np.maximum(_SMALLEST_COUNT, true_positives + false_negatives)
    rows = (true_positives, false_positives, true_negatives, false_negatives, precision, recall)
    return _summary(tag, np.stack(rows), num_thresholds)


def pr_curve_raw(tag: str, rows: tuple[Any, ...], num_thresholds: int) -> bytes:
    """Makes the summary of the curve whose six rows are given: tp, fp, tn, fn, precision, recall."""
    np = numpy("add_pr_curve_raw")
    arrays = [to_numpy(row, tag) for row in rows]
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"{tag}: the counts, precision and recall must be lists of one length, not {shapes}")
    return _summary(tag, np.stack(arrays), _checked(tag, num_thresholds))


def _checked(tag: str, num_thresholds: int) -> int:
    if num_thresholds < 1:
        raise ValueError(f"{tag}: a curve has at least 1 threshold, not {num_thresholds}")
    if num_thresholds > _MAX_THRESHOLDS:
        warnings.warn(f"{tag}: {num_thresholds} thresholds are reduced to {_MAX_THRESHOLDS}", stacklevel=4)
    return min(num_thresholds, _MAX_THRESHOLDS)


def _summary(tag: str, rows: Any, num_thresholds: int) -> bytes:
    tensor = messages.tensor(
        messages.DataType.FLOAT, rows.shape, data(messages.FLOAT_VAL, floats(rows.reshape(-1).tolist()))
    )
    metadata = messages.metadata("pr_curves", integer(2, num_thresholds))
    return messages.summary(messages.value(tag, tensor, metadata))
