"""Writes summaries/tests/fixtures/graphs: event files with the graphs that Keras and TensorFlow 2 record, and what
TensorBoard's graphs plugin shows of them.

    graph_summary_fixtures.py FOLDER

`models/NAME` are Keras models as the `TensorBoard` callback records them, `functions` has traced functions with and without
a profile. `shown.json` has {run: {tag: {"conceptual"|"op": [[name, op, inputs, {attribute: value}]], "profile": [[device,
node]], "functions": {name: [[name, op, inputs]]}}}}, and "error" where the plugin fails. Needs tensorboard and TensorFlow.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from keras import layers
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.compat.proto import config_pb2, graph_pb2
from tensorboard.context import RequestContext
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.graph import graphs_plugin
from tensorflow.python.eager import context
from tensorflow.python.ops import summary_ops_v2


def sequential():
    return keras.Sequential([keras.Input((8,)), layers.Dense(4, name="hidden"), layers.ReLU(), layers.Dense(2, name="out")])


def branches():
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    shared = layers.Dense(3, name="shared")
    joined = layers.Concatenate(name="joined")([shared(left), shared(right)])
    return keras.Model([left, right], [layers.Dense(1, name="a")(joined), layers.Dense(2, name="b")(joined)], name="branches")


def nested():
    image = keras.Input((4,), name="image")
    inner_in = keras.Input((4,), name="inner_in")
    inner = keras.Model(inner_in, [layers.Dense(2, name="x")(inner_in), layers.Dense(3, name="y")(inner_in)], name="inner")
    x, y = inner(image)
    head = keras.Sequential([keras.Input((5,)), layers.Dense(2, name="first"), layers.Dense(1, name="last")], name="head")
    out = layers.Add(name="sum")([head(layers.Concatenate(name="both")([x, y])), layers.Dense(1, name="skip")(image)])
    return keras.Model(image, out, name="outer")


def functional_in_sequential():
    entry = keras.Input((4,), name="entry")
    block = keras.Model(entry, layers.Dense(3, name="d")(entry), name="block")
    return keras.Sequential([keras.Input((4,)), layers.Dense(4, name="before"), block, layers.Dense(1, name="after")])


def attention():
    words = keras.Input((5, 8), name="words")
    attended = layers.MultiHeadAttention(2, 4, name="attend")(words, words)
    normed = layers.LayerNormalization(name="norm", dtype="mixed_bfloat16")(words + attended)
    return keras.Model(words, layers.GlobalAveragePooling1D(name="mean")(normed), name="attention")


def write_models(root):
    for make in (sequential, branches, nested, functional_in_sequential, attention):
        keras.utils.clear_session()
        model = make()
        writer = tf.summary.create_file_writer(str(root / "models" / make.__name__))
        with writer.as_default():
            # What keras.callbacks.TensorBoard(write_graph=True) writes.
            metadata = tf.compat.v1.SummaryMetadata()
            metadata.plugin_data.plugin_name, metadata.plugin_data.content = "graph_keras_model", b"1"
            tf.summary.write("keras", tf.constant(model.to_json()), step=0, metadata=metadata)
        writer.close()


def write_callback(root):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, name="only")], name="tiny")
    model.compile(loss="mse")
    with tempfile.TemporaryDirectory() as folder:
        callback = keras.callbacks.TensorBoard(folder, write_graph=True, update_freq="epoch")
        model.fit(np.zeros((4, 3)), np.zeros((4, 2)), epochs=1, verbose=0, callbacks=[callback])
        files = sorted((Path(folder) / "train").glob("*tfevents*"))
        target = root / "callback"
        target.mkdir(parents=True)
        for file in files:
            (target / file.name).write_bytes(file.read_bytes())


def fresh_functions():
    """Functions that were never run: TensorFlow records a graph when it is first made."""

    @tf.function
    def inner(x):
        return tf.nn.relu(x) * 2.0

    @tf.function
    def outer(x, w):
        y = tf.matmul(x, w)
        return inner(y) + tf.reduce_sum(y)

    @tf.function
    def other(x):
        with tf.control_dependencies([tf.debugging.assert_positive(tf.size(x))]):
            return tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1.0, lambda: x - 1.0)

    return outer, other


def session_metadata():
    """What a step of TensorFlow 1 says of itself: times, and the graphs of its partitions."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        a = tf.random.stateless_uniform([8, 8], [1, 2], name="a")
        b = tf.matmul(a, a, name="b")
        metadata = tf.compat.v1.RunMetadata()
        options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        session.run(b, options=options, run_metadata=metadata)
    return metadata


def write_functions(root):
    x, w = tf.ones((2, 3)), tf.ones((3, 4))
    writer = tf.summary.create_file_writer(str(root / "functions"))
    with writer.as_default():
        outer, _ = fresh_functions()
        tf.summary.trace_on(graph=True)
        outer(x, w)
        tf.summary.trace_export("one", step=0)
        outer, other = fresh_functions()
        tf.summary.trace_on(graph=True)
        outer(x, w)
        other(x)
        tf.summary.trace_export("two", step=1)
        # With a profile: what trace_export writes where trace_on was asked for both.
        outer, other = fresh_functions()
        context.context().enable_graph_collection()
        context.context().enable_run_metadata()
        outer(x, w)
        other(x)
        metadata = context.context().export_run_metadata()
        context.context().disable_graph_collection()
        context.context().disable_run_metadata()
        metadata.step_stats.MergeFrom(session_metadata().step_stats)
        summary_ops_v2.run_metadata("profiled", metadata, step=2)
        summary_ops_v2.run_metadata("session", session_metadata(), step=3)
    writer.close()


def plain_names(root):
    """File names without host, time and process; TensorFlow's empty first files go."""
    for folder in {file.parent for file in root.rglob("*tfevents*")}:
        files = sorted((f for f in folder.iterdir() if f.stat().st_size > 100), key=lambda f: f.name)
        for file in set(folder.iterdir()) - set(files):
            file.unlink()
        for i, file in enumerate(files):
            file.rename(folder / f"events.out.tfevents.{i + 1}")


def attributes(node):
    out = {}
    for name, attr in node.attr.items():
        kind = attr.WhichOneof("value")
        if kind == "s":
            out[name] = attr.s.decode("latin-1")
        elif kind == "type":
            out[name] = attr.type
    return out


def nodes(graph, with_attributes):
    rows = [[n.name, n.op, list(n.input), attributes(n) if with_attributes else {}] for n in graph.node]
    functions = {
        f.signature.name: sorted([n.name, n.op, list(n.input)] for n in f.node_def) for f in graph.library.function
    }
    return rows, functions


def shown(root):
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(root))
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, str(root))
    plugin = graphs_plugin.GraphsPlugin(TBContext(logdir=str(root), multiplexer=multiplexer, data_provider=provider))
    request, out = RequestContext(), {}
    for run, about in plugin.info_impl(request, "").items():
        tags = out.setdefault(run, {})
        for tag, has in about["tags"].items():
            entry = tags.setdefault(tag, {})
            for kind, is_conceptual in (("conceptual_graph", True), ("op_graph", False)):
                if not has[kind]:
                    continue
                try:
                    text, _ = plugin.graph_impl(request, run, tag, is_conceptual, "")
                except UnboundLocalError:
                    entry["error"] = "a functional model in a sequential one"
                    continue
                graph = text_format.Parse(text, graph_pb2.GraphDef())
                entry[kind.split("_")[0]], entry["functions"] = nodes(graph, is_conceptual)
            if has["profile"]:
                text, _ = plugin.run_metadata_impl(request, "", run, tag)
                stats = text_format.Parse(text, config_pb2.RunMetadata()).step_stats
                entry["profile"] = [[d.device, n.node_name] for d in stats.dev_stats for n in d.node_stats]
        if about["run_graph"]:
            text, _ = plugin.graph_impl(request, run, None, False, "")
            graph = text_format.Parse(text, graph_pb2.GraphDef())
            tags[""] = dict(zip(("op", "functions"), nodes(graph, False)))
    return out


def main(root):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    for old in root.rglob("*tfevents*"):
        old.unlink()
    if (root / "callback").exists():
        (root / "callback").rmdir()
    write_models(root)
    write_callback(root)
    write_functions(root)
    plain_names(root)
    lines = [f"{json.dumps(run)}: {json.dumps(tags, sort_keys=True)}" for run, tags in sorted(shown(root).items())]
    (root / "shown.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main(Path(sys.argv[1]))
