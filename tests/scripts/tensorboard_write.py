"""Writes a logdir with every kind of summary in every form, for tests/tests/tensorboard.rs.

    tensorboard_write.py LOGDIR

Uses TensorBoard's own event writer, messages and plugin metadata. The run `tf2` has tensors with metadata, as TensorFlow 2
writes them, in every dtype that a plugin takes; `tf1` has TensorFlow 1's messages; `mixed` has both in one file, events
with many values, metadata with a tag's first value only and with every value, and odd names and stamps.
"""

import os
import sys

import numpy as np
from tensorboard.compat.proto import config_pb2, event_pb2, graph_pb2, meta_graph_pb2, node_def_pb2, summary_pb2
from tensorboard.plugins.audio import metadata as audio
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as custom_scalars
from tensorboard.plugins.histogram import metadata as histograms
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.plugins.hparams.summary_v2 import Discrete, HParam, IntInterval, Metric, hparams_config_pb, hparams_pb
from tensorboard.plugins.image import metadata as images
from tensorboard.plugins.mesh import metadata as mesh
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve import metadata as pr_curves
from tensorboard.plugins.scalar import metadata as scalars
from tensorboard.plugins.text import metadata as text
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_tensor_proto

# A PNG, a JPEG and a GIF are told apart by what they begin with; TensorBoard does not look into them.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c6360000000020001488afe4a0000000049454e44ae426082"
)


class Run:
    """One event file; wall times are exact in binary, so that equal means equal."""

    def __init__(self, folder):
        self.writer = EventFileWriter(folder)
        self.wall = 1.7e9

    def add(self, step, *values, **what):
        self.wall += 0.25
        if values:
            what["summary"] = summary_pb2.Summary(value=values)
        self.writer.add_event(event_pb2.Event(wall_time=self.wall, step=step, **what))

    def close(self):
        self.writer.close()


def value(tag, array, metadata=None, dtype=None):
    return summary_pb2.Summary.Value(tag=tag, tensor=make_tensor_proto(array, dtype), metadata=metadata)


def strings(items):
    return np.array(items, dtype=object)


def write_numbers(run):
    about = scalars.create_summary_metadata("shown", "said *of* it")
    rng = np.random.default_rng(7)
    for step in range(300):
        x = rng.normal()
        for dtype in (np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.uint16):
            run.add(step, value(f"scalar/{np.dtype(dtype).name}", np.array(x * 9 + 50).astype(dtype), about))
    for step, x in enumerate([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308]):
        run.add(step, value("scalar/odd", np.float64(x), about))
    for step in range(40):
        values = rng.normal(step / 40, 0.1, 500)
        run.add(step, *histogram_pb("histogram/drawn", values, buckets=30).value)
        run.add(step, *histogram_pb("histogram/empty", np.array([]), buckets=30).value)
        run.add(step, *histogram_pb("histogram/same", np.full(9, 2.5), buckets=5).value)
    edges = np.array([[-1.5, 0.1, 3.0], [0.1, 2.5, 4.0]])
    about = histograms.create_summary_metadata("", "")
    for dtype in (np.float32, np.float64, np.int64):
        run.add(1, value(f"histogram/{np.dtype(dtype).name}", edges.astype(dtype), about))


def write_media(run):
    for step in range(5):
        pictures = strings([b"2", b"1", *[PNG + bytes([i]) for i in range(step)]])
        run.add(step, value("image", pictures, images.create_summary_metadata("", "", converted_to_tensor=True)))
        sounds = strings([[b"RIFF" + bytes([i]), b"label"] for i in range(step + 1)])
        about = audio.create_summary_metadata("", "", audio.Encoding.Value("WAV"), converted_to_tensor=True)
        run.add(step, value("audio", sounds, about))
        about = text.create_summary_metadata("", "")
        run.add(step, value("text/one", strings("*ünïcode* 日本"), about))
        run.add(step, value("text/row", strings(["a", "b"]), about))
        run.add(step, value("text/table", strings([["a", "b"], ["c", str(step)]]), about))
        curve = np.linspace(0, 1, 6 * 21, dtype=np.float32).reshape(6, 21) + np.float32(step)
        run.add(step, value("pr", curve, pr_curves.create_summary_metadata("", "", num_thresholds=21)))
        run.add(step, value("plain/float", np.array([[1.5, np.nan], [step, -np.inf]])))
        run.add(step, value("plain/bool", np.array([True, False])))
        run.add(step, value("plain/empty", np.zeros((0, 3), np.float32)))
        write_mesh(run, step)
    layout = layout_pb2.Layout(
        category=[
            layout_pb2.Category(
                title="all",
                chart=[
                    layout_pb2.Chart(title="lines", multiline=layout_pb2.MultilineChartContent(tag=["loss.*", "acc"])),
                    layout_pb2.Chart(
                        title="margins",
                        margin=layout_pb2.MarginChartContent(
                            series=[layout_pb2.MarginChartContent.Series(value="v", lower="l", upper="u")]
                        ),
                    ),
                ],
            )
        ]
    )
    about = custom_scalars.create_summary_metadata()
    run.add(0, value("custom_scalars__config__", strings(layout.SerializeToString()), about))
    other = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="somebody's", content=b"\x00\xff")
    )
    run.add(3, value("other", strings([b"\x00\x01", b""]), other))


def write_mesh(run, step):
    shape = [1, 3, 3]
    parts = [
        (MeshPluginData.VERTEX, "VERTEX", np.arange(9, dtype=np.float32) + step),
        (MeshPluginData.FACE, "FACE", np.arange(9, dtype=np.int32) % 3),
        (MeshPluginData.COLOR, "COLOR", np.arange(9, dtype=np.uint8) * 28),
    ]
    for content, suffix, numbers in parts:
        about = mesh.create_summary_metadata("mesh", f"mesh_{suffix}", content, 14, shape, json_config="{}")
        run.add(step, value(f"mesh_{suffix}", numbers.reshape(shape), about))


def write_hparams(run):
    config = [HParam("rate", Discrete([0.1, 0.2])), HParam("layers", IntInterval(1, 9)), HParam("relu")]
    run.add(0, *hparams_config_pb(config, [Metric("loss", display_name="Loss")]).value)
    run.add(0, *hparams_pb({"rate": 0.1, "layers": 3, "relu": True, "name": "mlp"}, start_time_secs=1.5).value)
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS, end_time_secs=9.5)
    about = hparams.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=end))
    run.add(0, value("_hparams_/session_end_info", np.float32(0), about))


def write_messages(run):
    rng = np.random.default_rng(8)
    Value = summary_pb2.Summary.Value
    for step in range(100):
        run.add(step, Value(tag="simple", simple_value=rng.normal()), Value(tag="beside", simple_value=-step))
        run.add(step, Value(tag="histo", histo=histogram_message(rng.normal(size=50))))
    run.add(0, Value(tag="histo/empty", histo=histogram_message(np.array([]))))
    for step in range(3):
        picture = summary_pb2.Summary.Image(height=1, width=2, colorspace=3, encoded_image_string=PNG + bytes([step]))
        sound = summary_pb2.Summary.Audio(
            sample_rate=8000, num_channels=1, length_frames=4, encoded_audio_string=b"RIFF", content_type="audio/wav"
        )
        run.add(step, Value(tag="im/image/0", image=picture), Value(tag="au/audio", audio=sound))
    stats = config_pb2.RunMetadata()
    stats.step_stats.dev_stats.add(device="/cpu:0").node_stats.add(node_name="loss", all_start_micros=5)
    for step in (1, 50):
        tagged = event_pb2.TaggedRunMetadata(tag=f"step {step}", run_metadata=stats.SerializeToString())
        run.add(step, tagged_run_metadata=tagged)
    graph = graph_pb2.GraphDef(node=[node_def_pb2.NodeDef(name="x", op="Placeholder"), node_def_pb2.NodeDef(name="y", op="Neg", input=["x"])])
    run.add(0, graph_def=graph.SerializeToString())
    run.add(0, meta_graph_def=meta_graph_pb2.MetaGraphDef(graph_def=graph).SerializeToString())
    run.add(0, log_message=event_pb2.LogMessage(level=20, message="said"))
    run.add(0, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))


def histogram_message(values):
    """TensorFlow 1's buckets: limits that grow by a tenth, on both sides of 0, up to DBL_MAX."""
    growing = [1e-12]
    while growing[-1] < 1e20:
        growing.append(growing[-1] * 1.1)
    growing.append(sys.float_info.max)
    limits = np.array([-x for x in reversed(growing)] + [0.0] + growing)
    counts = np.bincount(np.searchsorted(limits, values, side="right"), minlength=len(limits))
    return summary_pb2.HistogramProto(
        min=values.min() if len(values) else sys.float_info.max,
        max=values.max() if len(values) else -sys.float_info.max,
        num=len(values),
        sum=values.sum(),
        sum_squares=(values**2).sum(),
        bucket_limit=limits,
        bucket=counts,
    )


def write_mixed(run):
    about = scalars.create_summary_metadata("", "")
    names = ["a b", "ünï/日本", "x" * 300, "/", "a//b", "loss\n2", "{}"]
    for step in [0, 5, 3, -7, 2**62, -(2**63)]:
        run.add(step, *[value(name, np.float32(step), about) for name in names])
    for step in range(50):
        # Metadata with the first value only, as file writers leave it out later.
        run.add(step, value("later without", np.float32(step), about if step == 0 else None))
        run.add(step, summary_pb2.Summary.Value(tag="simple", simple_value=step, node_name="scope/node"))
    write_hparams(run)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for name, writers in [
        ("tf2", [write_numbers, write_media, write_hparams]),
        ("tf1", [write_messages]),
        ("mixed", [write_mixed]),
    ]:
        run = Run(os.path.join(sys.argv[1], name))
        for write in writers:
            write(run)
        run.close()


if __name__ == "__main__":
    main()
