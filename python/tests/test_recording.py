"""Recordings of real processes, read back by the `stepscope` program."""

from __future__ import annotations

import asyncio
import collections
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import stepscope

PROGRAM = os.environ.get("STEPSCOPE_PROGRAM") or shutil.which("stepscope")

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs the stepscope program: on PATH, or in STEPSCOPE_PROGRAM")


def events_of(folder: Path | str, out: Path) -> list[dict[str, Any]]:
    """The events of a trace, exported as Chrome's JSON."""
    assert PROGRAM
    subprocess.run([PROGRAM, "export", str(folder), "--out", str(out)], check=True, capture_output=True, timeout=120)
    return json.loads(out.read_text())["traceEvents"]


def run(code: str, *args: str, **environment: str) -> None:
    """Runs a program of its own, which imports the same `stepscope`."""
    paths = os.pathsep.join([str(Path(stepscope.__file__).parents[1]), str(Path(__file__).parent)])
    inherited = {name: value for name, value in os.environ.items() if name != "STEPSCOPE_TRACE"}
    environment = {**inherited, "PYTHONPATH": paths, **environment}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", code, *args]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def slices(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and event["name"] == name]


def test_slices_with_their_arguments_and_nesting(tmp_path: Path) -> None:
    with stepscope.record(tmp_path / "trace"):
        assert stepscope.is_recording()
        for batch in range(3):
            with stepscope.slice("outer", "mine", batch=batch, label="a\"b", ratio=0.5, path=Path("x"), none=None):
                with stepscope.slice("inner"):
                    pass
        begun = stepscope.begin("begun")
        begun.end()
        begun.end()
    assert not stepscope.is_recording()
    events = events_of(tmp_path / "trace", tmp_path / "out.json")
    outer, inner = slices(events, "outer"), slices(events, "inner")
    assert [event["cat"] for event in outer] == ["mine"] * 3
    assert [event["args"]["batch"] for event in outer] == [0, 1, 2]
    assert all(event["args"]["label"] == 'a"b' and event["args"]["path"] == "x" for event in outer)
    assert len(inner) == 3 and inner[0]["cat"] == "python"
    for around, within in zip(outer, inner, strict=True):
        assert around["ts"] <= within["ts"]
        assert within["ts"] + within["dur"] <= around["ts"] + around["dur"]
    assert len(slices(events, "begun")) == 1


def test_a_slice_object_can_be_entered_again_and_again(tmp_path: Path) -> None:
    with stepscope.record(tmp_path / "trace"):
        again = stepscope.slice("again")
        for _ in range(10):
            with again, again:
                pass
    assert len(slices(events_of(tmp_path / "trace", tmp_path / "out.json"), "again")) == 20


def test_slices_of_one_name_that_overlap_keep_their_own_times(tmp_path: Path) -> None:
    async def wait_for(turn: list[asyncio.Event], number: int) -> None:
        with stepscope.slice("turn"):
            await turn[number].wait()
        turn[number + 1].set()

    async def overlap() -> None:
        turn = [asyncio.Event() for _ in range(4)]
        tasks = [asyncio.ensure_future(wait_for(turn, number)) for number in range(3)]
        await asyncio.sleep(0)
        turn[0].set()
        await asyncio.gather(*tasks)

    with stepscope.record(tmp_path / "trace"):
        asyncio.run(overlap())
    # First in, first out: none of them lies within another.
    turns = slices(events_of(tmp_path / "trace", tmp_path / "out.json"), "turn")
    found = sorted((event["ts"], event["ts"] + event["dur"]) for event in turns)
    assert len(found) == 3
    assert [end for _, end in found] == sorted(end for _, end in found)


def test_an_object_that_is_used_again_belongs_to_the_thread_that_asks(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(100):
            with stepscope.slice("shared"), stepscope.slice("shared", "named"):
                with stepscope.slice("shared", category="key"):
                    pass

    with stepscope.record(tmp_path / "trace"):
        work()
        for _ in range(3):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    found = slices(events_of(tmp_path / "trace", tmp_path / "out.json"), "shared")
    by_category = collections.Counter((event["cat"], event["tid"]) for event in found)
    assert len(by_category) == 3 * 4 and set(by_category.values()) == {100}
    assert {category for category, _ in by_category} == {"python", "named", "key"}


def test_a_slice_left_open_ends_when_its_name_is_used_again(tmp_path: Path) -> None:
    with stepscope.record(tmp_path / "trace"):
        stepscope.slice("left").__enter__()
        with stepscope.slice("left"):
            pass
    assert len(slices(events_of(tmp_path / "trace", tmp_path / "out.json"), "left")) == 2


def test_marks_counters_flows_and_steps(tmp_path: Path) -> None:
    with stepscope.record(tmp_path / "trace"):
        for step in range(2):
            stepscope.begin_step(step)
            stepscope.mark("epoch", number=step)
            stepscope.counter("rows", 10.0 * step)
            stepscope.end_step()
        flow = stepscope.next_flow_id()
        with stepscope.slice("from"):
            stepscope.flow_out("hand over", flow)
        with stepscope.slice("to"):
            stepscope.flow_in("hand over", flow)
    events = events_of(tmp_path / "trace", tmp_path / "out.json")
    assert len([event for event in events if event["ph"] in "iI" and event["name"] == "epoch"]) == 2
    counts = [event["args"] for event in events if event["ph"] == "C" and event["name"] == "rows"]
    assert [value for args in counts for value in args.values()] == [0.0, 10.0]
    assert {event["ph"] for event in events if event["name"] == "hand over"} == {"s", "f"}
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {"MainThread"}
    steps = [event for event in events if event.get("cat") == "step"]
    assert len(steps) == 2 and steps[0]["name"] == "train"


def test_all_threads_of_the_process(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for _ in range(1000):
            with stepscope.slice(f"thread {number}"):
                pass

    with stepscope.record(tmp_path / "trace"):
        threads = [threading.Thread(target=work, args=(number,), name=f"loader-{number}") for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = events_of(tmp_path / "trace", tmp_path / "out.json")
    for number in range(4):
        assert len(slices(events, f"thread {number}")) == 1000
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    for number in range(4):
        assert {names[event["tid"]] for event in slices(events, f"thread {number}")} == {f"loader-{number}"}


def child(name: str) -> None:
    """What a child process does."""
    for _ in range(100):
        with stepscope.slice(name):
            pass


CHILDREN = """if True:
    import multiprocessing, sys
    import stepscope
    from test_recording import child
    if __name__ == "__main__":
        with stepscope.record(sys.argv[1]):
            context = multiprocessing.get_context(sys.argv[2])
            processes = [context.Process(target=child, args=(f"child {n}",)) for n in range(3)]
            [process.start() for process in processes]
            with stepscope.slice("parent"):
                [process.join() for process in processes]
            assert all(process.exitcode == 0 for process in processes)
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_children_join_the_recording(tmp_path: Path, method: str) -> None:
    run(CHILDREN, str(tmp_path / "trace"), method)
    events = events_of(tmp_path / "trace", tmp_path / "out.json")
    assert len(slices(events, "parent")) == 1
    for n in range(3):
        assert len(slices(events, f"child {n}")) == 100
    assert len({event["pid"] for event in slices(events, "parent") + slices(events, "child 0")}) == 2


def test_a_fork_in_a_slice_leaves_the_slice_to_the_parent(tmp_path: Path) -> None:
    code = """if True:
        import os, sys, stepscope
        with stepscope.record(sys.argv[1]):
            with stepscope.slice("around the fork"):
                pid = os.fork()
                if pid == 0:
                    with stepscope.slice("in the child"):
                        pass
                    os._exit(0)
                os.waitpid(pid, 0)
            with stepscope.slice("after"):
                pass
    """
    run(code, str(tmp_path / "trace"))
    events = events_of(tmp_path / "trace", tmp_path / "out.json")
    assert [len(slices(events, name)) for name in ("around the fork", "in the child", "after")] == [1, 1, 1]


def test_under_stepscope_record_the_outer_folder_has_everything(tmp_path: Path) -> None:
    assert PROGRAM
    code = """if True:
        import stepscope
        with stepscope.record("inner"):
            with stepscope.slice("work"):
                pass
    """
    paths = str(Path(stepscope.__file__).parents[1])
    command = [PROGRAM, "record", "--out", "outer", "--", sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": paths}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=120)
    assert not (tmp_path / "inner").exists()
    assert len(slices(events_of(tmp_path / "outer", tmp_path / "out.json"), "work")) == 1


def test_nothing_is_recorded_outside_of_a_recording(tmp_path: Path) -> None:
    with stepscope.slice("before"):
        pass
    with stepscope.record(tmp_path / "trace"):
        pass
    with stepscope.slice("after"):
        pass
    events = events_of(tmp_path / "trace", tmp_path / "out.json")
    assert not slices(events, "before") and not slices(events, "after")


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        stepscope.record(tmp_path / "file").start()
    with stepscope.record(tmp_path / "trace") as recording:
        with pytest.raises(RuntimeError, match="has started already"):
            recording.start()
    recording.stop()
    untyped: Any = stepscope.slice
    for args, named in (((3,), {}), ((), {}), (("a", "b", "c"), {}), (("a", 3), {}), (("a", "b"), {"category": "c"})):
        with pytest.raises(TypeError):
            untyped(*args, **named)


def test_a_slice_stays_on_its_thread(tmp_path: Path) -> None:
    with stepscope.record(tmp_path / "trace"):
        begun = stepscope.begin("here")
        errors: list[Exception] = []

        def end() -> None:
            try:
                begun.end()
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        begun.end()
    assert len(errors) == 1 and "thread" in str(errors[0])
    assert len(slices(events_of(tmp_path / "trace", tmp_path / "out.json"), "here")) == 1


def test_a_child_that_ends_as_any_program_leaves_the_recording_to_its_parent(tmp_path: Path) -> None:
    code = """if True:
        import os, sys, stepscope
        recording = stepscope.record(sys.argv[1]).start()
        pid = os.fork()
        with stepscope.slice("child" if pid == 0 else "parent"):
            pass
        if pid == 0:
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        recording.stop()
    """
    run(code, str(tmp_path / "trace"))
    events = events_of(tmp_path / "trace", tmp_path / "out.json")
    assert len(slices(events, "child")) == 1 and len(slices(events, "parent")) == 1


def test_arguments_that_cannot_be_shown_do_not_stop_the_program(tmp_path: Path) -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    with stepscope.record(tmp_path / "trace"):
        with stepscope.slice("odd", bad=Bad(), pairs={(1, 2): 3}, nested=[float("nan")], top=float("inf")):
            pass
    [odd] = slices(events_of(tmp_path / "trace", tmp_path / "out.json"), "odd")
    assert odd["args"]["pairs"] == "{(1, 2): 3}" and odd["args"]["nested"] == "[nan]" and odd["args"]["top"] == "inf"
    assert "Bad" in odd["args"]["bad"]


def test_a_slice_made_before_the_recording_has_its_name(tmp_path: Path) -> None:
    early = stepscope.slice("made early")
    with stepscope.record(tmp_path / "trace"), early:
        pass
    assert len(slices(events_of(tmp_path / "trace", tmp_path / "out.json"), "made early")) == 1


def test_modules_are_attributes_of_the_package() -> None:
    assert stepscope.summary.SummaryWriter is stepscope.SummaryWriter
    assert stepscope.tracing.traced is stepscope.traced
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        stepscope.nothing  # noqa: B018
