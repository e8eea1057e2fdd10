#!/usr/bin/env python3
"""Random programs and what TensorFlow computes with them: engine/tests/data/random_programs.bin.gz, and `cargo xtask soak`.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_random_programs.py OUT.bin.gz --seed 1 --count 150

Program `i` follows from `seed + i` alone. It nests cond, while, case, calls, TensorArrays, map, scan and fold up to four deep over
casts, reductions, broadcasting, slices, gathers, scatters, products, integers, bools and strings, in TensorFlow 1's
primitives or in `tf.function`, in float32 or float64, on one device or two, with gradients of order 0 to 2. Every eighth is
damaged. Each runs in two processes, with and without oneDNN, and with feeds and constants that are off by a few units in the
last place: where the answers differ by more than a quarter of the tolerance, TensorFlow has no answer, and the program is
dropped. Where TensorFlow refuses or fails, the answer is that it does, but for three faults of its own (`is_own_fault`). A
fourth gives wrong numbers: the gradient of gathering from a list keeps only the last of those of an element that is
gathered twice. Where differences contradict a gradient of such a program, it has no `xs`: it is still run, but the
gradients of others are not compared with TensorFlow's.

The file is a gzipped sequence of blobs, each after its length (32 bits, little-endian), three for a program: JSON; the
GraphDef; the bytes of the arrays that the JSON names by type, shape and position.
"""
import argparse
import gzip
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np

SHAPES = [(), (3,), (2, 3), (3, 2), (4,), (3, 3)]
MAX_BYTES = 400_000
# How often feeds and constants are moved by a few units in the last place, in each of the two processes.
N_DRAWS = 2
# Where TensorFlow's gradients fail on a program that nobody damaged: a TensorArray whose gradient is differentiated, a stack of
# a condition's gradient in a loop.
OWN_FAULTS = ("Wrong input container", "Mismatched parent frames")


# Ops whose control inputs order what iterations push on stacks and pop from them. Without one of these the order follows from how
# TensorFlow happens to schedule, and so does its answer: no run of TensorFlow's need ever show that.
ORDERED = ("ControlTrigger", "NextIteration", "StackPopV2", "StackPushV2")
UNORDERED = "order"


class Program:
    """One program while it is built. Values are pairs of a tensor and the shape that it has when it runs."""

    def __init__(self, seed, tf):
        self.rng, self.tf = np.random.default_rng(seed), tf
        self.style = self.pick(["v1", "v2"])
        self.dtype = self.pick([tf.float32, tf.float64])
        self.order = self.pick([0, 0, 1, 1, 2])
        self.n_devices = self.pick([1, 1, 2])
        self.is_open = self.chance(0.5)  # whether dimensions of feeds are left open
        self.budget = int(self.rng.integers(8, 30))
        self.depth = int(self.rng.integers(1, 5))
        self.frames = 0

    # Choices.
    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def number(self, low=-1.0, high=1.0):
        return float(np.round(self.rng.uniform(low, high), 2))

    def const(self, shape):
        values = np.round(self.rng.uniform(-1, 1, shape), 2)
        return self.tf.constant(values, self.dtype)

    def shape(self):
        return self.pick(SHAPES)

    def device(self):
        """Somewhere, where there is a choice."""
        if self.n_devices == 1 or self.chance(0.5):
            return self.tf.device(None)
        return self.tf.device(f"/device:CPU:{int(self.rng.integers(self.n_devices))}")

    # Values.
    def fit(self, value, to):
        """The value in another shape."""
        tf, (t, shape) = self.tf, value
        if shape == to:
            return t
        n_from, n_to = int(np.prod(shape)), int(np.prod(to))
        ways = ["mean", "gather"]
        if n_from == n_to:
            ways += ["reshape", "reshape"]
        if len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1])):
            ways += ["broadcast", "broadcast"]
        if n_from > n_to > 0:
            ways += ["slice"]
        way = self.pick(ways)
        if way == "reshape":
            return tf.reshape(t, to)
        if way == "broadcast":
            return tf.broadcast_to(t, to)
        flat = tf.reshape(t, [-1])
        if way == "mean":
            return tf.fill(to, tf.reduce_mean(flat)) if self.chance(0.5) else tf.reduce_sum(flat) * self.const(to)
        if way == "slice":
            return tf.reshape(tf.slice(flat, [n_from - n_to], [n_to]), to)
        return tf.reshape(tf.gather(flat, np.arange(n_to, dtype=np.int32) % n_from), to)

    def leaf(self, shape, env):
        if self.chance(0.1):
            return self.const(shape)
        same = [v for v in env["f"] if v[1] == shape]
        return self.fit(self.pick(same if same and self.chance(0.7) else env["f"]), shape)

    def atom(self, shape, _, env):
        return self.leaf(shape, env)

    def value(self, shape, depth, env):
        """A float value of this shape from what is in scope."""
        self.budget -= 1
        if self.budget < 0:
            return self.tf.tanh(self.leaf(shape, env))
        kinds = ["unary", "binary", "binary", "layout", "indexed", "reduce", "product", "select", "integer", "atom"]
        if depth > 0:
            flow = ["cond", "case", "loop", "loop", "array", "map", "call", "fold", "grow", "text"]
            kinds = kinds[:3] + flow if self.chance(0.7) else kinds
        with self.device():
            result = getattr(self, self.pick(kinds))(shape, depth, env)
        return result

    def again(self, shape, depth, env):
        return self.value(shape, depth, env) if self.chance(0.6) else self.leaf(shape, env)

    def unary(self, shape, depth, env):
        tf, x = self.tf, self.again(shape, depth, env)
        other = tf.float64 if self.dtype == tf.float32 else tf.float32
        ops = [
            tf.tanh, tf.sigmoid, tf.sin, tf.cos, tf.negative, tf.abs, tf.nn.relu, tf.nn.softplus, tf.nn.elu, tf.identity, tf.math.erf,
            lambda v: tf.square(tf.tanh(v)), lambda v: tf.exp(tf.tanh(v)), lambda v: tf.math.log(1.0 + tf.abs(v)), tf.stop_gradient,
            lambda v: tf.sqrt(tf.abs(v) + 0.1), lambda v: tf.math.rsqrt(tf.square(v) + 0.5), lambda v: tf.math.reciprocal(2.0 + tf.sin(v)),
            lambda v: tf.floor(v * 4.0 + 0.123) * 0.1, lambda v: tf.clip_by_value(v, -0.53, 0.61), tf.nn.leaky_relu, tf.atan,
            lambda v: tf.cast(tf.cast(v, other), self.dtype), tf.sign, tf.nn.selu, tf.nn.relu6, lambda v: tf.math.expm1(tf.tanh(v)),
            lambda v: tf.cast(tf.cast(v * 3.0, self.pick([tf.int32, tf.int64])), self.dtype) * 0.25, tf.asinh,
        ]
        if shape:
            axis = int(self.rng.integers(len(shape)))
            ops += [tf.nn.softmax, tf.nn.log_softmax, lambda v: tf.cumsum(v, axis, self.chance(0.5), self.chance(0.5)), lambda v: tf.reverse(v, [axis]),
                    lambda v: tf.math.cumprod(tf.tanh(v), axis), lambda v: tf.roll(v, 1, axis), lambda v: tf.math.l2_normalize(v + 0.3, axis),
                    lambda v: v - tf.reduce_logsumexp(v, axis, keepdims=True)]
        return self.pick(ops)(x)

    def binary(self, shape, depth, env):
        tf = self.tf
        ops = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.math.squared_difference, lambda a, b: a / (1.0 + tf.square(b)),
               lambda a, b: tf.add_n([a, b, a]), lambda a, b: tf.atan2(a, 1.5 + tf.abs(b)), lambda a, b: tf.pow(tf.abs(a) + 0.5, tf.tanh(b)),
               lambda a, b: tf.math.divide_no_nan(a, tf.nn.relu(b)), lambda a, b: tf.math.floormod(a, tf.abs(b) + 0.7), tf.math.multiply_no_nan]
        other = shape
        if shape and self.chance(0.4):
            other = self.pick([(), shape[-1:], (1,) + shape[1:], shape[:-1] + (1,)])
        a, b = self.again(shape, depth, env), self.again(other, depth, env)
        op = self.pick(ops[:7] if other != shape else ops)
        if other != shape and self.chance(0.5) and op in (tf.add, tf.multiply):
            a, b = b, a
        return op(a, b)

    def layout(self, shape, depth, env):
        tf, x = self.tf, self.again(shape, depth, env)
        ways = [lambda: tf.squeeze(tf.expand_dims(x, 0), [0]), lambda: tf.reshape(tf.reshape(x, [-1]), tf.shape(x)), lambda: tf.unstack(tf.stack([x, -x]))[1]]
        if shape:
            first, rest = shape[0], list(shape[1:])
            i = self.index(env, first)
            ways += [
                lambda: tf.concat([x[1:], x[:1]], 0), lambda: tf.concat(tf.split(x, [1, first - 1], 0)[::-1], 0), lambda: tf.tile(x, [2] + [1] * len(rest))[first:],
                lambda: tf.pad(x, [[1, 1]] + [[0, 0]] * len(rest), self.pick(["CONSTANT", "REFLECT", "SYMMETRIC"]))[: first], lambda: x[::-1],
                lambda: tf.concat([x[i:], x[:i]], 0), lambda: x[tf.newaxis, ..., :][0], lambda: tf.strided_slice(tf.concat([x, x], 0), [1], [2 * first], [2])[:first],
                lambda: tf.concat([x[i:i + 1], x[1:]], 0), lambda: tf.reshape(tf.transpose(tf.reshape(x, [-1, 1])), shape),
                lambda: tf.ensure_shape(x, shape), lambda: tf.reverse_sequence(tf.reshape(x, [1, -1]), [2], 1)[0] if not rest else x,
            ]
        if len(shape) == 2:
            ways += [lambda: tf.transpose(self.again(shape[::-1], depth, env)), lambda: tf.linalg.band_part(x, 1, 0), lambda: tf.linalg.set_diag(x, x[0, : min(shape)])]
        return self.pick(ways)()

    def index(self, env, n):
        """An integer from 0 to n - 1 that the step decides."""
        tf, i = self.tf, self.pick(env["i"])
        return tf.math.floormod(i + int(self.rng.integers(4)), n)

    def reduced(self, depth, env):
        """A value, reduced over an axis; the shape that is left."""
        shape = self.pick([s for s in SHAPES if s])
        axis = int(self.rng.integers(len(shape)))
        return self.again(shape, depth, env), axis, shape[:axis] + shape[axis + 1 :]

    def reduce(self, shape, depth, env):
        tf, (x, axis, left) = self.tf, self.reduced(depth, env)
        def norm(v, axis, keepdims=False):
            return tf.norm(v + 1.7, axis=axis, keepdims=keepdims)

        op = self.pick([tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod, tf.reduce_logsumexp, norm, tf.math.reduce_variance])
        if self.chance(0.3):
            return self.fit((op(x, axis, keepdims=True), left[:axis] + (1,) + left[axis:]), shape)
        return self.fit((op(x, axis), left), shape)

    def product(self, shape, depth, env):
        tf = self.tf
        if len(shape) != 2:
            x = self.again((2, 3), depth, env)
            how = self.pick([lambda: tf.linalg.matvec(x, self.leaf((3,), env)), lambda: tf.tensordot(x, self.leaf((3,), env), [[1], [0]]), lambda: tf.einsum("ij,ij->i", x, self.leaf((2, 3), env))])
            return self.fit((how(), (2,)), shape)
        (n, m), k = shape, int(self.rng.integers(1, 4))
        k = 3 if k == 1 else k
        a, b = self.again((n, k) if (n, k) in SHAPES else (n, 3), depth, env), None
        k = 3 if (n, k) not in SHAPES else k
        b = self.fit((self.leaf((3, 3), env), (3, 3)), (k, m))
        way = self.pick(["plain", "ta", "tb", "batch", "einsum"])
        if way == "ta":
            return tf.matmul(tf.transpose(a), b, transpose_a=True)
        if way == "tb":
            return tf.matmul(a, tf.transpose(b), transpose_b=True)
        if way == "batch":
            return tf.reduce_sum(tf.matmul(tf.stack([a, a * 0.5]), tf.stack([b, b])), 0)
        return tf.einsum("ij,jk->ik", a, b) if way == "einsum" else tf.matmul(a, b)

    def select(self, shape, depth, env):
        tf, a, b = self.tf, self.again(shape, depth, env), self.leaf(shape, env)
        mask = self.pick([lambda: a > b, lambda: self.predicate(env), lambda: tf.logical_not(tf.less_equal(a, self.number())), lambda: tf.logical_and(a > b, tf.greater(b, -0.4))])()
        return tf.where(mask, a, b * self.number())

    def index_rows(self, env, n, count):
        return self.tf.stack([self.index(env, n) for _ in range(count)])

    def indexed(self, shape, depth, env):
        tf = self.tf
        x = self.again((3, 3), depth, env)
        rows = self.index_rows(env, 3, 2)
        updates = self.leaf((2, 3), env)
        at = tf.expand_dims(rows, 1)
        ways = [
            lambda: (tf.gather(x, rows), (2, 3)), lambda: (tf.gather(x, rows, axis=1), (3, 2)), lambda: (tf.gather_nd(x, tf.stack([rows, rows[::-1]], 1)), (2,)),
            lambda: (tf.tensor_scatter_nd_add(x, at, updates), (3, 3)), lambda: (tf.scatter_nd(at, updates, [3, 3]), (3, 3)),
            lambda: (tf.math.unsorted_segment_sum(x, self.index_rows(env, 2, 3), 2), (2, 3)), lambda: (tf.math.segment_sum(x, [0, 0, 1]), (2, 3)),
            lambda: (tf.matmul(tf.one_hot(rows, 3, dtype=self.dtype), x), (2, 3)), lambda: (tf.math.top_k(x, 2)[0], (3, 2)), lambda: (tf.sort(x, axis=-1), (3, 3)),
            lambda: (tf.linalg.diag_part(x), (3,)), lambda: (tf.dynamic_stitch([[0, 2], [1]], [x[:2], x[2:]]), (3, 3)), lambda: (tf.math.unsorted_segment_max(x, [1, 0, 1], 2), (2, 3)),
            lambda: (tf.boolean_mask(tf.concat([x, x], 0), [True, False, True, False, False, True]), (3, 3)), lambda: (tf.tensor_scatter_nd_update(x, [[1]], updates[:1]), (3, 3)),
            lambda: (tf.concat(tf.dynamic_partition(x, self.index_rows(env, 2, 3), 2), 0), (3, 3)),
        ]
        return self.fit(self.pick(ways)(), shape)

    def integers(self, depth, env):
        """A vector of four int32 or int64."""
        tf = self.tf
        kind = self.pick([tf.int32, tf.int64])
        x = self.leaf((4,), env)
        i = tf.cast(self.pick(env["i"]), kind)
        base = self.pick([lambda: tf.cast(x * 5.0, kind), lambda: tf.range(4, dtype=kind) + i, lambda: tf.fill([4], i), lambda: tf.cast(tf.argsort(x), kind), lambda: tf.cast(tf.shape(tf.zeros([1, 2, 3, 4])), kind)])()
        ops = [lambda v: v // 3, lambda v: v % 3, lambda v: v * v - v, lambda v: tf.cumsum(v), lambda v: tf.maximum(v, i), tf.abs, lambda v: tf.bitwise.bitwise_and(v, 6), lambda v: tf.bitwise.bitwise_xor(v, 5),
               lambda v: tf.bitwise.left_shift(v, tf.ones_like(v)), lambda v: tf.where(v > 1, v, -v), lambda v: v[::-1], lambda v: tf.math.floormod(v, 4) - tf.math.floordiv(v, 3), lambda v: tf.truncatediv(v, 2), lambda v: tf.truncatemod(v, 3),
               lambda v: tf.reduce_sum(v) - v, tf.square, tf.negative, lambda v: tf.cast(v > tf.reduce_min(v), kind), lambda v: tf.cast(tf.argmax(tf.cast(v, self.dtype)), kind) + v]
        for _ in range(int(self.rng.integers(1, 4))):
            base = self.pick(ops)(base)
        return base

    def integer(self, shape, depth, env):
        tf = self.tf
        v = self.integers(depth, env)
        v = tf.tanh(tf.cast(v, self.dtype) * 0.125)
        other = self.pick([lambda: tf.reduce_any(v > 0.3), lambda: tf.reduce_all(v > -0.5), lambda: tf.equal(tf.size(v), 4)])()
        return self.fit((tf.where(other, v, v * 0.5), (4,)), shape)

    def predicate(self, env):
        tf = self.tf
        ways = [lambda: tf.equal(tf.math.floormod(self.pick(env["i"]), 2), int(self.rng.integers(2))), lambda: tf.reduce_sum(self.leaf((3,), env)) > self.number(-0.5, 0.5),
                lambda: tf.logical_or(self.pick(env["i"]) > 1, tf.reduce_max(self.leaf((3,), env)) < 0.4), lambda: tf.reduce_any(self.leaf((4,), env) > 0.8), lambda: tf.not_equal(self.pick(env["i"]), 2)]
        return self.pick(ways)()

    # Control flow.
    def side(self, shapes, depth, env):
        """What a branch gives: values of these shapes."""
        if self.chance(0.15):
            return [self.const(s) for s in shapes]
        return [self.value(s, depth - 1, env) if self.chance(0.8) else self.leaf(s, env) for s in shapes]

    def results(self, shape):
        return [shape] + [self.shape() for _ in range(self.pick([0, 0, 1, 2]))]

    def join(self, shape, shapes, values):
        out = values[0]
        for s, v in zip(shapes[1:], values[1:]):
            out = out + self.fit((v, s), shape) * 0.5
        return out

    def nested(self, depth, env, shapes):
        """A side as a function, its values as TensorFlow's structures have them."""
        return lambda: (self.side(shapes, depth, env)[0] if len(shapes) == 1 else tuple(self.side(shapes, depth, env)))

    def cond(self, shape, depth, env):
        tf, shapes = self.tf, self.results(shape)
        outside = {**env, "f": env["f"] + [(self.leaf(shape, env), shape)]}
        out = tf.cond(self.predicate(env), self.nested(depth, outside, shapes), self.nested(depth, outside, shapes))
        return self.join(shape, shapes, [out] if len(shapes) == 1 else out)

    def case(self, shape, depth, env):
        tf, shapes = self.tf, self.results(shape)
        n = int(self.rng.integers(2, 5))
        # Out of range: the last branch.
        index = self.pick([self.index(env, n), self.pick(env["i"]) - 1, self.pick(env["i"]) * 2 + 1, tf.constant(int(self.rng.integers(-1, n + 1)))])
        out = tf.switch_case(tf.cast(index, tf.int32), [self.nested(depth, env, shapes) for _ in range(n)])
        return self.join(shape, shapes, [out] if len(shapes) == 1 else out)

    def trips(self, env):
        tf = self.tf
        return self.pick([tf.constant(int(self.rng.integers(0, 4))), tf.math.floormod(self.pick(env["i"]), 3), tf.minimum(tf.abs(self.pick(env["i"])), 3)])

    def loop(self, shape, depth, env):
        tf, shapes = self.tf, self.results(shape)
        if self.frames >= 3:
            return self.cond(shape, depth, env)
        n, outside = self.trips(env), (self.leaf(shape, env), shape)
        starts = [self.leaf(s, env) for s in shapes]
        by_value, counts, flag = self.chance(0.25), self.chance(0.3), self.chance(0.2)
        spare = tf.as_string(n) if self.chance(0.1) else (tf.constant(True) if flag else tf.constant(7, tf.int64))

        def test(i, state, extra):
            go = i < n
            if by_value:
                go = tf.logical_and(go, tf.reduce_sum(tf.square(state[0])) < 5.0)
            return go

        def body(i, state, extra):
            self.frames += 1
            inner = {**env, "f": env["f"] + [outside] + list(zip(state, shapes)) * 2, "i": env["i"] + [i]}
            new = self.side(shapes, depth, inner)
            self.frames -= 1
            new = [tf.tanh(v) if self.chance(0.6) else v * 0.7 for v in new]
            if len(new) > 1 and self.chance(0.4):
                new[-1] = state[-1]
            if len(new) > 1 and shapes[0] == shapes[1] and self.chance(0.5):
                new[0], new[1] = new[1], state[0]
            if self.is_open or self.chance(0.3):
                new = [tf.reshape(v, s) for v, s in zip(new, shapes)]
            return i + 1, tuple(new), self.step_extra(extra, i)

        starts = [tf.reshape(v, s) for v, s in zip(starts, shapes)]
        options = {"parallel_iterations": int(self.pick([1, 2, 10]))}
        if counts:
            options["maximum_iterations"] = self.pick([2, 5, tf.abs(self.pick(env["i"])) + 1])
        i, state, extra = tf.while_loop(test, body, (tf.constant(0), tuple(starts), spare), **options)
        out = self.join(shape, shapes, state)
        out += tf.cast(i, self.dtype) * 0.1
        if extra.dtype == tf.string:
            return out + tf.cast(tf.strings.length(extra), self.dtype) * 0.01
        return out + tf.cast(extra, self.dtype) * 0.01

    def step_extra(self, extra, i):
        tf = self.tf
        if extra.dtype == tf.string:
            return tf.strings.join([extra, tf.as_string(i)], separator=",")
        return tf.math.logical_xor(extra, i > 0) if extra.dtype == tf.bool else extra * 3 - 1

    def grow(self, shape, depth, env):
        """A loop whose variable gets longer."""
        tf, n = self.tf, self.trips(env)
        first = tf.reshape(self.leaf((3,), env), [3])[:1]

        def body(i, v):
            inner = {**env, "f": env["f"] + [(v[-1:], (1,))], "i": env["i"] + [i]}
            return i + 1, tf.concat([v, tf.reshape(tf.tanh(self.leaf((), inner)), [1])], 0)

        _, v = tf.while_loop(lambda i, v: i < n, body, (tf.constant(0), first), shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])))
        v = self.pick([lambda: tf.reduce_sum(v), lambda: v[-1], lambda: tf.reduce_mean(v) * tf.cast(tf.size(v), self.dtype)])()
        return self.fit((v, ()), shape)

    def array(self, shape, depth, env):
        """A TensorArray, written in a loop or at once, read in another."""
        tf, n = self.tf, int(self.rng.integers(1, 4))
        if self.frames >= 3:
            return self.case(shape, depth, env)
        item = self.shape()
        ta = tf.TensorArray(self.dtype, size=n, dynamic_size=self.chance(0.2), clear_after_read=False, element_shape=item if self.chance(0.6) else None)
        if self.chance(0.3):
            ta = ta.unstack(tf.stack([self.leaf(item, env) for _ in range(n)]))
        else:
            def body(i, ta):
                self.frames += 1
                inner = {**env, "i": env["i"] + [i]}
                value = tf.reshape(self.value(item, depth - 1, inner) + tf.cast(i, self.dtype) * 0.1, item)
                self.frames -= 1
                return i + 1, ta.write(i, value)
            _, ta = tf.while_loop(lambda i, _: i < n, body, (tf.constant(0), ta), parallel_iterations=int(self.pick([1, 10])))
        i = self.index(env, n)
        reads = [lambda: (ta.read(i), item), lambda: (ta.stack()[i], item), lambda: (tf.reduce_sum(ta.stack(), 0), item), lambda: (ta.gather([n - 1, 0])[0] * 0.7, item)]
        if item:
            reads += [lambda: (ta.concat()[: item[0]], item)]

        def total():
            start = tf.zeros(item, self.dtype)
            return tf.while_loop(lambda j, _: j < n, lambda j, a: (j + 1, tf.reshape(tf.tanh(a + ta.read(j)), item)), (tf.constant(0), start))[1], item

        return self.fit(self.pick(reads + [total])(), shape)

    def map(self, shape, depth, env):
        tf = self.tf
        if self.frames >= 3:
            return self.call(shape, depth, env)
        rows, row = self.again((3, 2), depth - 1, env), self.pick([(), (2,), (3,), (2, 3)])
        pair = self.chance(0.4)

        def one(x):
            self.frames += 1
            v = x[0] * tf.cast(x[1], self.dtype) if pair else x
            inner = {**env, "f": env["f"] + [(v, (2,))] * 2, "i": env["i"] + ([x[1]] if pair else [])}
            out = tf.reshape(self.value(row, depth - 1, inner), row)
            self.frames -= 1
            return out

        elements = (rows, tf.range(3)) if pair else rows
        out = tf.map_fn(one, elements, fn_output_signature=self.dtype, parallel_iterations=int(self.pick([1, 10])))
        return self.fit((self.pick([lambda: tf.reduce_sum(out, 0), lambda: out[self.index(env, 3)]])(), row), shape)

    def fold(self, shape, depth, env):
        tf = self.tf
        if self.frames >= 3:
            return self.unary(shape, depth, env)
        rows = self.again((3, 2), depth - 1, env)

        def step(a, x):
            self.frames += 1
            inner = {**env, "f": env["f"] + [(a, (2,)), (x, (2,))]}
            out = tf.reshape(tf.tanh(self.value((2,), depth - 1, inner) + a * x), [2])
            self.frames -= 1
            return out

        start = tf.reshape(self.leaf((2, 3), env), [-1])[:2]
        way = self.pick([tf.foldl, tf.foldr, tf.scan])
        out = way(step, rows, initializer=start)
        return self.fit((out[-1] * 0.5 + out[0] if way is tf.scan else out, (2,)), shape)

    def call(self, shape, depth, env):
        """A function, which may have an effect (an assertion), may ignore what it is given, and may be called twice."""
        tf, shapes = self.tf, self.results(shape)
        picked = [self.pick(env["f"]) for _ in range(int(self.rng.integers(1, 4)))]
        stateful, n = self.chance(0.3), self.pick(env["i"])

        def f(k, *args):
            inner = {"f": [(a, v[1]) for a, v in zip(args, picked)] + env["f"][:2], "i": [k] + env["i"][:1]}
            out = self.side(shapes, depth, inner)
            if stateful:
                holds = tf.debugging.Assert(tf.reduce_all(tf.equal(k, k)), [k])
                with tf.control_dependencies([holds] if holds is not None else []):
                    out = [tf.identity(v) for v in out]
            return tuple(out)

        f = tf.function(f, autograph=False)
        out = list(f(n, *[v for v, _ in picked]))
        if self.chance(0.3):
            out = [a + 0.5 * b for a, b in zip(out, f(n + 1, *[v * 0.5 for v, _ in picked]))]
        return self.join(shape, shapes, out)

    def text(self, shape, depth, env):
        """A number there and back as text."""
        tf, i = self.tf, self.pick(env["i"])
        word = tf.cond(self.predicate(env), lambda: tf.strings.as_string(i), lambda: tf.constant("41"))
        word = self.pick([lambda: word, lambda: tf.strings.join([word, "5"]), lambda: tf.strings.substr(tf.strings.join([word, "77"]), 0, 2), lambda: tf.gather(tf.stack([word, "9"]), self.index(env, 2))])()
        number = self.pick([lambda: tf.strings.to_number(word, self.dtype) * 0.01, lambda: tf.cast(tf.strings.length(word), self.dtype) * 0.1, lambda: tf.where(tf.equal(word, "41"), self.const(()), self.const(()))])()
        return self.fit((tf.tanh(number + self.leaf((), env)), ()), shape)


def build(seed, tf):
    """The program of a seed: JSON, GraphDef, feeds of each run."""
    p = Program(seed, tf)
    v1 = tf.compat.v1
    shapes = {"x0": p.pick(SHAPES[1:]), "x1": p.pick(SHAPES), "w": (3, 3)}
    numpy_type = p.dtype.as_numpy_dtype
    open_dims = lambda s: [None if p.chance(0.5) else d for d in s] if p.is_open else list(s)
    specs = {name: tf.TensorSpec(open_dims(s), p.dtype, name) for name, s in shapes.items()}
    specs["k"] = tf.TensorSpec([], tf.int32, "k")

    with_gradient = []

    def program(x0, x1, w, k):
        env = {"f": [(x0, shapes["x0"]), (x1, shapes["x1"]), (w, shapes["w"])], "i": [k, tf.constant(int(p.rng.integers(5)))]}
        shape = p.shape()
        y = p.value(shape, p.depth, env) + p.leaf(shape, env) * 0.5
        outputs, xs, grads = [y], [x0, x1, w], [y]
        for _ in range(p.order):
            loss = tf.add_n([tf.reduce_sum(tf.sin(g) * 0.5 + g) for g in grads])
            known = tf.gradients(loss, xs)
            grads = [g for g in known if g is not None]
            if not grads:
                break
            if len(outputs) == 1:
                with_gradient.extend(name for name, g in zip(["x0", "x1", "w"], known) if g is not None)
            outputs += [tf.convert_to_tensor(g) for g in grads]
        return [tf.identity(v, name=f"y{i}") for i, v in enumerate(outputs)]

    if p.style == "v1":
        v1.disable_control_flow_v2()
        graph = tf.Graph()
        with graph.as_default():
            feeds = {name: v1.placeholder(s.dtype, s.shape, name) for name, s in specs.items()}
            fetches = [t.name for t in program(**feeds)]
    else:
        v1.enable_control_flow_v2()
        concrete = tf.function(program, autograph=False).get_concrete_function(**specs)
        graph, fetches = concrete.graph, [t.name for t in concrete.graph.outputs]
    definition = graph.as_graph_def()
    for nodes in [definition.node] + [f.node_def for f in definition.library.function]:
        for node in nodes:
            node.ClearField("experimental_debug_info")
    runs = []
    for k in p.rng.permutation(4)[:2]:
        feeds = {name: p.rng.uniform(-1.2, 1.2, s).astype(numpy_type) for name, s in shapes.items()}
        runs.append({**feeds, "k": np.int32(k)})
    meta = {"seed": seed, "style": p.style, "dtype": p.dtype.name, "order": p.order, "devices": p.n_devices, "fetches": fetches}
    # The fetches after the first are the gradients, by these, of the sum of sin(y) / 2 + y.
    meta["xs"] = with_gradient
    return p, meta, definition, runs


def nodes_of(definition, *ops):
    """Nodes of these ops (of any, where none is named), those of functions too."""
    every = [definition.node] + [f.node_def for f in definition.library.function]
    return [n for nodes in every for n in nodes if not ops or n.op in ops]


def damage(rng, definition, runs, fetches):
    """Makes a program one that TensorFlow may refuse, or that may fail; says how."""
    nodes = nodes_of(definition)
    pick = lambda values: values[int(rng.integers(len(values)))]
    kinds = ["op", "input", "type", "feed shape", "feed missing", "device", "fetch", "port", "attribute", "name", "short", "cycle"]
    kinds += ["function"] * 2 * bool(definition.library.function) + ["arity"] * 2 * bool(definition.library.function)
    kinds += ["index"] * 2 + ["divisor"] + ["frame"] * 2 * bool(nodes_of(definition, "Enter")) + ["axis"]
    kind = pick(kinds)
    with_input = [n for n in nodes if n.input]
    if kind == "op":
        pick(nodes).op = "NoSuchOp"
    elif kind == "input" and with_input:
        n = pick(with_input)
        n.input[int(rng.integers(len(n.input)))] = "nowhere"
    elif kind == "type":
        typed = [(n, a) for n in nodes for a, v in n.attr.items() if v.WhichOneof("value") == "type"]
        n, a = pick(typed)
        n.attr[a].type = pick([3, 7, 10])
    elif kind == "feed shape":
        name = pick(["x0", "w"])
        for feeds in runs:
            feeds[name] = np.concatenate([feeds[name]] * 2)
    elif kind == "feed missing":
        for feeds in runs:
            del feeds["x0"]
    elif kind == "device":
        pick(list(definition.node)).device = pick(["/device:GPU:0", "/device:CPU:7", "/job:worker/task:1", "/device", "/gpu:x"])
    elif kind == "fetch":
        fetches[0] = pick(["nowhere:0", "y0:5", "x0:1"])
    elif kind == "port" and with_input:
        n = pick(with_input)
        n.input[0] = n.input[0].split(":")[0].lstrip("^") + ":17"
    elif kind == "attribute":
        # The engine infers types from inputs; TensorFlow wants them said.
        given = [(n, a) for n in nodes for a, v in sorted(n.attr.items()) if v.WhichOneof("value") != "type"]
        n, a = pick(given)
        del n.attr[a]
    elif kind == "name":
        definition.node.append(definition.node[0])
    elif kind == "short" and with_input:
        n = pick(with_input)
        if n.input.pop().startswith("^") and n.op in ORDERED:
            return UNORDERED
    elif kind == "cycle":
        plain = [n for n in definition.node if n.input and n.op not in ("Merge", "NextIteration")]
        n = pick(plain)
        n.input[0] = n.name
    elif kind == "function":
        f = pick(list(definition.library.function))
        if rng.random() < 0.5:
            definition.library.function.remove(f)
        elif f.ret:
            f.ret[sorted(f.ret)[0]] = "nowhere:y:0"
    elif kind == "arity":
        f = pick(list(definition.library.function))
        if f.signature.input_arg and rng.random() < 0.5:
            del f.signature.input_arg[-1]
        elif f.signature.output_arg:
            f.signature.output_arg[0].type = pick([3, 7, 10])
    elif kind == "frame":
        n = pick(nodes_of(definition, "Enter", "Exit", "NextIteration", "LoopCond", "Switch", "Merge"))
        if n.op == "LoopCond":
            n.attr["T"].type = 10
        if n.op == "Enter":
            n.attr["frame_name"].s = b"elsewhere"
        else:
            n.op, after = "Identity", n.input[:1]
            del n.input[1:]
            del n.input[:]
            n.input.extend(after)
    else:
        numbers = [n for n in nodes if n.op == "Const" and n.attr["dtype"].type in (3, 9)]
        if numbers:
            import tensorflow as tf

            t = pick(numbers).attr["value"].tensor
            value = tf.make_ndarray(t)
            t.CopyFrom(tf.make_tensor_proto(np.full_like(value, {"index": 1000, "divisor": 0, "axis": -9}.get(kind, 9))))
    return kind


def is_own_fault(graph, error):
    """Whether TensorFlow fails on a program that nobody damaged by a fault of its own: see `OWN_FAULTS`, or it colocates a
    function's argument, wherever the value is, with a node of the body that asks for another device."""
    arguments = [arg.name for f in graph.library.function for arg in f.signature.input_arg]
    colocates = "Cannot colocate" in error and any(f"{{{{colocation_node {name}}}}}" in error for name in arguments)
    return colocates or any(fault in error for fault in OWN_FAULTS)


def answer(tf, case, feeds):
    """What TensorFlow makes of a run: arrays, or why not."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    try:
        with graph.as_default():
            tf.import_graph_def(case["graph"], name="")
        config = v1.ConfigProto(device_count={"CPU": case["devices"]}, allow_soft_placement=case["soft"])
        config.inter_op_parallelism_threads = config.intra_op_parallelism_threads = 1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with v1.Session(graph=graph, config=config) as session:
            values = session.run(case["fetches"], {name + ":0": value for name, value in feeds.items()})
            return [np.asarray(v) for v in values]
    except Exception as error:
        noise = ("Graph execution error", "Detected at node", "Node:", "\t")
        lines = [line for line in str(error).splitlines() if line and not line.startswith(noise)]
        if "damage" not in case and is_own_fault(case["graph"], str(error)):
            return None
        return f"{type(error).__name__}: {lines[0][:150] if lines else ''}"


def wiggled(tf, case, draw):
    """The case with feeds and constants that are a few units in the last place off."""
    rng, eps = np.random.default_rng((case["seed"], draw)), 4e-7 if case["dtype"] == "float32" else 1e-14
    off = lambda v: (v * (1 + eps * rng.uniform(-1, 1, np.shape(v)))).astype(v.dtype) if v.dtype.kind == "f" else v
    graph = tf.compat.v1.GraphDef()
    graph.CopyFrom(case["graph"])
    for node in nodes_of(graph, "Const"):
        value = node.attr["value"].tensor
        if value.dtype in (1, 2):
            value.CopyFrom(tf.make_tensor_proto(off(tf.make_ndarray(value))))
    return {**case, "graph": graph, "runs": [{n: off(v) for n, v in feeds.items()} for feeds in case["runs"]]}


def contradicted(tf, case, known):
    """Whether differences contradict a gradient of the first run. Only programs that gather from lists are looked at."""
    gathers = nodes_of(case["graph"], "TensorListGather", "TensorArrayGatherV3")
    if not case["xs"] or "damage" in case or not gathers or any(isinstance(v, (str, type(None))) for v in known):
        return False
    v1, feeds = tf.compat.v1, case["runs"][0]
    step, close = (1e-2, 2e-2) if case["dtype"] == "float32" else (1e-5, 1e-6)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(case["graph"], name="")
    with v1.Session(graph=graph, config=v1.ConfigProto(device_count={"CPU": case["devices"]}, allow_soft_placement=True)) as session:

        def loss(x, at, by):
            moved = feeds[x].copy()
            moved[at] += by
            y = session.run(case["fetches"][0], {name + ":0": v for name, v in {**feeds, x: moved}.items()}).astype(np.float64)
            return (np.sin(y) * 0.5 + y).sum()

        for x, gradient in zip(case["xs"], known[1:]):
            slope = np.array([(loss(x, at, step) - loss(x, at, -step)) / (2 * step) for at in np.ndindex(gradient.shape)])
            if not np.allclose(gradient.ravel(), slope, close, close):
                return True
    return False


def evaluate(path, out):
    """Answers all cases of a file that have no answer in `out` yet. A case during which the process ends has none."""
    import tensorflow as tf

    cases = pickle.load(open(path, "rb"))
    done = sum(1 for _ in answers(out))
    with open(out, "ab") as file:
        for case in cases[done:]:
            case["graph"] = tf.compat.v1.GraphDef.FromString(case["bytes"])
            own = N_DRAWS * int(os.environ["TF_ENABLE_ONEDNN_OPTS"])  # draws of each process are its own
            draws = [case] + [wiggled(tf, case, own + draw) for draw in range(N_DRAWS)]
            all_of = [[answer(tf, one, feeds) for feeds in one["runs"]] for one in draws]
            pickle.dump((all_of, contradicted(tf, case, all_of[0][0])), file)
            file.flush()


def answers(path):
    if os.path.exists(path):
        with open(path, "rb") as file:
            while True:
                try:
                    yield pickle.load(file)
                except EOFError:
                    return


def in_processes(cases, folder, onednn):
    """The answers, from processes of their own, since TensorFlow may abort: then that case has none."""
    path, out = os.path.join(folder, "cases"), os.path.join(folder, f"answers{onednn}")
    pickle.dump(cases, open(path, "wb"))
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": str(onednn)}
    while (done := sum(1 for _ in answers(out))) < len(cases):
        worker = subprocess.Popen([sys.executable, __file__, "--evaluate", path, out], env=environment, stderr=subprocess.DEVNULL)
        size, since = -1, time.monotonic()
        while worker.poll() is None and time.monotonic() - since < 120:
            now = os.path.getsize(out) if os.path.exists(out) else 0
            size, since = now, (time.monotonic() if now != size else since)
            time.sleep(0.05)
        worker.kill()
        worker.wait()
        after = sum(1 for _ in answers(out))
        if after < len(cases) and (worker.returncode or after == done):
            with open(out, "ab") as file:
                pickle.dump(None, file)
    return list(answers(out))


def agreed(case, both):
    """TensorFlow's answers with a tolerance for each fetch, `None` where it has none of its own."""
    if any(b is None for b in both):
        return None
    result = []
    for run in range(len(case["runs"])):
        all_of = [one[run] for draws, _ in both for one in draws]
        if any(a is None for a in all_of):
            return None
        failed = [isinstance(a, str) for a in all_of]
        if all(failed):
            result.append({"error": all_of[0]})
            continue
        if any(failed):
            return None
        values = []
        for of_fetch in zip(*all_of):
            known = of_fetch[0]
            if any(v.shape != known.shape or v.dtype != known.dtype for v in of_fetch):
                return None
            if known.dtype.kind not in "fc":
                if any(not np.array_equal(v, known) for v in of_fetch):
                    return None
                values.append((known, 0.0, 0.0))
                continue
            rtol = 1e-4 if known.dtype == np.float32 else 1e-8
            finite = np.abs(known[np.isfinite(known)])
            if finite.size and finite.max() > 1e6:
                return None
            atol = 0.1 * rtol * (finite.max() if finite.size else 1.0) + 1e-9
            if any(not np.allclose(v, known, rtol / 4, atol / 4, equal_nan=True) for v in of_fetch):
                return None
            values.append((known, rtol, atol))
        result.append({"values": values})
    return result


def make(first, count, folder):
    """Programs of consecutive seeds with their answers, as (JSON, GraphDef, bytes), and what became of the others."""
    import tensorflow as tf

    cases, told = [], {"not built": 0, "too large": 0, "no answer": 0}
    seed = first
    while len(cases) < count:
        try:
            p, meta, definition, runs = build(seed, tf)
        except Exception as error:
            # Gradients that TensorFlow does not have, shapes that it cannot follow.
            told["not built"] += 1
            if os.environ.get("STEPSCOPE_TELL"):
                print(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
            seed += 1
            continue
        if seed % 8 == 7:
            meta["damage"] = damage(p.rng, definition, runs, meta["fetches"])
        seed += 1
        if meta.get("damage") == UNORDERED:
            told["no answer"] += 1
            continue
        meta["soft"] = meta["devices"] > 1 and "damage" not in meta and p.chance(0.5)
        case = {**meta, "bytes": definition.SerializeToString(deterministic=True), "runs": runs}
        if len(case["bytes"]) > MAX_BYTES:
            told["too large"] += 1
            continue
        cases.append(case)
    both = [in_processes(cases, folder, onednn) for onednn in (0, 1)]
    programs = []
    for case, *of_case in zip(cases, *both):
        known = agreed(case, of_case)
        if known is None:
            told["no answer"] += 1
            continue
        if any(wrong for _, wrong in of_case):
            case["xs"] = []
        programs.append(packed(case, known))
    return programs, told, seed


def packed(case, known):
    data = bytearray()

    def array(value):
        value = np.asarray(value)
        at = len(data)
        data.extend(value.astype(value.dtype.newbyteorder("<")).tobytes())
        return {"dtype": value.dtype.name, "shape": list(np.shape(value)), "at": at}

    runs = []
    for feeds, answer in zip(case["runs"], known):
        run = {"feeds": {name: array(value) for name, value in feeds.items()}}
        if "error" in answer:
            run["error"] = answer["error"]
        else:
            run["values"] = [{**array(v), "rtol": float(rtol), "atol": float(atol)} for v, rtol, atol in answer["values"]]
        runs.append(run)
    keep = ("seed", "style", "dtype", "order", "devices", "soft", "damage", "fetches", "xs")
    meta = {key: case[key] for key in keep if key in case} | {"runs": runs}
    return json.dumps(meta, separators=(",", ":")).encode(), case["bytes"], bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=150)
    arguments = parser.parse_args()
    programs, seed = [], arguments.seed
    told = {}
    while len(programs) < arguments.count:
        with tempfile.TemporaryDirectory() as folder:
            more, of_batch, seed = make(seed, arguments.count - len(programs) + 10, folder)
        programs += more
        told = {key: told.get(key, 0) + n for key, n in of_batch.items()}
    with gzip.GzipFile(arguments.out, "wb", 9, mtime=0) as file:
        for blob in (blob for program in programs[: arguments.count] for blob in program):
            file.write(struct.pack("<I", len(blob)) + blob)
    print(f"{arguments.count} programs, seeds from {arguments.seed} to {seed - 1}; " + ", ".join(f"{n} {what}" for what, n in told.items()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--evaluate"]:
        evaluate(*sys.argv[2:4])
    else:
        main()
