"""TensorFlow as a client of a stepscope master: the same graphs in its own session and in one on the cluster at argv[1]."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
cluster = "grpc://" + sys.argv[1]


def task(n):
    return f"/job:worker/task:{n}"


def training():
    """A regression with momentum, variables in one task, gradients in the other."""
    with tf1.device(task(0)):
        w = tf1.get_variable("w", initializer=np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), use_resource=True)
        b = tf1.Variable(np.zeros(3, np.float32), name="b", use_resource=False)
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    y = tf1.placeholder(tf.float32, [None, 3], name="y")
    with tf1.device(task(1)):
        loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, w) + b) - y))
    step = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    init = tf1.global_variables_initializer()

    def run(session):
        rng = np.random.RandomState(3)
        session.run(init)
        losses = []
        for _ in range(20):
            feeds = {x: rng.randn(8, 4).astype(np.float32), y: rng.rand(8, 3).astype(np.float32)}
            losses.append(session.run([loss, step], feeds)[0])
        return losses + list(session.run([w, b]))

    return run


def control_flow():
    """A loop whose body is in both tasks, in a branch."""
    n = tf1.placeholder(tf.int32, [], name="n")
    start = tf.constant(1.0)

    def body(i, v):
        with tf1.device(task(1)):
            v = v * 1.5
        with tf1.device(task(0)):
            return i + 1, v + 1.0

    def loop():
        return tf1.while_loop(lambda i, v: i < n, body, [tf.constant(0), start])[1]

    value = tf1.cond(n > 2, loop, lambda: start - 7.0)

    def run(session):
        return [session.run(value, {n: k}) for k in (0, 2, 3, 9)]

    return run


def strings():
    """Strings, and more fetches than nodes."""
    with tf1.device(task(1)):
        joined = tf1.string_join([tf.constant([b"a", b"\xff\x00"]), tf.constant([b"1", b"2"])], separator="-")
    with tf1.device(task(0)):
        again = tf.identity(joined)

    def run(session):
        return [[bytes(s) for s in value] for value in session.run([joined, again, joined])]

    return run


def failing(session):
    """Errors come as TensorFlow's, with the node's name."""
    with tf1.device(task(1)):
        x = tf1.placeholder(tf.float32, [None], name="fed")
        bad = tf.reshape(x, [2], name="reshaped")
    try:
        session.run(bad, {x: [1.0, 2.0, 3.0]})
    except tf.errors.InvalidArgumentError as error:
        assert "reshaped" in error.message and task(1) in error.message, error.message
        return
    raise AssertionError("nothing failed")


def main():
    for build in (training, control_flow, strings):
        with tf.Graph().as_default():
            run = build()
            with tf1.Session(cluster) as session:
                there = run(session)
                assert len(session.list_devices()) == 2, session.list_devices()
        here = run_here(build)
        for a, b in zip(there, here, strict=True):
            if isinstance(a, list):
                assert a == b, (a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
        print(build.__name__, len(there), "values")
    with tf.Graph().as_default(), tf1.Session(cluster) as session:
        failing(session)
    print("all equal")


def run_here(build):
    """TensorFlow's own session, which has no tasks."""
    global task
    named, task = task, lambda n: "/cpu:0"
    try:
        with tf.Graph().as_default():
            run = build()
            with tf1.Session() as session:
                return run(session)
    finally:
        task = named


main()
