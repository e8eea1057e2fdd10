"""A step of a transformer: stacks, modules, shapes, memory; then what PyTorch itself says of it."""

from common import *
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
net = Gpt().to(DEVICE)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
ids = torch.randint(0, 2048, (8, 257))


def loss_of(batch):
    with torch.autocast(DEVICE, torch.bfloat16):
        logits = net(batch[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def step():
    batch = ids.to(DEVICE, non_blocking=True)
    optimizer.zero_grad()
    loss = loss_of(batch)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss.item()


record(
    "gpt",
    step,
    active=2,
    memory_timeline=True,
    record_shapes=True,
    with_stack=True,
    with_modules=True,
    profile_memory=True,
    with_flops=True,
)
optimizer.zero_grad()
with FlopCounterMode(display=False) as mode:
    loss = loss_of(ids.to(DEVICE))
    forward = {k: sum(v.values()) for k, v in mode.get_flop_counts().items()}
    loss.backward()
    both = {k: sum(v.values()) for k, v in mode.get_flop_counts().items()}
save_json("gpt.flop", {"forward": forward, "both": both})
