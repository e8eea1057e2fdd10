"""A compiled transformer: Triton's kernels, then CUDA graphs."""

from common import *

torch.manual_seed(0)
for name, options in [("compiled", {}), ("graphs", {"mode": "reduce-overhead"})]:
    torch._dynamo.reset()
    net = Gpt(layers=2, again=False).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    ids = torch.randint(0, 2048, (8, 257), device=DEVICE)
    quick = torch.compile(net, **options)

    def step():
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.cross_entropy(quick(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    for _ in range(4):
        step()
    record(name, step, active=2, record_shapes=True, with_stack=False, with_flops=True)
