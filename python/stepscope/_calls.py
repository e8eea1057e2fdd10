"""Every Python call as a slice, with `sys.monitoring` of Python 3.12 (PEP 669)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from types import CodeType, FrameType
from typing import Any

from stepscope import _native

# The import system and this package would bury the calls of the program.
_NEVER = ("stepscope", "importlib", "_frozen_importlib", "_frozen_importlib_external", "zipimport")


class CallTrace:
    """Records Python calls between `start` and `stop`, on all threads.

    Made by `calls` and `trace_calls`. A generator or coroutine has a slice for each stretch in which it runs. Calls
    of C functions have no slice of their own. Functions of excluded modules cost nothing after their first call; each
    call of another one costs two callbacks in Python, so small functions that are called often look slower than they
    are.

    Calls that began before `start` have no slice. Calls that are still open on other threads at `stop` stay open
    until the recording ends, because a slice can only be ended by its own thread.

    Args:
        include: Modules to record, all if empty: names such as `"mypackage"`, which stand for their submodules too,
            or patterns such as `"*.data"`.
        exclude: Modules to leave out, in the same form. Exclusion wins.
        category: The category of the slices.

    Raises:
        RuntimeError: This Python is older than 3.12.
        TypeError: `include` or `exclude` is not a string or a sequence of strings.

    Example:
        ```python
        with stepscope.tracing.calls(include="mypackage", exclude="mypackage.vendored"):
            train()
        ```
    """

    def __init__(
        self, include: str | Sequence[str] = (), exclude: str | Sequence[str] = (), category: str = "python.call"
    ) -> None:
        if not hasattr(sys, "monitoring"):
            version = ".".join(map(str, sys.version_info[:3]))
            raise RuntimeError(
                f"recording all Python calls needs sys.monitoring of Python 3.12, and this is Python {version}; "
                "decorate the functions of interest with stepscope.tracing.traced instead"
            )
        self._include = _patterns("include", include)
        self._exclude = (*_patterns("exclude", exclude), *_NEVER)
        self._category = category
        self._names: dict[int, tuple[CodeType, str | None]] = {}
        self._thread = threading.local()
        self._tool_id: int | None = None

    def start(self) -> None:
        """Begins to record.

        Raises:
            RuntimeError: It was started already, or debuggers and profilers hold all tool numbers of `sys.monitoring`.
        """
        if self._tool_id is not None:
            raise RuntimeError("this CallTrace was started already")
        monitoring = sys.monitoring
        tool_id = _take_tool_id()
        for event, callback in self._callbacks().items():
            monitoring.register_callback(tool_id, event, callback)
        # Locations that an earlier trace disabled stay disabled until this.
        monitoring.restart_events()
        self._tool_id = tool_id
        monitoring.set_events(tool_id, sum(self._callbacks()))

    def stop(self) -> None:
        """Ends the recording of calls and the slices that are open on this thread; does nothing when not started."""
        if self._tool_id is None:
            return
        monitoring, tool_id = sys.monitoring, self._tool_id
        self._tool_id = None
        monitoring.set_events(tool_id, monitoring.events.NO_EVENTS)
        for event in self._callbacks():
            monitoring.register_callback(tool_id, event, None)
        monitoring.free_tool_id(tool_id)
        stack = self._stack()
        while stack:
            stack.pop().end()
        self._names.clear()

    def __enter__(self) -> CallTrace:
        if self._tool_id is None:
            self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _callbacks(self) -> dict[int, Callable[..., Any]]:
        events = sys.monitoring.events
        return {
            events.PY_START: self._begin,
            events.PY_RESUME: self._begin,
            events.PY_THROW: self._begin_thrown,
            events.PY_RETURN: self._end,
            events.PY_YIELD: self._end,
            events.PY_UNWIND: self._end_unwound,
        }

    def _begin(self, code: CodeType, offset: int) -> Any:
        known = self._names.get(id(code))
        name = known[1] if known else self._name(code, sys._getframe(1))
        if name is None:
            return sys.monitoring.DISABLE
        self._stack().append(_native.begin(name, self._category))
        return None

    def _end(self, code: CodeType, offset: int, value: object) -> Any:
        known = self._names.get(id(code))
        if known is None:
            return None  # began before `start`
        if known[1] is None:
            return sys.monitoring.DISABLE
        # Calls that began before `start` are older than all that are on the stack, so they meet an empty one.
        if stack := self._stack():
            stack.pop().end()
        return None

    # Python does not allow DISABLE for the two events of exceptions.
    def _begin_thrown(self, code: CodeType, offset: int, error: BaseException) -> None:
        known = self._names.get(id(code))
        name = known[1] if known else self._name(code, sys._getframe(1))
        if name is not None:
            self._stack().append(_native.begin(name, self._category))

    def _end_unwound(self, code: CodeType, offset: int, error: BaseException) -> None:
        self._end(code, offset, None)

    def _stack(self) -> list[_native.Slice]:
        try:
            return self._thread.stack
        except AttributeError:
            stack = self._thread.stack = []
            return stack

    def _name(self, code: CodeType, frame: FrameType) -> str | None:
        """Decides once for each code object; codes are compared by identity, as equal ones occur in several modules."""
        module = str(frame.f_globals.get("__name__", "?"))
        included = not self._include or _matches(module, self._include)
        name = None
        if included and not _matches(module, self._exclude):
            name = f"{module}.{code.co_qualname}".replace("<locals>.", "")
        self._names[id(code)] = (code, name)
        return name


def calls(
    include: str | Sequence[str] = (), exclude: str | Sequence[str] = (), category: str = "python.call"
) -> CallTrace:
    """Returns a context manager within which every Python call is a slice; see `CallTrace`."""
    return CallTrace(include, exclude, category)


def trace_calls(
    include: str | Sequence[str] = (), exclude: str | Sequence[str] = (), category: str = "python.call"
) -> CallTrace:
    """Makes every Python call a slice from now until `stop` of what it returns; see `CallTrace`."""
    trace = CallTrace(include, exclude, category)
    trace.start()
    return trace


def _patterns(parameter: str, value: str | Sequence[str]) -> tuple[str, ...]:
    patterns = (value,) if isinstance(value, str) else tuple(value)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"{parameter}: expected names of modules, got {type(pattern).__name__} {pattern!r}")
    return patterns


def _matches(module: str, patterns: tuple[str, ...]) -> bool:
    return any(module.startswith(f"{p}.") or fnmatchcase(module, p) for p in patterns)


def _take_tool_id() -> int:
    monitoring = sys.monitoring
    # The number of profilers first, then the two that PEP 669 leaves to anyone.
    for tool_id in (monitoring.PROFILER_ID, 3, 4):
        if monitoring.get_tool(tool_id) is None:
            monitoring.use_tool_id(tool_id, "stepscope")
            return tool_id
    holders = ", ".join(str(monitoring.get_tool(tool_id)) for tool_id in (monitoring.PROFILER_ID, 3, 4))
    raise RuntimeError(f"no tool number of sys.monitoring is free, held by: {holders}; stop one of them first")
