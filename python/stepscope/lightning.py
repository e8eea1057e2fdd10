"""Lightning: a logger that writes event files, and a callback that makes steps and phases slices of a recording."""

from __future__ import annotations

import importlib
import os
import re
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from stepscope._phases import Phases
from stepscope.summary import SummaryWriter

__all__ = ["StepscopeCallback", "StepscopeLogger"]


def _import_lightning() -> Any:
    """Imports Lightning under the name that the program uses: its two packages have classes of their own."""
    for name in sorted(("lightning.pytorch", "pytorch_lightning"), key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError("stepscope.lightning needs Lightning: pip install lightning")


_pl = _import_lightning()
_loggers = importlib.import_module(f"{_pl.__name__}.loggers.logger")
_rank_zero_only = importlib.import_module(f"{_pl.__name__}.utilities").rank_zero_only


class StepscopeLogger(_loggers.Logger):
    """Writes metrics and hyperparameters to event files, with the folders of Lightning's `TensorBoardLogger`.

    Args:
        save_dir: The folder of all experiments.
        name: The name of the experiment, a folder in `save_dir`; "" for none.
        version: The run, a folder in the experiment: a number N for `version_N`, or a name. The next free number if
            not given.
        prefix: Is put before the names of metrics, with a "/" between.

    Attributes are those of Lightning's loggers; `experiment` is the `SummaryWriter`.

    Example:
        ```python
        lightning.Trainer(logger=StepscopeLogger("runs", "demo"), callbacks=[StepscopeCallback()]).fit(model, loader)
        ```
    """

    def __init__(
        self,
        save_dir: str | os.PathLike[str] = "runs",
        name: str = "lightning_logs",
        version: int | str | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__()
        self._save_dir = os.fspath(save_dir)
        self._name = name
        self._version = version
        self._prefix = f"{prefix}/" if prefix else ""
        self._writer: SummaryWriter | None = None
        self._next_step = 0

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self._name

    @property
    def version(self) -> int | str:
        """The number or name of the run."""
        if self._version is None:
            self._version = _next_version(self.root_dir)
        return self._version

    @property
    def save_dir(self) -> str:
        """The folder of all experiments."""
        return self._save_dir

    @property
    def root_dir(self) -> str:
        """The folder of the experiment."""
        return os.path.join(self._save_dir, self._name)

    @property
    def log_dir(self) -> str:
        """The folder of the run."""
        version = self.version
        return os.path.join(self.root_dir, version if isinstance(version, str) else f"version_{version}")

    @property
    @_loggers.rank_zero_experiment
    def experiment(self) -> SummaryWriter:
        """The writer of the run, which is made when it is first used; does nothing on other ranks than the first."""
        if self._writer is None:
            self._writer = SummaryWriter(self.log_dir)
        return self._writer

    @_rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Writes scalars; a metric that is a dictionary has a scalar for each of its entries.

        Args:
            metrics: Values by name.
            step: Their step; the one after the last if not given.
        """
        step = self._next_step if step is None else step
        self._next_step = step + 1
        for name, value in _flat(metrics).items():
            self.experiment.add_scalar(self._prefix + name, value, step)

    @_rank_zero_only
    def log_hyperparams(
        self, params: Mapping[str, Any] | Namespace | None, metrics: Mapping[str, Any] | None = None
    ) -> None:
        """Writes hyperparameters for the HPARAMS view.

        Args:
            params: Values by name, which may be nested. Numbers, strings and booleans are kept; others become text.
            metrics: The metrics that the view compares runs by, with values known so far.
        """
        flat = _flat(vars(params) if isinstance(params, Namespace) else params or {})
        kept = {k: v if isinstance(v, (bool, int, float, str)) else str(v) for k, v in flat.items()}
        # "." is the folder of the run itself; the default would be a run of its own.
        self.experiment.add_hparams(kept, dict(metrics or {}), run_name=".")

    @_rank_zero_only
    def save(self) -> None:
        """Waits until the event file has everything."""
        if self._writer is not None:
            self._writer.flush()

    @_rank_zero_only
    def finalize(self, status: str) -> None:
        """Closes the event file; later metrics go to a new one in the same folder."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __getstate__(self) -> dict[str, Any]:
        # Strategies that start processes pickle the logger; each process opens a file of its own.
        return {**self.__dict__, "_writer": None}


class StepscopeCallback(_pl.Callback):
    """Makes each training batch a step, and fits, epochs, validations, tests, predictions and backward passes slices.

    `stepscope.torch.watch(model)` adds the modules. Works with any logger.
    """

    def __init__(self) -> None:
        self._phases = Phases()

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.close()
        self._phases.begin("fit")

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("fit")

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.begin("sanity check")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("sanity check")

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.begin("epoch", epoch=trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("epoch")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._phases.begin_step()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._phases.end_step()

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._phases.begin("backward")

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("backward")

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.begin("validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("validation")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.begin("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("test")

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.begin("predict")

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("predict")

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._phases.close()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._phases.close()


def _next_version(folder: str) -> int:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers = [int(match[1]) for name in names if (match := re.fullmatch(r"version_(\d+)", name))]
    return max(numbers, default=-1) + 1


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Joins the keys of nested mappings with "/"."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}/")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
