"""Makes the memory snapshots of the tests, with what PyTorch's own code says of them.

    python make_snapshots.py

- cpu.pickle: of torch.profiler, on a CPU, by torch.cuda._memory_viz._profile_to_snapshot.
- gpu_p{2,4,5}.pickle: of a small model of the caching allocator in the format of torch/csrc/cuda/Module.cpp, with the
  actions that only a GPU has. The model knows what is live after each event: that is the judge of the analyses.
- before.pickle: the same allocator some steps earlier, for the difference.
- snapshots.json: what is expected.

    python make_snapshots.py h200

- h200.json: what it says of snapshots of a real GPU (tests/data/h200).
"""

import copy
import gzip
import json
import pathlib
import pickle
import random
import re
import sys

import torch
from torch.cuda import _memory_viz as viz

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
MIB = 1 << 20


def same(lines):
    """In place of flamegraph.pl: its input."""
    return lines


def of_profiler():
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True
    ) as profile:
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(32, 64)).sum().backward()
            optimizer.step()
    snapshot = viz._profile_to_snapshot(profile)
    return snapshot, profile


class Allocator:
    """Like the caching allocator, with first fit and blocks that are split but never merged across segments."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.segments, self.events, self.truth = [], [], []
        self.time = 1_790_000_000_000_000
        self.next_address = 0x7F12_0000_0000
        self.live = {}
        self.pending = {}
        self.reserved = 0
        files = ["/home/user/train.py", "/home/user/model.py"]
        torch_file = "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"
        frames = [{"filename": f, "line": line, "name": n} for f in files for line, n in [(12, "step"), (77, "forward")]]
        library = {"filename": torch_file, "line": 134, "name": "forward"}
        cpp = {"filename": "../torch/csrc/autograd/engine.cpp", "line": 0, "name": "Engine::thread_main"}
        self.stacks = [
            [library, frames[1], frames[0]],
            [library, frames[3], frames[0]],
            [frames[2], frames[0]],
            [cpp],
            [],
        ]

    def event(self, action, address, size, stack, stream=0, **more):
        self.time += self.random.randint(1, 400)
        key = "device_free" if action == "oom" else "addr"
        event = {"action": action, key: address, "size": size, "stream": stream, "time_us": self.time}
        event |= {"compile_context": "N/A", "user_metadata": more.pop("metadata", ""), "pool_id": (0, 0)}
        if stack is not None:
            event["frames"] = stack
        self.events.append(event | more)
        live = sum(size for size, _ in self.live.values())
        by_stack = {}
        for size, stack in self.live.values():
            frames = "|".join(viz._frame_fmt(f, full_filename=True) for f in stack)
            by_stack[frames] = by_stack.get(frames, 0) + size
        self.truth.append([live, self.reserved, by_stack])

    def segment(self, size, is_large, stream, is_expandable):
        address = self.next_address
        self.next_address += 1 << 32
        stack = self.random.choice(self.stacks)
        self.reserved += size
        segment = {
            "device": 0, "address": address, "total_size": size, "stream": stream,
            "segment_type": "large" if is_large else "small", "segment_pool_id": (0, 0), "is_expandable": is_expandable,
            "frames": stack, "blocks": [self.block(address, size)],
        }
        self.segments.append(segment)
        self.event("segment_map" if is_expandable else "segment_alloc", address, size, stack, stream)
        return segment

    def block(self, address, size):
        return {"address": address, "size": size, "requested_size": 0, "state": "inactive", "frames": []}

    def allocate(self, size, stream=0):
        rounded = (size + 511) // 512 * 512
        is_large = rounded > MIB
        stack = self.random.choice(self.stacks)
        kind = "large" if is_large else "small"
        for segment in self.segments:
            if segment["segment_type"] == kind and segment["stream"] == stream:
                if self.place(segment, size, rounded, stack, stream):
                    return
        segment = self.segment(20 * MIB if is_large else 2 * MIB, is_large, stream, self.random.random() < 0.3)
        assert self.place(segment, size, rounded, stack, stream)

    def place(self, segment, size, rounded, stack, stream):
        blocks = segment["blocks"]
        for i, block in enumerate(blocks):
            if block["state"] == "inactive" and block["size"] >= rounded:
                rest = block["size"] - rounded
                block |= {"size": rounded, "requested_size": size, "state": "active_allocated", "frames": stack}
                if rest:
                    blocks.insert(i + 1, self.block(block["address"] + rounded, rest))
                self.live[block["address"]] = (size, stack)
                self.event("alloc", block["address"], size, stack, stream)
                return True
        return False

    def find(self, address):
        return next((s, b) for s in self.segments for b in s["blocks"] if b["address"] == address)

    def free(self, address):
        size, stack = self.live[address]
        self.event("free_requested", address, size, stack)
        segment, block = self.find(address)
        block["state"] = "active_pending_free"
        if self.random.random() < 0.15:
            self.pending[address] = size
        else:
            self.complete(address)

    def complete(self, address):
        self.pending.pop(address, None)
        size, stack = self.live.pop(address)
        segment, block = self.find(address)
        block |= {"state": "inactive", "requested_size": 0, "frames": []}
        self.event("free_completed", address, size, stack)
        blocks = segment["blocks"]
        merged = []
        for block in blocks:
            if merged and merged[-1]["state"] == block["state"] == "inactive":
                merged[-1]["size"] += block["size"]
            else:
                merged.append(block)
        segment["blocks"] = merged

    def shrink(self):
        for segment in list(self.segments):
            if len(segment["blocks"]) == 1 and segment["blocks"][0]["state"] == "inactive":
                self.segments.remove(segment)
                self.reserved -= segment["total_size"]
                action = "segment_unmap" if segment["is_expandable"] else "segment_free"
                self.event(action, segment["address"], segment["total_size"], segment["frames"])
                return

    def step(self):
        dice = self.random.random()
        live = [a for a in self.live if a not in self.pending]
        if dice < 0.40 or not live:
            size = self.random.choice([100, 4096, 300_000, 3 * MIB + 7, 9 * MIB])
            self.allocate(size, self.random.choice([0, 0, 0x55AA0]))
        elif dice < 0.78:
            self.free(self.random.choice(live))
        elif dice < 0.85 and self.pending:
            self.complete(self.random.choice(list(self.pending)))
        elif dice < 0.92:
            self.shrink()
        elif dice < 0.94:
            self.event("oom", self.random.randint(1, 9) * MIB, 80 * MIB, self.stacks[0])
        elif dice < 0.96:
            self.event("snapshot", 0, 0, None)
        elif dice < 0.98:
            address = self.random.choice(live)
            self.event("annotate", address, self.live[address][0], self.stacks[2], metadata="weights")
        else:
            # Two segments become empty, and are returned.
            for segment in self.random.sample(self.segments, min(2, len(self.segments))):
                addresses = [b["address"] for b in segment["blocks"]]
                for address in addresses:
                    if address in self.live and address not in self.pending:
                        self.free(address)
                    if address in self.pending:
                        self.complete(address)
                self.shrink()

    def snapshot(self, n_lost):
        for segment in self.segments:
            sizes = [(b["state"], b["size"], b["requested_size"]) for b in segment["blocks"]]
            segment["allocated_size"] = sum(s for state, s, _ in sizes if state == "active_allocated")
            segment["active_size"] = sum(s for state, s, _ in sizes if state != "inactive")
            segment["requested_size"] = sum(r for _, _, r in sizes)
        settings = {
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "max_split_size": -1,
            "garbage_collection_threshold": 0.5, "expandable_segments": True,
            "roundup_power2_divisions": {"1": 0, "2": 4},
        }
        notes = [{"name": "forward", "stage": s, "device": 0, "time_us": self.time - t} for s, t in [("START", 9), ("END", 2)]]
        return {
            "segments": sorted(self.segments, key=lambda s: s["address"]),
            "device_traces": [self.events[n_lost:], []],
            "allocator_settings": settings,
            "external_annotations": notes,
        }


def said_by_torch(snapshot):
    """What _memory_viz prints, and the allocations that it leaves as not freed."""
    said = {"memory": viz.memory(snapshot, same), "segments": viz.segments(snapshot, same)}
    said["segsum"] = viz.segsum(snapshot)
    if all("allocated_size" in s for s in snapshot["segments"]):
        said["trace"] = viz.trace(snapshot)
    left = viz.filter_alloc_free_pairs(copy.deepcopy(snapshot))["device_traces"]
    said["unfreed"] = [[e["addr"], e["size"]] for trace in left for e in trace if e["action"] == "alloc"]
    return said


def of_h200():
    expected = {}
    for name in ["steps", "oom"]:
        file = FIXTURES.parents[3] / "tests/data/h200" / f"{name}.snapshot.pickle.gz"
        said = said_by_torch(pickle.loads(gzip.decompress(file.read_bytes())))
        expected[name] = {key: said[key] for key in ["memory", "segments", "segsum", "unfreed"]}
    FIXTURES.joinpath("h200.json").write_text(json.dumps(expected, indent=0) + "\n")


def main():
    expected = {}
    snapshot, profile = of_profiler()
    FIXTURES.joinpath("cpu.pickle").write_bytes(pickle.dumps(snapshot))
    said = {"memory": viz.memory(snapshot, same)}
    left = viz.filter_alloc_free_pairs(copy.deepcopy(snapshot))["device_traces"]
    said["unfreed"] = [[e["addr"], e["size"]] for trace in left for e in trace if e["action"] == "alloc"]
    from torch.profiler._memory_profiler import MemoryProfileTimeline

    timeline = MemoryProfileTimeline(profile._memory_profile())
    _, sizes = timeline._coalesce_timeline("cpu")
    said["timeline_peak"] = max(sum(row) for row in sizes)
    expected["cpu"] = said

    allocator = Allocator(7)
    for _ in range(60):
        allocator.step()
    before = pickle.dumps(allocator.snapshot(0))
    for _ in range(200):
        allocator.step()
    n_lost = 90
    snapshot = allocator.snapshot(n_lost)
    for protocol in [2, 4, 5]:
        FIXTURES.joinpath(f"gpu_p{protocol}.pickle").write_bytes(pickle.dumps(snapshot, protocol))
    FIXTURES.joinpath("before.pickle").write_bytes(before)
    truth = allocator.truth[n_lost - 1 :]
    peak = max(range(len(truth)), key=lambda i: truth[i][0])
    expected["gpu"] = said_by_torch(snapshot) | {
        "live": [[live, reserved] for live, reserved, _ in truth],
        "peak": peak,
        "peak_by_stack": truth[peak][2],
        "actions": sorted({e["action"] for e in allocator.events[n_lost:]}),
    }
    expected["before"] = said_by_torch(pickle.loads(before))
    FIXTURES.joinpath("snapshots.json").write_text(json.dumps(expected, indent=0) + "\n")


if sys.argv[1:] == ["h200"]:
    of_h200()
else:
    main()
