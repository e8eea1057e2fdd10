#!/usr/bin/env python3
"""Makes engine/tests/data/tf_*.json.gz: what TensorFlow computes, for engine/tests/tensorflow/math.rs to be compared with.

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
    """Readers may round a number of many digits; a text they parse themselves."""
    v = float(v)
    return v if np.isfinite(v) and len(repr(v)) < 15 else repr(v)


def pack(a, dtype=None):
    # NumPy's own strings lose the zeros at their end.
    a = np.asarray(a, object) if isinstance(a, bytes) else np.asarray(a)
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
    """A pair of kind and list tells the kind where the list may be empty: ("strings", [])."""
    if isinstance(v, tuple):
        return {v[0]: [name_of(t) if v[0] == "types" else t for t in v[1]]}
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
        plain = {k: v[1] if isinstance(v, tuple) else v for k, v in attrs.items()}
        outputs = function(**dict(zip(inspect.signature(function).parameters, args)), **plain)
        if isinstance(outputs, tf.Operation):
            outputs = []
        outputs = list(tf.nest.flatten(outputs))
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
    case("MatrixDeterminant", [c128(3, 3)], grad=False)  # TensorFlow's does not conjugate the determinant
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
    for a in [spd(4), spd(3, 2), spd(5).astype(np.float32)]:
        case("SelfAdjointEigV2", [a], grad=[0], check="eigh")
        case("SelfAdjointEigV2", [a], grad=[0], keep=1, compute_v=False)
    # An eigenvalue that occurs twice has no gradient: TensorFlow's is the one of the eigenvectors it happens to choose.
    case("SelfAdjointEigV2", [np.diag([2.0, 2, 1])], grad=False, check="eigh")
    case("SelfAdjointEigV2", [np.diag([2.0, 2, 1])], grad=False, keep=1, compute_v=False)
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


def segments():
    half = lambda a: np.asarray(a, np.float16)
    ids = i32(0, 0, 1, 3, 3)
    for op in ["SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax"]:
        case(op, [f64(5, 2), ids], grad=op != "SegmentProd")
        case(op, [f32(5), ids.astype(np.int64)], grad=op != "SegmentProd")
        case(op, [ints(5, 2), ids])
        case(op, [half(f32(5, 2)), ids], grad=False)
        case(op, [f64(0, 2), ids[:0]], grad=False)
    for op in ["UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax"]:
        for data in [f64(5, 2), f32(5, 2), ints(5, 2), ints(5, 2, dtype=np.uint8, low=0), ints(5, 2, dtype=np.int64)]:
            case(op, [data, i32(2, 0, -1, 2, 0), np.int32(4)])
        case(op, [f64(2, 3, 2), ints(2, 3, low=-1, high=4), np.int32(4)])
    zeros = np.array([[0, 2.0], [3, 0], [0, 1], [2, 2], [5, 0]])
    case("UnsortedSegmentProd", [zeros, i32(0, 0, 1, 1, 0), np.int32(3)])
    case("UnsortedSegmentSum", [c128(4), i32(1, 0, 1, 1), np.int32(2)], grad=False)
    for op in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]:
        data, indices = f64(4, 2), i32(3, 0, 0, 1, 2)
        case(op, [data, indices, ids])
        case(op, [data.astype(np.float32), indices.astype(np.int64), ids.astype(np.int64)])
        case(op + "WithNumSegments", [data, indices, ids, np.int32(6)])
        case(op + "Grad", [f64(4, 2), indices, ids, np.int32(5)], grad=False)
    case("DynamicPartition", [f64(5, 2), i32(1, 0, 1, 2, 1)], num_partitions=4)
    case("DynamicPartition", [np.array(["a", "b", "c"]), i32(1, 0, 1)], num_partitions=2)
    case("DynamicPartition", [f64(2, 2), i32(1, 0, 0, 1).reshape(2, 2)], num_partitions=2)
    for op in ["DynamicStitch", "ParallelDynamicStitch"]:
        case(op, [np.int32(4), i32(0, 2), i32(1, 3, 5, 6).reshape(2, 2), f64(2), f64(2, 2), f64(2, 2, 2)], lists=[3, 3])
        case(op, [i32(0, 1), i32(2), np.array(["a", "b"]), np.array(["c"])], lists=[2, 2])
    case("DynamicStitch", [i32(0, 1), i32(1, 2), f64(2), f64(2)], lists=[2, 2], grad=False)
    at = np.array([[0, 1], [2, 0], [0, 1]], np.int32)
    for op in ["TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin", "TensorScatterMax"]:
        case(op, [f64(3, 2), at[:2], f64(2)], grad=False)
        case(op, [f32(3, 2), at[:2, :1], f32(2, 2)], grad=False)
        case(op, [ints(3, 2), at, ints(3)])
    case("ScatterNd", [at, f64(3), i32(3, 2)], grad=False)
    case("ScatterNd", [at[:, :1], ints(3, 2), i32(3, 2)])
    case("ScatterNdNonAliasingAdd", [f64(3, 2), at, f64(3)], grad=False)
    variables()


def variables():
    """The value that a variable has after an update; input 0 is its value before."""
    def after(op, initial, *inputs, **attrs):
        with tf.Graph().as_default():
            v = tf.compat.v1.Variable(initial, use_resource=False)
            update = getattr(tf.raw_ops, op)(ref=v._ref(), **dict(zip(list(inspect.signature(getattr(tf.raw_ops, op)).parameters)[1:], inputs)), **attrs)
            with tf.compat.v1.Session() as session:
                session.run(v.initializer)
                session.run(update)
                value = session.run(v)
        cases.append({"op": op, "attrs": {k: attr(x) for k, x in attrs.items()},
                      "inputs": [pack(initial)] + [pack(i) for i in inputs], "lists": [], "check": "variable",
                      "runs": [[pack(value)]]})
    rows = i32(2, 0, 2)
    for op in ["ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax"]:
        after(op, f64(4, 2), rows[:2], f64(2, 2))
        after(op, f32(4, 2), rows, f32(3, 2)) if op != "ScatterUpdate" else None
        after(op, f32(4), np.int64(1), f32())
        after(op, f32(4, 2), rows[:2], np.float32(1.5))
        after(op, ints(4, 2), rows[:2], ints(2, 2, low=1))
    at = np.array([[0, 1], [2, 0]], np.int32)
    for op in ["ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub"]:
        after(op, f64(3, 2), at, f64(2))
        after(op, ints(3, 2), at[:, :1], ints(2, 2))
    for op in ["Assign", "AssignAdd", "AssignSub"]:
        after(op, f64(3), f64(3))
        after(op, ints(3, dtype=np.uint8, low=0), ints(3, dtype=np.uint8, low=0))
        after(op, np.asarray(f32(3), np.float16), np.asarray(f32(3), np.float16))
    after("StridedSliceAssign", f32(4, 3), i32(1, 0), i32(3, 3), i32(1, 2), f32(2, 2))
    after("StridedSliceAssign", f32(4, 3), i32(-1, 0), i32(0, 2), i32(-2, 1), f32(2, 3), end_mask=2)


def sparse():
    at = i64(0, 1, 0, 3, 1, 0, 2, 2).reshape(4, 2)
    shape = i64(3, 4)
    b_at = i64(0, 0, 0, 3, 2, 1).reshape(3, 2)
    for aa in [False, True]:
        for ab in [False, True]:
            b = f64(*((3 if aa else 4, 2)[::-1] if ab else (3 if aa else 4, 2)))
            case("SparseTensorDenseMatMul", [at, f64(4), shape, b], adjoint_a=aa, adjoint_b=ab)
    case("SparseTensorDenseMatMul", [at.astype(np.int32), f32(4), shape, f32(4, 2)])
    case("SparseTensorDenseMatMul", [at, c128(4), shape, c128(3, 2)], adjoint_a=True, grad=False)
    case("SparseAdd", [at, f64(4), shape, b_at, f64(3), shape, np.float64(0)], grad=[1])
    case("SparseAdd", [at, ints(4), shape, b_at, ints(3), shape, np.int32(5)])
    case("SparseAdd", [at, i32(1, 2, 3, 4), shape, b_at, i32(1, -2, 3), shape, np.int32(1)])
    for op in ["SparseSparseMaximum", "SparseSparseMinimum"]:
        case(op, [at, f32(4), shape, b_at, f32(3), shape], grad=False)
    for op in ["SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"]:
        for axes in [i32(0), i32(1), i32(-1), i32(0, 1), i32()]:
            for keep in [False, True]:
                case(op, [at, f64(4), shape, axes], grad=op == "SparseReduceSum", keep_dims=keep)
    case("SparseToDense", [at, shape, f64(4), np.float64(0.5)])
    case("SparseToDense", [i32(1, 3), i32(5), f32(2), np.float32(0)], grad=False)
    case("SparseToDense", [i32(1, 3), i32(5), np.float32(2), np.float32(0)], grad=False)
    case("SparseToDense", [np.int32(1), i32(5), np.array("x"), np.array("y")])
    case("SparseToDense", [at[::-1], shape, ints(4), np.int32(-1)], validate_indices=False)
    order = [2, 0, 3, 1]
    case("SparseReorder", [at[order], f64(4), shape], grad=[1])
    case("SparseReorder", [at[order], np.array(["a", "b", "c", "d"]), shape])
    case("SparseReshape", [at, shape, i64(2, -1)])
    case("SparseReshape", [at, shape, i64(2, 3, 2)])
    for dim in [0, 1, -1]:
        case("SparseConcat", [at, b_at, f64(4), f64(3), shape, shape], lists=[2, 2, 2], grad=False, concat_dim=dim)
    case("SparseSplit", [np.int64(1), at, f64(4), shape], grad=False, num_split=2)
    case("SparseSplit", [np.int64(0), at, f64(4), shape], grad=False, num_split=2)
    case("SparseSlice", [at, f64(4), shape, i64(0, 1), i64(2, 9)], grad=[1])
    case("SparseSoftmax", [at, f64(4), shape])
    case("SparseSoftmax", [i64(0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0).reshape(4, 3), f32(4), i64(2, 2, 2)])
    for op in ["SparseDenseCwiseMul", "SparseDenseCwiseDiv", "SparseDenseCwiseAdd"]:
        grad = op != "SparseDenseCwiseAdd"
        case(op, [at, f64(4), shape, f64(3, 4, low=0.5)], grad=grad)
        case(op, [at, f64(4), shape, f64(4, low=0.5)], grad=False)
        case(op, [at, f64(4), shape, f64(3, 1, low=0.5)], grad=grad)
    case("SparseTensorDenseAdd", [at, f64(4), shape, f64(3, 4)])
    rows = i64(0, 1, 3, 0, 3, 2).reshape(3, 2)
    case("SparseFillEmptyRows", [rows, f64(3), i64(5, 4), np.float64(7)], grad=[1])
    case("SparseFillEmptyRows", [rows, np.array(["a", "b", "c"]), i64(5, 4), np.array("z")])


def random():
    """Bit for bit where no function is evaluated; two executions each, as the generator goes on."""
    for dtype in [tf.float16, tf.bfloat16, tf.float32, tf.float64]:
        for shape in [i32(11), i64(3, 5)]:
            for op in ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"]:
                check = "exact" if op == "RandomUniform" else "equal"
                case(op, [shape], runs=2, check=check, dtype=dtype, seed=87654321, seed2=42)
            for op in ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"]:
                case(op, [shape, i64(7, -3)], check="exact" if "Uniform" in op else "equal", dtype=dtype)
            for op in ["StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"]:
                key, counter = np.array([123456789012345], np.uint64), np.array([5, 2**63 + 7], np.uint64)
                case(op, [shape, key, counter, np.int32(1)], check="exact" if "Uniform" in op else "equal", dtype=dtype)
    for dtype in [np.int32, np.int64]:
        case("RandomUniformInt", [i32(7), dtype(-5), dtype(1000)], check="exact", runs=2, seed=3, seed2=4)
        case("StatelessRandomUniformInt", [i32(7), i32(1, 2), dtype(-5), dtype(10)], check="exact")
    for dtype in [np.int32, np.int64, np.uint32, np.uint64]:
        key, counter = np.array([77], np.uint64), np.array([0, 9], np.uint64)
        if np.dtype(dtype).kind == "i":
            bounds = [dtype(3), dtype(100)]
            case("StatelessRandomUniformIntV2", [i32(7), key, counter, np.int32(1), *bounds], check="exact")
        case("StatelessRandomUniformFullIntV2", [i32(7), key, counter, np.int32(1)], check="exact", dtype=tf.as_dtype(dtype))
        case("StatelessRandomUniformFullInt", [i32(7), i64(4, 5)], check="exact", dtype=tf.as_dtype(dtype))
    case("StatelessRandomGetKeyCounter", [i64(12, 34)], check="exact")
    case("StatelessRandomGetKeyCounter", [i32(-12, 34)], check="exact")
    case("StatelessRandomGetKeyCounterAlg", [i64(2**40, -1)], check="exact", keep=2)
    for value in [np.arange(13, dtype=np.int32), f32(9, 2), np.array(["a", "b", "c", "d"]), f64(1, 3)]:
        case("RandomShuffle", [value], grad=False, check="exact", runs=2, seed=5, seed2=6)
    for logits in [f32(3, 4), f64(2, 5), np.array([[0, -np.inf, 1]], np.float32)]:
        case("Multinomial", [logits, np.int32(9)], check="exact", runs=2, seed=1, seed2=2)
        case("StatelessMultinomial", [logits, np.int32(9), i64(3, 4)], check="exact")
    for alpha in [np.array([0.3, 1.0, 2.5]), np.array([[4.0, 0.9]], np.float32)]:
        case("RandomGamma", [i32(3, 2), alpha], grad=False, runs=2, seed=8, seed2=9)
        case("StatelessRandomGammaV2", [i32(3, *alpha.shape), i64(1, 2), alpha])
    case("StatelessRandomPoisson", [i32(5, 3), i64(1, 2), np.array([0.5, 3.0, 30.0])], grad=False, check="exact", dtype=tf.int64)
    for rate in [np.array([0.5, 3.0, 30.0]), np.array([12.0, 200.0])]:
        case("RandomPoissonV2", [i32(4), rate], grad=False, check="exact", runs=2, seed=8, seed2=9)
        case("RandomPoissonV2", [i32(4), rate.astype(np.float32)], grad=False, check="exact", dtype=tf.float32, seed=8, seed2=9)


def quantized():
    q = {tf.quint8: np.uint8, tf.qint8: np.int8, tf.qint32: np.int32}
    r = lambda lo, hi: [np.float32(lo), np.float32(hi)]
    for mode in ["MIN_COMBINED", "MIN_FIRST", "SCALED"]:
        for T in [tf.quint8, tf.qint8]:
            for lo, hi in [(-1.5, 2), (0, 3), (-2, 0.5)]:
                case("QuantizeV2", [f32(3, 4), *r(lo, hi)], grad=False, T=T, mode=mode)
                case("Dequantize", [ints(3, 4, low=0, high=100, dtype=q[T]), *r(lo, hi)], dtypes=[T, None, None], grad=False, mode=mode)
    for narrow in [False, True]:
        for mode in ["HALF_TO_EVEN", "HALF_AWAY_FROM_ZERO"]:
            case("QuantizeV2", [f32(3, 4), *r(-1.5, 2)], grad=False, T=tf.qint8, mode="SCALED", round_mode=mode, narrow_range=narrow)
        case("Dequantize", [ints(3, 4, dtype=np.int8), *r(-1.5, 2)], dtypes=[tf.qint8, None, None], grad=False, mode="SCALED", narrow_range=narrow)
    ax = [np.array([-1.5, -1], np.float32), np.array([2, 0.5], np.float32)]
    case("QuantizeV2", [f32(3, 2, 2), *ax], grad=False, T=tf.qint8, mode="SCALED", axis=1)
    case("Dequantize", [ints(3, 2, 2, dtype=np.int8), *ax], dtypes=[tf.qint8, None, None], grad=False, mode="SCALED", axis=1)
    case("Dequantize", [ints(5, low=-2**31, high=2**31 - 1), *r(-10, 20)], dtypes=[tf.qint32, None, None], grad=False, mode="MIN_FIRST")
    u8 = lambda *s: ints(*s, low=0, high=255, dtype=np.uint8)
    ty = [tf.quint8, tf.quint8, None, None, None, None]
    for ta in [False, True]:
        for tb in [False, True]:
            a, b = u8(*((4, 3) if ta else (3, 4))), u8(*((2, 4) if tb else (4, 2)))
            case("QuantizedMatMul", [a, b, *r(-1, 2), *r(-3, 1)], dtypes=ty, grad=False, transpose_a=ta, transpose_b=tb)
    big = ints(3, 4, low=-2**20, high=2**20)
    ty32 = [tf.qint32, None, None]
    case("RequantizationRange", [big, *r(-900, 800)], dtypes=ty32, grad=False)
    case("QuantizeDownAndShrinkRange", [big, *r(-900, 800)], dtypes=ty32, grad=False, out_type=tf.quint8)
    case("Requantize", [big, *r(-900, 800), *r(-0.4, 0.5)], dtypes=ty32 + [None, None], grad=False, out_type=tf.quint8)
    case("QuantizedBiasAdd", [u8(3, 4), u8(4), *r(-1, 2), *r(-3, 1)], dtypes=ty, grad=False, out_type=tf.qint32)
    for op in ["QuantizedRelu", "QuantizedRelu6"]:
        case(op, [u8(3, 4), *r(-3, 10)], dtypes=[tf.quint8, None, None], grad=False)
    case("QuantizedReshape", [u8(3, 4), i32(2, -1), *r(-3, 10)], dtypes=[tf.quint8, None, None, None], grad=False)
    for given in [False, True]:
        for signed in [False, True]:
            for f in [f32, f64]:
                x, t = f(3, 4, low=-2 if signed else 0), np.float32 if f is f32 else np.float64
                lo = t(-1.25 if signed else 0)
                case("QuantizeAndDequantizeV2", [x, lo, t(1.5)], grad=False, signed_input=signed, range_given=given)
                case("QuantizeAndDequantizeV2", [x, lo, t(1.5)], grad=False, signed_input=signed, range_given=given, num_bits=4, round_mode="HALF_UP", narrow_range=True)
                case("QuantizeAndDequantizeV3", [x, lo, t(1.5), np.int32(6)], grad=False, signed_input=signed, range_given=given)
                case("QuantizeAndDequantizeV4", [x, lo, t(1.5)], grad=given, signed_input=signed, range_given=given)
    for narrow in [False, True]:
        for bits in [4, 8]:
            case("FakeQuantWithMinMaxArgs", [f32(3, 4)], min=-1.2, max=1.5, num_bits=bits, narrow_range=narrow)
            case("FakeQuantWithMinMaxVars", [f32(3, 4), *r(-1.2, 1.5)], num_bits=bits, narrow_range=narrow)
            case("FakeQuantWithMinMaxVarsPerChannel", [f32(3, 4), f32(4, low=-2, high=-0.5), f32(4, low=0.5)], num_bits=bits, narrow_range=narrow)
    case("FakeQuantWithMinMaxVars", [f32(3, 4), *r(0.4, 1.5)])


def strings():
    s = lambda *v: np.array(v)
    case("StringJoin", [s("a", "b"), np.array("-"), s("c", "d")], lists=[3], separator="/")
    case("StringJoin", [np.array("x"), np.array("y")], lists=[2])
    for text, sep in [(s("a b  c", "", " d "), ""), (s("a,b,,c", ",", "x"), ","), (s("1<>2<>3", "<>"), "<>")]:
        case("StringSplitV2", [text, np.array(sep)])
        case("StringSplitV2", [text, np.array(sep)], maxsplit=1)
    case("StringSplit", [s("a,b;c", "", ";;x"), np.array(",;")])
    case("StringSplit", [s("a,b;c", ";;x"), np.array(",;")], skip_empty=False)
    case("StringSplit", [s("abc"), np.array("")])
    for t in [tf.float32, tf.float64]:
        case("StringToNumber", [s("1.5", " -2e3 ", "+4", "inf", ".5")], out_type=t)
    for t in [tf.int32, tf.int64]:
        case("StringToNumber", [s("15", " -2 ", "+4")], out_type=t)
    x = np.array([0.0, 1.5, -2.25, 1e10, 3.14159265, 1e-7, np.inf, np.nan], np.float32)
    for kw in [{}, {"precision": 2}, {"scientific": True}, {"shortest": True}, {"shortest": True, "precision": 3},
               {"width": 12}, {"width": 12, "fill": "0", "precision": 1}]:
        case("AsString", [x[:6] if kw.get("fill") else x], grad=False, **kw)
    case("AsString", [ints(4)])
    case("AsString", [ints(4), ][:1], width=5, fill="-")
    case("AsString", [ints(4)], width=5, fill="0")
    case("AsString", [np.array([True, False])])
    case("AsString", [np.array([1 + 2j, -0.5j])], grad=False)
    case("StringLength", [s("abc", "", "h\u00e9")])
    case("StringLength", [s("abc", "", "h\u00e9")], unit="UTF8_CHAR")
    case("Substr", [s("hello", "world"), i32(1, -3), i32(3, 9)])
    case("Substr", [s("hello", "world"), np.int64(2), np.int64(2)])
    case("Substr", [s("h\u00e9llo"), i32(1), i32(2)], unit="UTF8_CHAR")
    case("StringStrip", [s(" a b ", "\tc\n", "")])
    case("StringLower", [s("Ab", "\u00c9")])
    case("StringLower", [s("Ab", "\u00c9")], encoding="utf-8")
    case("StringUpper", [s("Ab", "\u00e9")], encoding="utf-8")
    grid = np.array([["a", "b", "c"], ["d", "e", "f"]])
    for axes in [i32(0), i32(1), i32(0, 1), i32(1, 0), i32(-1)]:
        for keep in [False, True]:
            case("ReduceJoin", [grid, axes], keep_dims=keep, separator="-")
    case("EncodeBase64", [s("a", "ab", "abc", "\u00ff\u00fe?>")])
    case("EncodeBase64", [s("a", "ab")], pad=True)
    case("DecodeBase64", [s("YQ", "YWI=", "YWJj", "_-8")])
    case("RegexReplace", [s("abcabc", "xyz"), np.array("a(b)c"), np.array("<\\1$>")])
    case("RegexReplace", [s("abcabc"), np.array("b"), np.array("")], replace_global=False)
    case("StaticRegexReplace", [s("a1b22")], pattern="[0-9]+", rewrite="#")
    case("RegexFullMatch", [s("abc", "ab", "abcd"), np.array("ab?c|ab")])
    case("StaticRegexFullMatch", [s("abc", "x")], pattern="[a-c]*")
    case("StringToHashBucketFast", [s("a", "hello world", "", "x" * 40, "y" * 100)], num_buckets=1000003)
    case("StringToHashBucketStrong", [s("a", "hello world", "", "x" * 40)], num_buckets=1000003, key=[12, 34])
    case("StringFormat", [i32(1, 2, 3)], lists=[1], template="<%s>")
    case("StringFormat", [np.arange(20, dtype=np.int32), np.float32(1.5)], lists=[2], template="%s and %s")


def summaries():
    tag = np.array("t")
    x = f32(3, 4, 5, 3)
    for images in [np.abs(x), x, ints(2, 4, 5, 1, low=0, high=255, dtype=np.uint8), np.abs(x[..., :1]).astype(np.float64)]:
        case("ImageSummary", [tag, images], grad=False, check="summary")
    case("ImageSummary", [tag, x], grad=False, check="summary", max_images=1)
    bad = x.copy()
    bad[0, 1, 2, 0] = np.nan
    case("ImageSummary", [tag, bad], grad=False, check="summary")
    sound = f32(2, 7, 2, low=-1.1, high=1.1)
    case("AudioSummaryV2", [tag, sound, np.float32(8000)], grad=False, check="summary")
    case("AudioSummaryV2", [tag, sound[:, :, 0], np.float32(8000)], grad=False, check="summary", max_outputs=1)
    meta = tf.compat.v1.SummaryMetadata(plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="text"))
    for value in [np.array(["a", "b"]), f32(2, 3), ints(3)]:
        case("TensorSummaryV2", [tag, value, np.array(meta.SerializeToString())], grad=False, check="summary")
        case("TensorSummary", [value], grad=False, check="summary")
    case("ScalarSummary", [np.array(["a", "b"]), f32(2)], grad=False, check="summary")
    case("ScalarSummary", [tag, np.float64(2)], grad=False, check="summary")


def images():
    x = f32(2, 5, 6, 3)
    for align, half in [(False, False), (True, False), (False, True)]:
        for size in [(9, 4), (5, 6), (2, 13), (1, 1)]:
            case("ResizeBicubic", [x, i32(*size)], align_corners=align, half_pixel_centers=half)
        case("ResizeBicubic", [f64(1, 4, 3, 2), i32(7, 7)], check="rough", align_corners=align, half_pixel_centers=half)
        case("ResizeBicubic", [f32(1, 1, 1, 2), i32(3, 2)], align_corners=align, half_pixel_centers=half)
        case("ResizeBicubic", [ints(1, 3, 4, 2, low=0, high=255, dtype=np.uint8), i32(5, 3)],
             align_corners=align, half_pixel_centers=half)
    # Within, across the edges, outside of the image, upside down, empty.
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.73, 0.91], [-0.3, 0.2, 0.6, 1.4], [0.9, 0.8, 0.15, 0.1],
                      [1.5, 1.5, 2, 2], [0.4, 0.4, 0.4, 0.4]], np.float32)
    of = i32(0, 1, 1, 0, 1, 0)
    for size in [(3, 4), (7, 2), (1, 1), (1, 5)]:
        case("CropAndResize", [x, boxes, of, i32(*size)])
        case("CropAndResize", [x, boxes, of, i32(*size)], grad=False, method="nearest", extrapolation_value=7.5)
    case("CropAndResize", [f64(2, 5, 6, 1), boxes, of, i32(3, 3)], check="rough", extrapolation_value=-1.0)
    case("CropAndResize", [ints(2, 4, 4, 2, low=0, high=255, dtype=np.uint8), boxes, of, i32(3, 2)], grad=False)
    case("CropAndResize", [x, boxes[:0], of[:0], i32(3, 2)], grad=False)
    g = f32(6, 3, 4, 3)
    for method in ["bilinear", "nearest"]:
        case("CropAndResizeGradImage", [g, boxes, of, i32(2, 5, 6, 3)], grad=False, T=tf.float32, method=method)
    case("CropAndResizeGradImage", [g, boxes, of, i32(2, 5, 6, 3)], grad=False, check="rough", T=tf.float64)
    case("CropAndResizeGradBoxes", [g, x, boxes, of], grad=False)
    case("CropAndResizeGradBoxes", [f32(6, 1, 1, 3), x, boxes, of], grad=False)


def labellings():
    def sparse(rows):
        at = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
        return np.array(at, np.int64).reshape(-1, 2), np.array([v for row in rows for v in row], np.int32)

    for make in [f32, f64]:
        x = make(6, 4, 5)
        indices, values = sparse([[1, 2], [3, 3], [0], [2, 1, 2]])
        for collapse in [False, True]:
            for merge in [False, True]:
                case("CTCLoss", [x, indices, values, i32(6, 5, 3, 6)], grad=[0], check="rough",
                     preprocess_collapse_repeated=collapse, ctc_merge_repeated=merge)
        indices, values = sparse([[1, 2, 3, 1], [3], [2], [0, 0]])
        case("CTCLoss", [x, indices, values, i32(3, 4, 0, 2)], grad=[0], check="rough", ignore_longer_outputs_than_inputs=True)
        # Two equal labels need a blank between them: there is no way in two steps.
        indices, values = sparse([[0, 0], [1], [1], [1]])
        case("CTCLoss", [x, indices, values, i32(2, 6, 1, 6)], grad=False, check="rough")
    # TensorFlow has the second version for GPUs only: the blank is the first class, not the last.
    x, length = f32(6, 4, 5), i32(6, 5, 3, 6)
    indices, values = sparse([[1, 2], [3, 3], [0], [2, 1, 2]])
    loss, grad = tf.raw_ops.CTCLoss(
        inputs=np.roll(x, -1, -1), labels_indices=indices, labels_values=values, sequence_length=length)
    given("CTCLossV2", [x, indices, values + 1, length], [loss, tf.roll(grad, 1, -1)])
    for make in [f32, f64]:
        x = make(7, 3, 4)
        for merge in [False, True]:
            for blank in [-1, 0, 2]:
                case("CTCGreedyDecoder", [x, i32(7, 4, 0)], grad=False, merge_repeated=merge, blank_index=blank)


def matrix_functions():
    """Triangular ones too, whose form needs no steps, and such as have eigenvalues more than once."""
    more = [np.array([[4.0, 1, 0], [0, 4, 1], [0, 0, 4]]), np.diag([0.25, 9.0]), np.array([[0.0, -1], [1, 0]])]
    turned = np.linalg.qr(f64(5, 5))[0]
    for a in [spd(4), f64(3, 3) + 3 * np.eye(3), spd(3, 2), turned @ np.diag([1e-3, 0.1, 1, 10, 1e3]) @ turned.T, *more]:
        case("MatrixSquareRoot", [a])
        case("MatrixLogarithm", [a.astype(np.complex128)], grad=False)
    case("MatrixSquareRoot", [np.zeros((2, 0, 0))], grad=False)
    case("MatrixSquareRoot", [np.diag([-1.0, 4.0])], grad=False)
    case("MatrixSquareRoot", [spd(4).astype(np.float32)], check="rough")
    for n in [1, 2, 6]:
        a = c128(n, n) + n * np.eye(n)
        case("MatrixSquareRoot", [a], grad=False)
        case("MatrixLogarithm", [a], grad=False)
    case("MatrixSquareRoot", [(c128(3, 3) + 3 * np.eye(3)).astype(np.complex64)], grad=False)
    case("MatrixLogarithm", [(c128(2, 3, 3) + 3 * np.eye(3)).astype(np.complex64)], grad=False)
    case("MatrixLogarithm", [np.array([[-1, 1], [0, -1]], np.complex128)], grad=False)
    case("MatrixLogarithm", [np.array([[1e9, 1], [0, 1e-9]], np.complex128)], grad=False)


def quantized_nets():
    u8 = lambda *s: ints(*s, low=0, high=255, dtype=np.uint8)
    r = lambda lo, hi: [np.float32(lo), np.float32(hi)]
    q2 = [tf.quint8, tf.quint8, None, None, None, None]
    for strides in [[1, 1, 1, 1], [1, 2, 2, 1]]:
        for padding in ["SAME", "VALID"]:
            case("QuantizedConv2D", [u8(2, 6, 5, 3), u8(3, 2, 3, 4), *r(-1, 2), *r(-3, 1)], dtypes=q2, grad=False,
                 strides=strides, padding=padding)
    case("QuantizedConv2D", [u8(1, 3, 3, 64), u8(1, 1, 64, 3), *r(-1, 1), *r(-2, 2)], dtypes=q2, grad=False,
         strides=[1, 1, 1, 1], padding="VALID")
    for op in ["QuantizedMaxPool", "QuantizedAvgPool"]:
        for padding in ["SAME", "VALID"]:
            case(op, [u8(2, 5, 6, 3), *r(-1, 2)], dtypes=[tf.quint8, None, None], grad=False, ksize=[1, 2, 3, 1],
                 strides=[1, 2, 2, 1], padding=padding)
    for shapes in [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 3), ())]:
        for op in ["QuantizedAdd", "QuantizedMul"]:
            case(op, [u8(*shapes[0]), u8(*shapes[1]), *r(-1, 2), *r(-3, 1)], dtypes=q2, grad=False)
    for at in [0, 1]:
        case("QuantizedConcat", [np.int32(at), u8(2, 3), u8(2, 3), *r(-1, 2)[:1], np.float32(-4), np.float32(2), np.float32(1)],
             lists=[0, 2, 2, 2], dtypes=[None, tf.quint8, tf.quint8, None, None, None, None], grad=False)
    big = lambda: ints(2, 2, low=-2**30, high=2**30)
    case("QuantizedConcat", [np.int32(0), big(), big(), np.float32(-1), np.float32(-4), np.float32(2), np.float32(1)],
         lists=[0, 2, 2, 2], dtypes=[None, tf.qint32, tf.qint32, None, None, None, None], grad=False)


def truncated():
    """Each way to draw: in the middle, between close bounds, in a tail; bounds for all, and for each row."""
    inf = np.inf
    for t in [np.float32, np.float64]:
        for mean, deviation, low, high in [(0, 1, -2, 2), (3, 2, -inf, 4), (0, 1, 0.2, 0.4), (0, 1, 2.5, inf), (1, 0.5, -inf, -1),
                                           (0, 1, 3, 3.5), (5, 2, 4, inf), (0, 1, -0.5, 0.5)]:
            values = [t(mean), t(deviation), t(low), t(high)]
            case("ParameterizedTruncatedNormal", [i32(17), *values], runs=2, grad=False, seed=5, seed2=6)
        rows = [np.array(v, t) for v in [[0, 3, 1], [1], [-1, 3.2, -inf], [2, 4, 0]]]
        case("ParameterizedTruncatedNormal", [i64(3, 4), *rows], grad=False, runs=2, seed=7, seed2=1)


def sequences():
    train = tf.train
    i = lambda *v: train.Feature(int64_list=train.Int64List(value=v))
    f = lambda *v: train.Feature(float_list=train.FloatList(value=v))
    b = lambda *v: train.Feature(bytes_list=train.BytesList(value=v))
    steps = lambda *v: train.FeatureList(feature=v)

    def example(context, lists):
        return train.SequenceExample(
            context=train.Features(feature=context), feature_lists=train.FeatureLists(feature_list=lists)).SerializeToString()

    all_of_it = example({"s": i(1, -2), "d": f(1.5, 2.5), "r": b(b"x", b"y"), "more": i(1)},
                        {"fs": steps(i(1), i(), i(3, 4)), "fd": steps(f(1, 2), f(3, 4)), "fb": steps(b(b"q")),
                         "fr": steps(b(b"a"), b(), b(b"b", b"c"))})
    short = example({"d": f(7, 8)}, {"fd": steps(), "fb": steps(b(b"u"), b(b"v")), "fs": steps(train.Feature())})
    bare = example({}, {"fb": steps()})
    context = dict(context_sparse_types=("types", [tf.int64]), context_dense_shapes=("shapes", [[2]]))
    lists = dict(feature_list_sparse_types=("types", [tf.int64]), feature_list_dense_types=("types", [tf.float32, tf.string]),
                 feature_list_dense_shapes=("shapes", [[2], [1]]))
    default = np.array([-1, -0.5], np.float32)
    texts = lambda *v: np.array(v, object)
    for examples in [[all_of_it, short, bare], [bare], [all_of_it, all_of_it]]:
        names = [f"number {k}" for k in range(len(examples))]
        case("ParseSequenceExample", [texts(*examples), texts(*names), default], lists=[0, 0, 1], grad=False,
             feature_list_dense_missing_assumed_empty=("strings", ["fd", "other"]), context_sparse_keys=("strings", ["s"]),
             context_dense_keys=("strings", ["d"]), feature_list_sparse_keys=("strings", ["fs"]),
             feature_list_dense_keys=("strings", ["fd", "fb"]), Ncontext_sparse=1, Ncontext_dense=1, Nfeature_list_sparse=1,
             Nfeature_list_dense=2, **context, **lists)
        for serialized in [texts(*examples), np.array(examples[0], object)]:
            # TensorFlow leaves the row splits of one example alone as they happen to be in memory.
            ragged = dict(
                context_ragged_value_types=("types", [tf.string]), feature_list_ragged_value_types=("types", [tf.string]),
                context_ragged_split_types=("types", [tf.int32]), feature_list_ragged_split_types=("types", [tf.int64]))
            keys = ["r"], ["fr"]
            if serialized.ndim == 0:
                ragged = {k: (v[0], []) for k, v in ragged.items()}
                keys = [], []
            case("ParseSequenceExampleV2",
                 [serialized, np.array([], object), texts("s"), texts("d"), np.array(keys[0], object), texts("fs"),
                  texts("fd", "fb"), np.array(keys[1], object), np.array([True, False]), default],
                 lists=[0] * 9 + [1], grad=False, Ncontext_sparse=1, Nfeature_list_sparse=1, Nfeature_list_dense=2,
                 **context, **lists, **ragged)
    for one in [all_of_it, short, bare]:
        case("ParseSingleSequenceExample",
             [np.array(one, object), texts("fd"), np.array("s", object), np.array("d", object), np.array("fs", object),
              np.array("fd", object), np.array("fb", object), default, np.array("name", object)],
             lists=[0, 0, 1, 1, 1, 2, 1, 0], grad=False, **context, **lists)


THEMES = {"strings": strings, "summaries": summaries, "quantized": quantized, "matrices": matrices, "segments": segments, "sparse": sparse, "random": random,
          "images": images, "labellings": labellings, "matrix_functions": matrix_functions, "quantized_nets": quantized_nets,
          "truncated": truncated, "sequences": sequences}


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
