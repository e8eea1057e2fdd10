"""Where `SystemMetrics` reads its values: `/proc`, psutil, NVIDIA's NVML, AMD SMI.

A source has *readers*: functions without arguments that return values by tag, each of which may fail without the others. Totals,
from which rates are taken, have tags that end in `_total`.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

Reader = Callable[[], "dict[str, float]"]

# Partitions would count the bytes of their disk twice, and so would devices that are stacked on disks.
_NOT_A_DISK = re.compile(r"(loop|ram|zram|dm-|md|sr|fd)\d+|(sd|vd|hd|xvd)[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+|nbd\d+)p\d+")
_SECTOR_BYTES = 512  # in /proc/diskstats, whatever the sectors of the disk


class Source:
    """Readers by what they read, in words for a warning."""

    def __init__(self) -> None:
        self._readers: dict[str, Reader] = {}

    def readers(self) -> dict[str, Reader]:
        return self._readers

    def close(self) -> None:
        """Gives back what the source holds."""


class Proc(Source):
    """The `proc` file system of Linux."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self._folder = folder
        self._cpu_ticks = (0, 0)
        self._readers = {
            "CPU use": self._cpu,
            "CPU use of the process": self._process_cpu,
            "memory": self._memory,
            "disks": self._disks,
            "network": self._network,
        }

    def _text(self, *path: str) -> str:
        with open(os.path.join(self._folder, *path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def _cpu(self) -> dict[str, float]:
        # user nice system idle iowait irq softirq steal; what follows is contained in user and nice
        ticks = [int(word) for word in self._text("stat").split("\n", 1)[0].split()[1:9]]
        total, idle = sum(ticks), sum(ticks[3:5])
        last_total, last_idle = self._cpu_ticks
        self._cpu_ticks = (total, idle)
        if last_total == 0 or total <= last_total:
            return {}
        return {"cpu/percent": 100 * (1 - (idle - last_idle) / (total - last_total))}

    def _process_cpu(self) -> dict[str, float]:
        # The second field is a name in parentheses that may contain anything.
        fields = self._text("self", "stat").rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return {"cpu/process_percent_total": 100 * ticks / os.sysconf("SC_CLK_TCK")}

    def _memory(self) -> dict[str, float]:
        pages = int(self._text("self", "statm").split()[1])
        return {"memory/resident_bytes": float(pages * os.sysconf("SC_PAGE_SIZE"))}

    def _disks(self) -> dict[str, float]:
        rows = [line.split() for line in self._text("diskstats").splitlines()]
        disks = [row for row in rows if len(row) >= 10 and not _NOT_A_DISK.fullmatch(row[2])]
        return {
            f"disk/{word}_bytes_per_second_total": float(sum(int(row[column]) for row in disks) * _SECTOR_BYTES)
            for word, column in (("read", 5), ("write", 9))
        }

    def _network(self) -> dict[str, float]:
        # Two lines of headings, then `interface: received bytes, 7 more, sent bytes, ...`.
        lines = [line.partition(":") for line in self._text("net", "dev").splitlines()[2:]]
        rows = [columns.split() for name, _, columns in lines if name.strip() != "lo"]
        return {
            f"network/{word}_bytes_per_second_total": float(sum(int(row[column]) for row in rows))
            for word, column in (("received", 0), ("sent", 8))
        }


class Psutil(Source):
    """psutil, for systems without `/proc`."""

    def __init__(self) -> None:
        super().__init__()
        try:
            import psutil
        except ImportError as error:
            raise ImportError("SystemMetrics needs psutil on a system without /proc: pip install psutil") from error
        self._psutil = psutil
        self._process = psutil.Process()
        psutil.cpu_percent()  # the first call has no earlier one to compare with and returns 0
        self._readers = {
            "CPU use": lambda: {"cpu/percent": psutil.cpu_percent()},
            "CPU use of the process": self._process_cpu,
            "memory": lambda: {"memory/resident_bytes": float(self._process.memory_info().rss)},
            "disks": self._disks,
            "network": self._network,
        }

    def _process_cpu(self) -> dict[str, float]:
        times = self._process.cpu_times()
        return {"cpu/process_percent_total": 100 * (times.user + times.system)}

    def _disks(self) -> dict[str, float]:
        io = self._psutil.disk_io_counters()
        if io is None:  # no disks
            return {}
        return {
            "disk/read_bytes_per_second_total": float(io.read_bytes),
            "disk/write_bytes_per_second_total": float(io.write_bytes),
        }

    def _network(self) -> dict[str, float]:
        interfaces = [
            io
            for name, io in self._psutil.net_io_counters(pernic=True).items()
            if name not in ("lo", "lo0") and not name.startswith("Loopback")
        ]
        return {
            "network/received_bytes_per_second_total": float(sum(io.bytes_recv for io in interfaces)),
            "network/sent_bytes_per_second_total": float(sum(io.bytes_sent for io in interfaces)),
        }


def gpu_sources() -> Iterator[Source]:
    """Yields a source for each vendor whose library and driver are installed; GPUs are numbered consecutively."""
    n_gpus = 0
    for vendor in (Nvidia, Amd):
        try:
            source = vendor(n_gpus)
        except ImportError:
            continue
        except Exception as error:
            # The Python library without the driver is a machine without a GPU.
            if type(error).__name__ not in ("NVMLError_LibraryNotFound", "NVMLError_DriverNotLoaded"):
                warnings.warn(f"SystemMetrics: no values of {vendor.__name__} GPUs: {error!r}", stacklevel=2)
            continue
        n_gpus += source.n_gpus
        yield source


class _Gpus(Source):
    def __init__(self) -> None:
        super().__init__()
        self.n_gpus = 0

    def _add(self, gpu_idx: int, values: dict[str, Callable[[], Any]]) -> None:
        """Adds a reader for each value of a GPU, by tag; a value that is no number is left out."""

        def reader(tag: str, value: Callable[[], Any]) -> Reader:
            def read() -> dict[str, float]:
                number = value()
                return {tag: float(number)} if isinstance(number, (int, float)) else {}

            return read

        for name, value in values.items():
            tag = f"gpu{gpu_idx}/{name}"
            self._readers[tag] = reader(tag, value)
        self.n_gpus += 1


class Nvidia(_Gpus):
    """NVML, through `pynvml` of nvidia-ml-py."""

    def __init__(self, first_idx: int) -> None:
        super().__init__()
        import pynvml

        self._nvml = pynvml
        pynvml.nvmlInit()
        for device in range(pynvml.nvmlDeviceGetCount()):
            self._add(first_idx + device, self._values(pynvml.nvmlDeviceGetHandleByIndex(device)))

    def _values(self, handle: Any) -> dict[str, Callable[[], Any]]:
        nvml = self._nvml
        return {
            "percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            "power_watts": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "temperature_celsius": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        }

    def close(self) -> None:
        self._nvml.nvmlShutdown()


class Amd(_Gpus):
    """AMD SMI, through `amdsmi` of ROCm."""

    def __init__(self, first_idx: int) -> None:
        super().__init__()
        import amdsmi

        self._smi = amdsmi
        amdsmi.amdsmi_init()
        for idx, handle in enumerate(amdsmi.amdsmi_get_processor_handles(), first_idx):
            self._add(idx, self._values(handle))

    def _values(self, handle: Any) -> dict[str, Callable[[], Any]]:
        smi = self._smi
        junction, current = smi.AmdSmiTemperatureType.JUNCTION, smi.AmdSmiTemperatureMetric.CURRENT

        def power() -> Any:
            info = smi.amdsmi_get_power_info(handle)
            average = info["average_socket_power"]
            return info["current_socket_power"] if average == "N/A" else average

        return {
            "percent": lambda: smi.amdsmi_get_gpu_activity(handle)["gfx_activity"],
            "memory_bytes": lambda: smi.amdsmi_get_gpu_vram_usage(handle)["vram_used"] * 2**20,
            "power_watts": power,
            "temperature_celsius": lambda: smi.amdsmi_get_temp_metric(handle, junction, current),
        }

    def close(self) -> None:
        self._smi.amdsmi_shut_down()
