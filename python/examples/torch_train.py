"""Trains a small network with PyTorch, and keeps its scalars, a recording and a profiler trace in one folder.

Run it and look at it:

    python examples/torch_train.py
    stepscope view runs/torch
"""

import torch
from torch import nn

import stepscope
import stepscope.torch
from stepscope.metrics import SystemMetrics
from stepscope.summary import SummaryWriter

RUN = "runs/torch"


def main() -> None:
    torch.set_num_threads(1)  # the matrices are too small for more
    torch.manual_seed(0)
    x = torch.randn(4096, 64)
    y = x[:, :8].sum(dim=1, keepdim=True).sin()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=128, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    # The profiler keeps two steps in detail; the recording keeps all of them at little cost.
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=3, warmup=1, active=2, repeat=1),
        on_trace_ready=stepscope.torch.trace_handler(RUN),
    )
    with (
        SummaryWriter(RUN) as writer,
        SystemMetrics(writer, interval=0.5),
        stepscope.record(f"{RUN}/trace"),
        stepscope.torch.watch(model, optimizer, loader) as watched,
        profiler,
    ):
        step = 0
        for epoch in range(5):
            for inputs, targets in watched.dataloader:
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                profiler.step()
                writer.add_scalar("loss", loss.item(), step)
                step += 1
            for name, parameter in model.named_parameters():
                writer.add_histogram(name, parameter, epoch)
            print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
