"""What the package does in Rust: see `python/src`."""

from types import TracebackType

class EventWriter:
    """One event file, `events.out.tfevents.SECONDS.HOST.PID.N`; a thread writes its records within 100 ms.

    Raises:
        OSError: The folder or the file cannot be made; `flush` and `close` also when records are missing in it.
        ValueError: The writer is closed.
    """

    @property
    def path(self) -> str: ...
    def __init__(self, logdir: str, filename_suffix: str = "") -> None: ...
    def add_scalar(self, tag: str, value: float, step: int, walltime: float | None = None) -> None: ...
    def add_histogram(self, tag: str, values: bytes, step: int, walltime: float | None = None) -> int: ...
    def add_summary(self, summary: bytes, step: int, walltime: float | None = None) -> None: ...
    def add_event(self, event: bytes) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...

def png(pixels: bytes, height: int, width: int, channels: int) -> bytes: ...

class Recording:
    """A recording in progress.

    Raises:
        OSError: The folder cannot be written, another process collects there, or this process records already.
    """

    @property
    def folder(self) -> str: ...
    def __init__(self, folder: str) -> None: ...
    def stop(self) -> int: ...

def join_recording() -> bool: ...
def after_fork_in_child() -> None: ...

class Slice:
    """A slice of the thread that made it."""

    def __enter__(self) -> Slice: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def end(self) -> None: ...

__version__: str

def is_recording() -> bool: ...
def slice(name: str, /, category: str | None = None, **args: object) -> Slice:
    """A slice that a `with` statement begins and ends, on one thread: `with slice("load", batch=3):`.

    Args:
        name: What the slice is called. A limited number of names: put what varies into `args`.
        category: Groups slices of a kind; `python` if it is left out.
        **args: Shown with the slice; what JSON does not know is shown as its `str`. At most 1,024 bytes as JSON.
    """

def begin(name: str, /, category: str | None = None, **args: object) -> Slice:
    """Begins a slice as `slice` describes it; its `end` ends it, in the same thread."""

def mark(name: str, /, category: str | None = None, **args: object) -> None:
    """An event without duration."""

def counter(name: str, value: float, /, category: str | None = None) -> None:
    """A counter's value, which holds until the next one."""

def flow_out(name: str, id: int, /) -> None:
    """An arrow leaves the open slice; its head is the `flow_in` with the same `id`."""

def flow_in(name: str, id: int, /) -> None:
    """An arrow ends in the open slice."""

def next_flow_id() -> int:
    """An id for an arrow, which no other process of the recording uses at the same time."""

def begin_step(step: int | None = None, name: str = "train") -> None:
    """Begins a step of training in this thread; `step` is its number in the log, by default counted from 0."""

def end_step() -> None:
    """Ends the step that `begin_step` began."""
