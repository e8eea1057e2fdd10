"""Two ranks on one GPU (NCCL takes them for two hosts): DDP's steps with and without their collectives."""

import datetime
import os
import time
from contextlib import nullcontext

import torch.distributed as dist
import torch.multiprocessing as mp
from common import Gpt, nn, record, save_json, torch

N = 2


def worker(rank):
    os.environ.update(NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo", MASTER_ADDR="127.0.0.1", MASTER_PORT="29512", NCCL_IB_DISABLE="1")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=rank, world_size=N, timeout=datetime.timedelta(seconds=60))
    net = Gpt(layers=2, size=256, heads=4, again=False).to("cuda")
    ddp = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(ddp.parameters(), 1e-3)
    ids = torch.randint(0, 2048, (4, 129), device="cuda")

    def step(exchanges=True):
        optimizer.zero_grad()
        with nullcontext() if exchanges else ddp.no_sync():
            loss = nn.functional.cross_entropy(ddp(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
        optimizer.step()
        loss.item()

    def ms(exchanges):
        for _ in range(5):
            step(exchanges)
        dist.barrier()
        times = []
        for _ in range(15):
            begin = time.perf_counter()
            step(exchanges)
            times.append((time.perf_counter() - begin) * 1e3)
        dist.barrier()
        return sorted(times)[7]

    before = [ms(True), ms(False)]
    record(f"planted_collectives_rank{rank}", step, warmup=3, active=3, averaged=False)
    after = [ms(True), ms(False)]
    if rank == 0:
        save_json("planted_collectives", {"with_ms": [before[0], after[0]], "without_ms": [before[1], after[1]]})
        print(before, after)
    dist.barrier()
    torch.cuda.synchronize()
    os._exit(0)


if __name__ == "__main__":
    processes = [mp.get_context("spawn").Process(target=worker, args=(rank,)) for rank in range(N)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(80)
    for p in processes:
        p.kill()
