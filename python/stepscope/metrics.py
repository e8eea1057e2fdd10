"""Measurements of the machine and the process, as scalars of a log and counters of a recording."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from typing import TYPE_CHECKING

from stepscope import _native
from stepscope._metric_sources import Proc, Psutil, Source, gpu_sources

if TYPE_CHECKING:
    from stepscope.summary import SummaryWriter

__all__ = ["SystemMetrics"]


class SystemMetrics:
    """Samples the load of the machine on a thread of its own.

    Each value becomes a scalar of the writer, if there is one, and a counter while a recording runs:

    | tag | unit |
    |---|---|
    | `system/cpu/percent` | of all CPUs |
    | `system/cpu/process_percent` | of one CPU, so up to 100 times their number |
    | `system/memory/resident_bytes` | of this process |
    | `system/disk/read_bytes_per_second`, `.../write_bytes_per_second` | of all disks |
    | `system/network/received_bytes_per_second`, `.../sent_bytes_per_second` | without loopback |
    | `system/gpu0/percent` | of time in which a kernel ran |
    | `system/gpu0/memory_bytes` | used, by all processes |
    | `system/gpu0/power_watts`, `system/gpu0/temperature_celsius` | |

    The step of the scalars is the number of the sample, from 0. The values come from `/proc`, or from `psutil` on
    systems without it. NVIDIA GPUs need `pip install nvidia-ml-py`; AMD GPUs need `amdsmi`, which comes with ROCm. A
    value that a system or a GPU does not offer is left out, with one warning if reading it failed.

    Args:
        writer: Where the scalars go.
        interval: Seconds between samples.
        proc: The folder of the `proc` file system.

    Raises:
        ValueError: `interval` is not a positive number.
        ImportError: There is no `/proc`, and `psutil` is not installed.

    Example:
        ```python
        with SummaryWriter("runs/demo") as writer, SystemMetrics(writer, interval=0.5):
            train()
        ```
    """

    def __init__(
        self, writer: SummaryWriter | None = None, interval: float = 1.0, proc: str | os.PathLike[str] = "/proc"
    ) -> None:
        if not (interval > 0 and math.isfinite(interval)):
            raise ValueError(f"interval: expected a positive number of seconds, got {interval!r}")
        self._writer = writer
        self._interval = interval
        self._host: Source = Proc(proc) if os.path.isfile(os.path.join(proc, "stat")) else Psutil()
        self._rates = _Rates()
        self._failed: set[str] = set()
        self._n_samples = 0
        self._sources: list[Source] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def start(self) -> None:
        """Begins to sample.

        Raises:
            RuntimeError: It was started already.
        """
        if self._thread is not None:
            raise RuntimeError("SystemMetrics was started already; make a new one for a second measurement")
        self._sources = [self._host, *gpu_sources()]
        self._read()  # the first reading of totals, from which rates are taken
        self._thread = threading.Thread(target=self._run, name="stepscope metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Takes a last sample and ends the thread. May be called again.

        Raises:
            Exception: What the writer raised, which ended the sampling.
        """
        if self._thread is None or self._stopping.is_set():
            return
        self._stopping.set()
        self._thread.join()
        for source in self._sources:
            source.close()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> SystemMetrics:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _run(self) -> None:
        due = time.monotonic()
        stopping = False
        while not stopping:
            # Samples that could not be taken in time are left out, not made up for.
            now = time.monotonic()
            due += self._interval * max(1, math.ceil((now - due) / self._interval))
            stopping = self._stopping.wait(due - now)
            try:
                self._sample()
            except Exception as error:  # of the writer; `stop` raises it on the thread that can handle it
                self._error = error
                return

    def _sample(self) -> None:
        values = self._read()
        walltime = time.time()
        for tag, value in values.items():
            _native.counter(tag, value, "system")
            if self._writer is not None:
                self._writer.add_scalar(tag, value, self._n_samples, walltime=walltime)
        self._n_samples += 1

    def _read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for source in self._sources:
            for name, read in source.readers().items():
                if name in self._failed:
                    continue
                try:
                    values.update({f"system/{tag}": value for tag, value in read().items()})
                except Exception as error:  # each library has its own, of no common class
                    self._failed.add(name)
                    warnings.warn(f"SystemMetrics: no values of {name}: {error!r}", stacklevel=2)
        return self._rates.of(values, time.monotonic())


class _Rates:
    """Turns totals, whose tags end in `_total`, into rates per second; other values stay as they are."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._time = 0.0

    def of(self, values: dict[str, float], now: float) -> dict[str, float]:
        seconds, self._time = now - self._time, now
        rates: dict[str, float] = {}
        for tag, value in values.items():
            if not tag.endswith("_total"):
                rates[tag] = value
                continue
            before = self._totals.get(tag)
            self._totals[tag] = value
            # A total falls when a device is taken away.
            if before is not None and value >= before and seconds > 0:
                rates[tag.removesuffix("_total")] = (value - before) / seconds
        return rates
