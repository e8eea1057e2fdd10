#!/usr/bin/env python3
"""Makes engine/tests/data/tensorflow_nn.json.gz: what TensorFlow computes for neural-net ops, for the engine's tests.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_nn_fixtures.py engine/tests/data/tensorflow_nn.json.gz

A case is an op with attributes and inputs, its outputs, and (for floats) the gradients of sum(outputs[0] * weights)
with respect to its float inputs. What TensorFlow's CPU kernels do not take (channels first, dilated or grouped
gradients) is computed by a reference of ops that they do take. Tensors are [dtype, shape, values].
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

rng = np.random.default_rng(23)
NAMES = {"float32": "float", "float64": "double", "int32": "int32", "int64": "int64", "bool": "bool", "uint8": "uint8",
         "float16": "half"}
cases = []


def pack(a):
    a = np.asarray(a)
    if a.dtype == np.float32 or a.dtype == np.float16:
        values = [float(f"{v:.7g}") if np.isfinite(v) else str(v) for v in a.ravel()]
    elif a.dtype == np.float64:
        values = [float(f"{v:.13g}") if np.isfinite(v) else str(v) for v in a.ravel()]
    else:
        values = [int(v) for v in a.ravel()]
    return [NAMES[a.dtype.name], list(a.shape), values]


def f32(*shape, low=-2.0, high=2.0):
    return np.round(rng.uniform(low, high, shape), 2).astype(np.float32)


def f64(*shape, low=-2.0, high=2.0):
    return np.round(rng.uniform(low, high, shape), 2)


def distinct(*shape, dtype=np.float32):
    """No two elements are equal: maxima are at one place."""
    n = int(np.prod(shape))
    return ((rng.permutation(n) - n // 2) / 16).reshape(shape).astype(dtype)


def i32(*v):
    return np.array(v, np.int32)


def raw(op, attrs):
    function = getattr(tf.raw_ops, op)
    parameters = list(inspect.signature(function).parameters)
    return lambda *inputs: function(**dict(zip(parameters, inputs)), **attrs)


def case(op, inputs, reference=None, grad=True, outputs=None, of=0, **attrs):
    """`outputs`: how many are compared, all by default; `of`: the one whose gradients are."""
    function = reference or raw(op, attrs)
    tensors = [tf.constant(i) for i in inputs]
    xs = [t for t in tensors if t.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        values = function(*tensors)
        values = list(values) if isinstance(values, (list, tuple)) else [values]
    out = {"op": op, "attrs": {k: attr(v) for k, v in attrs.items()}, "inputs": [pack(i) for i in inputs],
           "outputs": [pack(v) for v in values[:outputs]]}
    if grad and values[of].dtype.is_floating:
        weights = np.round(rng.uniform(-1, 1, values[of].shape), 2).astype(values[of].dtype.as_numpy_dtype)
        out["of"] = of
        got = tape.gradient(values[of], xs, output_gradients=tf.constant(weights))
        out["weights"] = pack(weights)
        out["gradients"] = [pack(tf.convert_to_tensor(g) if g is not None else tf.zeros_like(x)) for g, x in zip(got, xs)]
    cases.append(out)


def attr(v):
    if isinstance(v, tf.DType):
        return ["type", NAMES[np.dtype(v.as_numpy_dtype).name]]
    if isinstance(v, float):
        return {"float": v}
    if isinstance(v, str):
        return {"string": v}
    return v


def last(x):
    """Channels first to channels last."""
    return tf.transpose(x, [0, *range(2, x.shape.rank), 1])


def first(x):
    n = x.shape.rank
    return tf.transpose(x, [0, n - 1, *range(1, n - 1)])


def turned(numbers, per=1):
    """An attribute's list of numbers in the order of channels first."""
    groups = [list(numbers[i * per:(i + 1) * per]) for i in range(len(numbers) // per)]
    return sum([groups[0], groups[-1], *groups[1:-1]], [])


def same_pads(size, window, stride, dilation):
    total = max((-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def conv_reference(strides, dilations, padding, explicit, groups=1):
    """A convolution of zero-padded data with a filter spread by zeros, of each group by itself."""
    n = len(strides) - 2

    def run(x, w):
        pads = [[0, 0]]
        for i in range(n):
            s, d, k, size = strides[1 + i], dilations[1 + i], w.shape[i], x.shape[1 + i]
            if padding == "SAME":
                pads.append(list(same_pads(size, k, s, d)))
            elif padding == "EXPLICIT":
                pads.append(explicit[2 + 2 * i:4 + 2 * i])
            else:
                pads.append([0, 0])
        x = tf.pad(x, pads + [[0, 0]])
        for i in range(n):
            d, k = dilations[1 + i], w.shape[i]
            taps = tf.unstack(w, axis=i)
            spread = []
            for j, tap in enumerate(taps):
                spread.append(tap)
                if j + 1 < k:
                    spread.extend([tf.zeros_like(tap)] * (d - 1))
            w = tf.stack(spread, axis=i)
        conv = (lambda a, b: tf.nn.conv2d(a, b, strides, "VALID")) if n == 2 else (lambda a, b: tf.nn.conv3d(a, b, strides, "VALID"))
        return tf.concat([conv(a, b) for a, b in zip(tf.split(x, groups, -1), tf.split(w, groups, -1))], -1)

    return run


def backwards(conv, of):
    """The gradient of a convolution by its input (0: sizes, filter, dy) or filter (1: input, sizes, dy) as a function."""
    def run(a, b, dy):
        if of == 0:
            x, w = tf.zeros([int(d) for d in a], b.dtype), b
        else:
            x, w = a, tf.zeros([int(d) for d in b], a.dtype)
        with tf.GradientTape() as tape:
            wanted = x if of == 0 else w
            tape.watch(wanted)
            y = conv(x, w)
        return tape.gradient(y, wanted, output_gradients=dy)
    return run


def conv_case(make, size, window, channels, strides, padding, dilations, explicit=(), groups=1, n=2, first_channels=False,
              apart=True):
    """Forward with both gradients, and the two gradients as ops of their own with theirs."""
    cin, cout = channels
    x, w = make(2, *size, cin), make(*window, cin // groups, cout)
    s, d = [1, *strides, 1], [1, *dilations, 1]
    reference = conv_reference(s, d, padding, list(explicit), groups)
    y = reference(tf.constant(x), tf.constant(w))
    dy = make(*y.shape)
    to_input, to_filter = backwards(reference, 0), backwards(reference, 1)
    attrs = dict(strides=s, padding=padding, dilations=d)
    if explicit:
        attrs["explicit_paddings"] = list(explicit)
    sizes = np.array(x.shape, np.int32)
    if first_channels:
        attrs.update(strides=turned(s), dilations=turned(d), data_format="NCHW" if n == 2 else "NCDHW")
        if explicit:
            attrs["explicit_paddings"] = turned(explicit, 2)
        x, dy, sizes = first(tf.constant(x)).numpy(), first(tf.constant(dy)).numpy(), np.array(turned(sizes), np.int32)
        plain, back_x, back_w = reference, to_input, to_filter
        reference = lambda x, w: first(plain(last(x), w))
        to_input = lambda s, w, dy: first(back_x([s[0], *s[2:], s[1]], w, last(dy)))
        to_filter = lambda x, s, dy: back_w(last(x), s, last(dy))
    names = ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter") if n == 2 else \
        ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
    case(names[0], [x, w], reference, **attrs)
    if not apart:
        return
    case(names[1], [sizes, w, dy], to_input, **attrs)
    case(names[2], [x, np.array(w.shape, np.int32), dy], to_filter, **attrs)


def convolutions():
    for padding in ["SAME", "VALID"]:
        for strides in [(1, 1), (2, 2), (2, 1), (3, 2)]:
            for dilations in [(1, 1), (2, 2), (1, 3)]:
                conv_case(f32, (7, 6), (3, 2), (2, 3), strides, padding, dilations, apart=dilations == (1, 3))
    conv_case(f64, (7, 6), (3, 3), (2, 3), (1, 1), "SAME", (1, 1))
    conv_case(f64, (7, 6), (3, 3), (2, 3), (2, 1), "EXPLICIT", (1, 2), (0, 0, 2, 1, 0, 3, 0, 0))
    conv_case(f32, (4, 5), (3, 3), (3, 2), (1, 1), "EXPLICIT", (1, 1), (0, 0, 4, 0, 1, 5, 0, 0))
    conv_case(f32, (3, 3), (1, 1), (8, 17), (1, 1), "SAME", (1, 1))
    conv_case(f32, (5, 4), (1, 1), (3, 2), (2, 3), "SAME", (1, 1))
    conv_case(f32, (6, 5), (5, 5), (1, 20), (1, 1), "SAME", (1, 1), apart=False)
    conv_case(f32, (4, 6), (4, 6), (2, 3), (1, 1), "VALID", (1, 1))
    conv_case(f32, (5, 5), (3, 3), (4, 6), (1, 1), "SAME", (1, 1), groups=2)
    conv_case(f32, (5, 5), (2, 3), (6, 6), (2, 2), "VALID", (1, 1), groups=3)
    conv_case(f32, (6, 5), (3, 2), (3, 4), (2, 1), "SAME", (1, 1), first_channels=True)
    conv_case(f32, (6, 5), (3, 2), (3, 4), (1, 2), "EXPLICIT", (2, 1), (0, 0, 2, 1, 0, 3, 0, 0), first_channels=True)
    for padding in ["SAME", "VALID"]:
        conv_case(f32, (4, 5, 4), (2, 3, 2), (2, 3), (1, 1, 1), padding, (1, 1, 1), n=3)
        conv_case(f32, (4, 5, 4), (2, 3, 2), (2, 3), (2, 1, 2), padding, (1, 2, 1), n=3)
    conv_case(f32, (3, 4, 3), (2, 2, 2), (2, 2), (1, 2, 1), "SAME", (1, 1, 1), n=3, first_channels=True)


def depthwise():
    for make in [f32, f64]:
        for padding, strides, dilations, m, explicit in [
                ("SAME", 1, 1, 1, ()), ("VALID", 2, 1, 2, ()), ("SAME", 2, 1, 3, ()), ("SAME", 1, 2, 2, ()),
                ("EXPLICIT", 1, 1, 1, (0, 0, 2, 1, 0, 3, 0, 0))]:
            x, w = make(2, 5, 4, 3), make(3, 2, 3, m)
            s, d = [1, strides, strides, 1], [1, dilations, dilations, 1]
            grouped = conv_reference(s, d, padding, list(explicit), 3)
            reference = lambda x, w: grouped(x, tf.reshape(w, [3, 2, 1, 3 * m]))
            attrs = dict(strides=s, padding=padding, dilations=d)
            if explicit:
                attrs["explicit_paddings"] = list(explicit)
            dy = make(*reference(tf.constant(x), tf.constant(w)).shape)
            case("DepthwiseConv2dNative", [x, w], reference, **attrs)
            case("DepthwiseConv2dNativeBackpropInput", [np.array(x.shape, np.int32), w, dy], backwards(reference, 0), **attrs)
            case("DepthwiseConv2dNativeBackpropFilter", [x, np.array(w.shape, np.int32), dy], backwards(reference, 1), **attrs)
    x, w = f32(2, 3, 6, 5), f32(3, 3, 3, 2)
    case("DepthwiseConv2dNative", [x, w], lambda x, w: first(tf.nn.depthwise_conv2d(last(x), w, [1, 1, 1, 1], "SAME")),
         strides=[1, 1, 1, 1], padding="SAME", data_format="NCHW")
    for padding in ["SAME", "VALID"]:
        for strides, rates in [(1, 1), (2, 1), (1, 2)]:
            attrs = dict(strides=[1, strides, strides, 1], rates=[1, rates, rates, 1], padding=padding)
            case("Dilation2D", [f32(2, 6, 5, 2), f32(2, 3, 2)], **attrs)


def pools():
    for padding in ["SAME", "VALID"]:
        for k, s in [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((3, 2), (1, 3)), ((1, 1), (2, 2))]:
            a = dict(ksize=[1, *k, 1], strides=[1, *s, 1], padding=padding)
            x = distinct(2, 6, 5, 2)
            case("MaxPool", [x], **a)
            y = tf.nn.max_pool2d(x, k, s, padding).numpy()
            dy = f32(*y.shape)
            case("MaxPoolGrad", [x, y, dy], **a)
            case("MaxPoolGradGrad", [x, y, f32(*x.shape)], **a)
            case("AvgPool", [f32(2, 6, 5, 2)], **a)
            case("AvgPoolGrad", [i32(2, 6, 5, 2), f32(*y.shape)], **a)
            for over in [False, True]:
                case("MaxPoolWithArgmax", [x], include_batch_in_index=over, **a)
                argmax = tf.raw_ops.MaxPoolWithArgmax(input=x, include_batch_in_index=over, **a).argmax.numpy()
                # TensorFlow's own kernel takes positions over the batch only.
                if over:
                    case("MaxPoolGradWithArgmax", [x, dy, argmax], include_batch_in_index=over, grad=False, **a)
            t = first(tf.constant(x)).numpy()
            b = dict(ksize=[1, 1, *k], strides=[1, 1, *s], padding=padding, data_format="NCHW")
            case("MaxPool", [t], lambda x: first(tf.nn.max_pool2d(last(x), k, s, padding)), **b)
            case("AvgPool", [t], lambda x: first(tf.nn.avg_pool2d(last(x), k, s, padding)), **b)
            case("MaxPoolV2", [x, i32(1, *k, 1), i32(1, *s, 1)], padding=padding)
        for k, s in [((2, 2, 2), (2, 2, 2)), ((2, 3, 1), (1, 2, 1))]:
            a = dict(ksize=[1, *k, 1], strides=[1, *s, 1], padding=padding)
            x = distinct(1, 4, 5, 3, 2)
            case("MaxPool3D", [x], **a)
            case("AvgPool3D", [f32(1, 4, 5, 3, 2)], **a)
            y = tf.nn.max_pool3d(x, k, s, padding).numpy()
            case("MaxPool3DGradGrad", [x, y, f32(*x.shape)], grad=False, **a)
            b = dict(ksize=[1, 1, *k], strides=[1, 1, *s], padding=padding, data_format="NCDHW")
            case("MaxPool3D", [first(tf.constant(x)).numpy()], lambda x: first(tf.nn.max_pool3d(last(x), k, s, padding)), **b)
    a = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1])
    case("MaxPool", [distinct(1, 5, 5, 2)], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0], **a)
    case("MaxPool", [distinct(1, 5, 5, 2, dtype=np.float64)], padding="SAME", **a)
    case("AvgPool", [f64(1, 5, 5, 2)], padding="SAME", **a)
    case("MaxPool", [rng.integers(-9, 9, (1, 5, 5, 2)).astype(np.int32)], padding="SAME", **a)
    # Ties: the gradient goes to the first.
    case("MaxPool", [np.round(f32(1, 6, 6, 2))], padding="SAME", **a)


def norms():
    def vectors(n, make=f32):
        return [make(n, low=0.5), make(n), make(n), make(n, low=0.2)]

    for op, n_out in [("FusedBatchNorm", 3), ("FusedBatchNormV2", 3), ("FusedBatchNormV3", 3)]:
        for shape in [(2, 3, 4, 5), (1, 1, 1, 3), (4, 5, 2, 17)]:
            empty = [np.zeros(0, np.float32)] * 2
            case(op, [f32(*shape), *vectors(shape[-1])[:2], *empty], is_training=True, epsilon=0.01, outputs=n_out)
            case(op, [f32(*shape), *vectors(shape[-1])], is_training=False, epsilon=0.01, outputs=n_out)
        case(op, [f32(3, 2, 2, 4), *vectors(4)], is_training=True, exponential_avg_factor=0.25, outputs=n_out)
    for training in [True, False]:
        s, o, m, v = vectors(3)
        plain = raw("FusedBatchNormV3", dict(is_training=training, epsilon=0.001))
        stats = [m, v] if not training else [np.zeros(0, np.float32)] * 2

        def channels_first(x, *rest):
            y, *more = plain(last(x), *rest)
            return [first(y), *more]
        case("FusedBatchNormV3", [f32(2, 3, 4, 2), s, o, *stats], channels_first, is_training=training,
             epsilon=0.001, data_format="NCHW", outputs=3)
        x, dy = f32(2, 3, 2, 4), f32(2, 3, 2, 4)
        s, _, m, v = vectors(4)
        if training:
            m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
        case("FusedBatchNormGradV3", [dy, x, s, m, v, np.zeros(0, np.float32)], is_training=training, epsilon=0.01,
             outputs=3, grad=False)
    x, v = f32(2, 2, 3, 4), vectors(4)
    for scaled in [True, False]:
        reference = lambda x, m, v, b, g: tf.nn.batch_normalization(x, m, v, b, g if scaled else None, 0.01)
        case("BatchNormWithGlobalNormalization", [x, v[1], v[3], v[2], v[0]], reference, variance_epsilon=0.01,
             scale_after_normalization=scaled)
    for shape in [(2, 2, 3, 7), (1, 1, 1, 2)]:
        case("LRN", [f32(*shape)], depth_radius=2, bias=1.5, alpha=0.3, beta=0.75)
    case("LRN", [f32(1, 2, 2, 6)])


def activations():
    for make in [f32, f64]:
        x = make(4, 5, low=-8, high=8) + 0.005
        x = x.astype(make(1).dtype)
        for op in ["Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"]:
            case(op, [x])
        case("LeakyRelu", [x], alpha=0.4)
        dy = make(4, 5)
        for op in ["ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad"]:
            case(op, [dy, x])
        case("SoftsignGrad", [dy, x], lambda dy, x: dy / tf.square(1 + tf.abs(x)))
        for op in ["EluGrad", "SeluGrad"]:
            case(op, [dy, np.maximum(x, -0.7).astype(x.dtype)])
    case("Relu6", [rng.integers(-9, 9, 12).astype(np.int32)])
    for shape in [(2, 3, 4), (2, 3, 4, 2), (1, 3, 2, 2, 2)]:
        bias = lambda x, b: first(tf.nn.bias_add(last(x), b))
        case("BiasAdd", [f32(*shape), f32(3)], bias, data_format="NCHW")
        case("BiasAddGrad", [f32(*shape)], lambda g: tf.reduce_sum(g, [0, *range(2, len(shape))]), data_format="NCHW")
    case("BiasAdd", [f32(2, 3, 2, 4), f32(4)])
    case("BiasAddGrad", [np.round(f32(300, 2, 5))])


def losses():
    for make in [f32, f64]:
        x = make(3, 5, low=-4, high=4)
        case("Softmax", [x])
        case("LogSoftmax", [x])
        labels = np.abs(make(3, 5)) + 0.1
        labels = (labels / labels.sum(1, keepdims=True)).astype(x.dtype)
        case("SoftmaxCrossEntropyWithLogits", [x, labels])
        case("SparseSoftmaxCrossEntropyWithLogits", [x, np.array([4, 0, 2])])
        case("L2Loss", [x])


def lstm_reference(forget_bias, clip, peephole):
    def run(x, cs, h, w, wci, wcf, wco, b):
        i, ci, f, o = tf.split(tf.concat([x, h], 1) @ w + b, 4, 1)
        if peephole:
            i, f = i + cs * wci, f + cs * wcf
        i, f, ci = tf.sigmoid(i), tf.sigmoid(f + forget_bias), tf.tanh(ci)
        cs = ci * i + cs * f
        if clip > 0:
            cs = tf.clip_by_value(cs, -clip, clip)
        o = tf.sigmoid(o + cs * wco if peephole else o)
        co = tf.tanh(cs)
        return i, cs, f, o, ci, co, co * o
    return run


def gru_reference(x, h, w_ru, w_c, b_ru, b_c):
    r, u = tf.split(tf.sigmoid(tf.concat([x, h], 1) @ w_ru + b_ru), 2, 1)
    c = tf.tanh(tf.concat([x, h * r], 1) @ w_c + b_c)
    return r, u, c, u * h + (1 - u) * c


def cells():
    def weights(n_in, n):
        return [f32(n_in + n, 4 * n, low=-0.6, high=0.6), f32(n), f32(n), f32(n), f32(4 * n)]

    for peephole, clip in [(False, -1.0), (True, 0.0), (False, 0.5)]:
        inputs = [f32(3, 4), f32(3, 5), f32(3, 5, low=-1, high=1), *weights(4, 5)]
        attrs = dict(forget_bias=0.75, cell_clip=clip, use_peephole=peephole)
        reference = lstm_reference(0.75, clip, peephole)
        for a, b in zip(reference(*inputs), raw("LSTMBlockCell", attrs)(*inputs)):
            np.testing.assert_allclose(a, b, atol=1e-5)
        # The fused gradient does not see the clipping.
        for of in ([1, 6] if clip <= 0 else []):
            case("LSTMBlockCell", inputs, reference, of=of, **attrs)
        case("LSTMBlockCell", inputs, grad=False, **attrs)
        if clip <= 0:
            values = [v.numpy() for v in raw("LSTMBlockCell", attrs)(*inputs)]
            case("LSTMBlockCellGrad", [*inputs, *values[:6], f32(3, 5), f32(3, 5)], grad=False, use_peephole=peephole,
                 outputs=5 if peephole else 2)
    for op, more in [("BlockLSTM", dict(forget_bias=0.5, cell_clip=-1.0)), ("BlockLSTMV2", dict(cell_clip=0.0))]:
        for peephole in [False, True]:
            for steps in [4, 3]:
                inputs = [np.array(steps, np.int64), f32(4, 2, 3), f32(2, 4), f32(2, 4, low=-1, high=1), *weights(3, 4)]
                case(op, inputs, of=6, use_peephole=peephole, **more)
    inputs = [f32(3, 4), f32(3, 5), f32(9, 10, low=-0.6, high=0.6), f32(9, 5, low=-0.6, high=0.6), f32(10), f32(5)]
    for a, b in zip(gru_reference(*inputs), raw("GRUBlockCell", {})(*inputs)):
        np.testing.assert_allclose(a, b, atol=1e-5)
    case("GRUBlockCell", inputs, gru_reference, of=3)
    values = [v.numpy() for v in gru_reference(*inputs)]
    case("GRUBlockCellGrad", [*inputs, *values[:3], f32(3, 5)], grad=False)


def images():
    for op, sizes in [("ResizeBilinear", [(7, 5), (2, 3), (1, 1), (4, 4)]), ("ResizeNearestNeighbor", [(7, 5), (2, 3), (1, 9)])]:
        for size in sizes:
            for aligned, centred in [(False, False), (True, False), (False, True)]:
                case(op, [f32(2, 4, 3, 2), i32(*size)], align_corners=aligned, half_pixel_centers=centred)
    case("ResizeBilinear", [rng.integers(0, 255, (1, 3, 3, 1)).astype(np.uint8), i32(5, 4)], grad=False)


def candidates():
    classes = np.array([[3, 0], [8, 1], [5, 5]])
    for op in ["UniformCandidateSampler", "LogUniformCandidateSampler"]:
        for unique, n in [(False, 7), (True, 6)]:
            for limit in [9, 16]:
                case(op, [classes], num_true=2, num_sampled=n, unique=unique, range_max=limit, seed=11, seed2=22)
    case("ComputeAccidentalHits", [classes, np.array([5, 1, 7, 5, 0])], num_true=2)


def training():
    """Updates of a variable [4, 3] and its slots, twice, dense and of rows 2, 0, 2."""
    out = []
    slots = {"GradientDescent": 0, "ProximalGradientDescent": 0, "Momentum": 1, "KerasMomentum": 1, "Adagrad": 1,
             "AdagradV2": 1, "AdagradDA": 2, "ProximalAdagrad": 1, "Adadelta": 2, "RMSProp": 2, "CenteredRMSProp": 3,
             "Adam": 2, "AdamWithAmsgrad": 3, "AdaMax": 2, "Ftrl": 2, "FtrlV2": 2, "AddSign": 1, "PowerSign": 1}
    numbers = {"alpha": 0.1, "lr": 0.05, "l1": 0.02, "l2": 0.3, "momentum": 0.9, "epsilon": 0.01, "rho": 0.8,
               "beta1_power": 0.81, "beta2_power": 0.98, "beta1": 0.9, "beta2": 0.99, "lr_power": -0.5,
               "l2_shrinkage": 0.1, "sign_decay": 0.7, "beta": 0.85, "logbase": 0.69}

    def one(name, prefix, attrs, dtype, **changed):
        op = prefix + name
        function = getattr(tf.raw_ops, op, None)
        if function is None:
            return
        parameters = [p for p in inspect.signature(function).parameters if p not in ("name", "use_locking", *attrs)]
        parameters = [p for p in parameters if p not in ("use_nesterov", "update_slots", "multiply_linear_by_lr")]
        n = slots[name] + 1
        values = [f32(4, 3).astype(dtype)] + [np.abs(f32(4, 3)).astype(dtype) + dtype(0.5) for _ in range(n - 1)]
        if name == "CenteredRMSProp":
            values[1] *= dtype(0.1)
        variables = [tf.Variable(v) for v in values]
        inputs = []
        for p in parameters[n:]:
            if p in ("grad", "delta"):
                inputs.append(f32(3 if "Sparse" in prefix else 4, 3).astype(dtype))
            elif p == "indices":
                inputs.append(np.array([2, 0, 2]))
            elif p == "global_step":
                inputs.append(np.array(3, np.int64))
            else:
                inputs.append(np.array(changed.get(p, numbers.get(p)), dtype))
        for _ in range(2):
            function(**dict(zip(parameters, [v.handle for v in variables] + inputs)), **attrs)
        out.append({"op": op, "attrs": {k: attr(v) for k, v in attrs.items()}, "variables": [pack(v) for v in values],
                    "inputs": [pack(i) for i in inputs], "after": [pack(v) for v in variables]})

    for name in slots:
        for prefix in ["ResourceApply", "ResourceSparseApply"]:
            one(name, prefix, {}, np.float32)
            one(name, prefix, {}, np.float64)
            if name in ("Momentum", "KerasMomentum", "Adam"):
                one(name, prefix, {"use_nesterov": True}, np.float32)
            if name in ("Adagrad", "AdagradV2"):
                one(name, prefix, {"update_slots": False}, np.float32)
            if name.startswith("Ftrl"):
                one(name, prefix, {"multiply_linear_by_lr": True}, np.float32)
                one(name, prefix, {}, np.float32, lr_power=-0.7)
                one(name, prefix, {}, np.float32, l1=2.0)
            if "Proximal" in name or name == "AdagradDA":
                one(name, prefix, {}, np.float32, l1=0.0)
                one(name, prefix, {}, np.float32, l1=0.4)
    return out


def optimizers():
    """20 steps of each optimizer on an embedding, a layer and a softmax; rows of the embedding are read twice."""
    ids, labels = rng.integers(0, 7, (8, 2)), rng.integers(0, 3, 8)
    start = [f32(7, 4, low=-0.7, high=0.7), f32(8, 3, low=-0.7, high=0.7), f32(3, low=-0.1, high=0.1)]
    made = {
        "descent": lambda: tf.compat.v1.train.GradientDescentOptimizer(0.3),
        "momentum": lambda: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9),
        "nesterov": lambda: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "adagrad": lambda: tf.compat.v1.train.AdagradOptimizer(0.2, 0.1),
        "rms_prop": lambda: tf.compat.v1.train.RMSPropOptimizer(0.02, 0.9, 0.5, 1e-3),
        "adam": lambda: tf.compat.v1.train.AdamOptimizer(0.05),
        "clipped": lambda: tf.compat.v1.train.GradientDescentOptimizer(0.3),
    }
    losses = {}
    for name, make in made.items():
        with tf.Graph().as_default():
            v = [tf.compat.v1.get_variable(f"v{i}", initializer=a, use_resource=True) for i, a in enumerate(start)]
            h = tf.reshape(tf.gather(v[0], tf.constant(ids)), [8, 8])
            logits = tf.nn.bias_add(tf.matmul(h, v[1]), v[2])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant(labels), logits=logits))
            grads = tf.gradients(loss, v)
            if name == "clipped":
                grads, _ = tf.clip_by_global_norm(grads, 0.2)
            train = make().apply_gradients(list(zip(grads, v)))
            with tf.compat.v1.Session() as session:
                session.run(tf.compat.v1.global_variables_initializer())
                losses[name] = []
                for _ in range(20):
                    losses[name].append(float(session.run(loss)))
                    session.run(train)
    return {"ids": pack(ids), "labels": pack(labels), "variables": [pack(v) for v in start], "losses": losses}


def main():
    convolutions()
    depthwise()
    pools()
    norms()
    activations()
    losses()
    cells()
    images()
    candidates()
    fixture = {"made_by": f"tests/scripts/tf_nn_fixtures.py, TensorFlow {tf.__version__}", "cases": cases,
               "training": training(), "optimizers": optimizers()}
    with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as f:
        f.write(json.dumps(fixture, separators=(",", ":")).encode())
    print(f"{len(cases)} cases, {os.path.getsize(sys.argv[1])} bytes")


main()
