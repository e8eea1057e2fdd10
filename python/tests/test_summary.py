"""`stepscope.summary` against `torch.utils.tensorboard` and tensorboardX: what both write must read the same."""

from __future__ import annotations

import io
import json
import math
import os
import time
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

for library in ("torch", "tensorboardX", "PIL"):
    pytest.importorskip(library)

# ruff: noqa: E402
import numpy as np
import torch
from PIL import Image
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.util import tensor_util
from torch.utils.tensorboard import SummaryWriter as TorchWriter

from stepscope.summary import SummaryWriter
from written import (
    BOXES,
    LABELS,
    PREDICTIONS,
    RNG,
    STEP,
    WALLTIME,
    add_both,
    decoded,
    events,
    exact,
    one,
    same,
    written,
)

SCALARS = {
    "float": 0.1,
    "int": 3,
    "bool": True,
    "zero": 0.0,
    "negative zero": -0.0,
    "nan": math.nan,
    "infinite": -math.inf,
    "beyond single precision": 1e300,
    "nearly beyond": 3.4028235677973366e38 * (1 - 1e-16),
    "denormal": 1e-42,
    "large int": 2**63 + 5,
    "float32": np.float32(0.1),
    "float64": np.float64(0.1),
    "float16": np.float16(0.1),
    "int64": np.int64(-5),
    "array": np.array([[0.1]]),
    "tensor": torch.tensor(0.1),
    "tensor with gradient": torch.tensor([[0.1]], requires_grad=True),
    "double": torch.tensor(0.1, dtype=torch.float64),
    "half": torch.tensor(0.1, dtype=torch.float16),
    "bfloat16": torch.tensor(0.1, dtype=torch.bfloat16),
    "bool tensor": torch.tensor(True),
}


@pytest.mark.parametrize("value", SCALARS.values(), ids=SCALARS)
@pytest.mark.parametrize("style", [{}, {"new_style": True}, {"new_style": True, "double_precision": True}], ids=str)
def test_scalar(tmp_path: Path, value: Any, style: dict[str, bool]) -> None:
    same(tmp_path, lambda writer: writer.add_scalar("a/b", value, **STEP, **style))


STEPS = {
    "none": None,
    "zero": 0,
    "negative": -3,
    "large": 2**62,
    "numpy": np.int32(5),
    "float": 5.9,
    "tensor": torch.tensor(4),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("walltime", [None, 0, 1.5, np.float64(2.5)], ids=str)
def test_step_and_time(tmp_path: Path, step: Any, walltime: Any) -> None:
    def add(writer: Any) -> None:
        writer.add_scalar("a", 1.0, step, walltime)
        writer.add_text("b", "c", step, walltime)

    same(tmp_path, add, compare_time=walltime is not None)


IMAGES = {
    "CHW": RNG.random((3, 5, 7)),
    "HWC": RNG.random((5, 7, 3)),
    "chw": RNG.random((3, 5, 7)),
    "HW": RNG.random((5, 7)),
    "WH": RNG.random((5, 7)),
    "NCHW": RNG.random((11, 3, 5, 7)),
    "NHWC": RNG.random((3, 5, 7, 1)),
    "CHWN": RNG.random((3, 5, 7, 9)),
}


@pytest.mark.parametrize("dataformats", IMAGES)
def test_image_orders(tmp_path: Path, dataformats: str) -> None:
    add_image = "add_images" if len(dataformats) == 4 else "add_image"
    same(tmp_path, lambda w: getattr(w, add_image)("i", IMAGES[dataformats], **STEP, dataformats=dataformats))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "float16", "int64", "bool"])
def test_image_types(tmp_path: Path, channels: int, dtype: str) -> None:
    values = (RNG.random((channels, 9, 8)) * 300 - 20).clip(0 if dtype == "uint8" else -20)
    same(tmp_path, lambda w: w.add_image("i", values.astype(dtype), **STEP))
    same(tmp_path / "scaled", lambda w: w.add_image("i", torch.as_tensor((values / 255).astype(dtype)), **STEP))


def test_image_defaults(tmp_path: Path) -> None:
    same(tmp_path, lambda w: w.add_image("i", torch.rand(3, 4, 5, generator=torch.manual_seed(1)), 1, WALLTIME))
    same(
        tmp_path / "n", lambda w: w.add_images("i", torch.rand(9, 1, 5, 5, generator=torch.manual_seed(1)), 1, WALLTIME)
    )


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"labels": ["cat", "a dog"]},
        {"labels": "one"},
        {"labels": ["", "x"]},
        {"rescale": 1.7},
        {"rescale": 2, "labels": ["cat", "dog"]},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*labels do not fit")
def test_image_with_boxes(tmp_path: Path, more: dict[str, Any]) -> None:
    image = RNG.random((3, 40, 60))
    same(tmp_path, lambda w: w.add_image_with_boxes("i", image, torch.as_tensor(BOXES), **STEP, **more))
    same(
        tmp_path / "bytes",
        lambda w: w.add_image_with_boxes("i", np.uint8(image.T * 255), BOXES + 0.5, **STEP, **more, dataformats="WHC"),
    )


@pytest.mark.parametrize("several", [False, True])
def test_figure(tmp_path: Path, several: bool) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")

    def figure() -> Any:
        figure, axes = plt.subplots(figsize=(2.33, 1.57), dpi=77)
        axes.plot([1, 3, 2])
        return figure

    same(tmp_path, lambda w: w.add_figure("f", [figure(), figure()] if several else figure(), **STEP))
    assert not plt.get_fignums()
    with SummaryWriter(tmp_path / "open") as writer:
        writer.add_figure("f", figure(), close=False)
    assert plt.get_fignums()
    plt.close("all")


HISTOGRAMS = {
    "normal": RNG.normal(size=1000),
    "matrix": torch.as_tensor(RNG.normal(size=(30, 40)), dtype=torch.float32),
    "integers": np.arange(100) - 30,
    "one": torch.tensor(3.0),
    "equal": np.full(10, -2.0),
    "zeros": np.zeros(5),
    "half": torch.as_tensor(RNG.normal(size=50)).bfloat16(),
    "bool": np.array([True, False, True]),
    "far apart": np.array([-1e15, 1e-13, 1e18]),
}


@pytest.mark.parametrize("values", HISTOGRAMS.values(), ids=HISTOGRAMS)
def test_histogram(tmp_path: Path, values: Any) -> None:
    ours, theirs = add_both(tmp_path, lambda w: w.add_histogram("h", values, **STEP))
    for our, their in zip(ours, theirs, strict=True):
        for field in ("sum", "sum_squares"):
            # The order of the additions is not defined.
            a, b = (getattr(event.summary.value[0].histo, field) for event in (our, their))
            assert a == pytest.approx(b, rel=1e-9, abs=1e-9)
            setattr(our.summary.value[0].histo, field, b)
        assert exact(our) == exact(their)


BINS: list[Any] = ["auto", "fd", "sqrt", 7, 1, [-1.0, 0.0, 0.5, 9.0], np.linspace(-9, 9, 300)]


@pytest.mark.parametrize("bins", BINS, ids=str)
@pytest.mark.parametrize("max_bins", [None, 1, 2, 5, 64])
def test_histogram_bins(tmp_path: Path, bins: Any, max_bins: int | None) -> None:
    values = HISTOGRAMS["normal"]
    same(tmp_path, lambda w: w.add_histogram("h", values, **STEP, bins=bins, max_bins=max_bins))


@pytest.mark.parametrize("max_bins", [1, 10, 100, 1000, 1548, 5000])
def test_histogram_max_bins(tmp_path: Path, max_bins: int) -> None:
    same(tmp_path, lambda w: w.add_histogram("h", HISTOGRAMS["normal"], **STEP, max_bins=max_bins))


def test_histogram_raw(tmp_path: Path) -> None:
    values = HISTOGRAMS["normal"]
    counts, limits = np.histogram(values)
    numbers = (values.min(), values.max(), len(values), values.sum(), values.dot(values))
    same(tmp_path, lambda w: w.add_histogram_raw("h", *numbers, limits[1:].tolist(), counts.tolist(), **STEP))
    same(tmp_path / "arrays", lambda w: w.add_histogram_raw("h", 0, 0, 0, -0.0, 0, limits[1:], counts, **STEP))


def test_default_bins(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path / "a") as ours, TorchWriter(str(tmp_path / "b")) as theirs:
        assert ours.default_bins == theirs.default_bins

    def add(writer: Any) -> None:
        writer.default_bins = [-1.0, 0.0, 1.0]
        writer.add_histogram("h", HISTOGRAMS["normal"], **STEP)

    same(tmp_path, add)


TENSORS = {
    str(dtype): torch.tensor([[0, 1, 2], [5, 100, 127]]).to(dtype)
    for dtype in (
        torch.bool,
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float32,
        torch.float64,
    )
} | {
    "negative": torch.tensor([-1, -(2**63), 2**63 - 1]),
    "number": torch.tensor(1.5),
    "empty": torch.zeros(0, 3),
    "not contiguous": torch.arange(12.0).reshape(3, 4).T,
    "complex64": torch.tensor([1 + 2j, -3j]),
    "complex128": torch.tensor([1 + 2j, -3j], dtype=torch.complex128),
    "not finite": torch.tensor([math.nan, math.inf]),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_tensor(tmp_path: Path, tensor: torch.Tensor) -> None:
    same(tmp_path, lambda w: w.add_tensor("t", tensor, **STEP))


@pytest.mark.parametrize("dtype", ["float16", "uint16"])
def test_tensor_that_tensorboard_reads(tmp_path: Path, dtype: str) -> None:
    # PyTorch's writer refuses uint16, and writes halves so that TensorBoard cannot read them.
    array = np.array([[0, 1], [1000, 60000]], dtype)
    value = one(tmp_path, lambda w: w.add_tensor("t", torch.as_tensor(array) if dtype == "float16" else array))
    assert np.array_equal(tensor_util.make_ndarray(value.tensor), array)


def test_bfloat16_tensor(tmp_path: Path) -> None:
    tensor = torch.tensor([0.1, -1e30, math.inf]).bfloat16()
    value = one(tmp_path, lambda w: w.add_tensor("t", tensor))
    assert list(value.tensor.half_val) == tensor.view(torch.uint16).tolist()


def test_unsigned_tensors(tmp_path: Path) -> None:
    value = one(tmp_path / "32", lambda w: w.add_tensor("t", np.array([2**32 - 1], "uint32")))
    assert list(value.tensor.uint32_val) == [2**32 - 1]
    value = one(tmp_path / "64", lambda w: w.add_tensor("t", np.array([2**64 - 1], "uint64")))
    assert list(value.tensor.uint64_val) == [2**64 - 1]


@pytest.mark.parametrize("shape", [(1, 50), (50,), (50, 1)], ids=str)
@pytest.mark.filterwarnings("ignore:.*clipped")
def test_audio(tmp_path: Path, shape: tuple[int, ...]) -> None:
    sound = RNG.normal(size=shape) * 0.7
    same(tmp_path, lambda w: w.add_audio("a", sound, **STEP))
    same(
        tmp_path / "rate",
        lambda w: w.add_audio("a", torch.as_tensor(sound).float().clip(-1, 1), **STEP, sample_rate=8000),
    )


@pytest.mark.filterwarnings("ignore:.*amplitudes")
@pytest.mark.parametrize("dtype", ["float16", "int16", "int64"])
def test_audio_of_other_types(tmp_path: Path, dtype: str) -> None:
    lowest = -1.0 if dtype == "float16" else np.iinfo(dtype).min
    audio = one(tmp_path, lambda w: w.add_audio("a", np.array([1, 0, lowest], dtype))).audio
    with wave.open(io.BytesIO(audio.encoded_audio_string)) as file:
        assert np.frombuffer(file.readframes(3), "<i2").tolist() == [32767, 0, -32767]


def test_stereo(tmp_path: Path) -> None:
    audio = one(tmp_path, lambda w: w.add_audio("a", [[0.5, -0.5], [1.0, -1.0]], sample_rate=100)).audio
    assert (audio.num_channels, audio.length_frames, audio.sample_rate) == (2, 2, 100)
    with wave.open(io.BytesIO(audio.encoded_audio_string)) as file:
        assert np.frombuffer(file.readframes(2), "<i2").tolist() == [16383, -16383, 32767, -32767]


@pytest.mark.parametrize("n_videos", [1, 2, 3, 4, 7, 8, 9, 16])
@pytest.mark.parametrize("kind", ["bytes", "float", "grey"])
def test_video(tmp_path: Path, n_videos: int, kind: str) -> None:
    from torch.utils.tensorboard._utils import _prepare_video

    values = RNG.choice(np.array([0, 60, 201, 255], np.uint8), (n_videos, 3, 1 if kind == "grey" else 3, 4, 6))
    expected = np.uint8((np.float32(_prepare_video(values)) * 255).clip(0, 255))
    if kind == "float":
        values = values / 255.0 * 1.000001
    image = one(tmp_path, lambda w: w.add_video("v", torch.as_tensor(values), fps=10)).image
    gif = Image.open(io.BytesIO(image.encoded_image_string))
    assert (image.height, image.width, image.colorspace) == expected.shape[1:]
    assert gif.n_frames == 3
    assert gif.info["duration"] == 100
    for index, frame in enumerate(expected):
        gif.seek(index)
        assert np.array_equal(np.asarray(gif.convert("RGB")), np.broadcast_to(frame, (*frame.shape[:2], 3)))


def test_video_order(tmp_path: Path) -> None:
    values = RNG.integers(0, 2, (2, 3, 4, 6, 1), np.uint8) * 255
    a = one(tmp_path / "a", lambda w: w.add_video("v", values, dataformats="nthwc"))
    b = one(tmp_path / "b", lambda w: w.add_video("v", values.transpose(0, 1, 4, 2, 3)))
    assert a == b


@pytest.mark.parametrize("text", ["", "# plain", "Grüße \U0001f600", "a\0b"])
def test_text(tmp_path: Path, text: str) -> None:
    same(tmp_path, lambda w: w.add_text("t", text, **STEP))


@pytest.mark.parametrize("num_thresholds", [1, 2, 50, 127, 200])
@pytest.mark.filterwarnings("ignore:.*thresholds are reduced", "ignore:.*beyond 0..1")
def test_pr_curve(tmp_path: Path, num_thresholds: int) -> None:
    weights = RNG.random(100)
    more = STEP | {"num_thresholds": num_thresholds}
    same(tmp_path, lambda w: w.add_pr_curve("p", LABELS, PREDICTIONS, **more))
    same(tmp_path / "weights", lambda w: w.add_pr_curve("p", LABELS, PREDICTIONS, **more, weights=weights))
    same(tmp_path / "weight", lambda w: w.add_pr_curve("p", LABELS, PREDICTIONS, **more, weights=0.5))
    same(tmp_path / "beyond", lambda w: w.add_pr_curve("p", LABELS, PREDICTIONS * 1.2, **more))
    tensors = torch.as_tensor(LABELS).bool(), torch.as_tensor(PREDICTIONS).float()
    same(tmp_path / "tensors", lambda w: w.add_pr_curve("p", *tensors, **more))


def test_pr_curve_raw(tmp_path: Path) -> None:
    rows = RNG.integers(0, 100, (4, 5)).tolist() + RNG.random((2, 5)).tolist()
    same(tmp_path, lambda w: w.add_pr_curve_raw("p", *rows, **STEP, num_thresholds=5))
    same(tmp_path / "tensors", lambda w: w.add_pr_curve_raw("p", *map(np.array, rows), **STEP))


def test_custom_scalars(tmp_path: Path) -> None:
    layout = {
        "A": {"a": ["Multiline", ["x/1", "x/2"]], "b": ["Margin", ["v", "l", "u"]]},
        "B": {"c": ["Multiline", [r"loss/.*"]], "d": ["Multiline", []]},
        "C": {},
    }

    def add(writer: Any) -> None:
        writer.add_custom_scalars(layout)
        writer.add_custom_scalars_multilinechart(["a", "b"])
        writer.add_custom_scalars_marginchart(["a", "b", "c"], "category", "title")
        writer.add_custom_scalars({})

    same(tmp_path, add, compare_time=False)


def test_mesh(tmp_path: Path) -> None:
    vertices = torch.as_tensor(RNG.random((2, 4, 3)), dtype=torch.float32)
    colors = torch.as_tensor(RNG.integers(0, 256, (2, 4, 3)), dtype=torch.int32)
    faces = torch.as_tensor(RNG.integers(0, 4, (2, 6, 3)), dtype=torch.int32)
    config = {"lights": [{"cls": "AmbientLight", "color": "#fff"}], "camera": {"cls": "x", "fov": 75}}
    same(tmp_path, lambda w: w.add_mesh("m", vertices, **STEP))
    same(tmp_path / "all", lambda w: w.add_mesh("m", vertices, colors, faces, config, **STEP))
    same(tmp_path / "arrays", lambda w: w.add_mesh("m", vertices.double().numpy(), faces=faces.numpy(), **STEP))


def test_scalars(tmp_path: Path) -> None:
    def add(writer: Any) -> None:
        writer.add_scalars("main/tag", {"a": 1.5, "b/c": torch.tensor(2.0), "d": np.float32(0.1)}, **STEP)
        writer.add_scalars("main/tag", {"a": 2.5}, 8, WALLTIME)
        writer.add_scalar("other", 1.0, **STEP)
        assert sorted(os.path.relpath(folder, tmp_path) for folder in writer.all_writers)[-1].endswith("main_tag_d")

    same(tmp_path, add)
    for folder in ("main_tag_a", "main_tag_b/c", "main_tag_d"):
        ours, theirs = events(tmp_path / "ours" / folder), events(tmp_path / "torch" / folder)
        assert theirs and list(map(exact, ours)) == list(map(exact, theirs))


def test_export_scalars_to_json(tmp_path: Path) -> None:
    from tensorboardX import SummaryWriter as XWriter

    exported = []
    for kind, folder in ((SummaryWriter, "ours"), (XWriter, "x")):
        with kind(logdir=str(tmp_path / folder)) as writer:
            writer.add_scalars("m", {"a": 1.5, "b": torch.tensor(0.1)}, 7, WALLTIME)
            writer.add_scalars("m", {"a": 2}, None, WALLTIME)
            writer.export_scalars_to_json(tmp_path / "x.json")
            exported.append(list(json.loads((tmp_path / "x.json").read_text()).values()))
            writer.export_scalars_to_json(tmp_path / "x.json")
            assert json.loads((tmp_path / "x.json").read_text()) == {}
    assert exported[0] == exported[1]
    assert exported[0][0] == [[WALLTIME, 7, 1.5], [WALLTIME, None, 2.0]]


HPARAMS = {
    "lr": 0.1,
    "n": 3,
    "flag": True,
    "off": False,
    "name": "adam",
    "": "empty",
    "none": None,
    "tensor": torch.tensor([2.5]),
}
DOMAINS = {"lr": [0.1, 0.2], "flag": [True, False], "name": ["adam", "sgd"], "n": []}


@pytest.mark.parametrize("domains", [None, DOMAINS], ids=bool)
@pytest.mark.parametrize("step", [None, 5])
def test_hparams(tmp_path: Path, domains: Any, step: int | None) -> None:
    metrics = {"accuracy": 0.9, "loss": torch.tensor(0.5)}
    for kind, folder in ((SummaryWriter, "ours"), (TorchWriter, "torch")):
        with kind(str(tmp_path / folder)) as writer:
            writer.add_hparams(HPARAMS, metrics, domains, "run", step)
            writer.add_hparams({"a": 1}, {})
        runs = {path.name for path in (tmp_path / folder).iterdir() if path.is_dir()} - {"run"}
        assert abs(float(runs.pop()) - time.time()) < 60
    ours, theirs = events(tmp_path / "ours/run"), events(tmp_path / "torch/run")
    assert len(theirs) == 5
    for our, their in zip(ours, theirs, strict=True):
        assert our.step == their.step
        (a,), (b,) = our.summary.value, their.summary.value
        # What is a map in there has no order.
        for metadata in (a.metadata, b.metadata):
            content = HParamsPluginData.FromString(metadata.plugin_data.content)
            metadata.plugin_data.content = content.SerializeToString(deterministic=True)
        assert a == b


def test_hparams_of_tensorboardx(tmp_path: Path) -> None:
    from tensorboardX import SummaryWriter as XWriter

    for kind, folder in ((SummaryWriter, "ours"), (XWriter, "x")):
        with kind(str(tmp_path / folder)) as writer:
            writer.add_hparams({"f": math.sqrt}, {"m": 1.0}, "named")
            writer.add_hparams({"f": math.sqrt}, {"m": 1.0}, name="keyword", global_step=3)
    for run in ("named", "keyword"):
        ours, theirs = events(tmp_path / "ours" / run), events(tmp_path / "x" / run)
        assert [event.summary for event in ours] == [event.summary for event in theirs]
        assert ours[-1].step == theirs[-1].step


@pytest.mark.parametrize("header", [None, ["a", "b"]], ids=str)
@pytest.mark.parametrize("images", [None, torch.rand(7, 3, 4, 5), torch.rand(7, 1, 6, 6)], ids=["none", "wide", "grey"])
@pytest.mark.filterwarnings("ignore:the embedding")
def test_embedding(tmp_path: Path, header: list[str] | None, images: Any) -> None:
    metadata = [[f"é{i}", i] if header else f"label {i}" for i in range(7)]
    vectors = torch.as_tensor(RNG.normal(size=(7, 3)), dtype=torch.float32)

    def add(writer: Any) -> None:
        writer.add_embedding(vectors)
        writer.add_embedding(vectors.numpy(), metadata, images, 3, "a/b%c\\", header)
        writer.add_embedding(vectors.int(), label_img=images, global_step=3, tag='it\'s "ü"\n\t')
        writer.add_embedding(vectors)

    for kind, folder in ((SummaryWriter, "ours"), (TorchWriter, "torch")):
        with kind(str(tmp_path / folder)) as writer:
            add(writer)
    ours, theirs = (
        {str(path.relative_to(folder)): path for path in folder.rglob("*.*") if "tfevents" not in path.name}
        for folder in (tmp_path / "ours", tmp_path / "torch")
    )
    assert ours.keys() == theirs.keys()
    for name, path in theirs.items():
        a, b = ours[name].read_bytes(), path.read_bytes()
        assert np.array_equal(decoded(a), decoded(b)) if name.endswith("png") else a == b, name


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> Any:
        x = self.layers(x) * self.scale
        first, second = x.chunk(2, 1)
        return first + second, {"flat": x.flatten(1)}


class Nested(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(5, 5), torch.nn.Linear(5, 5)])
        self.shared = self.blocks[0]
        self.attention = torch.nn.MultiheadAttention(5, 1, batch_first=True)
        self.rnn = torch.nn.LSTM(5, 6, batch_first=True)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        for block in self.blocks:
            x = torch.nn.functional.dropout(block(x), 0.5, self.training)
        x = self.shared(x) + y.view(1, -1) + 1
        x, _ = self.attention(x, x, x)
        return self.rnn(x)[0].sum(), y


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "linear": (lambda: torch.nn.Linear(3, 4), torch.rand(2, 3)),
    "identity": (lambda: torch.nn.Identity(), torch.rand(2, 3)),
    "block": (Block, torch.rand(1, 3, 8, 8)),
    "nested": (Nested, (torch.rand(2, 3, 5), torch.rand(5))),
    "scripted": (lambda: torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 4))), torch.rand(2, 3)),
    "transformer": (lambda: torch.nn.TransformerDecoderLayer(8, 2, 16), (torch.rand(3, 1, 8), torch.rand(4, 1, 8))),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_graph(tmp_path: Path, model: str) -> None:
    make, inputs = MODELS[model]
    torch.manual_seed(0)
    module = make()
    same(tmp_path, lambda w: w.add_graph(module, inputs, use_strict_trace=False), compare_time=False)
    graph = GraphDef.FromString(events(tmp_path / "ours")[0].graph_def)
    assert len(graph.node) >= 2


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_graph_keeps_modes(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout().eval())
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(module, torch.rand(3))
        with pytest.raises(TypeError, match="torch.nn.Module"):
            writer.add_graph(lambda x: x, torch.rand(3))
    assert [part.training for part in module.modules()] == [True, True, False]


def test_onnx_graph(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Softmax", ["y"], ["z"], axis=1, doc_string="d"),
    ]
    values = [helper.make_tensor_value_info(name, kind, [2, "n"]) for name in "xwz"]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", values[:2], values[2:])), tmp_path / "m.onnx")
    same(tmp_path, lambda w: w.add_onnx_graph(str(tmp_path / "m.onnx")), compare_time=False)


def test_openvino_graph(tmp_path: Path) -> None:
    from tensorboardX import SummaryWriter as XWriter

    (tmp_path / "m.xml").write_text(
        '<net><layers><layer id="0" name="a"/><layer id="1" name="b"/></layers>'
        '<edges><edge from-layer="0" to-layer="1"/></edges></net>'
    )
    for kind, folder in ((SummaryWriter, "ours"), (XWriter, "x")):
        with kind(logdir=str(tmp_path / folder)) as writer:
            writer.add_openvino_graph(tmp_path / "m.xml")
    (ours,), (theirs,) = events(tmp_path / "ours"), events(tmp_path / "x")
    assert GraphDef.FromString(ours.graph_def) == GraphDef.FromString(theirs.graph_def)
    (tmp_path / "m.xml").write_text("<net/>")
    with SummaryWriter(tmp_path / "bad") as writer, pytest.raises(ValueError, match="not an OpenVINO model"):
        writer.add_openvino_graph(tmp_path / "m.xml")


def test_scalar_texts_of_tensorboardx(tmp_path: Path) -> None:
    from tensorboardX import SummaryWriter as XWriter

    def add(writer: Any) -> None:
        writer.add_scalar("a", 1.5, 7, WALLTIME, display_name="Title", summary_description="*why*")
        writer.add_scalar("b", 1.5, 7, WALLTIME, "Title", "why")
        writer.add_scalar("c", 1.5, 7, WALLTIME, summary_description="why")

    ours, theirs = written(SummaryWriter, tmp_path / "ours", add), written(XWriter, tmp_path / "x", add)
    assert list(map(exact, ours)) == list(map(exact, theirs))


def test_images_of_tensorboardx(tmp_path: Path) -> None:
    from tensorboardX import SummaryWriter as XWriter

    images = [np.uint8(RNG.random((4, 5, 6)) * 255) for _ in range(3)]

    def add(writer: Any) -> None:
        writer.add_images("list", [torch.as_tensor(image) for image in images], 7, WALLTIME, "CHW")
        writer.add_images("alpha", np.stack(images), 7, WALLTIME)
        writer.add_image_with_boxes("boxes", images[0][:3], np.array([[0, 1, 4, 3]]), 7, WALLTIME, "CHW", ["x"])

    ours, theirs = written(SummaryWriter, tmp_path / "ours", add), written(XWriter, tmp_path / "x", add)
    assert list(map(exact, ours)) == list(map(exact, theirs))


def test_use_metadata(tmp_path: Path) -> None:
    def add(writer: Any) -> None:
        with writer.use_metadata(global_step=3, walltime=WALLTIME):
            writer.add_scalar("a", 1.0)
            writer.add_scalar("b", 1.0, 9, 2.0)
            writer.add_text("c", "x")
            with writer.use_metadata(global_step=4):
                writer.add_histogram("d", [1.0])
        writer.add_scalar("e", 1.0, walltime=1.0)

    added = written(SummaryWriter, tmp_path, add)
    assert [event.step for event in added] == [3, 9, 3, 4, 0]
    assert [event.wall_time for event in added[:3]] == [WALLTIME, 2.0, WALLTIME]
    assert abs(added[3].wall_time - time.time()) < 60
    with (
        SummaryWriter(tmp_path / "none") as writer,
        pytest.raises(ValueError, match="global_step or a walltime"),
        writer.use_metadata(),
    ):
        pass
