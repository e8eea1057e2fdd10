import json, os, gzip, tempfile
from pathlib import Path
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

OUT = Path(os.environ.get("RECORDED", "recorded"))
OUT.mkdir(parents=True, exist_ok=True)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ACTIVITIES = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if DEVICE == "cuda" else [])


def save_json(name, value):
    (OUT / f"{name}.json").write_text(json.dumps(value))


def save_trace(profiler, name):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        (OUT / f"{name}.trace.json.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))


def averages(profiler):
    rows = profiler.key_averages(group_by_input_shape=True)
    return [
        [
            r.key,
            json.dumps(r.input_shapes),
            r.count,
            r.cpu_time_total,
            r.self_cpu_time_total,
            r.device_time_total,
            r.self_device_time_total,
            r.flops,
            r.device_memory_usage,
            r.self_device_memory_usage,
        ]
        for r in rows
    ]


def record(name, step, warmup=3, active=2, memory_timeline=False, averaged=True, **options):
    step()

    def ready(profiler):
        save_trace(profiler, name)
        if averaged:
            save_json(f"{name}.averages", averages(profiler))
        if memory_timeline:
            for kind in ("raw.json.gz", "json"):
                try:
                    profiler.export_memory_timeline(
                        str(OUT / f"{name}.timeline.{kind}"), device="cuda:0" if DEVICE == "cuda" else "cpu"
                    )
                except Exception as problem:
                    print("timeline", problem)

    plan = schedule(wait=0, warmup=warmup, active=active, repeat=1)
    with profile(activities=ACTIVITIES, schedule=plan, on_trace_ready=ready, **options) as profiler:
        for _ in range(warmup + active):
            step()
            profiler.step()


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads, self.project, self.out = heads, nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x):
        batch, length, size = x.shape
        parts = self.project(x).view(batch, length, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, size))


class Block(nn.Module):
    def __init__(self, size, heads=4):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(size), Attention(size, heads)
        self.mlp = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


class Gpt(nn.Module):
    def __init__(self, vocabulary=2048, size=512, layers=4, heads=8, length=256, again=True):
        super().__init__()
        self.again = again
        self.tokens, self.positions = nn.Embedding(vocabulary, size), nn.Parameter(torch.zeros(length, size))
        self.blocks = nn.ModuleList([Block(size, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, vocabulary, bias=False)

    def forward(self, ids):
        from torch.utils.checkpoint import checkpoint

        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks[:-1]:
            x = block(x)
        last = self.blocks[-1]
        x = checkpoint(last, x, use_reentrant=False) if self.again else last(x)
        return self.head(self.norm(x))


class Convnet(nn.Module):
    def __init__(self, width=64):
        super().__init__()

        def stage(a, b):
            return nn.Sequential(
                nn.Conv2d(a, b, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(b),
                nn.ReLU(),
                nn.Conv2d(b, b, 3, padding=1, bias=False),
                nn.BatchNorm2d(b),
                nn.ReLU(),
            )

        self.stages = nn.Sequential(stage(3, width), stage(width, 2 * width), stage(2 * width, 4 * width))
        self.head = nn.Linear(4 * width, 100)

    def forward(self, x):
        return self.head(self.stages(x).mean((2, 3)))
