"""What TensorBoard's plugins give of a logdir, as JSON on stdout, for tests/tests/clients.rs.

    clients_expect.py LOGDIR
    clients_expect.py --profiles FOLDER

TensorBoard's server with its Python loader runs inside this process and is asked by its own routes; blobs that its graphs plugin
decodes before it answers are asked of its data provider. The answer is {kind: {run: {tag: what}}}; of a kind with steps `what` is
a list of [step, wall time, ...]. Floats are the 16 hex digits of their 64 bits, bytes are in hex: equal means equal bit for bit.

Of profiles the answer is {file: {"lines": [[line, number of slices]], "names": {name: [number, nanoseconds]}}}, counted in each
file's own messages; TensorFlow has those of XPlane files. Nanoseconds are null where the file has no whole number of them.
"""

import decimal
import gzip
import io
import json
import os
import struct
import sys
import urllib.parse
import wave

import numpy as np
from google.protobuf import text_format
from PIL import Image
from tensorboard import context, default, program
from tensorboard.backend import application
from tensorboard.backend.event_processing import data_ingester
from tensorboard.compat.proto import graph_pb2
from tensorboard.data import provider
from tensorboard.plugins.graph import metadata as graphs
from tensorboard.plugins.mesh import metadata as mesh
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.util import tensor_util
from werkzeug.test import Client

# No step is left out of an answer, however many there are.
ALL = 1_000_000
PLUGINS = ["scalars", "histograms", "distributions", "images", "audio", "text", "pr_curves", "mesh", "tensors"]


def bits(value):
    return struct.pack(">d", float(value)).hex()


class TensorBoard:
    """The whole application on a logdir, loaded once."""

    def __init__(self, logdir):
        self.logdir = logdir
        board = program.TensorBoard(plugins=default.get_plugins())
        samples = ",".join(f"{plugin}={ALL}" for plugin in PLUGINS)
        once = ["--reload_task", "blocking", "--reload_interval", "0", "--load_fast", "false", "--purge_orphaned_data", "false"]
        board.configure(argv=["tensorboard", "--logdir", logdir, "--samples_per_plugin", samples, *once])
        ingester = data_ingester.LocalDataIngester(board.flags)
        ingester.start()
        self.provider, self.multiplexer = ingester.data_provider, ingester.deprecated_multiplexer
        app = application.TensorBoardWSGIApp(board.flags, board.plugin_loaders, self.provider, board.assets_zip_provider, self.multiplexer)
        self.client = Client(app)

    def get(self, path, **query):
        response = self.client.get(f"/data/plugin/{path}?{urllib.parse.urlencode(query)}")
        if response.status_code != 200:
            raise SystemExit(f"{path} {query}: {response.status_code} {response.get_data(as_text=True)}")
        return response.get_data()

    def json(self, path, **query):
        return json.loads(self.get(path, **query))

    def post(self, path, body):
        response = self.client.post(f"/data/plugin/{path}", json=body)
        assert response.status_code == 200, (path, response.status_code)
        return json.loads(response.get_data())

    def tensors(self, plugin, run, tag):
        """What the data provider has under a tag."""
        chosen = provider.RunTagFilter(runs=[run], tags=[tag])
        found = self.provider.read_tensors(context.RequestContext(), experiment_id="", plugin_name=plugin, downsample=ALL, run_tag_filter=chosen)
        return found[run][tag]

    def blobs(self, plugin):
        """{run: {tag: the first blob}} of a plugin."""
        ctx, every = context.RequestContext(), {}
        found = self.provider.read_blob_sequences(ctx, experiment_id="", plugin_name=plugin, downsample=ALL)
        for run, tags in found.items():
            for tag, points in tags.items():
                key = points[0].values[0].blob_key
                every.setdefault(run, {})[tag] = self.provider.read_blob(ctx, blob_key=key).hex()
        return every


def each_tag(board, plugin, of_tag):
    """{run: {tag: of_tag(run, tag, what the plugin's index says)}}."""
    index = board.json(f"{plugin}/tags")
    tags_of = lambda tags: tags.items() if isinstance(tags, dict) else ((tag, None) for tag in tags)
    every = {run: {tag: of_tag(run, tag, about) for tag, about in tags_of(tags)} for run, tags in index.items()}
    return {run: tags for run, tags in every.items() if tags}


def scalars(board):
    def of_tag(run, tag, _):
        points = board.json("scalars/scalars", run=run, tag=tag)
        return [[step, bits(wall), bits(value)] for wall, step, value in points]

    return each_tag(board, "scalars", of_tag)


def histograms(board):
    """The rows in the precision that TensorBoard keeps them in."""

    def of_tag(run, tag, _):
        precision = {datum.step: str(datum.numpy.dtype) for datum in board.tensors("histograms", run, tag)}
        points = board.json("histograms/histograms", run=run, tag=tag)
        rows_of = lambda rows: ["".join(map(bits, row)) for row in rows]
        return [[step, bits(wall), precision[step], rows_of(rows)] for wall, step, rows in points]

    return each_tag(board, "histograms", of_tag)


def distributions(board):
    def of_tag(run, tag, _):
        points = board.json("distributions/distributions", run=run, tag=tag)
        return [[step, bits(wall), [[at, bits(value)] for at, value in values]] for wall, step, values in points]

    return each_tag(board, "distributions", of_tag)


def by_step(board, run, tag, n_samples, plugin, single, describe):
    """Samples that a plugin serves one by one, under their steps."""
    points = {}
    for sample in range(n_samples):
        for point in board.json(f"{plugin}/{plugin}", run=run, tag=tag, sample=sample):
            data = board.get(f"{plugin}/{single}", **dict(urllib.parse.parse_qsl(point["query"])))
            points.setdefault((point["step"], bits(point["wall_time"])), []).append([*describe(point, data), data.hex()])
    return [[step, wall, samples] for (step, wall), samples in points.items()]


def images(board):
    size = lambda _, data: Image.open(io.BytesIO(data)).size
    return each_tag(board, "images", lambda run, tag, about: by_step(board, run, tag, about["samples"], "images", "individualImage", size))


def audio(board):
    def about_sound(point, data):
        with wave.open(io.BytesIO(data)) as sound:
            return point["contentType"], sound.getframerate(), sound.getnchannels(), sound.getnframes()

    return each_tag(board, "audio", lambda run, tag, about: by_step(board, run, tag, about["samples"], "audio", "individualAudio", about_sound))


def text(board):
    """Of the plugin the tags, which turns texts into HTML; the texts of its data provider."""

    def of_tag(run, tag, _):
        as_text = lambda value: value.decode() if isinstance(value, bytes) else str(value)
        points = board.tensors("text", run, tag)
        assert len(points) == len(board.json("text/text", run=run, tag=tag))
        return [[d.step, bits(d.wall_time), list(d.numpy.shape), [as_text(v) for v in d.numpy.flatten()]] for d in points]

    return each_tag(board, "text", of_tag)


def meshes(board):
    def of_tag(run, tag, about):
        parts = []
        for part in board.json("mesh/meshes", run=run, tag=tag):
            kind = MeshPluginData.ContentType.Name(part["content_type"])
            data = [board.get("mesh/data", run=run, tag=tag, content_type=kind, sample=i, step=part["step"]).hex() for i in range(about["samples"])]
            config = json.loads(part["config"]) if part["config"] else None
            parts.append([part["step"], bits(part["wall_time"]), kind, part["components"], config, part["data_shape"], data])
        return sorted(parts, key=lambda part: (part[0], part[2]))

    return each_tag(board, "mesh", of_tag)


def pr_curves(board):
    counts = ["true_positives", "false_positives", "true_negatives", "false_negatives", "precision", "recall", "thresholds"]

    def of_tag(run, tag, _):
        points = board.json("pr_curves/pr_curves", run=run, tag=tag)[run]
        return [[p["step"], bits(p["wall_time"]), *[[bits(v) for v in p[row]] for row in counts]] for p in points]

    return each_tag(board, "pr_curves", of_tag)


def hparams(board):
    """The sessions' values and their metrics, and what the experiment says."""
    experiment = board.post("hparams/experiment", {})
    if not experiment.get("hparamInfos"):
        return {}
    statuses = ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"]
    asked = {"allowedStatuses": statuses, "colParams": [], "startIndex": 0, "sliceSize": ALL}
    sessions = {}
    for group in board.post("hparams/session_groups", asked)["sessionGroups"]:
        for session in group["sessions"]:
            metrics = [[m["name"].get("group", ""), m["name"]["tag"], m["trainingStep"], bits(m["value"])] for m in session.get("metricValues", [])]
            values = {name: bits(value) if type(value) in (int, float) else value for name, value in group["hparams"].items()}
            start = bits(session.get("startTimeSecs", 0))
            sessions[session["name"]] = {"group": group["name"], "hparams": values, "status": session["status"], "start": start, "metrics": sorted(metrics)}
    # Of sessions without an experiment TensorBoard makes one up.
    if not any("_hparams_/experiment" in tags for tags in board.multiplexer.PluginRunToTagToContent("hparams").values()):
        return {"": {"sessions": sessions}}
    about = lambda info: [info.get("displayName", ""), info.get("description", "")]
    infos = {
        info["name"]: [*about(info), info.get("type", ""), *domain_of(info)] for info in experiment["hparamInfos"]
    }
    metrics = [[m["name"].get("group", ""), m["name"]["tag"], *about(m)] for m in experiment.get("metricInfos", [])]
    return {"": {"sessions": sessions, "hparams": infos, "metrics": sorted(metrics)}}


def domain_of(info):
    """Discrete values and an interval's ends."""
    discrete = [bits(v) if type(v) in (int, float) else v for v in info.get("domainDiscrete", [])]
    interval = info.get("domainInterval")
    return discrete, interval and [bits(interval.get("minValue", 0)), bits(interval.get("maxValue", 0))]


def custom_scalars(board):
    layout = board.json("custom_scalars/layout")
    if not layout:
        return {}
    series_of = lambda margin: [[s.get("value", ""), s.get("lower", ""), s.get("upper", "")] for s in margin.get("series", [])]
    chart_of = lambda c: [c.get("title", ""), c.get("multiline", {}).get("tag", []), series_of(c.get("margin", {}))]
    return {"": {c["title"]: [c.get("closed", False), [chart_of(chart) for chart in c["chart"]]] for c in layout["category"]}}


def projector(board):
    every = {}
    for run in board.json("projector/runs"):
        for info in board.json("projector/info", run=run)["embeddings"]:
            name = info["tensorName"]
            what = {"shape": info["tensorShape"], "tensor": board.get("projector/tensor", run=run, name=name).hex()}
            if "metadataPath" in info:
                what["metadata"] = board.get("projector/metadata", run=run, name=name).decode()
            if "sprite" in info:
                what["sprite"] = board.get("projector/sprite_image", run=run, name=name).hex()
                what["sprite_size"] = info["sprite"]["singleImageDim"]
            every.setdefault(run, {})[name] = what
    return every


def graph(board):
    """The graph of a run: its nodes with every attribute as it is encoded."""
    every = {}
    for run, info in board.json("graphs/info").items():
        if info["run_graph"]:
            found = text_format.Parse(board.get("graphs/graph", run=run).decode(), graph_pb2.GraphDef())
            attributes = lambda node: {name: value.SerializeToString(deterministic=True).hex() for name, value in node.attr.items()}
            every[run] = {"": [[n.name, n.op, list(n.input), n.device, attributes(n)] for n in found.node]}
    return every


def tensors(board):
    """Tensors that no plugin shows: TensorFlow's without metadata, and torch's, which name a plugin that does not exist."""
    every = {}
    for run in board.multiplexer.Runs():
        accumulator = board.multiplexer.GetAccumulator(run)
        for tag in accumulator.Tags()["tensors"]:
            metadata = accumulator.summary_metadata.get(tag)
            if metadata and metadata.plugin_data.plugin_name not in ("", "tensor"):
                continue
            arrays = [(e.step, e.wall_time, tensor_util.make_ndarray(e.tensor_proto)) for e in accumulator.Tensors(tag)]
            every.setdefault(run, {})[tag] = [[step, bits(wall), list(a.shape), [bits(v) for v in a.flatten()]] for step, wall, a in arrays]
    return every


KINDS = {
    "scalars": scalars,
    "histograms": histograms,
    "distributions": distributions,
    "images": images,
    "audio": audio,
    "text": text,
    "meshes": meshes,
    "pr_curves": pr_curves,
    "hparams": hparams,
    "custom_scalars": custom_scalars,
    "projector": projector,
    "graph": graph,
    "tensors": tensors,
    # Graphs of functions and models, and profiles of steps, as they are in the files.
    "function_graphs": lambda board: board.blobs(graphs.PLUGIN_NAME_RUN_METADATA_WITH_GRAPH),
    "function_profiles": lambda board: board.blobs(graphs.PLUGIN_NAME_RUN_METADATA),
    "keras_models": lambda board: board.blobs(graphs.PLUGIN_NAME_KERAS_MODEL),
    "run_metadata": lambda board: board.blobs(graphs.PLUGIN_NAME_TAGGED_RUN_METADATA),
}


def counted(slices):
    """Of (line, name, nanoseconds)."""
    lines, names = {}, {}
    for line, name, ns in slices:
        lines[line] = lines.get(line, 0) + 1
        n, total = names.get(name, (0, 0))
        names[name] = n + 1, None if total is None or ns is None else total + ns
    return {"lines": sorted(lines.items()), "names": names}


def xplane(path):
    """Picoseconds: what is shown begins and ends at the nearest nanosecond."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with open(path, "rb") as file:
        space = xplane_pb2.XSpace.FromString(file.read())
    rounded = lambda ps: (ps + 500) // 1000
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                about, begin = plane.event_metadata[event.metadata_id], line.timestamp_ns * 1000 + event.offset_ps
                yield line.display_name or line.name, about.display_name or about.name, rounded(begin + event.duration_ps) - rounded(begin)


def trace_events(path):
    """Complete events of JSON, whose threads have names in events of their own."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        events = json.load(file, parse_float=decimal.Decimal)["traceEvents"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    for event in events:
        if event.get("ph") == "X":
            ns = event["dur"] * 1000
            line = threads.get((event["pid"], event["tid"]), str(event["tid"]))
            yield line, event["name"], int(ns) if ns == int(ns) and event["ts"] * 1000 % 1 == 0 else None


def profiles(folder):
    every = {}
    for parent, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(parent, name)
            if name.endswith((".json", ".json.gz", ".xplane.pb")):
                slices = xplane(path) if name.endswith(".pb") else trace_events(path)
                every[os.path.relpath(path, folder)] = counted(slices)
    return every


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--profiles":
        return json.dump(profiles(os.path.abspath(sys.argv[2])), sys.stdout, ensure_ascii=False, sort_keys=True)
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    board = TensorBoard(os.path.abspath(sys.argv[1]))
    every = {kind: given(board) for kind, given in KINDS.items()}
    json.dump({kind: runs for kind, runs in every.items() if runs}, sys.stdout, ensure_ascii=False, sort_keys=True)


if __name__ == "__main__":
    main()
