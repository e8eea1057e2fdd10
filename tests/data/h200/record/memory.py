"""Snapshots of the allocator: three training steps, and a step that runs out of memory."""

from common import *

torch.manual_seed(0)
torch.cuda.memory._record_memory_history(max_entries=100000, stacks="all" if os.environ.get("ALL") else "python")
net = Gpt(layers=3).to(DEVICE)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
ids = torch.randint(0, 2048, (8, 257), device=DEVICE)
side = torch.cuda.Stream()


def step(ids):
    optimizer.zero_grad()
    with torch.autocast(DEVICE, torch.bfloat16):
        loss = nn.functional.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()


for _ in range(3):
    step(ids)
with torch.cuda.stream(side):
    x = torch.randn(1000, 1000, device=DEVICE)
    y = x @ x
    x.record_stream(torch.cuda.current_stream())
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    z = torch.zeros(3 << 20, device=DEVICE)
graph = torch.cuda.CUDAGraph()
static = torch.zeros(1 << 20, device=DEVICE)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    w = static * 2 + 1
graph.replay()
torch.cuda.synchronize()
torch.cuda.memory._dump_snapshot(str(OUT / "steps.snapshot.pickle"))
held = []


def observer(device, alloc, device_alloc, device_free):
    torch.cuda.memory._dump_snapshot(str(OUT / "oom_observed.snapshot.pickle"))


torch._C._cuda_attach_out_of_memory_observer(observer)
try:
    torch.cuda.set_per_process_memory_fraction(0.02)
    many = torch.randint(0, 2048, (64, 257), device=DEVICE)
    while True:
        held.append(torch.empty(64 << 20, device=DEVICE, dtype=torch.uint8))
        if len(held) % 8 == 0:
            step(many)
except torch.cuda.OutOfMemoryError as problem:
    print(problem)
torch.cuda.memory._dump_snapshot(str(OUT / "oom.snapshot.pickle"))
print(torch.cuda.memory_summary())
