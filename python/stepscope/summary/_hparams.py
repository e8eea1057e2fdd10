"""Hyperparameters of a run, for the plugin "hparams"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _messages as messages
from ._arrays import to_float
from ._protobuf import data, double, integer, message

_STRING, _FLOAT64 = 1, 3  # DataType of the plugin
_SUCCESS = 1


def hparams(
    hparams: Mapping[str, Any], metrics: Iterable[str], domains: Mapping[str, list[Any]] | None = None
) -> tuple[bytes, bytes, bytes]:
    """Makes the summaries of an experiment, and of the start and the end of its session.

    Args:
        hparams: The values by name: numbers (also bool, which count as 0 and 1), one-element tensors, text,
            functions and classes (which count as their names); those that are None are left out.
        metrics: The tags of the metrics.
        domains: All values that some of the hyperparameters may have.

    Raises:
        TypeError: If a value has another type, or a domain is not a list of values of the type of its hyperparameter.
    """
    domains = domains or {}
    for name, domain in domains.items():
        if name not in hparams:
            raise TypeError(f"hparam_domain_discrete has {name!r}, which is not a hyperparameter")
        if not isinstance(domain, list) or not all(isinstance(value, type(hparams[name])) for value in domain):
            raise TypeError(f"hparam_domain_discrete[{name!r}] must be a list of {type(hparams[name]).__name__}")
    infos, start = [], []
    for name, given in hparams.items():
        if given is None:
            continue
        value = _plain(name, given)
        kind = integer(4, _STRING if isinstance(value, str) else _FLOAT64)
        possible = (message(1, _value(_plain(name, value))) for value in domains.get(name, ()))
        infos.append(message(4, data(1, name), kind, message(5, *possible) if name in domains else b""))
        start.append(message(1, data(1, name, keep=True), message(2, _value(value))))
    experiment = b"".join(infos) + b"".join(message(5, message(1, data(2, tag))) for tag in metrics)
    return (
        _summary("_hparams_/experiment", message(2, experiment)),
        _summary("_hparams_/session_start_info", message(3, *start)),
        _summary("_hparams_/session_end_info", message(4, integer(1, _SUCCESS))),
    )


def _plain(name: str, value: Any) -> str | float:
    if isinstance(value, str):
        return value
    if callable(value):
        return getattr(value, "__name__", str(value))
    try:
        return to_float(value, name)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"the hyperparameter {name!r} must be a number, a text, a one-element tensor or None, "
            f"not {type(value).__name__}: {value!r}"
        ) from error


def _value(value: str | float) -> bytes:
    return data(3, value, keep=True) if isinstance(value, str) else double(2, value, keep=True)


def _summary(tag: str, content: bytes) -> bytes:
    return messages.summary(messages.value(tag, metadata=messages.metadata("hparams", content)))
