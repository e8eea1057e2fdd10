"""Slices for Python functions: a decorator for chosen ones, and a switch for all of them.

`traced` marks one function, generator, coroutine or async generator. `calls` and `trace_calls` need
Python 3.12 and record every Python call without a change to the program.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, TypeVar, overload

from stepscope import _native
from stepscope._calls import CallTrace, calls, trace_calls

__all__ = ["CallTrace", "calls", "trace_calls", "traced"]

F = TypeVar("F", bound=Callable[..., Any])

_LONGEST_TEXT = 200


@overload
def traced(fn: F, /) -> F: ...


@overload
def traced(*, name: str | None = None, category: str = "python", args: bool = False) -> Callable[[F], F]: ...


def traced(fn: Any = None, /, *, name: str | None = None, category: str = "python", args: bool = False) -> Any:
    """Makes every call of a function a slice.

    A function that can be suspended (a generator, a coroutine, an async generator) gets one slice for each segment in
    which it runs, and a flow arrow from where it was suspended to where it goes on. Tasks of an event loop that take
    turns on a thread therefore never appear nested in each other.

    Methods, static methods and class methods work alike, in either order with `@staticmethod` or `@classmethod`.

    Args:
        fn: The function, when used as `@traced` without parentheses.
        name: The name of the slices; the qualified name of the function if not given.
        category: The category of the slices.
        args: Whether the slices carry the arguments of the call. Numbers and strings are kept, an array or tensor is
            described by its type and shape, and anything else by its type: no `repr` is called, which could be slow
            or wait for a GPU.

    Returns:
        The function with the same signature and kind, or a decorator if `fn` is not given.

    Raises:
        TypeError: `fn` is a class or is not callable.

    Example:
        ```python
        @traced
        def load(path): ...

        @traced(name="request", category="server", args=True)
        async def handle(path, user): ...
        ```
    """
    if fn is None:
        return functools.partial(traced, name=name, category=category, args=args)
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(traced(name=name, category=category, args=args)(fn.__func__))
    if inspect.isclass(fn):
        raise TypeError(f"traced: {fn.__qualname__} is a class; decorate the methods that should be slices")
    if not callable(fn):
        raise TypeError(f"traced: expected a function, got {type(fn).__name__}; use it as @traced or @traced(name=...)")
    if name is None:
        name = getattr(fn, "__qualname__", type(fn).__qualname__).replace("<locals>.", "")
    arguments = _argument_reader(fn) if args else _no_arguments
    return functools.wraps(fn)(_wrapper(fn, name, category, arguments))


_ArgumentReader = Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]


def _wrapper(fn: Callable[..., Any], name: str, category: str, arguments: _ArgumentReader) -> Callable[..., Any]:
    """Returns a function of the same kind as `fn`, so that `inspect` and frameworks treat it alike."""
    if inspect.iscoroutinefunction(fn):

        async def coroutine(*a: Any, **k: Any) -> Any:
            return await _Segments(fn(*a, **k), name, category, arguments(a, k))

        return coroutine

    if inspect.isasyncgenfunction(fn):

        async def async_generator(*a: Any, **k: Any) -> AsyncGenerator[Any, Any]:
            inner = fn(*a, **k)
            segments = _Segments(inner.asend(None), name, category, arguments(a, k), yields=True)
            while True:
                try:
                    item = await segments
                except StopAsyncIteration:
                    return
                try:
                    segments.inner = inner.asend((yield item))
                except GeneratorExit:
                    segments.inner, segments.yields = inner.aclose(), False
                    await segments
                    raise
                except BaseException as error:
                    segments.inner = inner.athrow(error)

        return async_generator

    if inspect.isgeneratorfunction(fn):

        def generator(*a: Any, **k: Any) -> Generator[Any, Any, Any]:
            return (yield from _Segments(fn(*a, **k), name, category, arguments(a, k)))

        return generator

    if arguments is _no_arguments:

        def function(*a: Any, **k: Any) -> Any:
            with _native.slice(name, category):
                return fn(*a, **k)

    else:

        def function(*a: Any, **k: Any) -> Any:
            with _native.slice(name, category, **arguments(a, k)):
                return fn(*a, **k)

    return function


class _Segments:
    """One call of a function that can be suspended: runs it to its end with a slice for each segment.

    Args:
        inner: The generator or coroutine, or an awaitable of an async generator (`asend`, `athrow`, `aclose`).
        name: The name of the slices and of the arrows between them.
        category: The category of the slices.
        args: Arguments of the first slice.
        yields: Whether the end of `inner` is only a suspension, because `inner` will be replaced by the next awaitable
            of the same async generator.
    """

    __slots__ = ("_args", "_category", "_flow_id", "_name", "inner", "yields")

    def __init__(self, inner: Any, name: str, category: str, args: dict[str, Any], *, yields: bool = False) -> None:
        self.inner = inner
        self._name = name
        self._category = category
        self._args = args
        self.yields = yields
        self._flow_id = 0

    def __iter__(self) -> Generator[Any, Any, Any]:
        inner = self.inner
        resume, argument = inner.send, None
        while True:
            with _native.slice(self._name, self._category, **self._args):
                self._continue()
                try:
                    awaited = resume(argument)
                except StopIteration as stop:
                    if self.yields:
                        self._suspend()
                    return stop.value
                finally:
                    argument = None  # an exception that was thrown in would keep this frame alive
                self._suspend()
            try:
                resume, argument = inner.send, (yield awaited)
            except GeneratorExit:
                with _native.slice(self._name, self._category):
                    self._continue()
                    inner.close()
                raise
            except BaseException as error:
                resume, argument = inner.throw, error

    __await__ = __iter__

    def _continue(self) -> None:
        if self._flow_id:
            _native.flow_in(self._name, self._flow_id)

    def _suspend(self) -> None:
        self._args = {}
        self._flow_id = _native.next_flow_id()
        _native.flow_out(self._name, self._flow_id)


def _no_arguments(a: tuple[Any, ...], k: dict[str, Any]) -> dict[str, Any]:
    return {}


def _argument_reader(fn: Callable[..., Any]) -> _ArgumentReader:
    """Returns a function from the arguments of a call of `fn` to the arguments of its slice."""
    signature = inspect.signature(fn)

    def arguments(a: tuple[Any, ...], k: dict[str, Any]) -> dict[str, Any]:
        if not _native.is_recording():
            return {}
        try:
            bound = signature.bind(*a, **k).arguments
        except TypeError:
            return {}  # the call itself is about to raise it, with Python's own message
        # `category` would be taken for the parameter of `_native.slice`.
        return {
            "category_" if key == "category" else key: _described(value)
            for key, value in bound.items()
            if key not in ("self", "cls")
        }

    return arguments


def _described(value: object) -> object:
    """Returns a number, or a short text that costs little to make."""
    if value is None or isinstance(value, (bool, int, float)):
        return value if value is not None else "None"
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else value[: _LONGEST_TEXT - 1] + "…"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{dtype}[{', '.join(map(str, shape))}]"
    if isinstance(value, (bytes, list, tuple, dict, set, frozenset)):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__qualname__
