"""What the tests of `stepscope.summary` share: logs of our writer and of PyTorch's, read by TensorBoard."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

for library in ("torch", "tensorboardX", "PIL"):
    pytest.importorskip(library)

# ruff: noqa: E402
import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import SummaryWriter as TorchWriter

from stepscope.summary import SummaryWriter

WALLTIME = 1_700_000_000.125
RNG = np.random.default_rng(0)
LABELS, PREDICTIONS = RNG.integers(0, 2, 100), RNG.random(100)
BOXES = np.array([[1, 2, 9, 11], [4, 4, 15, 14]])


def events(folder: str | Path, loader: type = LegacyEventFileLoader) -> list[Event]:
    """All events in the files of a folder, in order, without the headers of the files."""
    files = sorted(path for path in Path(folder).iterdir() if "tfevents" in path.name)
    loaded = [event for path in files for event in list(loader(str(path)).Load())[1:]]
    for event in loaded:
        if event.graph_def:
            # What is a map in there has no order.
            event.graph_def = GraphDef.FromString(event.graph_def).SerializeToString(deterministic=True)
        for value in event.summary.value:
            if value.image.encoded_image_string.startswith(b"\x89PNG"):
                # Encoders may differ, the pixels may not.
                value.image.encoded_image_string = decoded(value.image.encoded_image_string).tobytes()
    return loaded


def decoded(encoded: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(encoded)))


def exact(event: Event) -> bytes:
    return event.SerializeToString(deterministic=True)


def written(kind: type, folder: Path, add: Callable[[Any], Any], loader: type = LegacyEventFileLoader) -> list[Event]:
    with kind(log_dir=str(folder)) as writer:
        add(writer)
    return events(folder, loader)


def add_both(tmp_path: Path, add: Callable[[Any], Any]) -> tuple[list[Event], list[Event]]:
    ours = written(SummaryWriter, tmp_path / "ours", add)
    theirs = written(TorchWriter, tmp_path / "torch", add)
    assert theirs
    return ours, theirs


def one(tmp_path: Path, add: Callable[[Any], Any]) -> Summary.Value:
    (event,) = written(SummaryWriter, tmp_path / "ours", add)
    (value,) = event.summary.value
    return value


def same(tmp_path: Path, add: Callable[[Any], Any], compare_time: bool = True) -> None:
    """Fails unless both writers write the same bytes, and TensorBoard makes the same of them."""
    ours, theirs = add_both(tmp_path, add)
    for event in [] if compare_time else ours + theirs:
        assert abs(event.wall_time - time.time()) < 60
        event.wall_time = 0
    assert list(map(exact, ours)) == list(map(exact, theirs))


STEP = {"global_step": 7, "walltime": WALLTIME}
