"""Logs and recordings of a training program, for the `stepscope` window.

- `SummaryWriter` writes TensorBoard logs: it takes the place of `torch.utils.tensorboard.SummaryWriter`.
- `record` records the program: what is marked with `slice`, `traced`, `mark`, `counter` or a hook.
- `stepscope.torch`, `.jax`, `.keras`, `.transformers`, `.lightning` mark what those libraries do.
- `stepscope.metrics` follows the machine.
- `show` shows a recording or logs in a notebook.

Example:
    >>> import stepscope
    >>> with stepscope.record("runs/first/trace"):
    ...     for batch in range(3):
    ...         with stepscope.slice("load", batch=batch):
    ...             data = list(range(1000))
    ...         with stepscope.slice("train"):
    ...             total = sum(data)

`stepscope view runs/first` opens the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope._native import (
    __version__,
    begin,
    begin_step,
    counter,
    end_step,
    flow_in,
    flow_out,
    is_recording,
    mark,
    next_flow_id,
    slice,  # noqa: A004: users write `stepscope.slice`
)
from stepscope._record import record

if TYPE_CHECKING:
    from stepscope._show import show
    from stepscope.summary import SummaryWriter
    from stepscope.tracing import trace_calls, traced

__all__ = [
    "SummaryWriter",
    "__version__",
    "begin",
    "begin_step",
    "counter",
    "end_step",
    "flow_in",
    "flow_out",
    "is_recording",
    "mark",
    "next_flow_id",
    "record",
    "show",
    "slice",
    "trace_calls",
    "traced",
]

_LAZY = {
    "SummaryWriter": "stepscope.summary",
    "show": "stepscope._show",
    "trace_calls": "stepscope.tracing",
    "traced": "stepscope.tracing",
}
_MODULES = ("jax", "keras", "lightning", "metrics", "summary", "torch", "tracing", "transformers")


def __getattr__(name: str) -> Any:
    """Imports what not every program needs."""
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"stepscope.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value
