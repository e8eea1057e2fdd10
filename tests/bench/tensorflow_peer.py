#!/usr/bin/env python3
"""TensorFlow beside us: what `stepscope-bench engine` compares its figures with, measured in the same run.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/bench/tensorflow_peer.py THREADS < requests > answers

A request is a line of JSON: {"case": NAME, "repeat": N, "trace": false}. The answer is one too: {"wall_ns": [...],
"cpu_ns": [...], "nodes": N}, per repetition; `nodes` is how many nodes one repetition executes, where that is known.
Both pools have THREADS threads. Graphs are built once. The first runs of each are not measured.
"""
import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_control_flow_v2()
THREADS = int(sys.argv[1])
DISPATCH = 10_000


def config(optimize):
    c = tf1.ConfigProto(inter_op_parallelism_threads=THREADS, intra_op_parallelism_threads=THREADS)
    if not optimize:
        c.graph_options.optimizer_options.opt_level = -1
        c.graph_options.rewrite_options.disable_meta_optimizer = True
    return c


class Case:
    """A step to repeat: of a graph, a session on it, what to fetch and to feed."""

    def __init__(self, build, optimize=True, nodes=None, inner=1):
        self.graph = tf1.Graph()
        with self.graph.as_default():
            fetches, feeds = build()
            init = tf1.global_variables_initializer()
        self.session = tf1.Session(graph=self.graph, config=config(optimize))
        self.session.run(init)
        self.nodes, self.inner, self.fetches, self.feeds = nodes, inner, fetches, feeds
        self.call = self.session.make_callable(fetches, feed_list=list(feeds))
        self.values = list(feeds.values())
        for _ in range(3):
            self.call(*self.values)

    def measure(self, repeat, trace):
        wall, cpu = [], []
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        for _ in range(repeat):
            w, c = time.perf_counter_ns(), time.process_time_ns()
            for _ in range(self.inner):
                if trace:
                    self.session.run(self.fetches, self.feeds, options=options, run_metadata=tf1.RunMetadata())
                else:
                    self.call(*self.values)
            cpu.append((time.process_time_ns() - c) / self.inner)
            wall.append((time.perf_counter_ns() - w) / self.inner)
        return {"wall_ns": wall, "cpu_ns": cpu, "nodes": self.nodes}


def after(ops):
    with tf1.control_dependencies(ops):
        return tf1.no_op()


def no_op_wide():
    return after([tf1.no_op() for _ in range(DISPATCH)]), {}


def no_op_chain():
    last = tf1.no_op()
    for _ in range(DISPATCH - 1):
        last = after([last])
    return last, {}


def no_op_grid():
    layer = [tf1.no_op() for _ in range(64)]
    for _ in range(156):
        layer = [after([layer[k], layer[(k + 1) % 64]]) for k in range(64)]
    return after(layer), {}


def add_chain():
    one = tf.constant(1.0)
    last = one
    for _ in range(DISPATCH - 1):
        last = tf.raw_ops.AddV2(x=last, y=one)
    return last.op, {}


def trivial():
    return tf1.no_op(), {}


def trivial_add():
    x = tf1.placeholder(tf.float32, [])
    return x + 1.0, {x: np.float32(1)}


def matmul(n):
    def build():
        a, b = (tf1.get_variable(name, initializer=tf1.random.normal([n, n])) for name in "ab")
        return tf.matmul(a, b).op, {}

    return build


def conv(batch, size, depth, kernel, filters):
    def build():
        x = tf1.get_variable("x", initializer=tf1.random.normal([batch, size, size, depth]))
        w = tf1.get_variable("w", initializer=tf1.random.normal([kernel, kernel, depth, filters]))
        return tf.nn.conv2d(x, w, 1, "SAME").op, {}

    return build


def variable(name, shape, deviation):
    return tf1.get_variable(name, initializer=tf1.random.truncated_normal(shape, stddev=deviation, seed=1))


def dense(x, n_out, name):
    n_in = int(x.shape[-1])
    w = variable(name + "w", [n_in, n_out], (2.0 / n_in) ** 0.5)
    b = tf1.get_variable(name + "b", initializer=tf.zeros([n_out]))
    return tf.nn.bias_add(tf.matmul(x, w), b)


def trained(loss, rate):
    step = tf1.train.GradientDescentOptimizer(rate).minimize(loss)
    with tf1.control_dependencies([step]):
        return tf.identity(loss)


def classified(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def images(batch, shape):
    rng = np.random.default_rng(1)
    x = tf1.placeholder(tf.float32, [batch, *shape])
    y = tf1.placeholder(tf.int64, [batch])
    return x, y, {x: rng.random((batch, *shape), np.float32), y: rng.integers(0, 10, batch)}


def mlp():
    x, y, feeds = images(128, [784])
    h = tf.nn.relu(dense(x, 512, "1"))
    h = tf.nn.relu(dense(h, 512, "2"))
    return trained(classified(dense(h, 10, "3"), y), 0.01), feeds


def convnet():
    x, y, feeds = images(64, [28, 28, 1])
    h = x
    for name, depth, filters in (("1", 1, 32), ("2", 32, 64)):
        w = variable("c" + name, [5, 5, depth, filters], (2.0 / (25 * depth)) ** 0.5)
        b = tf1.get_variable("cb" + name, initializer=tf.zeros([filters]))
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, w, 1, "SAME"), b))
        h = tf.nn.max_pool2d(h, 2, 2, "SAME")
    h = tf.nn.relu(dense(tf.reshape(h, [64, 7 * 7 * 64]), 1024, "3"))
    return trained(classified(dense(h, 10, "4"), y), 0.01), feeds


UNITS, TIME, BATCH = 256, 32, 32


def lstm_inputs():
    rng = np.random.default_rng(1)
    x = tf1.placeholder(tf.float32, [TIME, BATCH, UNITS])
    weights = []
    for layer in range(2):
        w = variable(f"w{layer}", [2 * UNITS, 4 * UNITS], 0.05)
        b = tf1.get_variable(f"b{layer}", initializer=tf.zeros([4 * UNITS]))
        weights.append((w, b))
    return x, weights, {x: rng.standard_normal((TIME, BATCH, UNITS), np.float32)}


def cell(x, c, h, w, b):
    gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), b)
    i, j, f, o = tf.split(gates, 4, axis=1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.sigmoid(o) * tf.tanh(c)


def lstm_unrolled():
    x, weights, feeds = lstm_inputs()
    zero = tf.zeros([BATCH, UNITS])
    state = [(zero, zero)] * 2
    outputs = []
    for step in tf.unstack(x):
        h = step
        for layer, (w, b) in enumerate(weights):
            state[layer] = cell(h, *state[layer], w, b)
            h = state[layer][1]
        outputs.append(h)
    return trained(tf.reduce_mean(tf.square(tf.stack(outputs))), 0.01), feeds


def lstm_while():
    x, weights, feeds = lstm_inputs()
    zero = tf.zeros([BATCH, UNITS])
    steps = tf1.TensorArray(tf.float32, TIME, element_shape=[BATCH, UNITS]).unstack(x)
    outputs = tf1.TensorArray(tf.float32, TIME, element_shape=[BATCH, UNITS])

    def body(t, c0, h0, c1, h1, outputs):
        c0, h0 = cell(steps.read(t), c0, h0, *weights[0])
        c1, h1 = cell(h0, c1, h1, *weights[1])
        return t + 1, c0, h0, c1, h1, outputs.write(t, h1)

    start = (tf.constant(0), zero, zero, zero, zero, outputs)
    result = tf1.while_loop(lambda t, *_: t < TIME, body, start)
    return trained(tf.reduce_mean(tf.square(result[-1].stack())), 0.01), feeds


CASES = {
    "no-op wide": lambda: Case(no_op_wide, False, DISPATCH + 1),
    "no-op chain": lambda: Case(no_op_chain, False, DISPATCH),
    "no-op grid 64x157": lambda: Case(no_op_grid, False, 64 * 157 + 1),
    "scalar AddV2 chain": lambda: Case(add_chain, False, DISPATCH),
    "prepared no-op": lambda: Case(trivial, False, 1, inner=200),
    "prepared x -> x + 1": lambda: Case(trivial_add, False, 2, inner=200),
    "mlp": lambda: Case(mlp),
    "convnet": lambda: Case(convnet),
    "lstm unrolled": lambda: Case(lstm_unrolled),
    "lstm while": lambda: Case(lstm_while),
    "conv 64x28x28x1 5x5x32": lambda: Case(conv(64, 28, 1, 5, 32)),
    "conv 64x14x14x32 5x5x64": lambda: Case(conv(64, 14, 32, 5, 64)),
    "conv 32x28x28x128 3x3x128": lambda: Case(conv(32, 28, 128, 3, 128)),
    "conv 32x28x28x256 1x1x64": lambda: Case(conv(32, 28, 256, 1, 64)),
}
for n in (64, 128, 256, 512, 1024, 2048):
    CASES[f"matmul {n}"] = lambda n=n: Case(matmul(n), False, 1, inner=max(1, (256 // n) ** 2))


def main():
    built = {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["case"]
        if name not in built:
            # One at a time in memory: graphs and their buffers are large.
            built = {name: CASES[name]()}
        answer = built[name].measure(request["repeat"], request.get("trace", False))
        print(json.dumps(answer), flush=True)


main()
