"""Makes the flight recorder dumps of the tests, with what torch.distributed.flight_recorder says of them.

    python make_recordings.py

Real dumps of three processes on gloo, as pickles (and one as JSON): `healthy`, `skipped` (rank 2 leaves out a collective) and
`other` (rank 1 calls another collective). Gloo's recorder writes its process groups without a name, so that fr_trace cannot
read its dumps: it judges copies with the configuration completed, and with "completed" where the group has passed an entry.

`h200_recordings.json`, of `make_recordings.py h200`, is what fr_trace says of NCCL's dumps in tests/data/h200.

`random.json` has dumps in the documented format with one fault each, made from a seed: their judge is fr_trace alone.
"""

import argparse
import datetime
import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch.distributed.flight_recorder.components import builder

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
N_RANKS = 3


def run_rank(kind, rank, port):
    timeout = datetime.timedelta(seconds=30)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=N_RANKS, timeout=timeout)
    tensor = torch.ones(3, 4)
    dist.all_reduce(tensor)
    dist.broadcast(tensor, 0)
    pair = dist.new_group([0, 1], group_desc="pair")
    if rank < 2:
        dist.all_reduce(tensor, group=pair)
        # Which gloo does not record.
        (dist.send if rank == 0 else dist.recv)(tensor, 1 - rank)
    dist.barrier()
    work = []
    if kind == "skipped" and rank != 2:
        work = [dist.all_reduce(torch.ones(7), async_op=True)]
    if kind == "other":
        work = [dist.broadcast(torch.ones(7), 0, async_op=True) if rank == 1 else dist.all_reduce(torch.ones(7), async_op=True)]
    # Long enough that all have called it.
    time.sleep(3)
    FIXTURES.joinpath(f"{kind}_{rank}").write_bytes(c10d._dump_fr_trace(True, True, False))
    if kind == "healthy":
        FIXTURES.joinpath(f"json_{rank}.json").write_bytes(c10d._dump_fr_trace_json(True, False))
    time.sleep(2)
    os._exit(0)


def completed(dump):
    """What gloo's recorder leaves out."""
    config = {"0": ("default_pg", [0, 1, 2]), "1": ("pair", [0, 1])}
    dump["pg_config"] = {k: {"name": k, "desc": d, "ranks": str(r)} for k, (d, r) in config.items()}
    for entry in dump["entries"]:
        passed = dump["pg_status"][str(entry["pg_id"])]["last_completed_collective"]
        if entry["retired"] and not entry["is_p2p"] and entry["collective_seq_id"] <= passed:
            entry["state"] = "completed"
        entry["process_group"] = (entry["process_group"][0], config[entry["process_group"][0]][0])
    dump["entries"] = [e for e in dump["entries"] if not e["is_p2p"]]
    return dump


def said_by_torch(dumps):
    details = {}
    for rank, dump in dumps.items():
        copy = pickle.loads(pickle.dumps(dump))
        details[str(rank)] = {"rank": rank, "host_name": "", **{k: copy[k] for k in ("entries", "version", "pg_config")}}
    args = argparse.Namespace(verbose=False, just_print_entries=False, allow_incomplete_ranks=True, mismatch_cap=100)
    database = builder.build_db(details, args, next(iter(dumps.values()))["version"])
    said = []
    for one in database.collectives:
        wrong = {rank: c.type_of_mismatch.state.name for rank, c in (one.mismatch_collectives or {}).items()}
        said.append({
            "group": one.pg_desc, "seq": one.collective_seq_id, "name": one.collective_name, "pass": one.pass_check,
            "missing": sorted(one.missing_ranks or []), "wrong": wrong,
            "numel": [one.input_numel, one.output_numel],
        })
    return said


class Job:
    """A job of four ranks with one fault."""

    SHAPES = [[4, 8], [16]]

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.faults = ["none", "absent", "operation", "sizes", "dtype", "gathered", "uneven", "no_dump", "state"]
        self.fault = self.faults[seed % len(self.faults)]
        self.n = 4
        self.groups = {"0": ("default_pg", [0, 1, 2, 3]), "5": ("tp", [1, 2, 3])}
        self.entries = {rank: [] for rank in range(self.n)}
        self.time = 1_790_000_000_000_000_000

    def call(self, name, ranks, seq, operation, change=None):
        shape = self.random.choice(self.SHAPES)
        size = len(ranks)
        inputs, outputs = [shape], [shape]
        if operation == "_all_gather_base":
            outputs = [[shape[0] * size, *shape[1:]]]
        if operation == "_reduce_scatter_base":
            inputs = [[shape[0] * size, *shape[1:]]]
        for rank in ranks:
            self.time += 1000
            entry = {
                "record_id": len(self.entries[rank]), "pg_id": int(name), "process_group": [name, self.groups[name][0]],
                "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq, "profiling_name": f"nccl:{operation}",
                "time_created_ns": self.time, "input_sizes": inputs, "input_dtypes": ["Float"], "output_sizes": outputs,
                "output_dtypes": ["Float"], "state": "completed", "retired": True, "is_p2p": False,
            }
            if operation == "all_to_all":
                # Each rank sends another number of rows, the sum is right.
                rows = [2 + rank, 2 + ranks[(ranks.index(rank) + 1) % size]]
                entry["input_sizes"], entry["output_sizes"] = [[rows[0], 4]], [[rows[1], 4]]
            if change is not None:
                entry = change(rank, entry)
            if entry is not None:
                self.entries[rank].append(entry)

    def dumps(self):
        operations = ["all_reduce", "broadcast", "_all_gather_base", "_reduce_scatter_base", "all_to_all"]
        seqs = {"0": 0, "5": 0}
        for _ in range(2):
            name = self.random.choice("05")
            seqs[name] += 1
            self.call(name, self.groups[name][1], seqs[name], self.random.choice(operations))
        name = self.random.choice("05")
        ranks = self.groups[name][1]
        culprit = ranks[-1]
        operation = {"uneven": "all_to_all", "gathered": "_all_gather_base"}.get(self.fault, "all_reduce")

        def change(rank, entry):
            entry["state"], entry["retired"] = "started", False
            if self.fault == "state" or self.fault == "none":
                entry["state"] = "completed" if rank != culprit or self.fault == "none" else "scheduled"
            elif self.fault == "gathered":
                entry["output_sizes"] = [[1, 2, 3]]
            elif rank == culprit:
                if self.fault == "absent":
                    return None
                if self.fault == "operation":
                    entry["profiling_name"] = "nccl:broadcast"
                if self.fault == "sizes":
                    entry["input_sizes"] = entry["output_sizes"] = [[5]]
                if self.fault == "dtype":
                    entry["input_dtypes"] = entry["output_dtypes"] = ["BFloat16"]
                if self.fault == "uneven":
                    entry["output_sizes"] = [[99, 4]]
            return entry

        self.call(name, ranks, seqs[name] + 1, operation, change)
        config = {k: {"name": k, "desc": d, "ranks": str(r)} for k, (d, r) in self.groups.items()}
        dumps = {}
        for rank in range(self.n):
            if self.fault == "no_dump" and rank == culprit:
                continue
            own = {k: c for k, c in config.items() if rank in self.groups[k][1]}
            dumps[rank] = {"version": "2.10", "pg_config": own, "pg_status": {}, "entries": self.entries[rank]}
        return dumps


def main():
    expected = {}
    for number, kind in enumerate(["healthy", "skipped", "other"]):
        command = [sys.executable, __file__, kind]
        environment = os.environ | {"TORCH_FR_BUFFER_SIZE": "100"}
        ranks = [subprocess.Popen([*command, str(rank), str(29650 + number)], env=environment) for rank in range(N_RANKS)]
        for rank in ranks:
            rank.wait(timeout=90)
        dumps = {r: completed(pickle.loads(FIXTURES.joinpath(f"{kind}_{r}").read_bytes())) for r in range(N_RANKS)}
        expected[kind] = said_by_torch(dumps)
    jobs = []
    for seed in range(18):
        job = Job(seed)
        dumps = job.dumps()
        jobs.append({"fault": job.fault, "dumps": dumps, "said": said_by_torch(dumps)})
    FIXTURES.joinpath("recordings.json").write_text(json.dumps(expected, indent=0) + "\n")
    FIXTURES.joinpath("random.json").write_text(json.dumps(jobs, separators=(",", ":")) + "\n")


def of_h200():
    folder = FIXTURES.parents[3] / "tests/data/h200"
    names = ["flight_rank", "hang_rank"]
    dumps = {name: {rank: pickle.loads((folder / f"{name}_{rank}").read_bytes()) for rank in range(2)} for name in names}
    expected = {name: said_by_torch(of_ranks) for name, of_ranks in dumps.items()}
    FIXTURES.joinpath("h200_recordings.json").write_text(json.dumps(expected, indent=0) + "\n")


if sys.argv[1:] == ["h200"]:
    of_h200()
elif len(sys.argv) > 1:
    run_rank(sys.argv[1], int(sys.argv[2]), sys.argv[3])
else:
    main()
