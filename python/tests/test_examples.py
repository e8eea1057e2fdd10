"""The examples as their users run them; those for which a library is missing are skipped."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stepscope

PROGRAM = os.environ.get("STEPSCOPE_PROGRAM") or shutil.which("stepscope")
EXAMPLES = Path(__file__).parents[1] / "examples"

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs the stepscope program: on PATH, or in STEPSCOPE_PROGRAM")


def answer(*args: str) -> list[dict]:
    """What the program prints, an object a line."""
    assert PROGRAM
    done = subprocess.run([PROGRAM, *args, "--json"], check=True, capture_output=True, text=True, timeout=300)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("example", "library", "scalar"),
    [
        ("asyncio_server", "asyncio", None),
        ("torch_train", "torch", "loss"),
        ("jax_train", "jax", "loss"),
        ("keras_train", "keras", "epoch_loss"),
        ("hf_trainer", "transformers", "train/loss"),
        ("lightning_train", "lightning", "loss/train"),
    ],
)
def test_example(tmp_path: Path, example: str, library: str, scalar: str | None) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}")
    if example == "keras_train" and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    paths = os.pathsep.join([str(Path(stepscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(EXAMPLES / f"{example}.py")]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    traces = [path.parent for path in (tmp_path / "runs").rglob("control")]
    assert traces, "no recording"
    assert sum(answer("analyze", str(trace))[0]["slices"] for trace in traces) > 20
    if scalar:
        tags = {tag for run in answer("runs", str(tmp_path / "runs")) for tag in run["tags"]}
        assert scalar in tags, sorted(tags)
