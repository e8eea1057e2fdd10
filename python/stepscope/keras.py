"""Keras 3: a callback that writes scalars and histograms, and makes steps and phases slices of a recording."""

from __future__ import annotations

import os
from typing import Any

from stepscope._phases import Phases
from stepscope.summary import SummaryWriter

try:
    import keras
except ImportError as error:
    raise ImportError("stepscope.keras needs Keras 3 and one of its backends: pip install keras") from error

__all__ = ["Callback"]


class Callback(keras.callbacks.Callback):
    """Writes what `keras.callbacks.TensorBoard` writes, with any backend and without TensorFlow.

    Scalars go to the runs `LOG_DIR/train` and `LOG_DIR/validation` under the tags of Keras: `epoch_loss` and so on,
    with the epoch as step; `batch_loss` and so on, with the number of the batch; `evaluation_loss_vs_iterations`, with
    the number of steps of the optimiser. While a recording runs, every batch is a step, and `fit`, its epochs,
    validations, evaluations and predictions are slices.

    Args:
        log_dir: The folder of the runs.
        histograms: Epochs from one histogram of each weight to the next; 0 for none.
        update_freq: `"epoch"` for scalars of epochs only, `"batch"` for those of each batch too, or a number of
            batches. Reading the metrics of a batch makes the host wait for the device.

    Raises:
        ValueError: `histograms` is negative, or `update_freq` is none of the above.

    Example:
        ```python
        model.fit(x, y, epochs=5, callbacks=[stepscope.keras.Callback("runs/demo", histograms=1)])
        ```
    """

    def __init__(
        self, log_dir: str | os.PathLike[str] = "logs", histograms: int = 0, update_freq: str | int = "epoch"
    ) -> None:
        super().__init__()
        if not isinstance(histograms, int) or histograms < 0:
            raise ValueError(f"histograms: expected a number of epochs or 0, got {histograms!r}")
        batches = {"epoch": 0, "batch": 1}.get(str(update_freq), update_freq)
        if not isinstance(batches, int) or (batches < 1 and update_freq != "epoch"):
            raise ValueError(f"update_freq: expected 'epoch', 'batch' or a number of batches, got {update_freq!r}")
        self._log_dir = os.fspath(log_dir)
        self._histograms = histograms
        self._update_batches = batches
        self._phases = Phases()
        self._writers: dict[str, SummaryWriter] = {}
        self._n_batches = 0

    def on_train_begin(self, logs: Any = None) -> None:
        self._phases.close()  # after an exception Keras does not call the callbacks that end phases
        self._n_batches = 0
        self._phases.begin("fit")

    def on_train_end(self, logs: Any = None) -> None:
        self._phases.close()
        self._close_writers()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._phases.begin("epoch", epoch=epoch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._phases.end("epoch")
        logs = logs or {}
        train = {name: value for name, value in logs.items() if not name.startswith("val_")}
        validation = {name.removeprefix("val_"): value for name, value in logs.items() if name not in train}
        self._write("train", "epoch_{}", {**train, **self._learning_rate()}, epoch)
        self._write("validation", "epoch_{}", validation, epoch)
        if self._histograms and epoch % self._histograms == 0:
            self._write_weights(epoch)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._phases.begin_step()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._phases.end_step()
        self._n_batches += 1
        if self._update_batches and self._n_batches % self._update_batches == 0:
            self._write("train", "batch_{}", logs or {}, self._n_batches)

    def on_test_begin(self, logs: Any = None) -> None:
        self._begin_outside_of_fit()
        self._phases.begin("validation" if self._phases.is_open("fit") else "evaluate")

    def on_test_end(self, logs: Any = None) -> None:
        in_fit = self._phases.is_open("fit")
        self._phases.end("validation" if in_fit else "evaluate")
        optimizer = self.model.optimizer
        if optimizer is not None:
            iterations = int(keras.ops.convert_to_numpy(optimizer.iterations))
            self._write("validation", "evaluation_{}_vs_iterations", logs or {}, iterations)
        if not in_fit:
            self._close_writers()

    def on_predict_begin(self, logs: Any = None) -> None:
        self._begin_outside_of_fit()
        self._phases.begin("predict")

    def on_predict_end(self, logs: Any = None) -> None:
        self._phases.end("predict")

    def _begin_outside_of_fit(self) -> None:
        """Ends what an exception in an earlier evaluation or prediction left open."""
        for name in ("evaluate", "validation", "predict"):
            self._phases.end(name)

    def _write(self, run: str, tag: str, values: dict[str, Any], step: int) -> None:
        for name, value in values.items():
            self._writer(run).add_scalar(tag.format(name), float(value), step)

    def _write_weights(self, epoch: int) -> None:
        for layer in self.model.layers:
            for weight in layer.weights:
                # numpy's own types do not include bfloat16
                values = keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32"))
                self._writer("train").add_histogram(f"{weight.path}/histogram", values, epoch)

    def _learning_rate(self) -> dict[str, float]:
        optimizer = self.model.optimizer
        if optimizer is None:
            return {}
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of LossScaleOptimizer
        return {"learning_rate": float(keras.ops.convert_to_numpy(optimizer.learning_rate))}

    def _writer(self, run: str) -> SummaryWriter:
        if run not in self._writers:
            self._writers[run] = SummaryWriter(os.path.join(self._log_dir, run))
        return self._writers[run]

    def _close_writers(self) -> None:
        while self._writers:
            self._writers.popitem()[1].close()
