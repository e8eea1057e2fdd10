"""Two ranks on one GPU (NCCL takes them for two hosts): DDP's and FSDP's steps, single collectives, then a hang and its dumps."""

import datetime, sys, time
from common import *
import torch.distributed as dist
import torch.multiprocessing as mp

N = 2


def worker(rank):
    os.environ.update(
        NCCL_HOSTID=f"host{rank}",
        NCCL_SOCKET_IFNAME="lo",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="29511",
        NCCL_IB_DISABLE="1",
        TORCH_FR_BUFFER_SIZE="2000",
        TORCH_NCCL_TRACE_BUFFER_SIZE="2000",
        TORCH_NCCL_TRACE_CPP_STACK="0",
        TORCH_NCCL_DUMP_ON_TIMEOUT="1",
        TORCH_FR_DUMP_TEMP_FILE=str(OUT / "hang_rank_"),
        TORCH_NCCL_DEBUG_INFO_TEMP_FILE=str(OUT / "hang_rank_"),
        TORCH_NCCL_ENABLE_TIMING="1",
        TORCH_NCCL_DESYNC_DEBUG="0",
    )
    backend = "nccl" if DEVICE == "cuda" else "gloo"
    if DEVICE == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group(backend, rank=rank, world_size=N, timeout=datetime.timedelta(seconds=12))
    device = torch.device(DEVICE, 0) if DEVICE == "cuda" else torch.device("cpu")
    torch.manual_seed(rank)
    net = Gpt(layers=2, size=256, heads=4, again=False).to(device)
    ddp = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(ddp.parameters(), 1e-3)
    ids = torch.randint(0, 2048, (4, 129), device=device)

    def step():
        optimizer.zero_grad()
        if rank == 1:
            time.sleep(0.01)
        loss = nn.functional.cross_entropy(ddp(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    record(f"ddp_rank{rank}", step, warmup=2, active=2, record_shapes=True)
    print(rank, "ddp", flush=True)
    if DEVICE == "cuda":
        from torch.distributed.fsdp import fully_shard

        sharded = Gpt(layers=2, size=256, heads=4, again=False).to(device)
        for block in sharded.blocks:
            fully_shard(block)
        fully_shard(sharded)
        optimizer2 = torch.optim.AdamW(sharded.parameters(), 1e-3)

        def step2():
            optimizer2.zero_grad()
            nn.functional.cross_entropy(sharded(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
            optimizer2.step()

        record(f"fsdp_rank{rank}", step2, warmup=2, active=2, record_shapes=True)
        print(rank, "fsdp", flush=True)

    def singles():
        for n in (1 << 12, 1 << 18, 1 << 22):
            x = torch.ones(n, device=device, dtype=torch.float32)
            dist.all_reduce(x)
            dist.broadcast(x, 0)
            parts = torch.empty(n * N, device=device)
            if DEVICE == "cuda":
                dist.all_gather_into_tensor(parts, x)
                dist.reduce_scatter_tensor(x, parts)
                half = x.bfloat16()
                dist.all_to_all_single(torch.empty_like(half), half)
            if rank == 0:
                dist.send(x, 1)
            else:
                dist.recv(x, 0)
        dist.barrier()
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    record(f"collectives_rank{rank}", singles, warmup=1, active=1, record_shapes=True)
    print(rank, "singles", flush=True)
    if DEVICE != "cuda":
        return
    try:
        (OUT / f"flight_rank_{rank}").write_bytes(torch._C._distributed_c10d._dump_nccl_trace())
    except Exception as problem:
        print("flight", problem, flush=True)
    x = torch.ones(1 << 16, device=device)
    dist.all_reduce(x)
    if rank == 0:
        dist.all_reduce(x)  # rank 1 never comes
        dist.all_gather_into_tensor(torch.empty(N << 16, device=device), x)
        try:
            torch.cuda.synchronize()
        except Exception as problem:
            print("hang", problem, flush=True)
    time.sleep(25)


if __name__ == "__main__":
    processes = [mp.get_context("spawn").Process(target=worker, args=(rank,)) for rank in range(N)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(85)
    for p in processes:
        p.kill()
