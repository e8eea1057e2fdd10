#!/usr/bin/env python3
"""Makes engine/tests/data/tf_*.json.gz: what TensorFlow computes, for engine/tests/tensorflow_math.rs to be compared with.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_linalg_fixtures.py engine/tests/data [THEME ...]

A case is an op with attributes and inputs, its outputs, and the gradients of sum(output * weights) over its float
outputs with respect to its float inputs, all computed in graph mode. Tensors are [dtype, shape, values]; strings
are base64, complex numbers pairs.
"""
import base64
import gzip
import inspect
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
rng = np.random.default_rng(23)
cases = []


def name_of(dtype):
    dtype = tf.as_dtype(dtype)
    return {"float16": "half", "float32": "float", "float64": "double"}.get(dtype.name, dtype.name)


def number(v):
    return float(v) if np.isfinite(v) else str(v)


def pack(a, dtype=None):
    a = np.asarray(a)
    dtype = tf.as_dtype(dtype) if dtype is not None else tf.as_dtype(a.dtype)
    if dtype == tf.string:
        values = [base64.b64encode(v if isinstance(v, bytes) else v.encode()).decode() for v in a.ravel()]
    elif dtype.is_complex:
        values = [[number(v.real), number(v.imag)] for v in a.ravel()]
    elif dtype == tf.float32:
        values = [float(f"{v:.9g}") if np.isfinite(v) else str(v) for v in a.ravel()]
    elif dtype.is_floating:
        values = [number(float(v)) for v in a.ravel()]
    else:
        values = [int(v) for v in a.ravel()]
    return [name_of(dtype), list(a.shape), values]


def f32(*shape, low=-2.0, high=2.0):
    return np.round(rng.uniform(low, high, shape), 3).astype(np.float32)


def f64(*shape, low=-2.0, high=2.0):
    return np.round(rng.uniform(low, high, shape), 3)


def c128(*shape):
    return f64(*shape) + 1j * f64(*shape)


def ints(*shape, low=-9, high=9, dtype=np.int32):
    return rng.integers(low, high, shape).astype(dtype)


def i32(*v):
    return np.array(v, np.int32)


def i64(*v):
    return np.array(v, np.int64)


def attr(v):
    if isinstance(v, tf.DType):
        return ["type", name_of(v)]
    if isinstance(v, str):
        return {"string": v}
    if isinstance(v, list) and v and isinstance(v[0], str):
        return {"strings": v}
    if isinstance(v, list) and v and isinstance(v[0], tf.DType):
        return {"types": [name_of(t) for t in v]}
    if isinstance(v, float):
        return {"float": v}
    return v


def case(op, inputs, lists=None, grad=True, check="equal", dtypes=None, runs=1, keep=None, **attrs):
    """`lists`: the lengths of the op's inputs where one is a list; `check`: how outputs are compared, `keep`: how many.
    With `grad` the weights are of all float outputs, or of those whose positions it lists."""
    inputs = [np.asarray(i) for i in inputs]
    types = [tf.as_dtype(d or i.dtype) for i, d in zip(inputs, dtypes or [None] * len(inputs))]
    types = [tf.string if i.dtype.kind in "SUO" else t for i, t in zip(inputs, types)]
    with tf.Graph().as_default() as graph:
        feeds = [tf.compat.v1.placeholder(t, i.shape) for t, i in zip(types, inputs)]
        args, rest = [], list(feeds)
        for n in lists or [0] * len(inputs):
            args.append(rest.pop(0) if n == 0 else [rest.pop(0) for _ in range(n)])
        function = getattr(tf.raw_ops, op)
        outputs = function(**dict(zip(inspect.signature(function).parameters, args)), **attrs)
        if isinstance(outputs, tf.Operation):
            outputs = []
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        feed = dict(zip(feeds, inputs))
        with tf.compat.v1.Session(graph=graph) as session:
            values = [session.run(outputs, feed) for _ in range(runs)]
            weights, wanted = [], []
            chosen = range(len(outputs)) if grad is True else (grad or [])
            chosen = [i for i in chosen if outputs[i].dtype.is_floating or outputs[i].dtype.is_complex]
            xs = [f for f in feeds if f.dtype.is_floating or f.dtype.is_complex]
            if chosen and xs:
                for i in chosen:
                    w = np.round(rng.uniform(-1, 1, values[0][i].shape), 3)
                    weights.append(w.astype(outputs[i].dtype.as_numpy_dtype))
                ys = [outputs[i] for i in chosen]
                got = tf.gradients(ys, xs, grad_ys=[tf.constant(w) for w in weights])
                got = [g if g is not None else tf.zeros_like(x) for g, x in zip(got, xs)]
                wanted = session.run([tf.convert_to_tensor(g) for g in got], feed)
    out = {"op": op, "attrs": {k: attr(v) for k, v in attrs.items()},
           "inputs": [pack(i, t) for i, t in zip(inputs, types)], "lists": lists or [], "check": check,
           "runs": [[pack(v, o.dtype) for v, o in zip(run, outputs)][:keep] for run in values]}
    if wanted:
        out["weighted"] = list(chosen)
        out["weights"] = [pack(w) for w in weights]
        out["gradients"] = [pack(v) for v in wanted]
    cases.append(out)


def given(op, inputs, outputs, check="equal", **attrs):
    """A case whose outputs another function of TensorFlow computes."""
    with tf.compat.v1.Session() as session:
        outputs = session.run(outputs)
    cases.append({"op": op, "attrs": {k: attr(v) for k, v in attrs.items()}, "inputs": [pack(i) for i in inputs],
                  "lists": [], "check": check, "runs": [[pack(o) for o in outputs]]})


def spd(n, *batch):
    a = f64(*batch, n, n)
    return a @ np.swapaxes(a, -1, -2) + n * np.eye(n)


def matrices():
    half = lambda a: np.asarray(a, np.float16)
    for op in ["BatchMatMul", "BatchMatMulV2"]:
        for ax in [False, True]:
            for ay in [False, True]:
                x, y = f32(2, 3, *((5, 4) if ax else (4, 5))), f32(2, 3, *((3, 5) if ay else (5, 3)))
                case(op, [x, y], adj_x=ax, adj_y=ay)
    for ax in [False, True]:
        for ay in [False, True]:
            case("BatchMatMulV2", [c128(2, *((5, 4) if ax else (4, 5))), c128(1, *((3, 5) if ay else (5, 3)))], adj_x=ax, adj_y=ay)
    case("BatchMatMulV2", [f64(4, 1, 2, 3), f64(3, 3, 2)])
    case("BatchMatMulV2", [f64(2, 3), f64(4, 3, 2)])
    case("BatchMatMulV2", [ints(2, 2, 3), ints(3, 2)])
    case("BatchMatMulV2", [half(f32(2, 2, 3)), half(f32(2, 3, 2))], grad=False)
    case("BatchMatMulV2", [f32(2, 0, 3), f32(2, 3, 2)])
    case("BatchMatMulV3", [f64(2, 2, 3), f64(2, 3, 2)], Tout=tf.float64)
    case("BatchMatMulV3", [ints(2, 2, 3, dtype=np.int8), ints(2, 3, 2, dtype=np.int8)], Tout=tf.int32)
    case("MatMul", [c128(2, 3), c128(3, 2)])
    case("MatMul", [c128(3, 2).astype(np.complex64), c128(3, 2).astype(np.complex64)], transpose_a=True)
    case("MatMul", [half(f32(2, 3)), half(f32(3, 2))], grad=False)
    case("MatMul", [ints(2, 3, dtype=np.int64), ints(3, 2, dtype=np.int64)])
    for adjoint in [False, True]:
        case("MatrixInverse", [f64(2, 4, 4)], adjoint=adjoint)
        case("MatrixInverse", [f32(3, 3) + 3 * np.eye(3, dtype=np.float32)], adjoint=adjoint)
        case("MatrixInverse", [c128(3, 3)], adjoint=adjoint)
        case("MatrixSolve", [f64(2, 3, 3), f64(2, 3, 2)], adjoint=adjoint)
        case("MatrixSolve", [c128(3, 3), c128(3, 2)], adjoint=adjoint)
        for lower in [False, True]:
            case("MatrixTriangularSolve", [f64(2, 3, 3) + 3 * np.eye(3), f64(2, 3, 2)], lower=lower, adjoint=adjoint)
            case("MatrixTriangularSolve", [f64(3, 3) + 3 * np.eye(3), f64(2, 3, 2)], lower=lower, adjoint=adjoint)
            case("MatrixTriangularSolve", [c128(3, 3), c128(3, 2)], lower=lower, adjoint=adjoint)
    case("MatrixDeterminant", [f64(2, 3, 3)])
    case("MatrixDeterminant", [f32(4, 4)])
    case("MatrixDeterminant", [c128(3, 3)])
    case("MatrixDeterminant", [np.zeros((2, 0, 0))], grad=False)
    case("LogMatrixDeterminant", [f64(2, 3, 3)], grad=[1])
    case("LogMatrixDeterminant", [f32(4, 4)], grad=[1])
    case("LogMatrixDeterminant", [np.ones((2, 2))], grad=False)
    case("LogMatrixDeterminant", [c128(3, 3)], grad=False)
    case("Cholesky", [spd(4)])
    case("Cholesky", [spd(3, 2)])
    case("Cholesky", [spd(3).astype(np.float32)])
    a = c128(3, 3)
    case("Cholesky", [a @ a.conj().T + 3 * np.eye(3)], grad=False)
    case("Cholesky", [np.array([[1.0, 2], [2, 1]])], grad=False)
    case("CholeskyGrad", [np.linalg.cholesky(spd(3)), f64(3, 3)], grad=False)
    for shape in [(5, 3), (3, 3), (2, 4, 3)]:
        case("Qr", [f64(*shape)])
        case("Qr", [f32(*shape)], grad=False)
    case("Qr", [f64(3, 5)], grad=False)
    case("Qr", [f64(5, 3)], grad=False, full_matrices=True)
    case("Qr", [c128(4, 3)], grad=False)
    for shape in [(4, 4), (5, 3), (3, 5), (2, 4, 3)]:
        for full in [False, True]:
            case("Svd", [f64(*shape)], grad=False if full else [0], check="svd", full_matrices=full)
        case("Svd", [f64(*shape)], grad=[0], keep=1, compute_uv=False)
        case("Svd", [f32(*shape)], grad=False, check="svd")
    case("Svd", [c128(4, 3)], grad=False, check="svd")
    case("Svd", [np.outer([1.0, 2, 3], [1.0, 1])], grad=False, check="svd", full_matrices=True)
    for a in [spd(4), spd(3, 2), spd(5).astype(np.float32), np.diag([2.0, 2, 1])]:
        case("SelfAdjointEigV2", [a], grad=[0], check="eigh")
        case("SelfAdjointEigV2", [a], grad=[0], keep=1, compute_v=False)
    a = c128(4, 4)
    case("SelfAdjointEigV2", [a + a.conj().T], grad=False, check="eigh")
    for fast in [True, False]:
        for shape in [(5, 3), (3, 5), (2, 4, 4)]:
            case("MatrixSolveLs", [f64(*shape), f64(*shape[:-1], 2), np.float64(0.1 if fast else 0)], grad=fast, fast=fast)
    for a in [f64(2, 3, 3), f64(3, 3, low=-4, high=4), f32(4, 4)]:
        given("MatrixExponential", [a], [tf.linalg.expm(a)])
    case("Lu", [f64(2, 4, 4)], grad=False)
    case("Lu", [f32(3, 3)], grad=False, output_idx_type=tf.int64)
    case("Cross", [f64(2, 3), f64(2, 3)])
    case("Cross", [ints(4, 3), ints(4, 3)])
    for eq, shapes in [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]), ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij->ji", [(2, 3)]), ("ii->i", [(3, 3)]), ("ii->", [(3, 3)]), ("ij->j", [(2, 3)]), ("i,j->ij", [(2,), (3,)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]), ("b...,b...->...b", [(2, 3, 4), (2, 3, 4)]),
        ("ijk,kl->ijl", [(2, 3, 4), (4, 5)]), ("abc,cd->bd", [(2, 3, 4), (4, 2)]), ("i->ii", [(3,)]),
        ("iij,jk->ik", [(2, 2, 3), (3, 4)]), ("...a->...", [(2, 3, 4)]), ("abcd,cade->be", [(2, 3, 4, 5), (4, 2, 5, 3)]),
        ("...ii,...->...i", [(2, 3, 3), (2,)]), (",->", [(), ()]), ("ab,b->a", [(2, 3), (3,)]),
    ]:
        case("Einsum", [f64(*s) for s in shapes], lists=[len(shapes)], equation=eq)
    case("Einsum", [f32(3, 4), f32(4, 2)], lists=[2], equation="ij,jk->ki")
    case("Einsum", [ints(3, 4), ints(4, 2)], lists=[2], equation="ij,jk->ki")
    case("Einsum", [c128(3, 4), c128(4, 2)], lists=[2], equation="ij,jk->ki")


THEMES = {"matrices": matrices}


def main():
    folder, wanted = sys.argv[1], sys.argv[2:] or list(THEMES)
    for theme in wanted:
        global rng
        rng = np.random.default_rng(list(THEMES).index(theme) + 23)
        cases.clear()
        THEMES[theme]()
        fixture = {"made_by": f"tests/scripts/tf_linalg_fixtures.py, TensorFlow {tf.__version__}", "cases": cases}
        path = os.path.join(folder, f"tf_{theme}.json.gz")
        with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as f:
            f.write(json.dumps(fixture, separators=(",", ":")).encode() + b"\n")
        print(f"{theme}: {len(cases)} cases, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
