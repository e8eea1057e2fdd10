#!/usr/bin/env python3
"""Makes engine/tests/data/checkpoints/: checkpoints that TensorFlow wrote, for the engine's reader.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_checkpoint_fixtures.py engine/tests/data/checkpoints

`types`: a bundle with a tensor of each type. `parts`: a variable in parts, over two data files. `old`, `old_parts`:
checkpoints of the first version, one file and two. `expected.json` lists every tensor as [dtype, shape, hex bytes or strings].
"""
import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
out = sys.argv[1]
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)
rng = np.random.default_rng(23)
expected = {}


def pack(a):
    a = np.asarray(a)
    if a.dtype == object or a.dtype.kind == "S":
        return ["string", list(a.shape), [bytes(v).hex() for v in a.ravel()]]
    name = tf.as_dtype(a.dtype).name
    names = {"float32": "float", "float64": "double", "float16": "half"}
    return [names.get(name, name), list(a.shape), a.tobytes().hex()]


def run(name, build):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tensors, op = build(os.path.join(out, name))
        session.run(op)
        expected[name] = {k: pack(v) for k, v in tensors.items()}


def types(prefix):
    tensors = {}
    for dtype in ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]:
        tensors[f"t/{dtype}"] = (rng.uniform(0, 100, (2, 3))).astype(dtype)
    tensors["t/bfloat16"] = rng.uniform(-1, 1, (5,)).astype(tf.bfloat16.as_numpy_dtype)
    tensors["t/bool"] = np.array([True, False, True])
    tensors["t/complex64"] = (rng.uniform(-1, 1, (2, 2)) + 1j).astype(np.complex64)
    tensors["t/complex128"] = (rng.uniform(-1, 1, (2,)) - 2j).astype(np.complex128)
    tensors["t/strings"] = np.array([[b"", b"abc"], [b"\x00\xff" * 3, b"x" * 300]], dtype=object)
    tensors["t/scalar"] = np.float32(1.5)
    tensors["t/empty"] = np.zeros((0, 4), np.float32)
    for i in range(40):
        tensors[f"layer_{i:02}/weights/with/a/long/shared/prefix"] = np.float32([i, i + 0.5])
    names = sorted(tensors)
    op = tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
                           tensors=[tf.constant(tensors[n]) for n in names])
    return tensors, op


def parts(prefix):
    w = rng.uniform(-1, 1, (10, 4)).astype(np.float32)
    b = np.arange(7, dtype=np.int64)
    first = tf.raw_ops.SaveV2(prefix=prefix + "_temp/part-0", tensor_names=["w", "b"], shape_and_slices=["10 4 0,3:-", ""],
                              tensors=[tf.constant(w[:3]), tf.constant(b)])
    second = tf.raw_ops.SaveV2(prefix=prefix + "_temp/part-1", tensor_names=["w", "w"],
                               shape_and_slices=["10 4 3,7:0,2", "10 4 3,7:2,2"], tensors=[tf.constant(w[3:, :2]), tf.constant(w[3:, 2:])])
    with tf.control_dependencies([first, second]):
        op = tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[prefix + "_temp/part-0", prefix + "_temp/part-1"],
                                           destination_prefix=prefix, delete_old_dirs=True)
    return {"w": w, "b": b}, op


def old(prefix):
    tensors = {"a": rng.uniform(-1, 1, (3, 2)).astype(np.float32), "n": np.int64(7), "s": np.array([b"x", b""], dtype=object),
               "d": np.float64([1, 2, 3]), "u": np.uint8([1, 255]), "q": np.array([True, False])}
    names = sorted(tensors)
    op = tf.raw_ops.Save(filename=prefix, tensor_names=names, data=[tf.constant(tensors[n]) for n in names])
    return tensors, op


def old_parts(prefix):
    w = rng.uniform(-1, 1, (6, 3)).astype(np.float32)
    ops = [tf.raw_ops.SaveSlices(filename=f"{prefix}-0000{i}-of-00002", tensor_names=["w"], shapes_and_slices=[f"6 3 {3 * i},3:-"],
                                 data=[tf.constant(w[3 * i:3 * i + 3])]) for i in range(2)]
    return {"w": w}, tf.group(*ops)


for f in [types, parts, old, old_parts]:
    run(f.__name__, f)
shutil.rmtree(os.path.join(out, "parts_temp"), ignore_errors=True)
with open(os.path.join(out, "expected.json"), "w") as f:
    json.dump({"made_by": f"tests/scripts/tf_checkpoint_fixtures.py, TensorFlow {tf.__version__}", "checkpoints": expected}, f, indent=0)
    f.write("\n")
print(sorted(os.listdir(out)))
