"""The integrations of Keras, Transformers, Lightning and JAX, each with the real library where it is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recorded import Recorded, recorded_fixture  # noqa: F401

os.environ.setdefault("KERAS_BACKEND", "torch")


def needs(*libraries: str) -> pytest.MarkDecorator:
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def scalars(folder: str | os.PathLike[str]) -> dict[str, list[int]]:
    """The steps of each tag in the event files of a folder."""
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = event_accumulator.EventAccumulator(os.fspath(folder)).Reload()
    return {tag: [event.step for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def histograms(folder: str | os.PathLike[str]) -> list[str]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(os.fspath(folder)).Reload().Tags()["histograms"]


def begun(recorded: Recorded) -> list[str]:
    """Names of slices in order, and the ends of steps."""
    return [word.lstrip("+") for word in recorded.words() if word[0] == "+" or word == "end_step"]


@pytest.mark.parametrize(
    ("ours", "library", "message"),
    [
        ("keras", "keras", "pip install keras"),
        ("transformers", "transformers", r"pip install 'transformers\[torch\]'"),
        ("lightning", "lightning", "pip install lightning"),
    ],
)
def test_import_without_the_library(monkeypatch: pytest.MonkeyPatch, ours: str, library: str, message: str) -> None:
    for name in (library, "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"stepscope.{ours}", raising=False)
    with pytest.raises(ImportError, match=message):
        importlib.import_module(f"stepscope.{ours}")


def test_importing_imports_no_library() -> None:
    """Neither torch, jax nor numpy is imported with the modules that can do without until they are used."""
    modules = "stepscope.torch, stepscope.jax, stepscope.tracing, stepscope.metrics"
    heavy = ["torch", "jax", "numpy", "tensorflow", "psutil", "pynvml", "PIL", "matplotlib"]
    code = f"""
import sys, types
try:
    import stepscope._native
except ImportError:  # not built; the functions of this test need none of it
    sys.modules["stepscope._native"] = types.ModuleType("stepscope._native")
import {modules}
print([name for name in {heavy} if name in sys.modules])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ran.stdout.strip() == "[]", ran.stderr


# --- JAX


@needs("jax")
def test_jax_trace_and_annotate(tmp_path: Path, recorded: Recorded) -> None:
    import jax
    import jax.numpy as jnp

    import stepscope.jax

    @stepscope.jax.annotate(wait=True)
    @jax.jit
    def step(x: Any) -> Any:
        return inner(x) * 2

    @stepscope.jax.annotate(name="scope")
    def inner(x: Any) -> Any:
        return jnp.sin(x)

    with stepscope.jax.trace(tmp_path):
        assert step(jnp.zeros(4)).shape == (4,)
        step(jnp.zeros(4))
    assert recorded.n_open() == 0
    name = "test_jax_trace_and_annotate.step"
    assert begun(recorded) == ["jax trace", name, "scope", name]  # the inner function runs once, when jit traces it
    (trace,) = (tmp_path / "plugins" / "profile").glob("*/*.xplane.pb")
    assert name.encode() in trace.read_bytes()
    assert "scope" in jax.jit(inner).lower(jnp.zeros(4)).as_text(debug_info=True)

    with pytest.raises(RuntimeError), stepscope.jax.trace(tmp_path), stepscope.jax.trace(tmp_path):
        pass


@needs("jax")
def test_jax_annotate_rejects() -> None:
    import stepscope.jax

    async def waits() -> None: ...

    with pytest.raises(TypeError, match="traced"):
        stepscope.jax.annotate(waits)
    with pytest.raises(TypeError, match="expected a function"):
        stepscope.jax.annotate("step")


def test_jax_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import stepscope.jax

    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match="pip install jax"), stepscope.jax.trace(tmp_path):
        pass


# --- Keras


def keras_model() -> Any:
    import keras

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, name="hidden"), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    return model


@needs("keras", "torch")
def test_keras(tmp_path: Path, recorded: Recorded) -> None:
    import numpy as np

    import stepscope.keras

    x, y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")
    model = keras_model()
    callback = stepscope.keras.Callback(tmp_path, histograms=2, update_freq=2)
    model.fit(x, y, batch_size=2, epochs=3, validation_data=(x, y), verbose=0, callbacks=[callback])
    assert recorded.n_open() == 0
    epoch = ["epoch", *["end_step"] * 4, "validation"]
    assert begun(recorded) == ["fit", *epoch * 3]
    assert recorded.words().count("begin_step") == 12
    assert scalars(tmp_path / "train") == {
        "batch_loss": [2, 4, 6, 8, 10, 12],
        "batch_mae": [2, 4, 6, 8, 10, 12],
        "epoch_loss": [0, 1, 2],
        "epoch_mae": [0, 1, 2],
        "epoch_learning_rate": [0, 1, 2],
    }
    assert scalars(tmp_path / "validation") == {
        "epoch_loss": [0, 1, 2],
        "epoch_mae": [0, 1, 2],
        "evaluation_loss_vs_iterations": [4, 8, 12],
        "evaluation_mae_vs_iterations": [4, 8, 12],
    }
    names = histograms(tmp_path / "train")
    assert len(names) == 4 and any("hidden/kernel/histogram" in name for name in names)

    recorded.events.clear()
    model.evaluate(x, y, verbose=0, callbacks=[callback])
    model.predict(x, verbose=0, callbacks=[callback])
    assert begun(recorded) == ["evaluate", "predict"] and recorded.n_open() == 0


@needs("keras", "torch")
def test_keras_after_an_exception(tmp_path: Path, recorded: Recorded) -> None:
    import keras
    import numpy as np

    import stepscope.keras

    class Stops(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise KeyboardInterrupt

    x, y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")
    model, callback = keras_model(), stepscope.keras.Callback(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y, verbose=0, callbacks=[callback, Stops()])
    model.fit(x, y, verbose=0, callbacks=[callback])
    assert recorded.n_open() == 0 and recorded.words().count("-fit") == 2


@needs("keras", "torch")
def test_keras_arguments() -> None:
    import stepscope.keras

    with pytest.raises(ValueError, match="histograms"):
        stepscope.keras.Callback(histograms=-1)
    for wrong in ("step", 0, 1.5):
        with pytest.raises(ValueError, match="update_freq: expected 'epoch', 'batch' or a number"):
            stepscope.keras.Callback(update_freq=wrong)


# --- Transformers


def hf_trainer(folder: Path, callback: Any, **arguments: Any) -> Any:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    config = BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=20, num_labels=2
    )
    data = [{"input_ids": torch.arange(5), "labels": torch.tensor(i % 2)} for i in range(8)]
    args = TrainingArguments(
        str(folder), max_steps=4, per_device_train_batch_size=2, use_cpu=True, report_to="none", logging_steps=2,
        disable_tqdm=True, **arguments,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    return Trainer(model, args, train_dataset=data, eval_dataset=data, callbacks=[callback])


@needs("transformers", "torch", "accelerate")
def test_transformers(tmp_path: Path, recorded: Recorded) -> None:
    from stepscope.transformers import StepscopeCallback

    trainer = hf_trainer(
        tmp_path, StepscopeCallback(tmp_path / "log"), eval_strategy="steps", eval_steps=2, save_steps=4,
        gradient_accumulation_steps=2,
    )  # fmt: skip
    trainer.train()
    assert recorded.n_open() == 0
    names = begun(recorded)
    assert names[0] == "train" and names.count("end_step") == 4 and names.count("evaluate") == 2
    assert names.count("optimizer.step") == 4 and names.count("epoch") == 2
    assert recorded.words().count("mark") >= 1
    steps = scalars(tmp_path / "log")
    assert steps["train/loss"] == [2, 4] and steps["eval/loss"] == [2, 4] and "train/learning_rate" in steps

    recorded.events.clear()
    trainer.evaluate()
    trainer.predict(trainer.eval_dataset)
    assert begun(recorded) == ["evaluate", "evaluate"] and recorded.n_open() == 0


@needs("transformers", "torch", "accelerate")
def test_transformers_writer_and_default_folder(tmp_path: Path, recorded: Recorded) -> None:
    from stepscope.summary import SummaryWriter
    from stepscope.transformers import StepscopeCallback

    hf_trainer(tmp_path, StepscopeCallback(), eval_strategy="epoch").train()
    (folder,) = (tmp_path / "runs").iterdir()
    assert scalars(folder)["train/loss"] == [2, 4] and begun(recorded)[-1] == "evaluate"

    writer = SummaryWriter(tmp_path / "given")
    hf_trainer(tmp_path, StepscopeCallback(writer=writer)).train()
    writer.add_scalar("after", 1.0, 5)  # it is still open
    writer.close()
    assert {"train/loss", "after"} <= set(scalars(tmp_path / "given"))
    with pytest.raises(ValueError, match="either log_dir or writer"):
        StepscopeCallback(tmp_path, writer)


# --- Lightning


def lightning_parts() -> tuple[Any, Any, Any]:
    import lightning
    import torch

    class Model(lightning.LightningModule):
        def __init__(self, width: int = 4, **rest: Any) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.layer = torch.nn.Linear(width, 1)
            self.fails = False

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if self.fails:
                raise RuntimeError("in training")
            loss = self.layer(batch).pow(2).mean()
            self.log("loss", loss)
            return loss

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/loss", self.layer(batch).mean())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    return lightning, Model, torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2)


def lightning_trainer(lightning: Any, logger: Any, callback: Any) -> Any:
    return lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=logger, callbacks=[callback], log_every_n_steps=2,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip


@needs("lightning")
def test_lightning(tmp_path: Path, recorded: Recorded) -> None:
    from stepscope.lightning import StepscopeCallback, StepscopeLogger

    lightning, Model, loader = lightning_parts()
    logger = StepscopeLogger(tmp_path, "demo", prefix="p")
    trainer = lightning_trainer(lightning, logger, StepscopeCallback())
    trainer.fit(Model(nested={"a": [1, 2]}), loader, loader)
    assert recorded.n_open() == 0
    names = begun(recorded)
    assert names[:4] == ["fit", "sanity check", "validation", "epoch"]
    assert names[4:6] == ["backward", "end_step"] and names.count("end_step") == 8 and names.count("validation") == 3
    assert logger.log_dir == str(tmp_path / "demo" / "version_0") and logger.name == "demo" and logger.version == 0
    steps = scalars(logger.log_dir)
    assert steps["p/loss"] == [1, 3, 5, 7] and steps["p/val/loss"] == [3, 7]
    assert list((tmp_path / "demo" / "version_0" / "checkpoints").iterdir())
    assert StepscopeLogger(tmp_path, "demo").version == 1
    assert StepscopeLogger(tmp_path, "", "named").log_dir == str(tmp_path / "named")

    recorded.events.clear()
    trainer.validate(trainer.model, loader, verbose=False)
    assert begun(recorded) == ["validation"] and recorded.n_open() == 0


@needs("lightning")
def test_lightning_after_an_exception(tmp_path: Path, recorded: Recorded) -> None:
    from stepscope.lightning import StepscopeCallback, StepscopeLogger

    lightning, Model, loader = lightning_parts()
    model = Model()
    model.fails = True
    with pytest.raises(RuntimeError, match="in training"):
        lightning_trainer(lightning, StepscopeLogger(tmp_path), StepscopeCallback()).fit(model, loader)
    assert recorded.n_open() == 0 and recorded.words()[-1] == "end_step"


@needs("lightning")
def test_lightning_logger_alone(tmp_path: Path) -> None:
    import pickle
    from argparse import Namespace

    from stepscope.lightning import StepscopeLogger

    logger = StepscopeLogger(tmp_path, version="run")
    logger.log_metrics({"a": 1.0, "b": {"c": 2.0}})
    logger.log_metrics({"a": 2.0})
    logger.log_hyperparams(Namespace(lr=0.1, layers=[1, 2], optimizer={"name": "sgd"}), {"best": 1.0})
    copied = pickle.loads(pickle.dumps(logger))
    logger.finalize("success")
    assert scalars(logger.log_dir) == {"a": [0, 1], "b/c": [0], "best": [0]}
    assert copied.log_dir == logger.log_dir
