"""Writes a logdir with what the panels of summaries show, by TensorBoard's own writer and plugins, to be looked at.

    summaries_showcase.py LOGDIR

`search/*`: 24 sessions of a search over hyperparameters, with curves; `a`, `b`: precision-recall curves, texts, sounds,
meshes; a layout of custom scalars; an embedding with metadata.
"""

import io
import os
import sys
import wave

import numpy as np
from tensorboard_write import (
    Discrete,
    HParam,
    IntInterval,
    MeshPluginData,
    Metric,
    Run,
    audio,
    custom_scalars,
    hparams_config_pb,
    hparams_pb,
    layout_pb2,
    mesh,
    pr_curves,
    scalars,
    strings,
    text,
    value,
)

RNG = np.random.default_rng(5)

NOTE = """# What was tried

*Wider* layers, **dropout**, and `cosine` decay:

| layers | dropout | accuracy |
|-------:|---------|---------:|
| 2      | no      | 0.91     |
| 4      | yes     | **0.95** |

1. The loss is lower, but
2. it takes [twice](https://example.org) as long.

```python
optimizer = Adam(learning_rate=1e-3)
```
"""


def scalar(run, tag, step, x):
    run.add(step, value(tag, np.float32(x), scalars.create_summary_metadata("", "")))


def write_search(folder):
    top = Run(folder)
    config = [HParam("learning_rate"), HParam("layers", IntInterval(1, 6)), HParam("optimizer", Discrete(["adam", "sgd", "rmsprop"]))]
    metrics = [Metric("accuracy", group="validation"), Metric("loss", group="train")]
    top.add(0, *hparams_config_pb(config, metrics).value)
    top.close()
    for i in range(24):
        rate, layers = 10 ** RNG.uniform(-4, -0.5), int(RNG.integers(1, 7))
        optimizer = ["adam", "sgd", "rmsprop"][i % 3]
        session = os.path.join(folder, f"{i:02}")
        run = Run(session)
        chosen = {"learning_rate": rate, "layers": layers, "optimizer": optimizer, "augment": bool(i % 2), "batch": [32, 64, 128][i % 3]}
        run.add(0, *hparams_pb(chosen, start_time_secs=float(i)).value)
        run.close()
        best = 0.95 - 0.08 * abs(np.log10(rate) + 2.3) - 0.01 * abs(layers - 4) + 0.01 * RNG.normal()
        train, validation = Run(os.path.join(session, "train")), Run(os.path.join(session, "validation"))
        for step in range(0, 400, 4):
            share = 1 - np.exp(-step / 80)
            scalar(train, "loss", step, 2.3 * (1 - best * share) + 0.05 * RNG.normal())
            scalar(validation, "accuracy", step, best * share + 0.01 * RNG.normal())
        train.close()
        validation.close()


def write_pr(run, step, skill):
    labels = RNG.random(2000) < 0.4
    predictions = np.clip(np.where(labels, 0.5 + skill, 0.5 - skill) + 0.25 * RNG.normal(size=2000), 0, 1)
    thresholds = np.linspace(0, 1, 101)
    positive = predictions[None, :] >= thresholds[:, None]
    tp, fp = (positive & labels).sum(1), (positive & ~labels).sum(1)
    fn, tn = labels.sum() - tp, (~labels).sum() - fp
    curve = np.stack([tp, fp, tn, fn, tp / np.maximum(tp + fp, 1e-7), tp / np.maximum(tp + fn, 1e-7)])
    about = pr_curves.create_summary_metadata("", "", num_thresholds=101)
    run.add(step, value("quality/digits", curve.astype(np.float32), about))


def write_sound(run, step):
    t = np.arange(16000) / 8000
    samples = np.sin(2 * np.pi * (220 + 60 * step) * t) * np.exp(-2 * t)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes((samples * 30000).astype("<i2").tobytes())
    about = audio.create_summary_metadata("", "", audio.Encoding.Value("WAV"), converted_to_tensor=True)
    run.add(step, value("heard/tone", strings([[file.getvalue(), b"a *tone*"]]), about))


def write_meshes(run, step):
    n = 24
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, n), np.linspace(0, np.pi, n))
    bulge = 1 + 0.15 * step * np.sin(5 * u) * np.sin(v)
    ball = np.stack([bulge * np.cos(u) * np.sin(v), np.cos(v), bulge * np.sin(u) * np.sin(v)], -1).reshape(-1, 3)
    corners = np.arange(n * n).reshape(n, n)
    a, b, c, d = corners[:-1, :-1], corners[:-1, 1:], corners[1:, :-1], corners[1:, 1:]
    faces = np.concatenate([np.stack(f, -1).reshape(-1, 3) for f in ([a, b, c], [b, d, c])])
    colors = ((ball - ball.min(0)) / np.ptp(ball, axis=0) * 255).astype(np.uint8)
    cloud = RNG.normal(size=(4000, 3)) * [1, 0.3, 0.6]
    write_mesh(run, step, "shape/ball", ball.astype(np.float32), faces.astype(np.int32), colors)
    write_mesh(run, step, "shape/cloud", cloud.astype(np.float32), None, None)


def write_mesh(run, step, name, vertices, faces, colors):
    parts = [
        (MeshPluginData.VERTEX, "VERTEX", vertices),
        (MeshPluginData.FACE, "FACE", faces),
        (MeshPluginData.COLOR, "COLOR", colors),
    ]
    for content, suffix, numbers in parts:
        if numbers is not None:
            about = mesh.create_summary_metadata(name, f"{name}_{suffix}", content, 14, [1, *numbers.shape], json_config="{}")
            run.add(step, value(f"{name}_{suffix}", numbers[None], about))


def write_layout(run):
    lines = layout_pb2.Chart(title="Losses", multiline=layout_pb2.MultilineChartContent(tag=["loss/.*"]))
    series = layout_pb2.MarginChartContent.Series(value="guess/mean", lower="guess/low", upper="guess/high")
    margins = layout_pb2.Chart(title="With margins", margin=layout_pb2.MarginChartContent(series=[series]))
    layout = layout_pb2.Layout(category=[layout_pb2.Category(title="Overview", chart=[lines, margins])])
    about = custom_scalars.create_summary_metadata()
    run.add(0, value("custom_scalars__config__", strings(layout.SerializeToString()), about))


def write_embedding(folder):
    kinds = ["cat", "dog", "owl", "fox", "bee", "ant", "cow", "hen"]
    middles = 4 * RNG.normal(size=(len(kinds), 50))
    which = RNG.integers(0, len(kinds), 3000)
    vectors = middles[which] + RNG.normal(size=(3000, 50))
    np.savetxt(os.path.join(folder, "vectors.tsv"), vectors, delimiter="\t", fmt="%.5g")
    with open(os.path.join(folder, "animals.tsv"), "w") as out:
        out.write("name\tkind\tweight\n")
        for i, kind in enumerate(which):
            out.write(f"{kinds[kind]}-{i}\t{kinds[kind]}\t{RNG.gamma(2) * (1 + kind):.2f}\n")
    with open(os.path.join(folder, "projector_config.pbtxt"), "w") as out:
        out.write('embeddings {\n  tensor_name: "animals"\n  tensor_path: "vectors.tsv"\n  metadata_path: "animals.tsv"\n}\n')


def main():
    folder = sys.argv[1]
    write_search(os.path.join(folder, "search"))
    for name, skill in [("a", 0.12), ("b", 0.2)]:
        run = Run(os.path.join(folder, name))
        for step in range(0, 50, 10):
            write_pr(run, step, skill * (1 + step / 40))
            write_sound(run, step // 10)
            run.add(step, value("said/note", strings(NOTE + f"\nStep {step}."), text.create_summary_metadata("", "")))
            table = [["**name**", "**value**"], ["rate", "`1e-3`"], ["layers", str(step)]]
            run.add(step, value("said/table", strings(table), text.create_summary_metadata("", "")))
            write_meshes(run, step // 10)
        for step in range(200):
            for tag, level in [("loss/train", 0.9), ("loss/test", 1.2), ("guess/mean", 0.5)]:
                scalar(run, tag, step, level * np.exp(-step / (60 + 300 * skill)) + 0.02 * RNG.normal())
            middle = 0.5 * np.exp(-step / (60 + 300 * skill))
            scalar(run, "guess/low", step, middle - 0.1)
            scalar(run, "guess/high", step, middle + 0.15)
        write_layout(run)
        run.close()
    write_embedding(os.path.join(folder, "a"))


main()
