#!/usr/bin/env python3
"""Makes engine/tests/data/dtypes.json.gz: what TensorFlow computes with every element type.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_dtype_fixtures.py engine/tests/data/dtypes.json.gz

A case is [op, attributes, lengths of list inputs, inputs, outputs, weights, gradients]: the gradients are those of
sum(outputs[0] * weights) by the inputs that have any. Tensors are [dtype, shape, hex of the little-endian elements], strings
[dtype, shape, list]. Cases that TensorFlow's CPU kernels refuse are left out.
"""
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
cases, refused = [], []
DTYPE = {d.as_numpy_dtype: d for d in (tf.float32, tf.float64, tf.half, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64,
         tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128)}
H, B = np.float16, tf.bfloat16.as_numpy_dtype
FLOATS = [np.float32, np.float64, H, B]
INTS = [np.int8, np.int16, np.int32, np.int64]
UINTS = [np.uint8, np.uint16, np.uint32, np.uint64]
COMPLEX = [np.complex64, np.complex128]
ALL = FLOATS + INTS + UINTS + COMPLEX
DEEP = [np.float64, np.int64, np.float32, B, np.uint8, np.complex128]


def name(dtype):
    return "string" if dtype == object else tf.as_dtype(dtype).name.replace("float32", "float").replace("float64", "double").replace("float16", "half").replace("bhalf", "bfloat16")


def pack(a):
    a = np.asarray(a)
    if a.dtype == object:
        return ["string", list(a.shape), [v.decode() if isinstance(v, bytes) else v for v in a.ravel()]]
    return [name(a.dtype), list(a.shape), np.ascontiguousarray(a).tobytes().hex()]


def num(dtype, *shape, low=-4, high=4):
    """Numbers that every type holds; unsigned ones are positive."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(max(low, 0) if dtype.kind == "u" else low, high + 1, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    real = np.round(rng.uniform(low, high, shape) * 16) / 16
    if dtype.kind == "c":
        return (real + 1j * np.round(rng.uniform(low, high, shape) * 16) / 16).astype(dtype)
    return real.astype(dtype)


def i32(*v):
    return np.array(v, np.int32)


def case(op, inputs, lists=None, grad=True, **attrs):
    inputs = [np.asarray(i) for i in inputs]
    try:
        with tf.Graph().as_default() as graph, tf.device("/cpu:0"):
            feeds = [tf.compat.v1.placeholder(tf.string if i.dtype == object else i.dtype, i.shape) if integer_free(i) else tf.constant(i) for i in inputs]
            args, rest = [], list(feeds)
            for n in lists or [0] * len(inputs):
                args.append(rest.pop(0) if n == 0 else [rest.pop(0) for _ in range(n)])
            function = getattr(tf.raw_ops, op)
            parameters = list(inspect.signature(function).parameters)
            outputs = function(**dict(zip(parameters, args)), **attrs)
            outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            wanted, weights, xs = [], None, []
            first = outputs[0].dtype
            if grad and (first.is_floating or first.is_complex):
                shape = tf.compat.v1.Session(graph=graph).run(tf.shape(outputs[0]), feed(feeds, inputs))
                weights = num(first.as_numpy_dtype, *shape, low=-1, high=1)
                xs = [f for f in feeds if f.dtype.is_floating or f.dtype.is_complex]
                try:
                    got = tf.gradients(outputs[0], xs, grad_ys=tf.constant(weights))
                    wanted = [None if g is None else tf.convert_to_tensor(g) for g in got]
                except (LookupError, ValueError):
                    weights = None
            with tf.compat.v1.Session(graph=graph) as session:
                values = session.run(outputs, feed(feeds, inputs))
                try:
                    slopes = session.run([w for w in wanted if w is not None], feed(feeds, inputs))
                except Exception:
                    slopes, weights = [], None
    except Exception as e:
        refused.append(f"{op} {[str(i.dtype) for i in inputs]} {str(e).splitlines()[0][:90]}")
        return
    types = {k: (["type", name(np.dtype(v.as_numpy_dtype))] if isinstance(v, tf.DType) else v) for k, v in attrs.items()}
    gradients = None
    if weights is not None:
        slopes = list(slopes)
        gradients = [None if w is None else pack(slopes.pop(0)) for w in wanted]
    cases.append([op, types, lists or [], [pack(i) for i in inputs], [pack(v) for v in values],
                  pack(weights) if weights is not None else None, gradients])


def integer_free(i):
    return i.dtype.kind not in "iu" or i.dtype in (np.uint8,)


def feed(feeds, inputs):
    return {f: i for f, i in zip(feeds, inputs) if f.op.type == "Placeholder"}


def unary():
    for d in ALL:
        x = num(d, 2, 3)
        for op in ["Abs", "Neg", "Sign", "Square", "Round", "Invert", "PopulationCount", "OnesLike", "ZerosLike"]:
            case(op, [x])
        y = np.where(x == 0, 1, x).astype(d)
        for op in ["Reciprocal", "Inv"]:
            case(op, [y])
    for d in FLOATS + COMPLEX:
        x, p, u = num(d, 5, low=-3, high=3), num(d, 5, low=1, high=5), num(d, 5, low=-0.9, high=0.9)
        p, u = np.where(p == 0, 1, p).astype(d), np.where(u == 0, 0.25, u).astype(d)
        for op in ["Exp", "Expm1", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Sigmoid"]:
            case(op, [u if op == "Tan" else x])
        for op in ["Log", "Log1p", "Sqrt", "Rsqrt", "Acosh"]:
            case(op, [(p + 0.125).astype(d)])
        for op in ["Asin", "Acos", "Atanh"]:
            case(op, [u])
        for op in ["TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad"]:
            case(op, [u, x])
    for d in FLOATS:
        x, p = num(d, 6), num(d, 6, low=0.25, high=8)
        for op in ["Floor", "Ceil", "Rint", "IsNan", "IsInf", "IsFinite", "Erf", "Erfc"]:
            case(op, [x])
        case("IsNan", [np.array([np.nan, np.inf, 1], d)])
        case("Sign", [np.array([np.nan, -0.0, np.inf], d)])
        for op in ["Lgamma", "Digamma", "Dawsn", "Expint", "Spence", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
                   "BesselJ0", "BesselJ1", "BesselY0", "BesselY1"]:
            case(op, [p])
        case("Erfinv", [num(d, 6, low=-0.95, high=0.95)])
        case("Ndtri", [num(d, 6, low=0.05, high=0.95)])
        case("Lgamma", [np.array([-0.5, -1.5, -2.25], d)])
        case("Digamma", [np.array([-0.5, -1.5, -2.25, 0.0, -1.0], d)], grad=False)
    for d in [np.float32, np.float64]:
        case("Ndtri", [np.array([0, 1, 1e-10, 0.5], d)], grad=False)
        case("Erfinv", [np.array([-1, 1, 1e-8, -0.9999], d)], grad=False)
        a, x = num(d, 5, low=0.5, high=12), num(d, 5, low=0.25, high=14)
        for op in ["Igamma", "Igammac", "IgammaGradA"]:
            case(op, [a, x], grad=op != "IgammaGradA")
        case("RandomGammaGrad", [a, x], grad=False)
        case("Igamma", [np.array([-1, 0, 1, 200, 30], d), np.array([1, 1, 0, 210, 500], d)], grad=False)
        case("Polygamma", [np.array([0, 1, 2, 3, 4], d), x])
        case("Zeta", [np.array([1.5, 2, 3, 4, 5], d), x])
        case("Zeta", [np.array([1, 0.5, 2, 3, 2.5], d), np.array([1, 2, 0, -1.5, -1.5], d)], grad=False)
        case("Betainc", [a, num(d, 5, low=0.5, high=6), num(d, 5, low=0.125, high=0.875)])
        case("NextAfter", [num(d, 4), num(d, 4)])
    for d in COMPLEX:
        x = num(d, 2, 3)
        real = tf.as_dtype(d).real_dtype
        for op in ["Real", "Imag", "Angle", "ComplexAbs"]:
            case(op, [x], Tout=real)
        case("Conj", [x])
        r = real.as_numpy_dtype
        case("Complex", [num(r, 2, 3), num(r, 3)], Tout=tf.as_dtype(d))


def binary():
    for d in ALL:
        x, y = num(d, 2, 3), num(d, 3)
        some = np.where(y == 0, 1, y).astype(d)
        for op in ["Add", "AddV2", "Sub", "Mul", "SquaredDifference", "Maximum", "Minimum", "Less", "LessEqual", "Greater",
                   "GreaterEqual", "Equal", "NotEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "MulNoNan"]:
            case(op, [x, y])
        for op in ["Div", "RealDiv", "FloorDiv", "TruncateDiv", "Mod", "FloorMod", "TruncateMod", "DivNoNan", "Xdivy"]:
            case(op, [x, some])
        case("DivNoNan", [x, y])
        case("ApproximateEqual", [num(d, 4), num(d, 4)], tolerance=1.5)
        base = num(d, 4, low=1, high=3)
        case("Pow", [np.where(base == 0, 1, base).astype(d), num(d, 4, low=0, high=3)])
        case("ClipByValue", [num(d, 7), np.array(1, d), np.array(3, d)])
        case("AddN", [num(d, 3), num(d, 3), num(d, 3)], lists=[3])
        for axes, keep in [([0], False), ([1], True), ([0, 2], False), ([], False), ([-1], False)]:
            z = num(d, 2, 3, 2, low=1, high=3)
            for op in ["Sum", "Prod", "Mean", "Max", "Min", "EuclideanNorm"]:
                case(op, [z, np.array(axes, np.int32)], keep_dims=keep)
        for exclusive in [False, True]:
            z = num(d, 3, 2, low=1, high=3)
            z = np.where(z == 0, 1, z).astype(d)
            case("Cumsum", [z, i32(0)[0]], exclusive=exclusive, reverse=not exclusive)
            case("Cumprod", [z, i32(-1)[0]], exclusive=exclusive, reverse=exclusive)
    for d in INTS + UINTS:
        case("LeftShift", [num(d, 5, low=-100, high=100), np.array([0, 1, 3, 7, 9]).astype(d)])
        case("RightShift", [num(d, 5, low=-100, high=100), np.array([0, 1, 3, 7, 9]).astype(d)])
        case("PopulationCount", [num(d, 9, low=-100, high=100)])
    for d in FLOATS:
        case("Atan2", [num(d, 2, 3), np.where(num(d, 3) == 0, 1, num(d, 3)).astype(d)])
        for exclusive in [False, True]:
            for reverse in [False, True]:
                case("CumulativeLogsumexp", [num(d, 2, 4), i32(1)[0]], exclusive=exclusive, reverse=reverse)
    for d in FLOATS + COMPLEX:
        p = (num(d, 4, low=1, high=4) + 0.25).astype(d)
        x = np.array([0, 1.5, -2, 0.5], d)
        for op in ["Xlogy", "Xlog1py", "Xdivy"]:
            case(op, [x, p])
    case("Add", [np.array(["a", "bc"], object), np.array("x", object)])
    case("Equal", [np.array(["a", "bc"], object), np.array("a", object)])
    case("Bucketize", [num(np.float32, 9)], boundaries=[-2.0, 0.0, 1.5])
    case("Prod", [np.array([[0.0, 2, 3], [0, 0, 3]], np.float64), i32(1)])
    case("Select", [np.array([True, False]), num(np.float64, 2, 3), num(np.float64, 2, 3)])
    for d in DEEP:
        case("SelectV2", [np.array([[True], [False]]), num(d, 3), num(d, 2, 1)])


def casts():
    for a in ALL + [np.bool_]:
        for b in ALL + [np.bool_]:
            x = num(a, 4, low=0, high=4)
            case("Cast", [x], grad=False, DstT=tf.as_dtype(b), Truncate=False)
    case("Bitcast", [num(np.float32, 2, 3)], type=tf.int32)
    case("Bitcast", [num(np.float64, 2)], type=tf.uint8)
    case("Bitcast", [num(np.int16, 3, 2)], type=tf.float32)
    case("Bitcast", [num(np.int16, 3, 2)], type=tf.bfloat16)


def arrays():
    for d in DEEP + [np.bool_]:
        x = num(d, 2, 3, 4)
        pads = np.array([[1, 0], [0, 2], [1, 1]], np.int32)
        case("Pad", [x, pads])
        case("PadV2", [x, pads.astype(np.int64), np.array(1, d)])
        for mode in ["REFLECT", "SYMMETRIC"]:
            case("MirrorPad", [x, pads], mode=mode)
            case("MirrorPadGrad", [num(d, 3, 5, 6), pads], mode=mode)
        case("ReverseV2", [x, i32(0, -1)])
        case("Reverse", [x, np.array([True, False, True])])
        case("ReverseSequence", [x, np.array([1, 3], np.int64)], seq_dim=1, batch_dim=0)
        case("Roll", [x, i32(1, -2), i32(0, 2)])
        case("Transpose", [x, i32(2, 0, 1)])
        case("ConjugateTranspose", [x, i32(2, 0, 1)])
        case("Concat", [i32(1)[0], x, num(d, 2, 1, 4)], lists=[0, 2])
        case("ConcatV2", [x, num(d, 2, 1, 4), i32(-2)[0]], lists=[2, 0])
        case("Split", [i32(2)[0], x], num_split=2)
        case("SplitV", [x, np.array([1, -1], np.int64), i32(1)[0]], num_split=2)
        case("Pack", [x, num(d, 2, 3, 4)], lists=[2], axis=-1)
        case("Unpack", [x], num=3, axis=1)
        case("Tile", [x, i32(2, 1, 3)])
        case("BroadcastTo", [num(d, 3, 1), i32(2, 3, 2)])
        case("Slice", [x, i32(0, 1, 2), i32(2, -1, 1)])
        case("StridedSlice", [x, i32(0, 2, -1), i32(2, 0, 0), i32(1, -1, -2)], begin_mask=1, end_mask=2, ellipsis_mask=0,
             new_axis_mask=0, shrink_axis_mask=0)
        case("StridedSlice", [x, i32(0, 0, 1), i32(0, 0, 0), i32(1, 1, 1)], begin_mask=0, end_mask=0, ellipsis_mask=1,
             new_axis_mask=2, shrink_axis_mask=4)
        case("Fill", [i32(2, 3), np.array(1, d)])
        case("OneHot", [np.array([[0, 2], [-1, 1]], np.int32), i32(3)[0], np.array(1, d), np.array(0, d)], axis=1)
        case("SpaceToBatchND", [num(d, 2, 4, 3, 1), i32(2, 3), np.array([[1, 1], [0, 3]], np.int32)])
        case("BatchToSpaceND", [num(d, 6, 2, 2, 2), i32(3, 2), np.array([[1, 0], [0, 1]], np.int32)])
        case("SpaceToBatch", [num(d, 1, 2, 4, 1), np.array([[1, 1], [0, 0]], np.int32)], block_size=2)
        case("BatchToSpace", [num(d, 4, 2, 2, 1), np.array([[1, 1], [0, 0]], np.int32)], block_size=2)
        case("SpaceToDepth", [num(d, 2, 4, 2, 3)], block_size=2)
        case("DepthToSpace", [num(d, 2, 1, 2, 8)], block_size=2)
        case("ExtractImagePatches", [num(d, 2, 5, 4, 2)], ksizes=[1, 2, 2, 1], strides=[1, 2, 1, 1], rates=[1, 2, 1, 1], padding="SAME")
        case("ExtractImagePatches", [num(d, 2, 5, 4, 2)], ksizes=[1, 3, 2, 1], strides=[1, 1, 2, 1], rates=[1, 1, 1, 1], padding="VALID")
        case("Diag", [num(d, 2, 2)])
        case("DiagPart", [num(d, 2, 3, 2, 3)])
        case("MatrixDiag", [num(d, 2, 3)])
        case("MatrixDiagPart", [num(d, 2, 3, 4)])
        case("MatrixSetDiag", [num(d, 2, 3, 4), num(d, 2, 3)])
        for align in ["LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"]:
            k = i32(-1, 2)
            case("MatrixDiagV3", [num(d, 2, 4, 3), k, i32(-1)[0], i32(-1)[0], np.array(1, d)], align=align)
            case("MatrixDiagPartV3", [num(d, 2, 3, 4), k, np.array(1, d)], align=align)
            case("MatrixSetDiagV3", [num(d, 2, 3, 4), num(d, 2, 4, 3), k], align=align)
        case("MatrixDiagV2", [num(d, 2, 3), i32(1)[0], i32(3)[0], i32(5)[0], np.array(1, d)])
        case("MatrixDiagPartV2", [num(d, 4, 3), i32(-2, 0), np.array(1, d)])
        case("MatrixBandPart", [num(d, 2, 4, 5), np.array(1, np.int64), np.array(-1, np.int64)])
    case("Tile", [np.array(["a", "b"], object), i32(2)])
    case("Pad", [np.array([["a", "b"]], object), np.array([[0, 1], [1, 0]], np.int32)])
    case("ReverseV2", [np.array(["a", "b"], object), i32(0)])
    for t in [np.int32, np.int64]:
        case("InvertPermutation", [np.array([2, 0, 1], t)])
        case("BroadcastArgs", [np.array([3, 1], t), np.array([2, 1, 4], t)])
        case("ConcatOffset", [i32(1)[0], np.array([2, 3], t), np.array([2, 4], t)], lists=[0, 2])
    case("ShapeN", [num(np.float32, 2, 3), num(np.float32, 1)], lists=[2])
    for d in FLOATS:
        case("LinSpace", [np.array(-1, d), np.array(3, d), i32(6)[0]], grad=False)
    for d in [np.float32, np.float64, np.int32, np.int64, np.uint32, H, B]:
        case("Range", [np.array(1, d), np.array(8, d), np.array(3, d)], grad=False)


def indexing():
    for d in DEEP + [np.bool_]:
        x = num(d, 3, 4, 2)
        for t in [np.int32, np.int64]:
            at = np.array([[0, 2], [2, 1]], t)
            case("Gather", [x, at])
            case("GatherV2", [x, at, i32(1)[0]])
            case("GatherV2", [x, at, i32(-1)[0] * 0])
            case("GatherV2", [num(d, 2, 4, 3), np.array([[0, 3, 3], [2, 1, 0]], t), i32(1)[0]], batch_dims=1)
            case("GatherV2", [num(d, 2, 4, 3), np.array([[0, 2, 2], [2, 1, 0]], t), i32(2)[0]], batch_dims=1)
            case("GatherNd", [x, np.array([[0, 3], [2, 1], [0, 3]], t)])
            case("ScatterNd", [np.array([[1], [3], [1]], t), num(d, 3, 2), np.array([5, 2], t)])
            for op in ["TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin", "TensorScatterMax"]:
                case(op, [x, np.array([[0, 3], [2, 1]], t), num(d, 2, 2)])
            case("ScatterNdNonAliasingAdd", [x, np.array([[0], [0]], t), num(d, 2, 4, 2)])
        case("Where", [np.where(num(d, 3, 4) == 1, 0, num(d, 3, 4)).astype(d)])
        u = num(d, 12, low=0, high=3)
        if np.dtype(d).kind == "f":
            u = np.round(u)
        for t in [tf.int32, tf.int64]:
            case("Unique", [u], out_idx=t)
            case("UniqueWithCounts", [u], out_idx=t)
            case("UniqueWithCountsV2", [np.round(num(d, 4, 3, low=0, high=1)).astype(d) if np.dtype(d).kind == "f" else num(d, 4, 3, low=0, high=1), np.array([1], np.int64)], out_idx=t)
            case("ListDiff", [u, u[:2]], out_idx=t)
        for k in [0, 1, 3]:
            case("TopKV2", [num(d, 2, 5), i32(k)[0]])
        case("ArgMax", [num(d, 3, 4), i32(1)[0]], output_type=tf.int32)
        case("ArgMin", [num(d, 3, 4), i32(0)[0]], output_type=tf.int64)
        s = np.sort(num(d, 2, 5).real, axis=1).astype(d) if np.dtype(d).kind != "c" else num(d, 2, 5)
        case("LowerBound", [s, num(d, 2, 3)])
        case("UpperBound", [s, num(d, 2, 3)])
    case("Unique", [np.array(["a", "b", "a"], object)])
    case("ListDiff", [np.array(["a", "b", "c"], object), np.array(["b"], object)])
    case("InTopK", [num(np.float32, 4, 5), i32(0, 1, 2, 7)], k=2)
    case("InTopKV2", [num(np.float32, 4, 5), i32(0, 1, 2, 3), i32(3)[0]])
    case("Bincount", [i32(1, 2, 2, 5), i32(4)[0], np.array([], np.float32)], grad=False)
    case("Bincount", [i32(1, 2, 2, 0), i32(4)[0], num(np.float32, 4)], grad=False)
    case("HistogramFixedWidth", [num(np.float32, 9), np.array([-2, 2], np.float32), i32(4)[0]])


for part in (unary, binary, casts, arrays, indexing):
    part()
with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as f:
    f.write(json.dumps(cases, separators=(",", ":")).encode())
ops = sorted({c[0] for c in cases})
print(f"{len(cases)} cases of {len(ops)} ops, {sum(1 for c in cases if c[6])} with gradients, {os.path.getsize(sys.argv[1])} bytes, {len(refused)} refused")
with open(os.environ.get("REFUSED", os.devnull), "w") as f:
    f.write("\n".join(refused))
