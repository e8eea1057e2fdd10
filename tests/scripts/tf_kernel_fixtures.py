#!/usr/bin/env python3
"""Makes engine/tests/data/tensorflow.json: what TensorFlow computes, for the engine's tests to be compared with.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_kernel_fixtures.py engine/tests/data/tensorflow.json

A case is an op with attributes and inputs, its outputs, and (for floats) the gradients of sum(outputs[0] * weights)
with respect to its float inputs, all computed in graph mode. Tensors are [dtype, shape, values].
"""
import inspect
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
rng = np.random.default_rng(17)
NAMES = {"float32": "float", "float64": "double", "int32": "int32", "int64": "int64", "bool": "bool", "uint8": "uint8"}
cases = []


def pack(a):
    a = np.asarray(a)
    if a.dtype == np.float32:
        values = [float(f"{v:.9g}") if np.isfinite(v) else str(v) for v in a.ravel()]
    elif a.dtype == np.float64:
        values = [float(v) if np.isfinite(v) else str(v) for v in a.ravel()]
    else:
        values = [int(v) for v in a.ravel()]
    return [NAMES[a.dtype.name], list(a.shape), values]


def f32(*shape, low=-2.0, high=2.0):
    return np.round(rng.uniform(low, high, shape), 3).astype(np.float32)


def f64(*shape, low=-2.0, high=2.0):
    return np.round(rng.uniform(low, high, shape), 3)


def ints(*shape, low=-9, high=9, dtype=np.int32):
    return rng.integers(low, high, shape).astype(dtype)


def case(op, inputs, lists=None, grad=True, **attrs):
    """`lists`: the lengths of the op's inputs where one is a list."""
    with tf.Graph().as_default() as graph:
        feeds = [tf.compat.v1.placeholder(i.dtype, i.shape) for i in inputs]
        raw = dict(attrs)
        args, rest = [], list(feeds)
        for n in lists or [0] * len(inputs):
            args.append(rest.pop(0) if n == 0 else [rest.pop(0) for _ in range(n)])
        function = getattr(tf.raw_ops, op)

        parameters = list(inspect.signature(function).parameters)
        outputs = function(**dict(zip(parameters, args)), **raw)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        weights, wanted = None, []
        if grad and outputs[0].dtype.is_floating:
            weights = np.round(rng.uniform(-1, 1, [int(d) for d in run_shape(feeds, inputs, outputs[0])]), 3)
            weights = weights.astype(outputs[0].dtype.as_numpy_dtype)
            xs = [f for f in feeds if f.dtype.is_floating]
            got = tf.gradients(outputs[0], xs, grad_ys=tf.constant(weights))
            wanted = [tf.convert_to_tensor(g) if g is not None else tf.zeros_like(x) for g, x in zip(got, xs)]
        with tf.compat.v1.Session(graph=graph) as session:
            values = session.run(outputs + wanted, dict(zip(feeds, inputs)))
    attr_types = {k: (["type", NAMES[np.dtype(v.as_numpy_dtype).name]] if isinstance(v, tf.DType) else v) for k, v in attrs.items()}
    out = {"op": op, "attrs": attr_types, "inputs": [pack(i) for i in inputs], "lists": lists or [],
           "outputs": [pack(v) for v in values[: len(outputs)]]}
    if weights is not None:
        out["weights"] = pack(weights)
        out["gradients"] = [pack(v) for v in values[len(outputs):]]
    cases.append(out)


def run_shape(feeds, inputs, output):
    with tf.compat.v1.Session(graph=output.graph) as session:
        return session.run(output, dict(zip(feeds, inputs))).shape


def elementwise():
    for op in ["Neg", "Abs", "Sign", "Square", "Reciprocal", "Exp", "Tanh", "Sigmoid", "Relu"]:
        case(op, [f32(3, 4)])
        case(op, [f64(5)])
    for op in ["Log", "Log1p", "Sqrt", "Rsqrt"]:
        case(op, [f32(3, 4, low=0.1, high=4)])
        case(op, [f64(5, low=0.1, high=4)])
    for op in ["TanhGrad", "SigmoidGrad"]:
        case(op, [f64(3, 2, low=0.1, high=0.9), f64(3, 2)])
    shapes = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((4,), ())]
    for op in ["AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference"]:
        for a, b in shapes:
            case(op, [f32(*a), f32(*b, low=0.5)])
        case(op, [f64(2, 3), f64(2, 1, low=0.5)])
    for op in ["AddV2", "Sub", "Mul", "Maximum", "Minimum", "FloorDiv", "FloorMod", "Div"]:
        case(op, [ints(2, 4), ints(4, low=1)])
        case(op, [ints(2, 4, dtype=np.int64), -ints(2, 1, low=1, dtype=np.int64)])
    case("FloorMod", [f32(7), f32(7, low=0.3)], grad=False)
    case("FloorMod", [f32(7), -f32(7, low=0.3, high=1)], grad=False)
    case("FloorDiv", [f32(7), f32(7, low=0.3)], grad=False)
    case("Pow", [f32(3, 2, low=0.2), f32(2)])
    case("Pow", [f64(3, 2, low=0.2), f64(2)])
    case("Pow", [ints(5), ints(5, low=0, high=4)])
    for op in ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]:
        case(op, [ints(3, 4, low=0, high=3), ints(4, low=0, high=3)])
        case(op, [f32(4), f32(4)])
    for op in ["LogicalAnd", "LogicalOr"]:
        case(op, [rng.random((3, 2)) > 0.5, rng.random(2) > 0.5])
    case("LogicalNot", [rng.random(5) > 0.5])
    case("AddN", [f32(2, 3), f32(2, 3), f32(2, 3)], lists=[3])
    case("SelectV2", [rng.random((2, 1)) > 0.5, f32(3), f32(2, 3)])
    case("Select", [np.array([True, False]), f32(2, 3), f32(2, 3)])
    for to in [tf.float32, tf.float64, tf.int32, tf.int64, tf.bool, tf.uint8]:
        case("Cast", [f32(5, low=0, high=9)], DstT=to)
        case("Cast", [ints(5, low=0)], DstT=to)
    case("Cast", [rng.random(5) > 0.5], DstT=tf.float32)


def matrices_and_reductions():
    for ta in [False, True]:
        for tb in [False, True]:
            case("MatMul", [f32(*((5, 3) if ta else (3, 5))), f32(*((4, 5) if tb else (5, 4)))], transpose_a=ta, transpose_b=tb)
            case("MatMul", [f64(*((5, 3) if ta else (3, 5))), f64(*((4, 5) if tb else (5, 4)))], transpose_a=ta, transpose_b=tb)
    case("MatMul", [ints(3, 2), ints(2, 3)])
    case("MatMul", [f32(0, 3), f32(3, 2)])
    case("MatMul", [f32(2, 0), f32(0, 3)])
    axes = [np.array(a, np.int32) for a in ([0], [1], [0, 2], [-1], [0, 1, 2], [])]
    for op in ["Sum", "Mean", "Max", "Min"]:
        for i, a in enumerate(axes):
            case(op, [f32(2, 3, 4), a], keep_dims=bool(i % 2))
        case(op, [ints(2, 3), np.array([1], np.int64)])
        case(op, [f64(3, 40), axes[1]])
    case("Prod", [f64(2, 3, low=0.5), axes[1]])
    case("Prod", [ints(2, 3), axes[0]])
    for op in ["All", "Any"]:
        case(op, [rng.random((2, 3)) > 0.4, axes[1]])
    for op in ["ArgMax", "ArgMin"]:
        case(op, [f32(2, 3, 4), np.array(1, np.int32)])
        case(op, [ints(6, low=0, high=3), np.array(-1, np.int32)], output_type=tf.int32)
    case("L2Loss", [f32(2, 3)])
    case("Range", [np.array(v, np.int32) for v in (2, 11, 3)])
    case("Range", [np.array(v, np.int64) for v in (5, -4, -2)])
    case("Range", [np.array(v, np.float32) for v in (0, 1, 0.3)], grad=False)
    case("UnsortedSegmentSum", [f32(4, 3), np.array([0, 2, -1, 2], np.int32), np.array(4, np.int32)])


def arrays():
    i32 = lambda *v: np.array(v, np.int32)
    case("Reshape", [f32(2, 6), i32(3, -1)])
    case("ExpandDims", [f32(2, 3), np.array(-2, np.int32)])
    case("Squeeze", [f32(1, 3, 1)])
    case("Squeeze", [f32(1, 3, 1)], axis=[-1])
    case("Shape", [f32(2, 0, 4)], out_type=tf.int64)
    case("Size", [f32(2, 3)])
    case("Rank", [f32(2, 3)])
    case("Fill", [i32(2, 3), np.float32(1.5)])
    case("ZerosLike", [f32(2)], grad=False)
    case("OnesLike", [ints(2)])
    case("BroadcastTo", [f32(2, 1), i32(3, 2, 4)])
    case("BroadcastGradientArgs", [i32(2, 1, 3), i32(4, 1)])
    case("Transpose", [f32(2, 3, 4), i32(2, 0, 1)])
    case("ConcatV2", [f32(2, 3), f32(2, 1), f32(2, 2), np.array(-1, np.int32)], lists=[3, 0])
    case("Pack", [f32(2, 3), f32(2, 3)], lists=[2], axis=1)
    case("Unpack", [f32(2, 3)], num=3, axis=-1)
    case("Slice", [f32(4, 5), i32(1, 2), i32(2, -1)])
    case("Tile", [f32(2, 3), i32(2, 3)])
    case("GatherV2", [f32(4, 3), i32(3, 0, 3), np.array(0, np.int32)])
    case("GatherV2", [f32(2, 4, 3), ints(2, 2, low=0, high=4), np.array(1, np.int32)], grad=False)
    case("StridedSlice", [f32(5, 6), i32(1, 0), i32(4, 6), i32(1, 2)])
    case("StridedSlice", [f32(5, 6), i32(-1, 2), i32(0, 0), i32(-2, 1)], end_mask=2)
    case("StridedSlice", [f32(3, 4, 5), i32(0, 1, 0), i32(0, 0, 2), i32(1, 1, 1)], ellipsis_mask=1, shrink_axis_mask=2)
    case("StridedSlice", [f32(3, 4), i32(0, 0, -9), i32(0, 2, 9), i32(1, 1, 1)], new_axis_mask=1)


def nets():
    for x in [f32(3, 5), f64(3, 5)]:
        case("Softmax", [x])
        case("LogSoftmax", [x])
        labels = np.abs(x[::-1]) / np.abs(x[::-1]).sum(1, keepdims=True)
        case("SoftmaxCrossEntropyWithLogits", [x, labels.astype(x.dtype)])
        case("SparseSoftmaxCrossEntropyWithLogits", [x, np.array([4, 0, 2])])
    case("Softmax", [f32(2, 2, 3)])
    case("BiasAdd", [f32(2, 3, 4), f32(4)])
    case("BiasAddGrad", [f32(2, 3, 4)], grad=False)
    case("ReluGrad", [f32(3, 4), f32(3, 4)])


def random():
    """Two executions each: the generator goes on."""
    out = []
    for op in ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"]:
        for dtype in [tf.float32, tf.float64]:
            for shape in [[11], [3, 5]]:
                with tf.Graph().as_default():
                    y = getattr(tf.raw_ops, op)(shape=shape, dtype=dtype, seed=87654321, seed2=42)
                    with tf.compat.v1.Session() as session:
                        runs = [pack(session.run(y)) for _ in range(2)]
                out.append({"op": op, "shape": shape, "runs": runs})
    return out


def mlp():
    """20 steps of gradient descent and of momentum on a 6-8-4 perceptron."""
    x, labels = f32(16, 6), rng.integers(0, 4, 16)
    w = [f32(6, 8, low=-0.7, high=0.7), f32(8, low=-0.1, high=0.1), f32(8, 4, low=-0.7, high=0.7), f32(4, low=-0.1, high=0.1)]
    out = {"x": pack(x), "labels": pack(labels), "weights": [pack(v) for v in w]}
    for name in ["descent", "momentum"]:
        with tf.Graph().as_default():
            v = [tf.compat.v1.get_variable(f"v{i}", initializer=a, use_resource=True) for i, a in enumerate(w)]
            h = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.constant(x), v[0]), v[1]))
            logits = tf.nn.bias_add(tf.matmul(h, v[2]), v[3])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant(labels), logits=logits))
            if name == "descent":
                train = tf.compat.v1.train.GradientDescentOptimizer(0.2).minimize(loss)
            else:
                train = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
            with tf.compat.v1.Session() as session:
                session.run(tf.compat.v1.global_variables_initializer())
                losses = []
                for _ in range(20):
                    losses.append(float(session.run(loss)))
                    session.run(train)
        out[name] = losses
    return out


elementwise()
matrices_and_reductions()
arrays()
nets()
fixture = {"made_by": f"tests/scripts/tf_kernel_fixtures.py, TensorFlow {tf.__version__}",
           "cases": cases, "random": random(), "mlp": mlp()}
with open(sys.argv[1], "w") as f:
    json.dump(fixture, f, separators=(",", ":"))
    f.write("\n")
print(f"{len(cases)} cases, {os.path.getsize(sys.argv[1])} bytes")
