#!/usr/bin/env python3
"""Makes engine/tests/data/tf_control_flow.bin.gz: random structured programs, and what TensorFlow computes with them.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_control_flow_fixtures.py engine/tests/data/tf_control_flow.bin.gz

A program is a graph of nested conditionals, loops, tensor arrays and gathers on float vectors, in the primitives of
TensorFlow 1 (`v1`) or the functions of TensorFlow 2 (`v2`), with TensorFlow's gradients as part of the graph; and some
models from `tf.function` and Keras. The file is a sequence of pairs, each of two blobs with a 32-bit little-endian length
before: JSON (name, kind, fetches, gradients' fetches, feeds and answers of each run), and the GraphDef.
"""
import gzip
import json
import os
import struct
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
WIDTH = 3
NAMES = {"float32": "float", "float64": "double", "int32": "int32", "int64": "int64", "bool": "bool"}
out = []


def pack(a):
    a = np.asarray(a)
    values = [float(f"{v:.9g}") if np.isfinite(v) else str(v) for v in a.ravel()] if a.dtype.kind == "f" else [int(v) for v in a.ravel()]
    return [NAMES[a.dtype.name], list(a.shape), values]


class Program:
    """Random expressions. All values are float vectors of WIDTH; `k` is a fed int32, `w` a fed matrix."""

    def __init__(self, rng, x, w, k):
        self.rng, self.x, self.w, self.k = rng, x, w, k
        self.budget = int(rng.integers(6, 14))

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def leaf(self, env):
        if self.rng.random() < 0.12:
            return tf.constant(np.round(self.rng.uniform(-1, 1, WIDTH), 2).astype(np.float32))
        return self.pick(env)

    def expr(self, depth, env, ints, in_loop=0):
        """A value from the values and integers in scope."""
        self.budget -= 1
        if depth <= 0 or self.budget < 0:
            return self.simple(env)
        kinds = ["binary", "unary", "matmul", "gather", "cond", "cond", "while", "array", "shape"]
        if in_loop >= 2:
            kinds = kinds[:6]
        kind = self.pick(kinds)
        again = lambda e=env, i=ints: self.expr(depth - 1, e, i, in_loop)
        if kind == "binary":
            op = self.pick([tf.add, tf.subtract, tf.multiply, tf.maximum])
            return op(again(), again())
        if kind == "unary":
            return self.pick([tf.tanh, tf.sigmoid, tf.sin, tf.square, tf.negative, tf.identity])(tf.tanh(again()))
        if kind == "matmul":
            return tf.tanh(tf.reshape(tf.matmul(tf.reshape(again(), [1, WIDTH]), self.w), [WIDTH]))
        if kind == "gather":
            index = self.pick(ints)
            rows = tf.stack([tf.math.floormod(index, WIDTH), 2, tf.math.floormod(index + 1, WIDTH)])
            return tf.gather(again(), rows)
        if kind == "shape":
            value = again()
            return value * tf.cast(tf.size(value), tf.float32) * 0.2 + tf.reduce_sum(value, keepdims=True)
        return {"cond": self.cond, "while": self.loop, "array": self.array}[kind](depth - 1, env, ints, in_loop)

    def simple(self, env):
        a, b = self.leaf(env), self.leaf(env)
        return self.pick([lambda: tf.tanh(a + b), lambda: a * b, lambda: tf.sin(a) - b, lambda: tf.maximum(a, b), lambda: a])()

    def predicate(self, env, ints):
        if self.rng.random() < 0.5:
            return tf.equal(tf.math.floormod(self.pick(ints), 2), 0)
        return tf.reduce_sum(self.leaf(env)) > float(np.round(self.rng.uniform(-0.5, 0.5), 2))

    def cond(self, depth, env, ints, in_loop):
        pred = self.predicate(env, ints)
        two = self.rng.random() < 0.3
        outside = self.expr(0, env, ints, in_loop)

        def side():
            a = self.expr(depth, env + [outside], ints, in_loop)
            return (a, self.simple(env)) if two else a

        result = tf.cond(pred, side, side)
        return result[0] + 0.5 * result[1] if two else result

    def trips(self, ints):
        n = int(self.rng.integers(0, 4))
        return self.pick([tf.constant(n), tf.math.floormod(self.pick(ints), 3), self.k])

    def loop(self, depth, env, ints, in_loop):
        n = self.trips(ints)
        n_vars = int(self.rng.integers(1, 4))
        starts = [self.leaf(env) for _ in range(n_vars)]
        outside = self.simple(env)
        by_value = self.rng.random() < 0.2

        def cond(i, *vs):
            more = i < n
            return tf.logical_and(more, tf.reduce_sum(tf.abs(vs[0])) < 6.0) if by_value else more

        def body(i, *vs):
            inner = env + list(vs) + [outside]
            new = [self.expr(depth, inner, ints + [i], in_loop + 1) for _ in vs]
            if n_vars > 1 and self.rng.random() < 0.3:
                new[-1] = vs[0]  # handed on
            return (i + 1, *[tf.tanh(v) if self.rng.random() < 0.6 else v * 0.7 for v in new])

        parallel = int(self.pick([1, 2, 10]))
        results = tf.while_loop(cond, body, (tf.constant(0), *starts), parallel_iterations=parallel)
        used = results[1:] if self.rng.random() < 0.6 else results[1:2]  # the others are unused exits
        return tf.add_n(list(used))

    def array(self, depth, env, ints, in_loop):
        n = int(self.rng.integers(1, 4))
        given = tf.TensorArray(tf.float32, size=n, clear_after_read=False).unstack(
            tf.stack([self.simple(env) for _ in range(n)]))
        made = tf.TensorArray(tf.float32, size=n, element_shape=[WIDTH])

        def body(i, v, made):
            v = self.expr(depth, env + [v, given.read(i)], ints + [i], in_loop + 1)
            v = tf.tanh(v)
            return i + 1, v, made.write(i, v * 0.5)

        _, last, made = tf.while_loop(lambda i, *_: i < n, body, (tf.constant(0), self.leaf(env), made))
        how = self.rng.random()
        if how < 0.5:
            return tf.reduce_sum(made.stack(), 0)
        if how < 0.75:
            return made.read(n - 1) + last
        return tf.reshape(made.concat(), [n, WIDTH])[0]


def write(meta, graph_def):
    for blob in (json.dumps(meta, separators=(",", ":")).encode(), graph_def.SerializeToString(deterministic=True)):
        out.append(struct.pack("<I", len(blob)) + blob)


def program(seed, kind):
    rng = np.random.default_rng(seed)
    (v1.enable_control_flow_v2 if kind == "v2" else v1.disable_control_flow_v2)()
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [WIDTH] if seed % 3 else [None], name="x")
        w = v1.placeholder(tf.float32, [WIDTH, WIDTH], name="w")
        k = v1.placeholder(tf.int32, [], name="k")
        x0 = tf.ensure_shape(x, [WIDTH]) if seed % 3 == 0 and seed % 2 else x
        p = Program(rng, x0, w, k)
        y = p.loop(3, [x0], [k], 0) if seed % 2 else p.cond(3, [x0], [k], 0)
        y = y + p.expr(3, [x0, y], [k])
        y = tf.identity(tf.reduce_sum(y * tf.constant([1.0, -0.5, 2.0])), name="y")
        if len(graph.get_operations()) > (150 if kind == "v1" else 120):
            return False
        grads = tf.gradients(y, [x, w])
        names = ["gx", "gw"]
        fetches = {n: tf.identity(g, name=n).name for n, g in zip(names, grads) if g is not None}
        if "gx" not in fetches or len(graph.as_graph_def().SerializeToString()) > 90_000:
            return False
        runs = []
        with v1.Session(graph=graph) as session:
            for n in (0, 1, 2, 5):
                feeds = {"x:0": np.round(rng.uniform(-1.5, 1.5, WIDTH), 2).astype(np.float32),
                         "w:0": np.round(rng.uniform(-1, 1, (WIDTH, WIDTH)), 2).astype(np.float32),
                         "k:0": np.int32(n)}
                try:
                    got = session.run(["y:0", *fetches.values()], feeds)
                except tf.errors.InvalidArgumentError:  # TensorFlow 1's conditionals have bugs of their own
                    return False
                if not all(np.isfinite(v).all() for v in got):
                    return False
                runs.append({"feeds": {f: pack(v) for f, v in feeds.items()}, "answers": [pack(v) for v in got]})
        graph_def = graph.as_graph_def()
    meta = {"name": f"{kind}_{seed}", "kind": kind, "y": "y:0", "fetches": ["y:0", *fetches.values()],
            "xs": [{"gx": "x:0", "gw": "w:0"}[n] for n in fetches], "runs": runs}
    write(meta, graph_def)
    return True


def frozen(name, function, specs, make_feeds):
    """A `tf.function` with its variables as constants, functions kept."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    concrete = tf.function(function).get_concrete_function(*specs)
    # Only where there are variables: it also lowers what is to stay a function.
    constant = convert_variables_to_constants_v2(concrete, lower_control_flow=False) if concrete.variables else concrete
    feeds = make_feeds()
    answers = [np.asarray(a) for a in constant(*[tf.constant(f) for f in feeds])]
    inputs = [t.name for t in constant.inputs]
    meta = {"name": name, "kind": "model", "y": "", "fetches": [t.name for t in constant.outputs], "xs": [],
            "runs": [{"feeds": {n: pack(f) for n, f in zip(inputs, feeds)}, "answers": [pack(a) for a in answers]}]}
    write(meta, constant.graph.as_graph_def())


def models():
    rng = np.random.default_rng(5)
    f32 = lambda *shape: np.round(rng.uniform(-1, 1, shape), 3).astype(np.float32)
    tf.keras.utils.set_random_seed(3)
    lstm = tf.keras.Sequential([tf.keras.Input([5, 4]), tf.keras.layers.LSTM(6, return_sequences=True), tf.keras.layers.GRU(5),
                                tf.keras.layers.Dense(3)])
    mlp = tf.keras.Sequential([tf.keras.Input([7]), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(4, "softmax")])
    frozen("keras_lstm_gru", lambda x: lstm(x, training=False), [tf.TensorSpec([None, 5, 4])], lambda: [f32(2, 5, 4)])
    frozen("keras_mlp", lambda x: mlp(x, training=False), [tf.TensorSpec([None, 7])], lambda: [f32(3, 7)])

    kernel, recurrent, out_w = f32(4, 24), f32(6, 24) * 0.4, f32(6, 3)

    def lstm_gradients(x, labels):
        """An LSTM written as a Python loop, which becomes a `While`."""
        with tf.GradientTape() as tape:
            k, r, o = tf.constant(kernel), tf.constant(recurrent), tf.constant(out_w)
            tape.watch([x, k, r])
            h, c = tf.zeros([2, 6]), tf.zeros([2, 6])
            for t in tf.range(5):
                i, f, g, out = tf.split(tf.matmul(x[:, t], k) + tf.matmul(h, r), 4, axis=1)
                c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
                h = tf.sigmoid(out) * tf.tanh(c)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(h, o)))
        return [loss, *tape.gradient(loss, [x, k, r])]

    frozen("lstm_gradients", lstm_gradients, [tf.TensorSpec([2, 5, 4]), tf.TensorSpec([2], tf.int32)],
           lambda: [f32(2, 5, 4), np.array([2, 0], np.int32)])

    @tf.function
    def collatz(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    frozen("collatz", lambda n: [collatz(n)], [tf.TensorSpec([], tf.int32)], lambda: [np.int32(27)])

    def switch_case(i, x):
        branches = [lambda: x * 2.0, lambda: tf.sin(x), lambda: collatz(7) + tf.cast(tf.size(x), tf.int32)]
        branches[2] = lambda: x - tf.cast(collatz(7), tf.float32)
        return [tf.switch_case(i, branches), tf.switch_case(i + 5, branches)]

    for i in (0, 1, 2, -3):
        frozen(f"case_{i}", switch_case, [tf.TensorSpec([], tf.int32), tf.TensorSpec([2])], lambda: [np.int32(i), f32(2)])

    def growing(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        i = 0
        while tf.reduce_sum(x) < 50.0:
            array = array.write(i, x)
            x = x * 1.7
            i += 1
        return [array.stack(), array.concat(), x]

    frozen("growing_array", growing, [tf.TensorSpec([None])], lambda: [np.abs(f32(3)) + 0.5])


def second_order(seed):
    """The gradient of a gradient of a loop, which only functions have."""
    v1.enable_control_flow_v2()
    rng = np.random.default_rng(seed)
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [WIDTH], name="x")
        k = v1.placeholder(tf.int32, [], name="k")
        c = float(np.round(rng.uniform(0.5, 1.5), 2))
        _, y = tf.while_loop(lambda i, v: i < k, lambda i, v: (i + 1, tf.sin(v) * x * c if seed % 2 else tf.tanh(v * x) + c * v * v * 0.3),
                             (tf.constant(0), x * 0.5))
        y = tf.identity(tf.reduce_sum(y), name="y")
        g = tf.gradients(y, x)[0]
        h = tf.identity(tf.gradients(tf.reduce_sum(g * tf.constant([1.0, 2.0, -1.0])), x)[0], name="h")
        g = tf.identity(g, name="g")
        runs = []
        with v1.Session(graph=graph) as session:
            for n in (0, 1, 3):
                feeds = {"x:0": np.round(rng.uniform(-1.2, 1.2, WIDTH), 2).astype(np.float32), "k:0": np.int32(n)}
                got = session.run([y, g, h], feeds)
                runs.append({"feeds": {f: pack(v) for f, v in feeds.items()}, "answers": [pack(v) for v in got]})
    meta = {"name": f"second_{seed}", "kind": "second", "y": "y:0", "fetches": ["y:0", "g:0", "h:0"], "xs": ["x:0"], "runs": runs}
    write(meta, graph.as_graph_def())


counts = {}
for kind in ("v1", "v2"):
    seed = 1
    while counts.get(kind, 0) < 70:
        try:
            counts[kind] = counts.get(kind, 0) + bool(program(seed, kind))
        except ValueError:  # a loop variable whose shape changes
            pass
        seed += 1
for seed in range(4):
    second_order(seed)
v1.enable_control_flow_v2()
models()
with open(sys.argv[1], "wb") as f:
    f.write(gzip.compress(b"".join(out), 9, mtime=0))
print(f"{len(out) // 2} programs ({counts}), {os.path.getsize(sys.argv[1])} bytes")
