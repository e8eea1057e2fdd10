"""One event file in one folder: `FileWriter`, which opens it, and opens another one in forked processes."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, Protocol

from stepscope._native import EventWriter

from . import _messages as messages

# Held while files are opened, and during a fork, so that no child finds it locked or a file half open.
opening = threading.RLock()
_writers: weakref.WeakSet[FileWriter] = weakref.WeakSet()
_finalized_pid = 0  # the process whose `multiprocessing` knows `_flush_all`


class Message(Protocol):
    """A protocol buffer of any library."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802


class FileWriter:
    """Writes summaries and events to an event file of its own in a folder.

    Every record is in the file within 100 ms. `SummaryWriter` is the way to write values; this class is for records
    that were made by other libraries. Its methods may be called from any thread. A forked process that uses a writer
    of its parent gets a new file in the same folder.

    Example:
        >>> writer = SummaryWriter("runs/a")
        >>> writer.file_writer.add_summary(summary, global_step=3)  # a tensorboard.compat.proto.summary_pb2.Summary

    Args:
        log_dir: The folder; it is created if it does not exist.
        max_queue: Accepted for compatibility: records never wait for others.
        flush_secs: Accepted for compatibility: records never wait for longer than 100 ms.
        filename_suffix: What the name of the file ends in.
        write_to_disk: If False, nothing is written, and no folder is created.

    Raises:
        OSError: If the folder or the file cannot be created.
        ValueError: If `log_dir` is a URL.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
        *,
        write_to_disk: bool = True,
    ) -> None:
        self._log_dir = str(log_dir)
        if "://" in self._log_dir:
            raise ValueError(f"log_dir must be a folder of the file system (mount it first), not {self._log_dir}")
        self._filename_suffix = filename_suffix
        self._write_to_disk = write_to_disk
        self.event_writer: Any = None
        self.default_step: int | None = None
        self.default_walltime: float | None = None
        self._closed = False
        with opening:
            self._open()
            _writers.add(self)

    def _open(self) -> Any:
        """Returns the native writer, which it opens if there is none."""
        with opening:
            if self.event_writer is None:
                if self._write_to_disk:
                    self.event_writer = EventWriter(self._log_dir, self._filename_suffix)
                    _flush_at_end_of_worker()
                else:
                    self.event_writer = _Null()
                # Shadows the method below: one call less for each of very many scalars.
                self.add_scalar = self.event_writer.add_scalar  # type: ignore[method-assign]
            return self.event_writer

    def _forget(self) -> None:
        """Leaves the file to the parent process."""
        if self._is_open():
            self.event_writer.abandon()
            self.event_writer = None
            del vars(self)["add_scalar"]

    def _is_open(self) -> bool:
        return self.event_writer is not None and not self._closed

    def get_logdir(self) -> str:
        """Returns the folder of the event file."""
        return self._log_dir

    def add_scalar(self, tag: str, value: float, step: int, walltime: float | None) -> None:
        """Adds a scalar; `walltime` is in seconds since 1970, or None for now."""
        self._open().add_scalar(tag, value, step, walltime)

    def add_histogram(self, tag: str, values: bytes, step: int, walltime: float | None) -> int:
        """Adds a histogram of little-endian float64s; returns how many values are not finite, and so left out."""
        return self._open().add_histogram(tag, values, step, walltime)

    def add_summary(
        self, summary: bytes | Message, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Adds a Summary.

        Args:
            summary: A protocol buffer, or its serialised form.
            global_step: The step; 0 by default.
            walltime: Seconds since 1970; now by default.
        """
        walltime = self.default_walltime if walltime is None else walltime
        self._open().add_summary(_serialised(summary), self.step(global_step), walltime)

    def add_event(self, event: bytes | Message, step: int | None = None, walltime: float | None = None) -> None:
        """Adds an Event; its time is set, and so is its step unless `step` is None.

        Args:
            event: A protocol buffer, or its serialised form.
            step: The step.
            walltime: Seconds since 1970; now by default.
        """
        walltime = self.default_walltime if walltime is None else walltime
        step = self.default_step if step is None else int(step)
        stamp = messages.stamp(time.time() if walltime is None else walltime, step)
        self._open().add_event(_serialised(event) + stamp)  # the last one of equal fields is the one that counts

    def add_graph(self, graph_profile: tuple[bytes | Message, bytes | Message], walltime: float | None = None) -> None:
        """Adds a GraphDef and the RunMetadata of its first run."""
        graph, run_metadata = map(_serialised, graph_profile)
        self.add_event(messages.graph(graph), None, walltime)
        self.add_event(messages.run_metadata("step1", run_metadata), None, walltime)

    def add_onnx_graph(self, graph: bytes | Message, walltime: float | None = None) -> None:
        """Adds a GraphDef."""
        self.add_event(messages.graph(_serialised(graph)), None, walltime)

    add_openvino_graph = add_onnx_graph

    def step(self, step: Any) -> int:
        """Returns a step as an int: the default one (see `use_metadata`) or 0 for None."""
        if step is None:
            step = self.default_step or 0
        return int(step)

    @contextlib.contextmanager
    def use_metadata(self, *, global_step: int | None = None, walltime: float | None = None) -> Iterator[FileWriter]:
        """Sets the step and the time of what is added in a `with` block, by any thread, without one of its own."""
        if global_step is None and walltime is None:
            raise ValueError("use_metadata needs a global_step or a walltime")
        before = self.default_step, self.default_walltime
        self.default_step, self.default_walltime = None if global_step is None else int(global_step), walltime
        try:
            yield self
        finally:
            self.default_step, self.default_walltime = before

    def flush(self) -> None:
        """Waits until the file has everything that was added.

        Raises:
            OSError: If records could not be written.
        """
        if self._is_open():
            self.event_writer.flush()

    def close(self) -> None:
        """Writes what is left and closes the file; what is added later raises a ValueError."""
        if self._is_open():
            self._closed = True
            self.event_writer.close()

    def reopen(self) -> None:
        """Goes on in a new file in the same folder if this one is closed."""
        with opening:
            if self._closed:
                self.event_writer, self._closed = None, False
                self._open()


class _Null:
    """What takes the place of the native writer where nothing shall be written."""

    def add_scalar(self, tag: str, value: float, step: int, walltime: float | None) -> None: ...

    def add_histogram(self, tag: str, values: bytes, step: int, walltime: float | None) -> int:
        return 0

    def add_summary(self, summary: bytes, step: int, walltime: float | None) -> None: ...

    def add_event(self, event: bytes) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def _serialised(message: bytes | Message) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


def _in_child() -> None:
    for writer in _writers:
        writer._forget()
    opening.release()


@atexit.register
def _flush_all() -> None:
    with contextlib.ExitStack() as stack:  # calls all of them, whichever raises
        for writer in list(_writers):
            stack.callback(writer.flush)


def _flush_at_end_of_worker() -> None:
    """Has `multiprocessing` flush at the end of a process of its own, which does not call what `atexit` has."""
    global _finalized_pid
    util = sys.modules.get("multiprocessing.util")
    if util is not None and _finalized_pid != os.getpid():
        _finalized_pid = os.getpid()
        util.Finalize(None, _flush_all, exitpriority=0)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=opening.acquire, after_in_parent=opening.release, after_in_child=_in_child)
