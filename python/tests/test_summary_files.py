"""The files of `stepscope.summary`: folders, threads, forked processes, bad input, what is imported."""

from __future__ import annotations

import math
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

for library in ("torch", "tensorboardX", "PIL"):
    pytest.importorskip(library)

# ruff: noqa: E402
import numpy as np
import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import SummaryWriter as TorchWriter

from stepscope.summary import FileWriter, SummaryWriter
from written import BOXES, RNG, STEP, WALLTIME, events, exact, one, written


def test_purge(tmp_path: Path) -> None:
    loaded = []
    for kind, folder in ((SummaryWriter, "ours"), (TorchWriter, "torch")):
        with kind(str(tmp_path / folder), purge_step=5) as writer:
            writer.add_scalar("a", 1.0, 5)
            writer.close()
            writer.add_scalar("a", 1.0, 6)
        loaded.append(events(tmp_path / folder))
    for event in loaded[0] + loaded[1]:
        event.wall_time = 0
    assert len(loaded[0]) == 4
    assert loaded[0] == loaded[1]


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_c") as ours, TorchWriter(comment="_c") as theirs:
        assert str(ours.get_logdir())[:10] == str(theirs.get_logdir())[:10]
        assert str(ours.get_logdir())[20:] == str(theirs.get_logdir())[20:]
        assert os.path.isdir(ours.log_dir)
    with SummaryWriter(logdir="x", filename_suffix=".end") as writer:
        assert writer.log_dir == writer.logdir == "x"
        assert writer.file_writer is not None and writer.file_writer.get_logdir() == "x"
        assert list(writer.all_writers or ()) == ["x"]
    assert writer.file_writer is None and writer.all_writers is None
    assert all(name.endswith(".end") for name in os.listdir("x"))
    with SummaryWriter(Path("y")) as writer:
        assert writer.get_logdir() == Path("y")
    writer.close()
    with SummaryWriter("nothing", write_to_disk=False) as writer:
        writer.add_scalar("a", 1.0)
        writer.add_scalars("a", {"b": 1.0})
        writer.add_histogram("a", [1.0])
        writer.add_hparams({"a": 1}, {"b": 2})
        writer.add_embedding(np.zeros((1, 1)))
        writer.flush()
    assert not os.path.exists("nothing")
    for address in ("s3://bucket/x", "gs://bucket/x"):
        with pytest.raises(ValueError, match="must be a folder"):
            SummaryWriter(address)


def test_comet() -> None:
    with pytest.raises(ValueError, match="does not send to Comet"):
        SummaryWriter(comet_config={"disabled": False})
    SummaryWriter("unused", write_to_disk=False, comet_config={"disabled": True})


def test_file_writer(tmp_path: Path) -> None:
    summary = Summary(value=[Summary.Value(tag="a", simple_value=1.5)])
    with SummaryWriter(tmp_path) as writer:
        file_writer = writer._get_file_writer()
        assert isinstance(file_writer, FileWriter)
        file_writer.add_summary(summary, 3, WALLTIME)
        file_writer.add_summary(summary.SerializeToString(), np.int64(3), WALLTIME)
        file_writer.add_event(Event(step=3, wall_time=1.0, summary=summary), walltime=WALLTIME)
        file_writer.add_event(Event(step=1, summary=summary).SerializeToString(), 3, WALLTIME)
        file_writer.close()
        file_writer.flush()
        with pytest.raises(ValueError):
            file_writer.add_summary(summary)
        file_writer.reopen()
        file_writer.reopen()
        file_writer.add_summary(summary, 3, WALLTIME)
    assert len({exact(event) for event in events(tmp_path)}) == 1
    assert len(events(tmp_path)) == 5


def test_other_libraries(tmp_path: Path) -> None:
    class Array:
        def __init__(self, array: np.ndarray) -> None:
            self._array = array

    class Jax(Array):
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return self._array

        def item(self) -> Any:
            return self._array.item()

    class Dlpack(Array):
        def __dlpack__(self, **kwargs: Any) -> Any:
            return self._array.__dlpack__(**kwargs)

        def __dlpack_device__(self) -> Any:
            return self._array.__dlpack_device__()

    image = RNG.random((3, 4, 5))
    expected = one(tmp_path / "0", lambda w: w.add_image("a", image))
    for number, given in enumerate((Jax(image), Dlpack(image), image.tolist(), list(torch.as_tensor(image))), start=1):
        assert one(tmp_path / str(number), lambda w, given=given: w.add_image("a", given)) == expected
    assert one(tmp_path / "scalar", lambda w: w.add_scalar("a", Jax(np.array([2.5])))).simple_value == 2.5
    assert one(tmp_path / "list", lambda w: w.add_scalar("a", [2.5])).simple_value == 2.5
    sparse = torch.eye(3).to_sparse()
    assert one(tmp_path / "sparse", lambda w: w.add_histogram("a", sparse)).histo.num == 9


def test_bfloat16_beyond_half(tmp_path: Path) -> None:
    # PyTorch makes this infinite.
    value = torch.tensor(1e30).bfloat16()
    assert one(tmp_path, lambda w: w.add_scalar("a", value)).simple_value == value.item()


def test_tensorboard_reads_it(tmp_path: Path) -> None:
    """The loader that TensorBoard itself uses brings old and new forms into one."""

    def add(writer: Any) -> None:
        writer.add_scalar("s", 1.5, **STEP)
        writer.add_histogram("h", np.array([1.0, 2.0]), **STEP)
        writer.add_text("t", "x", **STEP)
        writer.add_audio("a", np.array([0.5, 0.1]), **STEP)
        writer.add_tensor("x", torch.tensor([1.0, 2.0]), **STEP)

    ours = written(SummaryWriter, tmp_path / "ours", add, EventFileLoader)
    theirs = written(TorchWriter, tmp_path / "torch", add, EventFileLoader)
    assert len(theirs) == 5
    assert ours == theirs


BAD: list[tuple[Callable[[SummaryWriter], Any], type[Exception], str]] = [
    (lambda w: w.add_scalar("tag", "1.5"), TypeError, "tag: a scalar must be a number"),
    (lambda w: w.add_scalar("tag", None), TypeError, "tag: a scalar must be a real number"),
    (lambda w: w.add_scalar("tag", 1j), TypeError, "tag: a scalar must be a real number"),
    (lambda w: w.add_scalar("tag", torch.rand(2)), ValueError, r"tag: a scalar must have one element, not .* \(2,\)"),
    (lambda w: w.add_scalar("tag", np.zeros(0)), ValueError, "tag: a scalar must have one element"),
    (lambda w: w.add_scalar("tag", torch.rand(1, device="meta")), ValueError, "tag: a scalar must"),
    (lambda w: w.add_scalar(3, 1.0), TypeError, "."),
    (lambda w: w.add_text(3, "x"), TypeError, "the tag must be a string, not int: 3"),
    (lambda w: w.add_text("tag", 3), TypeError, "tag: expected a string, not int"),
    (lambda w: w.add_scalars("tag", {"a": "b"}), TypeError, "tag/a: a scalar must be a number"),
    (lambda w: w.add_histogram("tag", []), ValueError, "tag: a histogram of no values"),
    (lambda w: w.add_histogram("tag", "abc"), TypeError, "tag: expected numbers"),
    (lambda w: w.add_histogram("tag", [1j]), TypeError, "tag: complex"),
    (lambda w: w.add_histogram("tag", ["a"]), TypeError, "tag: expected numbers"),
    (lambda w: w.add_histogram("tag", [1.0, math.nan], bins="auto"), ValueError, "tag: no histogram with bins='auto'"),
    (lambda w: w.add_histogram("tag", [1.0], bins=[5, 6, 7]), ValueError, "tag: no value lies in the bins from 5 to 7"),
    (lambda w: w.add_histogram("tag", torch.rand(3, device="meta")), ValueError, "tag: .*`meta`"),
    (lambda w: w.add_histogram_raw("tag", 0, 1, 2, 3, 4, [1, 2], [1]), ValueError, "tag: 2 bucket_limits"),
    (lambda w: w.add_image("tag", torch.rand(3, 4)), ValueError, r"tag: dataformats='CHW' does not .* \(3, 4\)"),
    (lambda w: w.add_image("tag", torch.rand(3, 4), dataformats="HH"), ValueError, "tag: dataformats must name each"),
    (lambda w: w.add_image("tag", torch.rand(3), dataformats="C"), ValueError, "tag: dataformats must have 2 to 4"),
    (lambda w: w.add_image("tag", torch.rand(5, 4, 4)), ValueError, "tag: an image must have 1 to 4 channels, not 5"),
    (lambda w: w.add_image("tag", torch.rand(3, 0, 4)), ValueError, "tag: the image has no pixels"),
    (lambda w: w.add_image_with_boxes("tag", torch.rand(3, 4, 4), [1, 2]), ValueError, "tag: the boxes"),
    (lambda w: w.add_video("tag", torch.rand(1, 2, 4, 4, 4)), ValueError, "tag: a video must have 1 or 3 channels"),
    (lambda w: w.add_video("tag", torch.rand(2, 3, 4, 4)), ValueError, "tag: dataformats"),
    (lambda w: w.add_video("tag", torch.rand(1, 2, 3, 4, 4), fps=0), ValueError, "tag: fps"),
    (lambda w: w.add_audio("tag", torch.rand(3, 3)), ValueError, "tag: a sound must have the shape"),
    (lambda w: w.add_tensor("tag", np.array(["a"])), TypeError, "tag: expected numbers"),
    (lambda w: w.add_pr_curve("tag", [1, 0], [0.5]), ValueError, "tag: .* do not fit"),
    (lambda w: w.add_pr_curve("tag", [1], [0.5], num_thresholds=0), ValueError, "tag: .* at least 1"),
    (lambda w: w.add_pr_curve_raw("tag", [1], [1], [1], [1], [1], [1, 2]), ValueError, "tag: .* one length"),
    (lambda w: w.add_custom_scalars({"a": {"b": ["Pie", []]}}), ValueError, "'b': its kind must be"),
    (lambda w: w.add_custom_scalars_marginchart(["a"]), ValueError, "3 tags"),
    (lambda w: w.add_custom_scalars_multilinechart("abc"), TypeError, "list of tags"),
    (lambda w: w.add_mesh("tag", torch.rand(3, 3)), ValueError, r"tag: VERTEX must have the shape .* \(3, 3\)"),
    (lambda w: w.add_hparams([1], {}), TypeError, "dictionaries, not list"),
    (lambda w: w.add_hparams({"a": object()}, {}), TypeError, "'a' must be a number"),
    (lambda w: w.add_hparams({"a": 1}, {}, {"b": [1]}), TypeError, "'b', which is not"),
    (lambda w: w.add_hparams({"a": 1}, {}, {"a": ["x"]}), TypeError, "'a'.* must be a list of int"),
    (lambda w: w.add_embedding(torch.rand(3)), ValueError, "default: .* two dimensions"),
    (lambda w: w.add_embedding(torch.rand(3, 2), ["a"]), ValueError, "1 labels do not fit 3 points"),
    (lambda w: w.add_embedding(torch.rand(3, 2), label_img=torch.rand(2, 3, 4, 4)), ValueError, "2 images do not fit"),
    (lambda w: w.add_embedding(torch.rand(1, 2), [["a"]], metadata_header=["a", "b"]), ValueError, "1 columns"),
    # What torch asserts may be caught as such.
    (lambda w: w.add_scalar("tag", torch.rand(3)), AssertionError, "tag: a scalar must have one element"),
    (lambda w: w.add_image("tag", torch.rand(3, 4, 4), dataformats="CCH"), AssertionError, "tag: dataformats"),
    (lambda w: w.add_embedding(torch.rand(3, 2), ["a"]), AssertionError, "1 labels do not fit 3 points"),
    (lambda w: w.add_onnx_graph(), TypeError, "path"),
]


@pytest.mark.parametrize(("add", "error", "message"), BAD)
def test_bad_input(tmp_path: Path, add: Callable[[SummaryWriter], Any], error: type[Exception], message: str) -> None:
    with SummaryWriter(tmp_path) as writer, pytest.raises(error, match=message):
        add(writer)
    assert events(tmp_path) == []


def test_warnings(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        with pytest.warns(UserWarning, match="h: 2 NaN or infinite values"):
            writer.add_histogram("h", [1.0, math.nan, math.inf])
        with pytest.warns(UserWarning, match="a: amplitudes"):
            writer.add_audio("a", [2.0])
        with pytest.warns(UserWarning, match="p: predictions"):
            writer.add_pr_curve("p", [1], [2.0])
        writer.add_embedding(np.zeros((1, 1)))
        with pytest.warns(UserWarning, match="'default' of this step is overwritten"):
            writer.add_embedding(np.zeros((1, 1)))


def test_threads(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:

        def add(thread: int) -> None:
            for step in range(200):
                writer.add_scalar(f"t{thread}", step / 2, step)
                writer.add_scalars("m", {"shared": thread}, step)

        threads = [threading.Thread(target=add, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    added = events(tmp_path)
    assert sorted((event.summary.value[0].tag, event.step) for event in added) == sorted(
        (f"t{thread}", step) for thread in range(8) for step in range(200)
    )
    assert len(os.listdir(tmp_path / "m_shared")) == 1
    assert len(events(tmp_path / "m_shared")) == 1600


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path)
    writer.add_scalar("parent", 1.0)
    writer.add_scalars("m", {"a": 1.0})

    def add() -> None:
        writer.add_scalar("child", 2.0)
        writer.add_text("child", "x")
        writer.add_scalars("m", {"a": 2.0})
        writer.close()

    child = multiprocessing.get_context("fork").Process(target=add)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    writer.add_scalar("parent", 3.0, 1)
    writer.close()
    assert len([name for name in os.listdir(tmp_path) if "tfevents" in name]) == 2
    tags = sorted(event.summary.value[0].tag for event in events(tmp_path))
    assert tags == ["child", "child/text_summary", "parent", "parent"]
    assert sorted(event.summary.value[0].simple_value for event in events(tmp_path / "m_a")) == [1.0, 2.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_without_close(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path)
    closed = writer.file_writer
    writer.close()
    child = multiprocessing.get_context("fork").Process(target=lambda: writer.add_scalar("child", 2.0))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert [event.summary.value[0].tag for event in events(tmp_path)] == ["child"]
    with pytest.raises(ValueError, match="closed"):
        closed.add_summary(b"")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_fork_and_exit(tmp_path: Path) -> None:
    code = """if True:
        import os, signal, sys
        from stepscope.summary import SummaryWriter
        writer = SummaryWriter(sys.argv[1])
        for step in range(100):
            writer.add_scalar("a", 1.0, step)
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # ends it if it meets a lock of a thread that the fork left behind
            writer.add_scalar("b", 2.0)
            sys.exit()
        os.waitpid(child, 0)
    """
    command = [sys.executable, "-c", code, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    assert output.stderr == ""
    assert len(events(tmp_path)) == 101


@pytest.mark.parametrize(
    ("module", "package", "add"),
    [
        ("onnx", "onnx", lambda w: w.add_onnx_graph("m.onnx")),
        ("PIL.Image", "pillow", lambda w: w.add_video("v", np.zeros((1, 1, 3, 4, 4)))),
        ("PIL.Image", "pillow", lambda w: w.add_image_with_boxes("i", np.zeros((3, 4, 4)), BOXES)),
        ("matplotlib.backends.backend_agg", "matplotlib", lambda w: w.add_figure("f", object())),
        ("numpy", "numpy", lambda w: w.add_histogram("h", [1.0])),
        ("torch", "torch", lambda w: w.add_graph(object())),
    ],
)
def test_missing_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str, add: Callable[[SummaryWriter], Any]
) -> None:
    with SummaryWriter(tmp_path) as writer:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=f"pip install {package}"):
            add(writer)
        monkeypatch.undo()


def test_imports_nothing_large(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from stepscope.summary import SummaryWriter
        with SummaryWriter(sys.argv[1]) as writer:
            writer.add_scalar("a", 1.5, 0)
            writer.add_text("b", "c", 0)
            writer.add_hparams({"a": 1, "b": "c"}, {"d": 2.5})
        large = {"numpy", "torch", "tensorflow", "tensorboard", "google.protobuf", "PIL", "matplotlib", "jax", "onnx"}
        print(sorted(large & sys.modules.keys()))
    """
    command = [sys.executable, "-c", code, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_parameters() -> None:
    """Every public method of both writers is there, with the parameters of both."""
    import inspect

    from tensorboardX import SummaryWriter as XWriter

    for kind in (TorchWriter, XWriter):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if name.startswith("_") and name != "__init__":
                continue
            parameters = inspect.signature(method).parameters
            ours = inspect.signature(getattr(SummaryWriter, name)).parameters
            named = [key for key, value in parameters.items() if value.kind is not value.VAR_KEYWORD]
            assert set(named) <= set(ours), name
            if kind is TorchWriter:
                assert named == list(ours)[: len(named)], name
                for key in set(named) - {"prototxt"}:  # optional, as tensorboardX has another name for it
                    assert ours[key].default == parameters[key].default, (name, key)
