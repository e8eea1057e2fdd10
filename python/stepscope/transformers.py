"""Hugging Face Transformers: a callback of `Trainer` for scalars, and for steps and phases of a recording."""

from __future__ import annotations

import os
import socket
import time
import warnings
from typing import Any

from stepscope import _native
from stepscope._phases import Phases
from stepscope.summary import SummaryWriter

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ImportError as error:
    raise ImportError(
        "stepscope.transformers needs Transformers and PyTorch: pip install 'transformers[torch]'"
    ) from error

__all__ = ["StepscopeCallback"]


class StepscopeCallback(TrainerCallback):
    """Writes the logs of a `Trainer` as scalars, and makes its steps and phases slices of a recording.

    The tags are those of the `TensorBoardCallback` of Transformers: `train/loss`, `eval/loss` and so on, with the
    global step. Only the first process of a job writes; all of them record. The slices are `train`, its epochs,
    `optimizer.step`, and evaluations, whose beginning the `Trainer` tells a callback only by their first batch when
    they are not part of the training.

    Args:
        log_dir: The folder of the event file; `OUTPUT_DIR/runs/TIME_HOST` if not given.
        writer: A writer to use instead, which stays open at the end.

    Raises:
        ValueError: Both `log_dir` and `writer` are given.

    Example:
        ```python
        Trainer(model, args, train_dataset=data, callbacks=[StepscopeCallback("runs/demo")]).train()
        ```
    """

    def __init__(self, log_dir: str | os.PathLike[str] | None = None, writer: SummaryWriter | None = None) -> None:
        if log_dir is not None and writer is not None:
            raise ValueError("StepscopeCallback: give either log_dir or writer; the writer has a folder already")
        self._log_dir = log_dir
        self._given_writer = writer
        self._writer = writer
        self._phases = Phases()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._phases.close()  # after an exception the callbacks that end phases are not called
        self._phases.begin("train")
        writer = self._open_writer(args, state)
        if writer is not None:
            writer.add_text("args", args.to_json_string())
            config = getattr(kwargs.get("model"), "config", None)
            if config is not None:
                writer.add_text("model_config", config.to_json_string())

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._phases.close()
        if self._writer is not None and self._writer is not self._given_writer:
            self._writer.close()
            self._writer = None

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._phases.begin("epoch", epoch=round(state.epoch or 0))

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._phases.end("epoch")
        self._begin_evaluation(control)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._phases.begin_step()

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._phases.begin("optimizer.step", "optimizer")

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._phases.end("optimizer.step")

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self._phases.end_step()
        self._begin_evaluation(control)

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if not self._phases.is_open("evaluate"):
            self._phases.begin("evaluate")

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self._phases.end("evaluate")

    def on_predict(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, metrics: Any, **kwargs: Any
    ) -> None:
        self._phases.end("evaluate")

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        _native.mark("checkpoint saved", "phase", step=state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        writer = self._open_writer(args, state)
        if writer is None:
            return
        for name, value in (logs or {}).items():
            prefix, _, rest = name.partition("_")
            tag = f"{prefix}/{rest}" if prefix in ("eval", "test") and rest else f"train/{name}"
            if isinstance(value, str):
                writer.add_text(tag, value, state.global_step)
                continue
            try:
                writer.add_scalar(tag, value, state.global_step)
            except (TypeError, ValueError) as error:
                # A log is no reason to end a training.
                warnings.warn(f"not logged: {error}", RuntimeWarning, stacklevel=2)

    def _begin_evaluation(self, control: TrainerControl) -> None:
        # The trainer evaluates next; no callback of its own tells it.
        if control.should_evaluate and not self._phases.is_open("evaluate"):
            self._phases.begin("evaluate")

    def _open_writer(self, args: TrainingArguments, state: TrainerState) -> SummaryWriter | None:
        if self._writer is None and state.is_world_process_zero:
            folder = self._log_dir
            if folder is None:
                run = f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}"
                folder = os.path.join(args.output_dir or ".", "runs", run)
            self._writer = SummaryWriter(os.fspath(folder))
        return self._writer if state.is_world_process_zero else None
