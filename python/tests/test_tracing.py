from __future__ import annotations

import asyncio
import inspect
import sys

import pytest

from recorded import Recorded, recorded_fixture  # noqa: F401
from stepscope import tracing
from stepscope.tracing import traced


def flows_join(recorded: Recorded, name: str) -> None:
    """Every arrow that leaves a suspended slice arrives at the next one of the same call."""
    outs = [e[2] for e in recorded.events if e[:2] == ("flow_out", name)]
    ins = [e[2] for e in recorded.events if e[:2] == ("flow_in", name)]
    assert set(ins) <= set(outs) and len(set(ins)) == len(ins)


def test_function(recorded: Recorded) -> None:
    @traced
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert add(1) == 3
    assert add.__doc__ == "Adds."
    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 2) -> 'int'"
    assert recorded.words() == ["+test_function.add", "-test_function.add"]


def test_exception_ends_the_slice(recorded: Recorded) -> None:
    @traced(name="fails")
    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
    assert recorded.words() == ["+fails", "-fails"]


def test_methods(recorded: Recorded) -> None:
    class Model:
        @traced
        def method(self) -> Model:
            return self

        @traced
        @staticmethod
        def outer() -> int:
            return 1

        @staticmethod
        @traced
        def inner() -> int:
            return 2

        @traced
        @classmethod
        def made(cls) -> Model:
            return cls()

    model = Model.made()
    assert model.method() is model
    assert (model.outer(), Model.outer(), model.inner()) == (1, 1, 2)
    assert recorded.words()[:2] == ["+test_methods.Model.made", "-test_methods.Model.made"]


def test_arguments_are_described_without_repr(recorded: Recorded) -> None:
    class Tensor:
        shape, dtype = (32, 10), "float32"

        def __repr__(self) -> str:
            raise AssertionError("a repr could wait for a GPU")

    class Trainer:
        @traced(args=True)
        def step(self, x: Tensor, lr: float, /, *names: str, category: str = "a", **rest: object) -> None: ...

    Trainer().step(Tensor(), 0.1, "a", "b", k=Trainer(), n=None, s="x" * 300)
    args = recorded.args[0][1]
    assert args["x"] == "float32[32, 10]" and args["lr"] == 0.1 and args["names"] == "tuple of 2"
    assert args["rest"] == "dict of 3" and "self" not in args

    Trainer().step(Tensor(), 0.1, category="train")
    assert recorded.args[1][1]["category_"] == "train"
    recorded.recording = False
    Trainer().step(Tensor(), 0.1)
    assert recorded.args[2][1] == {}
    with pytest.raises(TypeError, match="missing"):
        Trainer().step()


def test_generator_has_a_slice_for_each_stretch(recorded: Recorded) -> None:
    closed = []

    @traced(name="g")
    def generator():
        try:
            received = yield 1
            try:
                yield received
            except ValueError as error:
                yield str(error)
            return "done"
        finally:
            closed.append(True)

    assert inspect.isgeneratorfunction(generator)
    g = generator()
    assert recorded.events == []
    assert next(g) == 1
    assert recorded.words() == ["+g", "flow_out", "-g"]
    assert g.send("sent") == "sent"
    assert g.throw(ValueError("thrown")) == "thrown"
    with pytest.raises(StopIteration, match="done"):
        next(g)
    assert recorded.words()[3:] == ["+g", "flow_in", "flow_out", "-g"] * 2 + ["+g", "flow_in", "-g"]
    flows_join(recorded, "g")

    early = generator()
    next(early)
    early.close()
    assert closed == [True, True] and recorded.n_open() == 0


def test_tasks_that_take_turns_are_not_nested(recorded: Recorded) -> None:
    @traced
    async def inner(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @traced(name="outer")
    async def outer(n: int) -> int:
        total = 0
        for i in range(n):
            total += await inner(i)
        return total

    async def main() -> list[int]:
        return await asyncio.gather(outer(3), outer(4))

    assert inspect.iscoroutinefunction(outer)
    assert asyncio.run(main()) == [3, 6]
    assert recorded.n_open() == 0  # and `Recorded` asserted the nesting
    # Both start before either goes on, and `outer` never lies within `outer`.
    depth = 0
    for kind, name, *_ in recorded.events:
        if name == "outer" and kind in ("begin", "end"):
            depth += 1 if kind == "begin" else -1
            assert depth in (0, 1)
    flows_join(recorded, "outer")
    assert recorded.n_begun("outer") == (3 + 1) + (4 + 1)


def test_cancellation_and_exceptions_of_coroutines(recorded: Recorded) -> None:
    cleaned = []

    @traced(name="c")
    async def waits() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cleaned.append("cancelled")
            raise
        return "no"

    async def main() -> None:
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waits(), 0.01)

    asyncio.run(main())
    assert cleaned == ["cancelled"] * 2 and recorded.n_open() == 0


def test_async_generator(recorded: Recorded) -> None:
    log = []

    @traced(name="a")
    async def numbers(n: int):
        try:
            for i in range(n):
                await asyncio.sleep(0)
                try:
                    got = yield i
                except ValueError as error:
                    got = str(error)
                log.append(got)
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def main() -> None:
        assert [i async for i in numbers(2)] == [0, 1]
        agen = numbers(5)
        await agen.asend(None)
        assert await agen.asend("sent") == 1
        assert await agen.athrow(ValueError("thrown")) == 2
        await agen.aclose()

    assert inspect.isasyncgenfunction(numbers)
    asyncio.run(main())
    assert log == [None, None, "closed", "sent", "thrown", "closed"]
    assert recorded.n_open() == 0
    flows_join(recorded, "a")


def test_wrong_use(recorded: Recorded) -> None:
    with pytest.raises(TypeError, match="decorate the methods"):
        traced(Recorded)
    with pytest.raises(TypeError, match="expected a function, got str"):
        traced("load")


needs_monitoring = pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring came with Python 3.12")


@pytest.mark.skipif(hasattr(sys, "monitoring"), reason="only before Python 3.12")
def test_calls_need_python_3_12() -> None:
    with pytest.raises(RuntimeError, match=r"Python 3\.12, and this is Python 3\.1.*traced"):
        tracing.calls()


def called(n: int) -> int:
    return n if n == 0 else called(n - 1)


def fails() -> None:
    raise ValueError("inside")


def yields():
    try:
        yield called(0)
        yield 2
    except KeyError:
        yield 3


ME = __name__


@needs_monitoring
def test_calls(recorded: Recorded) -> None:
    with tracing.calls(include=ME):
        called(1)
        with pytest.raises(ValueError):
            fails()
        g = yields()
        next(g)
        g.throw(KeyError())
        g.close()
        import json

        json.dumps({"a": 1})
    called(0)
    assert recorded.n_open() == 0
    c, f, y = (f"{ME}.{name}" for name in ("called", "fails", "yields"))
    words = [w for w in recorded.words() if w[1:] in (c, f, y)]
    assert words[:6] == [f"+{c}", f"+{c}", f"-{c}", f"-{c}", f"+{f}", f"-{f}"]
    assert words[6:12] == [f"+{y}", f"+{c}", f"-{c}", f"-{y}", f"+{y}", f"-{y}"]
    assert {w[1:].rpartition(".")[0] for w in recorded.words()} == {ME}


@needs_monitoring
def test_excluded_code_is_disabled_and_enabled_again(recorded: Recorded) -> None:
    with tracing.calls(include=ME, exclude=ME):
        called(5)
    assert recorded.events == []
    trace = tracing.trace_calls(include=ME)
    called(0)
    trace.stop()
    trace.stop()
    assert recorded.n_begun(f"{ME}.called") == 1


@needs_monitoring
def test_frames_that_are_open_at_start_and_stop(recorded: Recorded) -> None:
    def starts() -> tracing.CallTrace:
        trace = tracing.trace_calls(include=ME)
        called(0)
        return trace

    def stops(trace: tracing.CallTrace) -> None:
        trace.stop()

    stops(starts())
    assert recorded.n_open() == 0
    assert recorded.words()[:2] == [f"+{ME}.called", f"-{ME}.called"]


@needs_monitoring
def test_no_free_tool() -> None:
    taken = [i for i in (sys.monitoring.PROFILER_ID, 3, 4) if sys.monitoring.get_tool(i) is None]
    for i in taken:
        sys.monitoring.use_tool_id(i, "other")
    try:
        with pytest.raises(RuntimeError, match=r"held by: .*other"):
            tracing.trace_calls()
    finally:
        for i in taken:
            sys.monitoring.free_tool_id(i)
