"""Recording this process and those that it starts."""

from __future__ import annotations

import os
import warnings
from types import TracebackType

from stepscope import _native

# The folder that a recorder's child processes record into: `stepscope record` sets it, and so does `record`.
_ENVIRONMENT = "STEPSCOPE_TRACE"

# The folder of the last recording of this process, which `show` shows.
_last_folder: str | None = None


class record:  # noqa: N801: a context manager, used like a function
    """Records this process, and all processes that it starts meanwhile, into a folder.

    Forked children go on by themselves, and so do spawned ones once they import `stepscope`; `multiprocessing` needs
    nothing else. Where the program runs under `stepscope record`, or was started by a program that records, its events
    go there instead: nothing is recorded twice.

    Args:
        folder: The trace folder; made if it is missing. `stepscope view FOLDER` opens it, also while it grows.

    Raises:
        OSError: The folder cannot be written, another process collects there, or this process records already.

    Example:
        >>> with record("runs/first/trace"):
        ...     train()
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        self._recording: _native.Recording | None = None
        self._has_started = False

    def start(self) -> record:
        """Starts recording; `stop` ends it. `with` does both."""
        global _last_folder
        if self._has_started:
            raise RuntimeError(f"{self.folder}: this recording has started already")
        outer = os.environ.get(_ENVIRONMENT)
        if outer:
            self.folder = _last_folder = outer
            self._has_started = True
            return self
        self._recording = _native.Recording(self.folder)
        self._has_started = True
        self.folder = _last_folder = self._recording.folder
        os.environ[_ENVIRONMENT] = self.folder
        return self

    def stop(self) -> None:
        """Stops recording and completes the trace. Stopping again does nothing."""
        recording, self._recording = self._recording, None
        self._has_started = False
        if recording is None:
            return
        os.environ.pop(_ENVIRONMENT, None)
        n_dropped = recording.stop()
        if n_dropped:
            warnings.warn(
                f"{self.folder}: {n_dropped} events were dropped, because the disk was slower than the program",
                RuntimeWarning,
                stacklevel=2,
            )

    def __enter__(self) -> record:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _after_fork_in_child() -> None:
    try:
        _native.after_fork_in_child()
    except OSError as error:
        warnings.warn(f"this process is not recorded: {error}", RuntimeWarning, stacklevel=2)


def _join_parent() -> None:
    """Joins the recording that this process was started in."""
    try:
        _native.join_recording()
    except OSError as error:
        warnings.warn(f"this process is not recorded: {error}", RuntimeWarning, stacklevel=2)


os.register_at_fork(after_in_child=_after_fork_in_child)
_join_parent()
