#!/usr/bin/env python3
"""Makes engine/tests/data/tf_state.json.gz: programs of lookup tables, staging areas, barriers, and functions that call
themselves.

    venv/bin/python tests/scripts/tf_state_fixtures.py engine/tests/data

A program is a GraphDef and runs of it, one after the other in one session: what is fetched, what TensorFlow gave, or
that it failed. Tensors are as in tf_linalg_fixtures.py.
"""
import base64
import gzip
import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from tf_linalg_fixtures import np, pack, tf

raw = tf.raw_ops
programs = []


class Program:
    def __init__(self, name):
        self.name, self.graph, self.runs, self.sorted = name, tf.Graph(), [], []

    def __enter__(self):
        self.scope = self.graph.as_default()
        self.scope.__enter__()
        return self

    def run(self, *fetches, fails=False, exported=False):
        """`exported`: the two fetches are keys and values in an order that nobody promises."""
        self.runs.append((fetches, fails, exported))

    def whole(self):
        """The graph, functions in the place of those that stood for them (NAME_stub for NAME): so they can call themselves."""
        graph_def = self.graph.as_graph_def()
        library = graph_def.library
        stubs = [f for f in library.function if f.signature.name.endswith("_stub")]
        if not stubs:
            return self.graph
        for nodes in [graph_def.node, *[f.node_def for f in library.function]]:
            for node in nodes:
                node.op = node.op.removesuffix("_stub")
        for stub in stubs:
            library.function.remove(stub)
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
        return graph

    def __exit__(self, *error):
        self.scope.__exit__(*error)
        if error[0]:
            return
        out = []
        graph = self.whole()
        with tf.compat.v1.Session(graph=graph) as session:
            for fetches, fails, exported in self.runs:
                targets = [f.name for f in fetches if isinstance(f, tf.Operation)]
                names = [f.name for f in fetches if not isinstance(f, tf.Operation)]
                run = {"fetches": names, "targets": targets, "exported": exported}
                try:
                    got = session.run([f.name for f in fetches])
                    got = [g for g, f in zip(got, fetches) if not isinstance(f, tf.Operation)]
                    dtypes = [f.dtype for f in fetches if not isinstance(f, tf.Operation)]
                    assert not fails, f"{self.name}: {names} {targets} did not fail"
                    run["values"] = [pack(g, d) for g, d in zip(got, dtypes)]
                except tf.errors.OpError as e:
                    assert fails, e
                    run["fails"] = True
                out.append(run)
        graph = base64.b64encode(graph.as_graph_def().SerializeToString()).decode()
        programs.append({"name": self.name, "graph": graph, "runs": out})


def c(v, dtype=None):
    return tf.constant(v, dtype)


def static_tables():
    for name, keys, values, asked, default in [
        ("words to numbers", ["a", "b", "", "ü"], np.array([1, 2, 3, 4], np.int64), [["b", "x"], ["", "ü"]], np.int64(-1)),
        ("numbers to words", np.array([5, -7], np.int64), ["five", "minus seven"], np.array([-7, 0, 5], np.int64), "?"),
        ("numbers to numbers", np.array([5, -7], np.int64), np.float32([0.5, np.inf]), np.int64(-7), np.float32(2)),
        ("words to truth", ["no", "yes"], np.array([False, True]), ["yes", "no", "perhaps"], True),
    ]:
        with Program(name) as p:
            keys, values = c(keys), c(values)
            table = raw.HashTableV2(key_dtype=keys.dtype, value_dtype=values.dtype, shared_name="t")
            found = raw.LookupTableFindV2(table_handle=table, keys=c(asked), default_value=c(default))
            fill = raw.InitializeTableV2(table_handle=table, keys=keys, values=values)
            other = raw.InitializeTableV2(table_handle=table, keys=keys[:1], values=values[:1])
            p.run(found, fails=True)
            p.run(raw.LookupTableSizeV2(table_handle=table))
            p.run(fill)
            p.run(found, raw.LookupTableSizeV2(table_handle=table))
            p.run(fill)
            p.run(other, fails=True)
            p.run(*raw.LookupTableExportV2(table_handle=table, Tkeys=keys.dtype, Tvalues=values.dtype), exported=True)
            same = raw.HashTableV2(key_dtype=keys.dtype, value_dtype=values.dtype, shared_name="t")
            p.run(raw.LookupTableSizeV2(table_handle=same))
            p.run(raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values), fails=True)
    with Program("a key with two values") as p:
        table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        once = raw.InitializeTableV2(table_handle=table, keys=c(["a", "a"]), values=c(np.int64([1, 1])))
        twice = raw.InitializeTableV2(table_handle=table, keys=c(["a", "a"]), values=c(np.int64([1, 2])))
        p.run(twice, fails=True)
        p.run(once)
        p.run(raw.LookupTableSizeV2(table_handle=table))


def from_file():
    with Program("from a file") as p:
        file = raw.WriteFile(filename=c("/tmp/stepscope-vocabulary.txt"), contents=c("red\t3\ngreen\t5\nblue\t7\n"))
        p.run(file)
        for key, value, types, asked, default, size in [
            (-2, -1, (tf.string, tf.int64), ["green\t5", "red"], np.int64(-1), -1),
            (0, 1, (tf.string, tf.int64), ["green", "red", "x"], np.int64(-1), 3),
            (-1, 0, (tf.int64, tf.string), np.int64([0, 2, 9]), "none", -1),
            (0, 1, (tf.string, tf.float32), ["blue"], np.float32(0.5), 2),
        ]:
            table = raw.HashTableV2(key_dtype=types[0], value_dtype=types[1])
            fill = raw.InitializeTableFromTextFileV2(
                table_handle=table, filename=c("/tmp/stepscope-vocabulary.txt"), key_index=key, value_index=value,
                vocab_size=size, offset=1)
            p.run(fill)
            p.run(raw.LookupTableSizeV2(table_handle=table),
                  raw.LookupTableFindV2(table_handle=table, keys=c(asked), default_value=c(default)))
        table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        p.run(raw.InitializeTableFromTextFileV2(
            table_handle=table, filename=c("/tmp/stepscope-vocabulary.txt"), key_index=0, value_index=1, vocab_size=9,
            offset=1), fails=True)


def mutable_tables():
    for dense in [False, True]:
        with Program(f"mutable, {'dense' if dense else 'hashed'}") as p:
            common = dict(value_dtype=tf.float32, shared_name="m")
            if dense:
                table = raw.MutableDenseHashTableV2(empty_key=c(np.int64(-1)), deleted_key=c(np.int64(-2)), **common)
            else:
                table = raw.MutableHashTableV2(key_dtype=tf.int64, **common)
            find = raw.LookupTableFindV2(table_handle=table, keys=c(np.int64([3, 1, 2, 9] if dense else [[3, 1], [2, 9]])), default_value=c(np.float32(-0.5)))
            p.run(find)
            p.run(raw.LookupTableInsertV2(table_handle=table, keys=c(np.int64([1, 2, 1])), values=c(np.float32([1, 2, 3]))))
            p.run(find, raw.LookupTableSizeV2(table_handle=table))
            p.run(raw.LookupTableRemoveV2(table_handle=table, keys=c(np.int64([2, 77]))))
            p.run(find, raw.LookupTableSizeV2(table_handle=table))
            # A dense table of TensorFlow's imports only what such a table exported, empty places included.
            if not dense:
                p.run(raw.LookupTableImportV2(table_handle=table, keys=c(np.int64([9, 3])), values=c(np.float32([9, 33]))))
                p.run(find, raw.LookupTableSizeV2(table_handle=table))
                p.run(*raw.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.float32), exported=True)
            if dense:
                p.run(raw.LookupTableInsertV2(table_handle=table, keys=c(np.int64([-1])), values=c(np.float32([1]))), fails=True)
    with Program("rows") as p:
        table = raw.MutableHashTableOfTensorsV2(key_dtype=tf.string, value_dtype=tf.int32, value_shape=[2], shared_name="r")
        find = raw.LookupTableFindV2(table_handle=table, keys=c(["a", "b", "c"]), default_value=c([0, -1]))
        p.run(raw.LookupTableInsertV2(table_handle=table, keys=c(["a", "c"]), values=c([[1, 2], [3, 4]])))
        p.run(find)
        p.run(*raw.LookupTableExportV2(table_handle=table, Tkeys=tf.string, Tvalues=tf.int32), exported=True)
        p.run(raw.LookupTableInsertV2(table_handle=table, keys=c(["a"]), values=c([[1, 2, 3]])), fails=True)
    with Program("keys that are rows") as p:
        table = raw.MutableDenseHashTableV2(
            empty_key=c(np.int64([0, 0])), deleted_key=c(np.int64([-1, -1])), value_dtype=tf.int64)
        p.run(raw.LookupTableInsertV2(table_handle=table, keys=c(np.int64([[1, 2], [2, 1]])), values=c(np.int64([12, 21]))))
        p.run(raw.LookupTableFindV2(table_handle=table, keys=c(np.int64([[2, 1], [1, 1]])), default_value=c(np.int64(-5))))


def staging():
    with Program("staging") as p:
        common = dict(dtypes=[tf.int32, tf.string], shared_name="s", capacity=2)
        put = [raw.Stage(values=[c(np.int32([i, i])), c(str(i))], shared_name="s", capacity=2) for i in range(3)]
        size = raw.StageSize(**common)
        look = [raw.StagePeek(index=c(i), **common) for i in range(2)]
        take = raw.Unstage(**common)
        p.run(put[0])
        p.run(*look[0])
        p.run(put[1])
        p.run(*look[1])
        p.run(*look[0])
        p.run(size)
        p.run(*take)
        p.run(*look[0])
        p.run(put[2])
        p.run(*take)
        p.run(raw.StageClear(**common))
        p.run(size)
        p.run(put[1])
        p.run(*take)


def barriers():
    with Program("barrier") as p:
        types = [tf.float32, tf.int32]
        barrier = raw.Barrier(component_types=types, shapes=[[], [2]], shared_name="b")
        ready, waiting = raw.BarrierReadySize(handle=barrier), raw.BarrierIncompleteSize(handle=barrier)

        def put(component, keys, values):
            return raw.BarrierInsertMany(handle=barrier, component_index=component, keys=c(keys), values=c(values))

        def take(n, **attrs):
            return tf.nest.flatten(raw.BarrierTakeMany(
                handle=barrier, num_elements=c(n), component_types=types, **attrs))

        p.run(put(0, ["x", "y"], np.float32([1, 2])))
        p.run(ready, waiting)
        p.run(put(1, ["z", "y"], np.int32([[1, 2], [3, 4]])))
        p.run(ready, waiting)
        p.run(*take(1))
        p.run(put(0, ["z"], np.float32([5])))
        p.run(put(1, ["x"], np.int32([[7, 8]])))
        p.run(put(1, ["w"], np.int32([[7, 8]])))
        p.run(put(1, ["w"], np.int32([[7, 8]])), fails=True)
        p.run(ready, waiting)
        p.run(*take(2))
        p.run(raw.BarrierClose(handle=barrier))
        p.run(put(0, ["new"], np.float32([1])), fails=True)
        p.run(put(0, ["w"], np.float32([1])))
        p.run(ready, waiting)
        p.run(*take(2, allow_small_batch=True))
        p.run(*take(1), fails=True)


def recursion():
    """Functions that call themselves: once, twice, by way of each other, in a loop, with effects, in a case."""
    from tensorflow.python.framework import function as fn
    from tensorflow.python.ops import functional_ops

    def body(name, *types):
        return fn.Defun(*types, func_name=name, out_names=["y"])

    def later(name, n, out=tf.int32):
        """Stands for the function `name`, which is yet to come."""
        return body(f"{name}_stub", *[tf.int32] * n)(lambda *x: tf.cast(x[0], out))

    def either(test, args, then, otherwise):
        return functional_ops.If(test, args, then, otherwise)[0]

    one = body("one", tf.int32)(lambda x: tf.ones_like(x))
    same = body("same", tf.int32)(lambda x: tf.identity(x))
    with Program("factorial, fibonacci") as p:
        factorial = later("factorial", 1)
        fibonacci = later("fibonacci", 1)
        step = body("factorial_step", tf.int32)(lambda x: x * factorial(x - 1))
        both = body("fibonacci_step", tf.int32)(lambda x: fibonacci(x - 1) + fibonacci(x - 2))
        body("factorial", tf.int32)(lambda x: either(x > 1, [x], step, one)).add_to_graph(p.graph)
        body("fibonacci", tf.int32)(lambda x: either(x > 1, [x], both, same)).add_to_graph(p.graph)
        for n in [0, 1, 2, 12]:
            p.run(factorial(c(n)), fibonacci(c(n)))
        p.run(factorial(fibonacci(c(6)) - factorial(c(2))))
    with Program("even and odd") as p:
        even = later("even", 1, tf.bool)
        odd = later("odd", 1, tf.bool)
        yes = body("yes", tf.int32)(lambda x: tf.equal(x, x))
        no = body("no", tf.int32)(lambda x: tf.not_equal(x, x))
        even_less = body("even_less", tf.int32)(lambda x: even(x - 1))
        odd_less = body("odd_less", tf.int32)(lambda x: odd(x - 1))
        body("even", tf.int32)(lambda x: either(tf.equal(x, 0), [x], yes, odd_less)).add_to_graph(p.graph)
        body("odd", tf.int32)(lambda x: either(tf.equal(x, 0), [x], no, even_less)).add_to_graph(p.graph)
        for n in [0, 7, 40]:
            p.run(even(c(n)), odd(c(n)))
    with Program("ackermann, in a case") as p:
        ackermann = later("ackermann", 2)
        types = [tf.int32, tf.int32]
        parts = [
            body("at_zero", *types)(lambda m, n: n + 1),
            body("at_edge", *types)(lambda m, n: ackermann(m - 1, c(1))),
            body("within", *types)(lambda m, n: ackermann(m - 1, ackermann(m, n - 1))),
        ]

        def either_of(m, n):
            which = tf.where(tf.equal(m, 0), 0, tf.where(tf.equal(n, 0), 1, 2))
            return raw.Case(branch_index=which, input=[m, n], Tout=[tf.int32], branches=parts)[0]

        body("ackermann", *types)(either_of).add_to_graph(p.graph)
        p.run(ackermann(c(2), c(3)))
        p.run(ackermann(c(0), c(5)), ackermann(c(1), c(1)))


def main():
    for part in [static_tables, from_file, mutable_tables, staging, barriers, recursion]:
        part()
    fixture = {"made_by": f"tests/scripts/tf_state_fixtures.py, TensorFlow {tf.__version__}", "programs": programs}
    path = os.path.join(sys.argv[1], "tf_state.json.gz")
    with open(path, "wb") as raw_file, gzip.GzipFile(fileobj=raw_file, mode="wb", mtime=0) as f:
        f.write(json.dumps(fixture, separators=(",", ":")).encode() + b"\n")
    print(f"{len(programs)} programs, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
