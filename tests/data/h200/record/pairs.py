"""Training steps with something planted that holds them up, and with the same done as it should be: what each change
saves is measured, without the profiler. `planted.json`: median milliseconds of a step with and without, before and
after the recording. The traces are of the steps with."""

import time

from common import DEVICE, nn, record, save_json, torch

N_MEASURED = 40
torch.manual_seed(0)


def network(width=2048, depth=6):
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
    return nn.Sequential(*layers).to(DEVICE)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        time.sleep(0.00005)
        return torch.zeros(64)


class Training:
    """A step of the network, with hooks for what is planted."""

    def __init__(self, batch=1024, width=2048, depth=6):
        self.net = network(width, depth)
        self.optimizer = torch.optim.SGD(self.net.parameters(), 1e-3)
        self.x = torch.randn(batch, width, device=DEVICE)
        self.tiny = torch.zeros(64, device=DEVICE)
        self.square = torch.randn(4096, 4096, device=DEVICE)
        self.large = torch.randn(16 << 20)
        self.pinned = self.large.pin_memory()
        self.kept = torch.empty_like(self.pinned).pin_memory()
        self.source = torch.randn(16 << 20, device=DEVICE)
        self.loader = iter(torch.utils.data.DataLoader(Numbers(), 64))
        self.stream = torch.cuda.Stream()

    def step(self, before=lambda: None, forward=None, after=lambda: None, end=lambda loss: loss.item()):
        before()
        self.optimizer.zero_grad()
        loss = (forward or self.net)(self.x).square().mean()
        loss.backward()
        after()
        self.optimizer.step()
        end(loss)


def sleep(name, seconds):
    with torch.profiler.record_function(name):
        time.sleep(seconds)


def busy(name, seconds):
    with torch.profiler.record_function(name):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass


def adds(t):
    x = t.tiny
    for _ in range(600):
        x = x + 1
    return x


def graphed(function):
    function()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def synchronizing(t):
    def forward(x):
        for layer in t.net:
            x = layer(x)
            torch.cuda.synchronize()
        return x

    return forward


def norms(t, read):
    total = 0.0
    for _ in range(4):
        for p in t.net.parameters():
            norm = p.grad.norm()
            total = total + (norm.item() if read else norm)
    return total


def blocks(empty):
    held = [torch.empty(256 << 20, device=DEVICE, dtype=torch.uint8) for _ in range(8)]
    del held
    if empty:
        torch.cuda.empty_cache()


def small_capture(t):
    """The whole step of a small network as one CUDA graph."""
    t.optimizer.zero_grad(set_to_none=False)
    loss = t.net(t.x).square().mean()
    loss.backward()
    t.optimizer.step()
    return loss


def planted():
    """Name, the step with, the step without."""
    t = Training()
    yield "host", lambda: t.step(lambda: busy("tokenize", 0.005)), lambda: t.step()
    yield "log", lambda: t.step(end=lambda loss: (loss.item(), sleep("log", 0.004))), lambda: t.step()
    yield "input", lambda: t.step(lambda: next(t.loader)), lambda: t.step()
    yield "copy", lambda: t.step(lambda: t.large.to(DEVICE)), lambda: t.step()
    to_host = lambda: t.step(after=lambda: t.large.copy_(t.source))  # noqa: E731
    yield "device_to_host", to_host, lambda: t.step()
    yield "kernel", lambda: t.step(after=lambda: t.square @ t.square @ t.square), lambda: t.step()
    replay = graphed(lambda: adds(t))
    yield "launches", lambda: t.step(after=lambda: adds(t)), lambda: t.step(after=replay)
    yield "item", lambda: t.step(after=lambda: norms(t, True)), lambda: t.step(after=lambda: norms(t, False))
    yield "sync", lambda: t.step(forward=synchronizing(t)), lambda: t.step()
    yield "empty_cache", lambda: t.step(after=lambda: blocks(True)), lambda: t.step(after=lambda: blocks(False))
    s = Training(64, 256, 12)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            small_capture(s)
    torch.cuda.current_stream().wait_stream(side)
    eager = lambda: (small_capture(s), torch.cuda.synchronize())  # noqa: E731
    replay_small = graphed(lambda: small_capture(s))
    yield "capture", eager, lambda: (replay_small(), torch.cuda.synchronize())


def ms(step):
    for _ in range(8):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(N_MEASURED):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    torch.cuda.synchronize()
    return sorted(times)[N_MEASURED // 2]


measured = {}
for kind, step, without in planted():
    before = [ms(step), ms(without)]
    record(f"planted_{kind}", step, warmup=4, active=4, averaged=False)
    after = [ms(step), ms(without)]
    measured[kind] = {"with_ms": [before[0], after[0]], "without_ms": [before[1], after[1]]}
    print(kind, measured[kind], flush=True)
save_json("planted", measured)
