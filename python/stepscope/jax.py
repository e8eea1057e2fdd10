"""JAX: traces of its profiler next to a log, and functions as slices of both.

Importing this module does not import jax; its functions do.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from stepscope import _native

if TYPE_CHECKING:
    import jax

__all__ = ["annotate", "trace"]

F = TypeVar("F", bound=Callable[..., Any])


@contextlib.contextmanager
def trace(folder: str | os.PathLike[str], options: jax.profiler.ProfileOptions | None = None) -> Iterator[None]:
    """Records the block with JAX's profiler: the host, XLA and the devices.

    The trace goes to `FOLDER/plugins/profile/TIME/HOST.xplane.pb`, where stepscope and TensorBoard find it next to
    the event files of the run. JAX runs computations in the background; those that have side effects are waited for,
    and for others the block should end with `jax.block_until_ready(result)`, or the trace may miss their end.

    Args:
        folder: The logdir of the run.
        options: Options of `jax.profiler.trace`.

    Raises:
        ImportError: JAX is not installed.
        RuntimeError: Another trace is being recorded; JAX records one at a time.

    Example:
        ```python
        with stepscope.jax.trace("runs/demo"):
            jax.block_until_ready(step(params, batch))
        ```
    """
    jax = _import_jax()
    keywords = {} if options is None else {"profiler_options": options}
    with jax.profiler.trace(os.fspath(folder), **keywords), _native.slice("jax trace", "jax"):
        try:
            yield
        finally:
            jax.effects_barrier()


@overload
def annotate(fn: F, /) -> F: ...


@overload
def annotate(*, name: str | None = None, wait: bool = False) -> Callable[[F], F]: ...


def annotate(fn: Any = None, /, *, name: str | None = None, wait: bool = False) -> Any:
    """Makes every call of a function a slice of the recording and of JAX's profiler.

    While the function is traced by `jax.jit`, its name also becomes a scope of the operations in it, so that they can
    be found in the graph and in the trace of a device.

    Args:
        fn: The function, when used as `@annotate` without parentheses; under or over `@jax.jit`.
        name: The name of the slices; the qualified name of the function if not given.
        wait: Whether each call waits for its result, so that the slice shows how long the computation took instead of
            how long it took to start it. Computations no longer overlap then.

    Returns:
        The function with the same signature, or a decorator if `fn` is not given.

    Raises:
        ImportError: JAX is not installed.
        TypeError: `fn` is not a function, or is a coroutine function or generator, whose calls only begin its work.

    Example:
        ```python
        @stepscope.jax.annotate
        @jax.jit
        def step(params, batch): ...
        ```
    """
    if fn is None:
        return functools.partial(annotate, name=name, wait=wait)
    if not callable(fn) or inspect.isclass(fn):
        raise TypeError(f"annotate: expected a function, got {fn!r}; use it as @annotate or @annotate(name=...)")
    if inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"annotate: {fn.__qualname__} can be suspended; use stepscope.tracing.traced for it")
    jax = _import_jax()
    label = name or getattr(fn, "__qualname__", type(fn).__qualname__).replace("<locals>.", "")

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with _native.slice(label, "jax"), jax.profiler.TraceAnnotation(label), jax.named_scope(label):
            result = fn(*args, **kwargs)
            return jax.block_until_ready(result) if wait else result

    return wrapper


def _import_jax() -> Any:
    try:
        import jax
    except ImportError as error:
        raise ImportError("stepscope.jax needs JAX: pip install jax") from error
    return jax
