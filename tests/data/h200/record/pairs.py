"""Training steps with something planted that holds them up, and without: what each change saves is measured, not predicted."""

import time
from common import *

torch.manual_seed(0)
N_MEASURED = 30


def training(planted):
    net = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(6)]).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    resident = torch.randn(1024, 2048, device=DEVICE)
    large = torch.randn(16 << 20)
    tiny = torch.zeros(64, device=DEVICE)
    square = torch.randn(4096, 4096, device=DEVICE)

    def load():
        if planted == "input":
            with torch.profiler.record_function("DataLoader.__next__"):
                time.sleep(0.006)
        return resident

    def step():
        x = load()
        if planted == "host":
            with torch.profiler.record_function("tokenize"):
                end = time.perf_counter() + 0.005
                while time.perf_counter() < end:
                    pass
        if planted == "copy":
            large.to(DEVICE)
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        if planted == "launches":
            t = tiny
            for _ in range(600):
                t = t + 1
        if planted == "item":
            total = 0.0
            for p in net.parameters():
                total += p.grad.norm().item()
            for _ in range(40):
                total += tiny.sum().item()
        if planted == "kernel":
            square @ square @ square
        if planted == "device_to_host":
            kept = [p.detach().cpu() for p in net.parameters()]
        if planted == "empty_cache":
            big = torch.empty(256 << 20, device=DEVICE, dtype=torch.uint8)
            del big
            torch.cuda.empty_cache()
        if planted == "synchronize":
            for _ in range(20):
                tiny.add_(1)
                torch.cuda.synchronize()
                time.sleep(0.0001)
        optimizer.step()
        if planted == "log":
            with torch.profiler.record_function("log"):
                time.sleep(0.004)
        loss.item()

    return step


def ms(step):
    for _ in range(5):
        step()
    torch.cuda.synchronize() if DEVICE == "cuda" else None
    times = []
    for _ in range(N_MEASURED):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times)[N_MEASURED // 2]


measured = {}
for kind in [
    "nothing",
    "input",
    "host",
    "copy",
    "launches",
    "item",
    "kernel",
    "device_to_host",
    "empty_cache",
    "synchronize",
    "log",
]:
    if DEVICE != "cuda" and kind in ("empty_cache", "synchronize"):
        continue
    step = training(kind)
    before = ms(step)
    record(f"planted_{kind}", step, warmup=2, active=4, averaged=False)
    measured[kind] = {"step_ms": before, "again_ms": ms(step)}
    print(kind, measured[kind], flush=True)
save_json("planted", measured)
