from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recorded import Recorded, recorded_fixture  # noqa: F401
from stepscope import metrics
from stepscope.metrics import SystemMetrics

CLOCK = os.sysconf("SC_CLK_TCK")


class Writer:
    def __init__(self) -> None:
        self.scalars: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self.walltimes: list[float] = []

    def add_scalar(self, tag: str, value: float, step: int, walltime: float) -> None:
        self.scalars[tag].append((step, value))
        self.walltimes.append(walltime)


@pytest.fixture(autouse=True)
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pynvml", "amdsmi"):
        monkeypatch.setitem(sys.modules, name, None)  # makes the import fail


class Clock:
    """Stands in for `time` and for the event that the thread waits for."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_700_000_000 + self.now


def write_proc(folder: Path, seconds: int) -> None:
    """Two CPUs, of which one is busy; a process at 50 % of one CPU; disks and network at known rates."""
    busy, idle = seconds * CLOCK, seconds * CLOCK
    (folder / "self").mkdir(exist_ok=True)
    (folder / "net").mkdir(exist_ok=True)
    (folder / "stat").write_text(
        f"cpu  {1000 + busy} 0 0 {1000 + idle - 5} 5 0 0 0 77 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nintr 1\n"
    )
    ticks = seconds * CLOCK // 2
    (folder / "self" / "stat").write_text(f"7 (a (b) c) R 1 1 1 0 -1 0 0 0 0 0 {ticks - 1} 1 0 0 20 0 1 0 5 100 9\n")
    (folder / "self" / "statm").write_text("100 25 5 1 0 50 0\n")
    rows = [("sda", 100, 300), ("sda1", 100, 300), ("nvme0n1", 20, 40), ("nvme0n1p2", 20, 40), ("dm-0", 9, 9)]
    (folder / "diskstats").write_text(
        "".join(f"   8  0 {name} 1 0 {r * seconds} 0 1 0 {w * seconds} 0 0 0 0\n" for name, r, w in rows)
    )
    zeros = "0 0 0 0 0 0 0"
    (folder / "net" / "dev").write_text(
        "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n"
        f"    lo: {99 * seconds} {zeros} {99 * seconds} {zeros}\n"
        f"  eth0:{1000 * seconds} {zeros} {500 * seconds} {zeros}\n wlan0: {1 * seconds} {zeros} 0 {zeros}\n"
    )


def sampled(proc: Path, monkeypatch: pytest.MonkeyPatch, n: int = 2) -> Writer:
    """Takes `n` samples at 2 s intervals without a thread."""
    clock, writer = Clock(), Writer()
    monkeypatch.setattr(metrics, "time", clock)
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    monkeypatch.setattr(threading.Thread, "join", lambda self: None)
    write_proc(proc, 10)
    system = SystemMetrics(writer, proc=proc)
    system.start()
    for sample in range(n):
        clock.now += 2
        write_proc(proc, 12 + 2 * sample)
        system._sample()
    system.stop()
    return writer


def test_values_from_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Recorded) -> None:
    writer = sampled(tmp_path, monkeypatch)
    assert {tag: steps[0][1] for tag, steps in writer.scalars.items()} == {
        "system/cpu/percent": pytest.approx(50),
        "system/cpu/process_percent": pytest.approx(50),
        "system/memory/resident_bytes": 25 * os.sysconf("SC_PAGE_SIZE"),
        "system/disk/read_bytes_per_second": pytest.approx(120 * 512),
        "system/disk/write_bytes_per_second": pytest.approx(340 * 512),
        "system/network/received_bytes_per_second": pytest.approx(1001),
        "system/network/sent_bytes_per_second": pytest.approx(500),
    }
    assert all([step for step, _ in steps] == [0, 1] for steps in writer.scalars.values())
    assert writer.walltimes[0] == 1_700_001_002
    counters = [event for event in recorded.events if event[0] == "counter"]
    assert len(counters) == 14 and counters[0][1:3] == ("system/cpu/percent", pytest.approx(50))


def test_what_fails_is_left_out_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = write_proc

    def without_disks(folder: Path, seconds: int) -> None:
        original(folder, seconds)
        (folder / "diskstats").unlink()

    monkeypatch.setattr(sys.modules[__name__], "write_proc", without_disks)
    with pytest.warns(UserWarning, match="no values of disks: FileNotFoundError") as caught:
        writer = sampled(tmp_path, monkeypatch, n=3)
    assert len(caught) == 1 and len(writer.scalars) == 5


def nvidia(calls: list[str]) -> ModuleType:
    nvml = ModuleType("pynvml")
    nvml.NVMLError = type("NVMLError", (Exception,), {})

    def power(handle: str) -> int:
        if handle == "h1":
            raise nvml.NVMLError("Not Supported")
        return 250_500

    nvml.__dict__.update(
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: calls.append("init"),
        nvmlShutdown=lambda: calls.append("shutdown"),
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda i: f"h{i}",
        nvmlDeviceGetUtilizationRates=lambda h: SimpleNamespace(gpu=75, memory=10),
        nvmlDeviceGetMemoryInfo=lambda h: SimpleNamespace(used=5 << 30, total=80 << 30, free=0),
        nvmlDeviceGetPowerUsage=power,
        nvmlDeviceGetTemperature=lambda h, sensor: 61,
    )
    return nvml


def amd() -> ModuleType:
    smi = ModuleType("amdsmi")
    smi.__dict__.update(
        AmdSmiTemperatureType=SimpleNamespace(JUNCTION=1),
        AmdSmiTemperatureMetric=SimpleNamespace(CURRENT=0),
        amdsmi_init=lambda: None,
        amdsmi_shut_down=lambda: None,
        amdsmi_get_processor_handles=lambda: ["a0"],
        amdsmi_get_gpu_activity=lambda h: {"gfx_activity": 40},
        amdsmi_get_gpu_vram_usage=lambda h: {"vram_used": 3, "vram_total": 9},
        amdsmi_get_power_info=lambda h: {"average_socket_power": "N/A", "current_socket_power": 90},
        amdsmi_get_temp_metric=lambda h, sensor, metric: "N/A",
    )
    return smi


def test_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setitem(sys.modules, "pynvml", nvidia(calls))
    monkeypatch.setitem(sys.modules, "amdsmi", amd())
    with pytest.warns(UserWarning, match="no values of gpu1/power_watts: NVMLError"):
        writer = sampled(tmp_path, monkeypatch)
    assert calls == ["init", "shutdown"]
    assert {tag: steps[-1][1] for tag, steps in writer.scalars.items() if "gpu" in tag} == {
        "system/gpu0/percent": 75,
        "system/gpu0/memory_bytes": 5 << 30,
        "system/gpu0/power_watts": 250.5,
        "system/gpu0/temperature_celsius": 61,
        "system/gpu1/percent": 75,
        "system/gpu1/memory_bytes": 5 << 30,
        "system/gpu1/temperature_celsius": 61,
        "system/gpu2/percent": 40,
        "system/gpu2/memory_bytes": 3 << 20,
        "system/gpu2/power_watts": 90,
    }


@pytest.mark.parametrize(("error", "warns"), [("NVMLError_LibraryNotFound", False), ("NVMLError_Unknown", True)])
def test_library_without_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, warns: bool, recwarn: pytest.WarningsRecorder
) -> None:
    def fails() -> None:
        raise type(error, (Exception,), {})("no driver")

    module = ModuleType("pynvml")
    module.nvmlInit = fails
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert len(sampled(tmp_path, monkeypatch).scalars) == 7
    assert len(recwarn) == warns


def test_psutil_where_there_is_no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = SimpleNamespace(read_bytes=10, write_bytes=20)
    nic = SimpleNamespace(bytes_recv=1, bytes_sent=2)
    fake = ModuleType("psutil")
    fake.__dict__.update(
        Process=lambda: SimpleNamespace(
            memory_info=lambda: SimpleNamespace(rss=4096), cpu_times=lambda: SimpleNamespace(user=1.0, system=0.5)
        ),
        cpu_percent=lambda: 12.5,
        disk_io_counters=lambda: read,
        net_io_counters=lambda pernic: {"lo0": nic, "en0": nic},
    )
    monkeypatch.setitem(sys.modules, "psutil", fake)
    writer = Writer()
    with SystemMetrics(writer, interval=10, proc=tmp_path / "missing"):
        pass
    assert len(writer.scalars) == 7
    assert writer.scalars["system/cpu/percent"] == [(0, 12.5)]
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(ImportError, match="pip install psutil"):
        SystemMetrics(proc=tmp_path / "missing")


@pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="needs Linux")
def test_thread_on_this_machine() -> None:
    writer = Writer()
    resident, used = "system/memory/resident_bytes", "system/cpu/process_percent"
    with SystemMetrics(writer, interval=0.05) as system:
        while len(writer.scalars[resident]) < 4 or not any(value > 0 for _, value in list(writer.scalars[used])):
            pass
    system.stop()
    steps = writer.scalars[resident]
    assert [step for step, _ in steps] == list(range(len(steps))) and steps[0][1] > 1 << 20
    with pytest.raises(RuntimeError, match="started already"):
        system.start()


@pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="needs Linux")
def test_error_of_the_writer_is_raised_by_stop() -> None:
    called = threading.Event()

    class Full(Writer):
        def add_scalar(self, *args: Any, **kwargs: Any) -> None:
            called.set()
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"), SystemMetrics(Full(), interval=0.01):
        called.wait()


@pytest.mark.parametrize("interval", [0, -1.0, float("nan"), float("inf")])
def test_interval(interval: float) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        SystemMetrics(interval=interval)
