"""Writes engine/tests/data/keras_layers.json.gz: what Keras's layers and schedules of learning
rates give, for engine/tests/graph/layers.rs.

    tensorflow/bin/python tests/scripts/keras_layer_fixtures.py

Each case has the layer's inputs and weights, a cotangent, the output, and the gradients of sum(output * cotangent) with
respect to the float inputs and the weights that are trained, in float64 (but for ops that exist in float32 only).
"""

import gzip
import json
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
import tensorflow as tf

OUT = os.path.join(os.path.dirname(__file__), "../../engine/tests/data/keras_layers.json.gz")
RNG = np.random.default_rng(20261126)


def tensor(value):
    value = np.asarray(value)
    return {"shape": list(value.shape), "values": value.astype(np.float64).ravel().tolist()}


def case(name, layer, x, weights=(), dtype="float64", **arguments):
    """`weights`: in the order of the layer's own. With `arguments` for the call it has the weights after it too."""
    x = tf.constant(x)
    layer.build(x.shape)
    if weights:
        layer.set_weights([np.asarray(w, dtype) for w in weights])
    before = [tensor(v.value) for v in layer.weights]
    trained = [v.value for v in layer.trainable_weights]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, **arguments)
        cotangent = RNG.normal(size=y.shape).astype(dtype)
        loss = tf.reduce_sum(y * cotangent)
    sources = ([x] if x.dtype.is_floating else []) + trained
    grads = tape.gradient(loss, sources)
    grads = [tf.convert_to_tensor(g) if g is not None else tf.zeros_like(s) for g, s in zip(grads, sources)]
    return {
        "name": name,
        "x": tensor(x),
        "weights": before,
        "cotangent": tensor(cotangent),
        "y": tensor(y),
        "grads": [tensor(g) for g in grads],
        **({"after": [tensor(v.value) for v in layer.weights]} if arguments else {}),
    }


def normal(*shape, dtype="float64"):
    return RNG.normal(size=shape).astype(dtype)


def cases():
    k = keras.layers
    keras.backend.set_floatx("float64")
    yield case("dense", k.Dense(5), normal(4, 3), [normal(3, 5), normal(5)])
    images = normal(2, 7, 6, 3)
    for padding in ["same", "valid"]:
        yield case(f"conv2d {padding}", k.Conv2D(4, (3, 2), 2, padding), images, [normal(3, 2, 3, 4), normal(4)])
        yield case(
            f"depthwise {padding}",
            k.DepthwiseConv2D(3, 1, padding, depth_multiplier=2, use_bias=False),
            images,
            [normal(3, 3, 3, 2)],
        )
        yield case(f"max pool {padding}", k.MaxPooling2D((2, 3), 2, padding), images)
        yield case(f"average pool {padding}", k.AveragePooling2D((2, 3), 2, padding), images)
    yield case("layer norm", k.LayerNormalization(epsilon=1e-3), normal(3, 4, 6), [normal(6), normal(6)])
    values = np.concatenate([normal(20) * 3, [-6.5, 6.5, 0.25, -0.25]])
    for activation in ["relu", "relu6", "elu", "selu", "softplus", "softsign", "sigmoid", "tanh"]:
        yield case(activation, k.Activation(activation), values)
    yield case("leaky relu", k.LeakyReLU(0.2), values)
    yield case("softmax", k.Softmax(), normal(3, 5))
    yield case("log softmax", k.Activation("log_softmax"), normal(3, 5))
    yield case("embedding", k.Embedding(6, 3), np.array([[1, 5, 0], [1, 1, 2]], "int32"), [normal(6, 3)])
    keras.backend.set_floatx("float32")
    # TensorFlow rounds the constant of this one to float32 in every type.
    yield case("gelu", k.Activation("gelu"), values.astype("float32"), dtype="float32")
    statistics = [normal(6) + 2, normal(6), normal(6), np.abs(normal(6)) + 0.5]
    images = normal(2, 3, 4, 6, dtype="float32")
    yield case("batch norm", k.BatchNormalization(epsilon=1e-3), images, statistics, "float32")
    lstm = k.LSTM(4, return_sequences=True, unit_forget_bias=False)
    weights = [normal(3, 16), normal(4, 16), normal(16)]
    yield case("lstm", lstm, normal(2, 5, 3, dtype="float32"), weights, "float32")
    keras.backend.set_floatx("float64")
    yield case("dense of rank 3", k.Dense(5), normal(2, 4, 3), [normal(3, 5), normal(5)])
    images = normal(2, 3, 4, 6) * 2 + 1
    statistics = [normal(6), normal(6), np.abs(normal(6)) + 0.5]
    for name, training in [("batch norm that shifts", False), ("batch norm that trains", True)]:
        norm = k.BatchNormalization(epsilon=1e-3, momentum=0.9, scale=False)
        yield case(name, norm, images, statistics, training=training)


def schedules():
    """The rates of steps 0 to 19."""
    s = keras.optimizers.schedules
    yield "exponential", s.ExponentialDecay(0.1, 7, 0.5)
    yield "inverse time", s.InverseTimeDecay(0.1, 7, 0.5)
    yield "polynomial", s.PolynomialDecay(0.1, 12, 0.01, 2.0)


layers = list(cases())
rates = {name: [float(schedule(step)) for step in range(20)] for name, schedule in schedules()}
with gzip.GzipFile(OUT, "wb", mtime=0) as out:
    out.write(json.dumps({"layers": layers, "rates": rates}).encode())
