#!/usr/bin/env python3
"""Makes engine/tests/data/collectives.json: what TensorFlow's collectives give, for the engine's tests to be compared with.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_collective_fixtures.py engine/tests/data/collectives.json

A case is an op on each of N CPU devices, its attributes, the members' inputs and their outputs. Inputs are told by a rule, so that
large ones take no room: element i of member k is ((i * 7 + k * 13) % 19 - 9) / 4 for floats, without the fraction for integers.
Outputs are told whole where they are small, and by their first and last eight elements where not.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
cases = []
key = 0
NAMES = {"float32": "float", "float64": "double", "float16": "half", "int32": "int32", "int64": "int64"}


def value(member, shape, dtype):
    i = np.arange(int(np.prod(shape, dtype=np.int64)))
    numbers = (i * 7 + member * 13) % 19 - 9
    return (numbers / 4 if np.dtype(dtype).kind == "f" else numbers).astype(dtype).reshape(shape)


def case(kind, n, shape, dtype, source=0, **attrs):
    global key
    key += 1
    with tf1.Graph().as_default() as graph:
        outputs = []
        for k in range(n):
            with tf1.device(f"/cpu:{k}"):
                x = tf1.placeholder(dtype, shape) if kind != "broadcast" or k == source else None
                common = dict(group_size=n, group_key=key, instance_key=key)
                if kind == "reduce":
                    y = tf.raw_ops.CollectiveReduce(input=x, subdiv_offsets=[0], **common, **attrs)
                elif kind == "gather":
                    y = tf.raw_ops.CollectiveGather(input=x, shape=[n * shape[0], *shape[1:]], **common)
                elif k == source:
                    y = tf.raw_ops.CollectiveBcastSend(input=x, shape=shape, **common)
                else:
                    y = tf.raw_ops.CollectiveBcastRecv(T=dtype, shape=shape, **common)
                outputs.append((x, y))
        config = tf1.ConfigProto(device_count={"CPU": n})
        options = tf1.RunOptions()
        options.experimental.collective_graph_key = key
        feeds = {x: value(k, shape, dtype) for k, (x, _) in enumerate(outputs) if x is not None}
        with tf1.Session(graph=graph, config=config) as session:
            got = session.run([y for _, y in outputs], feeds, options=options)
    told = [{"shape": list(v.shape), "values": ends(v)} for v in got]
    cases.append({"kind": kind, "n": n, "shape": list(shape), "dtype": NAMES[np.dtype(dtype).name], "source": source,
                  "attrs": attrs, "outputs": told})


def ends(v):
    flat = v.ravel().astype(np.float64)
    flat = flat if flat.size <= 64 else np.concatenate([flat[:8], flat[-8:]])
    return [float(x) for x in flat]


for n in (2, 3, 4):
    for merge in ("Add", "Mul", "Min", "Max"):
        for final in ("Id", "Div"):
            for shape in ([5], [3, 4]):
                case("reduce", n, shape, np.float32, merge_op=merge, final_op=final)
    for dtype in (np.float64, np.float16, np.int32, np.int64):
        case("reduce", n, [11], dtype, merge_op="Add", final_op="Id")
        case("reduce", n, [11], dtype, merge_op="Add", final_op="Div")
    for shape in ([9001], [100, 301], [3]):
        case("reduce", n, shape, np.float32, merge_op="Add", final_op="Div")
        case("gather", n, shape, np.float32)
    case("gather", n, [2, 3], np.int64)
    for source in range(n):
        case("broadcast", n, [2, 3], np.float32, source=source)
    case("broadcast", n, [9001], np.int32, source=n - 1)

with open(sys.argv[1], "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
print(len(cases), "cases")
