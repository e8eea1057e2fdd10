"""A step of a network in JAX: XPlane, and the device's memory as pprof."""

import os, sys, time, shutil, json
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax, jax.numpy as jnp

OUT = Path(os.environ.get("RECORDED", "recorded"))
OUT.mkdir(parents=True, exist_ok=True)
key = jax.random.key(0)
SIZE, LAYERS = 512, 4


def weights(key):
    ks = jax.random.split(key, LAYERS * 4)
    return [
        {
            "qkv": jax.random.normal(ks[4 * i], (SIZE, 3 * SIZE)) * 0.02,
            "out": jax.random.normal(ks[4 * i + 1], (SIZE, SIZE)) * 0.02,
            "up": jax.random.normal(ks[4 * i + 2], (SIZE, 4 * SIZE)) * 0.02,
            "down": jax.random.normal(ks[4 * i + 3], (4 * SIZE, SIZE)) * 0.02,
        }
        for i in range(LAYERS)
    ]


def norm(x):
    with jax.named_scope("norm"):
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def block(w, x):
    with jax.named_scope("attention"):
        q, k, v = jnp.split(norm(x) @ w["qkv"], 3, -1)
        h = lambda t: t.reshape(*t.shape[:2], 8, SIZE // 8)
        x = x + jax.nn.dot_product_attention(h(q), h(k), h(v), is_causal=True).reshape(x.shape) @ w["out"]
    with jax.named_scope("mlp"):
        return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"]


def loss(ws, x, y):
    for i, w in enumerate(ws):
        with jax.named_scope(f"block{i}"):
            x = block(w, x)
    return ((x - y) ** 2).mean()


@jax.jit
def train(ws, x, y):
    value, grads = jax.value_and_grad(loss)(ws, x, y)
    return jax.tree.map(lambda w, g: w - 1e-3 * g, ws, grads), value


ws = weights(key)
x = jax.random.normal(key, (8, 256, SIZE))
y = x + 1
for _ in range(3):
    ws, value = train(ws, x, y)
value.block_until_ready()
folder = "/tmp/jaxtrace"
shutil.rmtree(folder, ignore_errors=True)
with jax.profiler.trace(folder):
    for i in range(4):
        with jax.profiler.StepTraceAnnotation("train", step_num=i):
            ws, value = train(ws, x, y)
            value.block_until_ready()
for f in Path(folder).rglob("*.xplane.pb"):
    shutil.copy(f, OUT / "jax.xplane.pb")
for f in Path(folder).rglob("*.trace.json.gz"):
    shutil.copy(f, OUT / "jax.trace.json.gz")
jax.profiler.save_device_memory_profile(str(OUT / "jax.memory.pprof"))
(OUT / "jax.hlo.txt").write_text(train.lower(ws, x, y).compile().as_text())
cost = train.lower(ws, x, y).compile().cost_analysis()
(OUT / "jax.cost.json").write_text(json.dumps(cost if isinstance(cost, dict) else cost[0]))
