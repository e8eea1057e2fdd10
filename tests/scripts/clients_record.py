"""Trains tiny models with the programs that people log with, each writing every kind of summary that it has a call for.

    clients_record.py FOLDER [CLIENT...]

Each client writes FOLDER/CLIENT, in a process of its own. Prints {"recorded": {client: {package: version}}, "left_out":
{client: why}} as JSON: a client whose packages cannot be imported is left out, any other failure ends the script. The logdirs in
tests/fixtures/clients were made by this script; clients_expect.py asks TensorBoard what is in them.
"""

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys

import numpy as np

# The clients' own chatter, and the devices that none of them needs.
os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "tensorflow"}

STEPS = 6
CLASSES = 3


def examples(seed=7, n=48):
    """Points in the plane and which of three thirds of it they lie in."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)).astype(np.float32)
    angle = np.arctan2(x[:, 1], x[:, 0]) + np.pi
    return x, (angle * CLASSES / (2 * np.pi)).astype(np.int64) % CLASSES


def picture(step, channels=3):
    """Height 6, width 8, bytes."""
    rng = np.random.default_rng(step)
    return rng.integers(0, 256, (6, 8, channels), dtype=np.uint8)


def tone(step, n=64):
    return np.sin(np.arange(n, dtype=np.float32) * (step + 1) * 0.3) * 0.8


def tetrahedron(step):
    """Vertices, faces and colours of a batch of two."""
    vertices = np.array([[1, 1, 1], [-1, -1, 1], [1, -1, -1], [-1, 1, -1]], np.float32) + step / 8
    faces = np.array([[0, 2, 3], [0, 3, 1], [0, 1, 2], [1, 3, 2]], np.int32)
    colors = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 0, 255]], np.uint8)
    both = lambda part: np.stack([part, part[::-1]])
    return both(vertices), both(faces), both(colors)


TABLE = "| name | value |\n|---|---|\n| *ünï* | `1` |"
SCENE = {"camera": {"cls": "PerspectiveCamera", "fov": 75}}


# --- torch, and tensorboardX with the same calls ---


def torch_model():
    import torch

    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, CLASSES))


def torch_training(model):
    """Steps of training: the number, the loss and the probabilities."""
    import torch

    x, y = map(torch.from_numpy, examples())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        yield step, loss.item(), logits.softmax(1).detach().numpy()


def numpy_training():
    """The same by hand, for clients that bring no framework: the weights too."""
    x, y = examples()
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(2, CLASSES)).astype(np.float32)
    for step in range(STEPS):
        logits = x @ weights
        shares = np.exp(logits - logits.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        loss = -np.log(shares[np.arange(len(y)), y]).mean()
        weights -= 0.5 / len(y) * x.T @ (shares - np.eye(CLASSES, dtype=np.float32)[y])
        yield step, float(loss), shares, weights.copy()


def write_step(writer, step, loss, shares, parameters, sound):
    """What both SummaryWriters have a call for, at a step."""
    _, y = examples()
    writer.add_scalar("train/loss", loss, step)
    writer.add_scalars("compared", {"loss": loss, "half": loss / 2}, step)
    writer.add_histogram("bins/auto", shares, step, bins="auto")
    if step % 2:
        return
    for name, values in parameters.items():
        writer.add_histogram(f"weights/{name}", values, step)
    hits = shares.argmax(1) == y
    writer.add_histogram_raw("bins/raw", 0.0, 1.0, 48, float(hits.sum()), float(hits.sum()), [0.5, 1.0], [int((~hits).sum()), int(hits.sum())], step)
    writer.add_image("image/HWC", picture(step), step, dataformats="HWC")
    writer.add_image("image/float", picture(step).transpose(2, 0, 1) / np.float32(255), step)
    writer.add_image("image/HW", picture(step)[:, :, 0], step, dataformats="HW")
    writer.add_images("image/batch", np.stack([picture(step), picture(step + 9)]), step, dataformats="NHWC")
    writer.add_image_with_boxes("image/boxes", picture(step), np.array([[1, 1, 5, 4]]), step, dataformats="HWC")
    writer.add_audio("tone", sound, step, sample_rate=8000)
    writer.add_text("note", f"step *{step}*: ünïcode 日本", step)
    writer.add_text("table", TABLE, step)
    writer.add_pr_curve("third 0", y == 0, shares[:, 0], step, num_thresholds=11)
    counts = [np.array([5, 3, 0]), np.array([4, 1, 0]), np.array([0, 3, 4]), np.array([0, 2, 5])]
    writer.add_pr_curve_raw("raw", *counts, np.array([5 / 9, 0.75, 0.0]), np.array([1.0, 0.6, 0.0]), step, num_thresholds=3)
    vertices, faces, colors = tetrahedron(step)
    writer.add_mesh("solid", vertices, colors=colors, faces=faces, config_dict=SCENE, global_step=step)
    writer.add_mesh("cloud/points", vertices, global_step=step)


def write_once(writer):
    x, y = examples()
    images = np.stack([picture(i)[:, :6] for i in range(9)]).transpose(0, 3, 1, 2) / np.float32(255)
    labels = [[str(third), f"point {i}"] for i, third in enumerate(y[:9])]
    writer.add_embedding(x, metadata=[f"third {third}" for third in y], tag="plane")
    writer.add_embedding(x[:9], metadata=labels, metadata_header=["third", "name"], label_img=as_label_images(images), global_step=3, tag="pictured")
    writer.add_embedding(x[:4] * 1e-7, global_step=1)
    chart = {
        "losses": {"all": ["Multiline", ["train/loss", "compared/.*"]]},
        "bands": {"margin": ["Margin", ["train/loss", "low", "high"]]},
    }
    writer.add_custom_scalars(chart)


def as_label_images(images):
    try:
        import torch
    except ImportError:
        return images
    return torch.from_numpy(images)


def record_torch(folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    model = torch_model()
    with SummaryWriter(folder, flush_secs=600) as writer:
        writer.add_graph(model, torch.from_numpy(examples()[0][:1]))
        for step, loss, shares in torch_training(model):
            parameters = {name: values.detach().numpy() for name, values in model[0].named_parameters()}
            write_step(writer, step, loss, shares, parameters, tone(step)[None])
            writer.add_scalar("train/new style", loss, step, new_style=True)
            writer.add_scalar("train/double", loss / 3, step, new_style=True, double_precision=True)
            writer.add_tensor("shares", torch.from_numpy(shares[:2]), step)
        write_once(writer)
        domain = {"optimizer": ["sgd", "adam"], "rate": [0.1, 0.5]}
        for name, rate in [("trial 1", 0.5), ("trial 2", 0.1)]:
            hparams = {"rate": rate, "layers": 2, "bias": True, "optimizer": "sgd"}
            writer.add_hparams(hparams, {"hparam/loss": loss * rate, "hparam/hits": 7}, domain, run_name=name, global_step=STEPS)
    with SummaryWriter(os.path.join(folder, "onnx")) as writer:
        writer.add_onnx_graph(onnx_model(folder))


def record_tensorboard_x(folder):
    from tensorboardX import SummaryWriter

    with SummaryWriter(folder, flush_secs=600) as writer:
        for step, loss, shares, weights in numpy_training():
            write_step(writer, step, loss, shares, {"plane": weights}, np.stack([tone(step), tone(step + 1)], -1))
            writer.add_scalar("train/described", loss, step, display_name="Loss", summary_description="of *training*")
        write_once(writer)
        for name, rate in [("trial 1", 0.5), ("trial 2", 0.1)]:
            hparams = {"rate": rate, "layers": 2, "bias": True, "optimizer": "sgd"}
            writer.add_hparams(hparams, {"hparam/loss": loss * rate, "hparam/hits": 7}, name=name, global_step=STEPS)
    with SummaryWriter(os.path.join(folder, "onnx")) as writer:
        writer.add_onnx_graph(onnx_model(folder))


def record_tensorboard_x_graph(folder):
    import torch
    from tensorboardX import SummaryWriter

    with SummaryWriter(folder) as writer:
        writer.add_graph(torch_model(), torch.from_numpy(examples()[0][:1]))


def onnx_model(folder):
    """The file of a model of two nodes, which is removed again: it is no part of a logdir."""
    import atexit

    from onnx import TensorProto, helper, save

    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2])
    nodes = [helper.make_node("Neg", ["x"], ["n"], name="neg"), helper.make_node("Relu", ["n"], ["y"], name="relu")]
    path = os.path.join(folder, "model.onnx")
    save(helper.make_model(helper.make_graph(nodes, "small", [value("x")], [value("y")])), path)
    atexit.register(os.remove, path)
    return path


# --- TensorFlow ---


def keras_model():
    import keras

    keras.utils.set_random_seed(7)
    layers = keras.layers
    inputs = keras.Input((2,), name="point")
    hidden = layers.Dense(8, activation="relu", name="hidden")(inputs)
    joined = layers.Concatenate(name="joined")([inputs, hidden])
    model = keras.Model(inputs, layers.Dense(CLASSES, name="thirds")(joined), name="small")
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def record_keras(folder):
    import keras
    import tensorflow as tf
    from tensorboard.plugins.hparams import api as hp

    x, y = examples()
    for name, rate in [("trial 1", 0.5), ("trial 2", 0.1)]:
        log = os.path.join(folder, name)
        model = keras_model()
        model.optimizer.learning_rate = rate
        callback = keras.callbacks.TensorBoard(log, histogram_freq=1, write_graph=True, write_images=True, update_freq="batch")
        with tf.summary.create_file_writer(log).as_default():
            hp.hparams({"rate": rate, "layers": 2, "bias": True, "optimizer": "sgd"}, trial_id=name)
        model.fit(x, y, batch_size=24, epochs=3, validation_data=examples(8), verbose=0, callbacks=[callback])
    with tf.summary.create_file_writer(folder).as_default():
        rates = hp.HParam("rate", hp.Discrete([0.1, 0.5]), display_name="Rate", description="of *learning*")
        others = [hp.HParam("layers", hp.IntInterval(1, 4)), hp.HParam("bias", hp.Discrete([True, False]))]
        metrics = [hp.Metric("epoch_loss", group="validation", display_name="Loss"), hp.Metric("epoch_accuracy", group="train")]
        hp.hparams_config([rates, *others, hp.HParam("optimizer")], metrics)
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Embedding(3, 2, name="one"), keras.layers.Flatten(name="two")])
    model.compile("sgd", "mse")
    callback = keras.callbacks.TensorBoard(os.path.join(folder, "sequential"), embeddings_freq=1, embeddings_metadata="thirds.tsv")
    model.fit(y[:4], x[:4], verbose=0, callbacks=[callback])


def record_tf_summary(folder):
    import tensorflow as tf

    x, y = examples()
    variable = tf.Variable(tf.random.stateless_normal((2, CLASSES), (7, 7)), name="weights")

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            logits = tf.matmul(x, variable)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        variable.assign_sub(0.5 * tape.gradient(loss, variable))
        return loss, tf.nn.softmax(logits)

    writer = tf.summary.create_file_writer(folder)
    with writer.as_default():
        tf.summary.trace_on(graph=True)
        train(x, y)
        tf.summary.trace_export("one step", step=0)
        tf.summary.graph(train.get_concrete_function(x, y).graph.as_graph_def())
        for step in range(STEPS):
            loss, shares = train(x, y)
            write_tf_step(tf, step, loss, shares.numpy(), variable)
        write_tf_pb(tf)
    writer.close()
    write_tf_projector(tf, folder)


def write_tf_step(tf, step, loss, shares, variable):
    summary = tf.summary
    summary.scalar("train/loss", loss, step, description="of *training*")
    summary.scalar("train/double", tf.cast(loss, tf.float64) / 3, step)
    summary.scalar("train/count", tf.constant(step * 7, tf.int64), step)
    summary.histogram("weights", variable, step, buckets=9)
    summary.histogram("constant", tf.ones(5), step)
    summary.histogram("none", tf.zeros([0]), step)
    if step % 2:
        return
    summary.image("image/two", np.stack([picture(step), picture(step + 9)]), step)
    summary.image("image/gray", picture(step, 1)[None] / np.float32(255), step, max_outputs=1)
    summary.image("image/alpha", picture(step, 4)[None], step)
    sounds = np.stack([tone(step), tone(step + 1)], -1)
    summary.audio("tone", np.stack([sounds, -sounds]), 8000, step, max_outputs=2)
    summary.text("note", f"step *{step}*: ünïcode 日本", step)
    summary.text("words", [["a", "*b*"], ["c", str(step)]], step)
    summary.text("row", ["left", "right"], step)
    summary.write("shares", tf.constant(shares[:2]), step)
    from tensorboard.plugins.mesh import summary_v2 as mesh

    vertices, faces, colors = tetrahedron(step)
    mesh.mesh("solid", vertices, faces=faces, colors=colors, config_dict=SCENE, step=step)
    mesh.mesh("cloud/points", vertices, step=step)


def write_tf_projector(tf, folder):
    """As TensorFlow's tutorial has it: the vectors are in a checkpoint beside the event files."""
    from tensorboard.plugins import projector

    points = tf.Variable(examples()[0][:9])
    tf.train.Checkpoint(embedding=points).save(os.path.join(folder, "embedding.ckpt"))
    with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf-8") as lines:
        lines.writelines(f"third {third}\n" for third in examples()[1][:9])
    config = projector.ProjectorConfig()
    config.embeddings.add(tensor_name="embedding/.ATTRIBUTES/VARIABLE_VALUE", metadata_path="metadata.tsv")
    projector.visualize_embeddings(folder, config)


def write_tf_pb(tf):
    """The plugins that TensorFlow has no call for, by TensorBoard's own messages."""
    from tensorboard.plugins.custom_scalar import layout_pb2
    from tensorboard.plugins.custom_scalar import summary as custom_scalars
    from tensorboard.plugins.pr_curve import summary as pr_curves

    write = lambda pb, step: tf.summary.experimental.write_raw_pb(pb.SerializeToString(), step)
    for step, _, shares, _ in numpy_training():
        write(pr_curves.pb("third 0", examples()[1] == 0, shares[:, 0], num_thresholds=11, display_name="Third"), step)
    chart = layout_pb2.Chart(title="all", multiline=layout_pb2.MultilineChartContent(tag=["train/.*"]))
    write(custom_scalars.pb(layout_pb2.Layout(category=[layout_pb2.Category(title="losses", chart=[chart])])), 0)


def record_tf1_summary(folder):
    """TensorFlow 1's ops and FileWriter, with its profile of a step."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    x, y = examples()
    with tf1.Graph().as_default(), tf1.Session() as session:
        points, thirds = tf1.placeholder(tf.float32, [None, 2], "points"), tf1.placeholder(tf.int64, [None], "thirds")
        with tf1.variable_scope("plane"):
            weights = tf1.get_variable("weights", [2, CLASSES], initializer=tf1.zeros_initializer())
            logits = tf.matmul(points, weights, name="logits")
        loss = tf1.losses.sparse_softmax_cross_entropy(thirds, logits)
        train = tf1.train.GradientDescentOptimizer(0.5).minimize(loss, tf1.train.create_global_step())
        tf1.summary.scalar("loss", loss)
        tf1.summary.histogram("weights", weights)
        tf1.summary.image("image", np.stack([picture(0), picture(9)]))
        tf1.summary.audio("tone", np.stack([tone(0), tone(1)]), 8000)
        tf1.summary.text("note", tf.constant("of *TensorFlow 1*"))
        tf1.summary.text("words", tf.constant([["a", "b"]]))
        merged = tf1.summary.merge_all()
        writer = tf1.summary.FileWriter(folder, session.graph)
        session.run(tf1.global_variables_initializer())
        for step in range(STEPS):
            options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE) if step == 3 else None
            metadata = tf1.RunMetadata()
            summary, _ = session.run([merged, train], {points: x, thirds: y}, options, metadata)
            if options:
                writer.add_run_metadata(metadata, f"step {step}", step)
            writer.add_summary(summary, step)
        writer.close()


def record_flax(folder):
    from flax.metrics.tensorboard import SummaryWriter

    # A session in the logdir itself has no metrics in TensorBoard.
    writer = SummaryWriter(os.path.join(folder, "trial 1"), auto_flush=False)
    for step, loss, shares, weights in jax_training():
        writer.scalar("train/loss", loss, step)
        writer.histogram("weights", weights, step, bins=9)
        writer.histogram("shares", shares, step)
        if step % 2 == 0:
            writer.image("image/one", picture(step), step)
            writer.image("image/gray", picture(step)[:, :, 0] / np.float32(255), step)
            writer.audio("tone", np.stack([tone(step), tone(step + 1)])[:, :, None], step, sample_rate=8000)
            writer.text("note", f"step *{step}*", step)
            writer.write("shares/tensor", shares[:2], step)
    writer.hparams({"rate": 0.5, "model": {"layers": 1, "bias": False}, "optimizer": "sgd"})
    writer.close()


def jax_training():
    import jax
    import jax.numpy as jnp

    x, y = examples()

    def loss_of(weights):
        shares = jax.nn.softmax(x @ weights)
        return -jnp.log(shares[jnp.arange(len(y)), y]).mean(), shares

    step_of = jax.jit(jax.value_and_grad(loss_of, has_aux=True))
    weights = jax.random.normal(jax.random.PRNGKey(7), (2, CLASSES))
    for step in range(STEPS):
        (loss, shares), gradient = step_of(weights)
        weights -= 0.5 * gradient
        yield step, float(loss), np.asarray(shares), np.asarray(weights)


# --- profilers ---


def record_torch_profiler(folder):
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    to_tensorboard = tensorboard_trace_handler(folder, worker_name="worker0", use_gzip=True)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=to_tensorboard, record_shapes=True, with_flops=True, profile_memory=True) as profiler:
        for _ in torch_training(torch_model()):
            with record_function("## logging ##"):
                pass
            profiler.step()


def record_jax_profiler(folder):
    import jax

    training = jax_training()
    # The first step compiles, which would be most of the profile.
    next(training)
    with jax.profiler.trace(folder, create_perfetto_trace=True):
        for step in range(1, 3):
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                next(training)


def record_keras_profiler(folder):
    import keras

    x, y = examples()
    callback = keras.callbacks.TensorBoard(folder, write_graph=False, profile_batch=(2, 3))
    keras_model().fit(x, y, batch_size=8, verbose=0, callbacks=[callback])


def record_tf_profiler(folder):
    import tensorflow as tf

    model, (x, y) = keras_model(), examples()
    model.train_on_batch(x, y)
    with tf.profiler.experimental.Profile(folder):
        for step in range(2):
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                model.train_on_batch(x, y)


# What writes it, and the packages without which it is left out.
CLIENTS = {
    "torch": (record_torch, ["torch", "tensorboard", "onnx", "PIL"]),
    "tensorboardX": (record_tensorboard_x, ["tensorboardX", "soundfile", "onnx", "PIL"]),
    "tensorboardX_graph": (record_tensorboard_x_graph, ["tensorboardX", "torch"]),
    "keras": (record_keras, ["tensorflow", "keras", "tensorboard"]),
    "tf_summary": (record_tf_summary, ["tensorflow", "tensorboard"]),
    "tf1_summary": (record_tf1_summary, ["tensorflow"]),
    "flax": (record_flax, ["flax", "jax", "tensorflow"]),
    "torch_profiler": (record_torch_profiler, ["torch"]),
    "jax_profiler": (record_jax_profiler, ["jax"]),
    "keras_profiler": (record_keras_profiler, ["tensorflow", "keras"]),
    "tf_profiler": (record_tf_profiler, ["tensorflow", "keras"]),
}
LEFT_OUT = 3


def record(client, folder):
    """One client, in this process; its packages' versions on stdout."""
    write, packages = CLIENTS[client]
    try:
        for package in packages:
            importlib.import_module(package)
    except (ImportError, OSError) as error:
        print(error)
        sys.exit(LEFT_OUT)
    os.makedirs(folder)
    write(folder)
    names = ["Pillow" if package == "PIL" else package for package in packages]
    # The wheel without GPUs has the same module under another name.
    installed = {dist.metadata["Name"].lower() for dist in importlib.metadata.distributions()}
    names = [name if name.lower() in installed else f"{name}-cpu" for name in names]
    print("\n" + json.dumps({name: importlib.metadata.version(name) for name in names}))


def main():
    if sys.argv[1:2] == ["--one"]:
        return record(*sys.argv[2:])
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(CLIENTS):
        raise SystemExit(f"{__doc__}\nclients: {' '.join(CLIENTS)}")
    recorded, left_out = {}, {}
    for client in sys.argv[2:] or CLIENTS:
        folder = os.path.join(os.path.abspath(sys.argv[1]), client)
        done = subprocess.run([sys.executable, __file__, "--one", client, folder], stdout=subprocess.PIPE, text=True)
        if done.returncode == LEFT_OUT:
            left_out[client] = done.stdout.strip()
        elif done.returncode:
            raise SystemExit(f"{client}: exit {done.returncode}")
        else:
            recorded[client] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps({"recorded": recorded, "left_out": left_out}, indent=1))


if __name__ == "__main__":
    main()
