"""Trains a small network with JAX, and keeps its scalars, a recording and a trace of JAX's profiler in one folder.

Run it and look at it:

    python examples/jax_train.py
    stepscope view runs/jax
"""

import itertools

import jax
import jax.numpy as jnp

import stepscope
import stepscope.jax
from stepscope.summary import SummaryWriter

RUN = "runs/jax"


def loss_of(params, x, y):
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    return jnp.mean((x @ weight + bias - y) ** 2)


@stepscope.jax.annotate(name="update", wait=True)
@jax.jit
def update(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients), loss


def main() -> None:
    key = jax.random.key(0)
    x = jax.random.normal(key, (4096, 64))
    y = jnp.sin(x[:, :8].sum(axis=1, keepdims=True))
    sizes = [64, 256, 256, 1]
    params = [
        (jax.random.normal(jax.random.fold_in(key, i), (n, m)) / n**0.5, jnp.zeros(m))
        for i, (n, m) in enumerate(itertools.pairwise(sizes))
    ]
    update(params, x[:128], y[:128])  # compiles, which would fill the trace

    with SummaryWriter(RUN) as writer, stepscope.record(f"{RUN}/trace"), stepscope.jax.trace(RUN):
        for step in range(100):
            batch = slice(step * 128 % 4096, step * 128 % 4096 + 128)
            params, loss = update(params, x[batch], y[batch])
            writer.add_scalar("loss", float(loss), step)
    print(f"loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
