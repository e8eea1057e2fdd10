"""What TensorBoard reads from a logdir, as JSON on stdout, for tests/tests/tensorboard.rs.

    tensorboard_compare.py accumulator LOGDIR     with TensorBoard's EventAccumulator, keeping every point
    tensorboard_compare.py server LOGDIR [FLAG..] with the real server on a free loopback port, over HTTP
    tensorboard_compare.py plugins LOGDIR         what its plugins show of the kinds of the run `.`, over HTTP, as they say it

The first two give {run: {"scalars": {tag: [[step, wall, value]]}, "histograms": {tag: [[step, wall, rows]]}, "graph": [[name,
op, inputs]]}}; the accumulator adds "stats" of TensorFlow 1 histograms, "others" {tag: [[step, wall, values]]}, the
plugins' content of their metadata as "contents" {tag: hex}, and the tags of "run_metadata". Strings are in hex; floats are the 16 hex
digits of their 64 bits, so that equal means equal bit for bit, NaN and infinities included.
"""

import json
import re
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

from google.protobuf import text_format
from tensorboard import data_compat
from tensorboard.backend.event_processing import event_accumulator, io_wrapper
from tensorboard.compat.proto import graph_pb2, histogram_pb2, summary_pb2
from tensorboard.util import tensor_util

SERVER_TIMEOUT_S = 60


def bits(value):
    return struct.pack(">d", float(value)).hex()


def rows_as_bits(rows):
    return [[bits(cell) for cell in row] for row in rows]


def graph_nodes(graph):
    return [[node.name, node.op, list(node.input)] for node in graph.node]


# --- accumulator ---


def rows_of_histogram(event):
    """The rows that TensorBoard shows for a TensorFlow 1 histogram."""
    value = event.histogram_value
    histo = histogram_pb2.HistogramProto(
        min=value.min,
        max=value.max,
        num=value.num,
        sum=value.sum,
        sum_squares=value.sum_squares,
        bucket_limit=value.bucket_limit,
        bucket=value.bucket,
    )
    migrated = data_compat.migrate_value(summary_pb2.Summary.Value(tag="t", histo=histo))
    return tensor_util.make_ndarray(migrated.tensor).tolist()


def values_of_tensor(plugin, array):
    """Strings in hex, numbers in bits; of sounds only the sounds, not their labels."""
    if plugin == "audio" and array.ndim == 2:
        array = array[:, 0]
    is_text = array.dtype.kind in "OSU"
    return [bytes(v).hex() if is_text else bits(v) for v in array.flatten()]


def accumulate(folder):
    # 0 keeps every point; purging would drop what came before a restart.
    guidance = {kind: 0 for kind in event_accumulator.DEFAULT_SIZE_GUIDANCE}
    acc = event_accumulator.EventAccumulator(folder, size_guidance=guidance, purge_orphaned_data=False)
    acc.Reload()
    tags = acc.Tags()
    run = {"scalars": {}, "histograms": {}, "stats": {}, "others": {}, "graph": [], "contents": {}}
    for tag in tags["scalars"]:
        run["scalars"][tag] = [[e.step, bits(e.wall_time), bits(e.value)] for e in acc.Scalars(tag)]
    for tag in tags["histograms"]:
        events = acc.Histograms(tag)
        run["histograms"][tag] = [[e.step, bits(e.wall_time), rows_as_bits(rows_of_histogram(e))] for e in events]
        values = [e.histogram_value for e in events]
        run["stats"][tag] = [[bits(x) for x in (v.min, v.max, v.num, v.sum, v.sum_squares)] for v in values]
    for tag in tags["tensors"]:
        accumulate_tensor(acc, tag, run)
    for tag in tags["images"]:
        run["others"][tag] = [[e.step, bits(e.wall_time), [e.encoded_image_string.hex()]] for e in acc.Images(tag)]
    for tag in tags["audio"]:
        run["others"][tag] = [[e.step, bits(e.wall_time), [e.encoded_audio_string.hex()]] for e in acc.Audio(tag)]
    run["run_metadata"] = sorted(tags["run_metadata"])
    if tags["graph"]:
        run["graph"] = graph_nodes(acc.Graph())
    return run


def accumulate_tensor(acc, tag, run):
    # A tensor that no plugin claims has no metadata.
    metadata = acc.summary_metadata.get(tag)
    plugin_data = metadata.plugin_data if metadata else None
    plugin = plugin_data.plugin_name if plugin_data else ""
    events = acc.Tensors(tag)
    array = lambda e: tensor_util.make_ndarray(e.tensor_proto)
    if plugin == "scalars":
        run["scalars"][tag] = [[e.step, bits(e.wall_time), bits(array(e).item())] for e in events]
    elif plugin == "histograms":
        run["histograms"][tag] = [[e.step, bits(e.wall_time), rows_as_bits(array(e).tolist())] for e in events]
    else:
        run["others"][tag] = [[e.step, bits(e.wall_time), values_of_tensor(plugin, array(e))] for e in events]
        run["contents"][tag] = plugin_data.content.hex() if plugin_data else ""


def accumulator(logdir):
    folders = io_wrapper.GetLogdirSubdirectories(logdir)
    return {io_wrapper.os.path.relpath(folder, logdir): accumulate(folder) for folder in folders}


# --- server ---


class Server:
    """TensorBoard on a free port of the loopback interface."""

    def __init__(self, logdir, flags):
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--host", "127.0.0.1", "--port", "0"]
        command += ["--samples_per_plugin", "scalars=100000,histograms=100000", "--reload_interval", "1", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.log = []
        self.url = None
        self.has_url = threading.Event()
        threading.Thread(target=self.read_log, daemon=True).start()
        if not self.has_url.wait(SERVER_TIMEOUT_S) or self.url is None:
            self.stop()
            raise SystemExit("TensorBoard did not start:\n" + "".join(self.log))

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            match = re.search(r" at (http://127\.0\.0\.1:\d+)/", line)
            if match:
                self.url = match.group(1)
                self.has_url.set()
        self.has_url.set()

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.url}/data/{path}?{urllib.parse.urlencode(query)}", timeout=30) as response:
            return response.read()

    def post(self, path, body):
        request = urllib.request.Request(f"{self.url}/data/{path}", body.encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.read()

    def get_json(self, path, **query):
        return json.loads(self.get(path, **query))

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def served(server):
    runs = {run: {"scalars": {}, "histograms": {}, "graph": []} for run in server.get_json("runs")}
    for plugin in ("scalars", "histograms"):
        for run, tags in server.get_json(f"plugin/{plugin}/tags").items():
            for tag in tags:
                points = server.get_json(f"plugin/{plugin}/{plugin}", run=run, tag=tag)
                cell = bits if plugin == "scalars" else rows_as_bits
                runs[run][plugin][tag] = [[step, bits(wall), cell(value)] for wall, step, value in points]
    for run, info in server.get_json("plugin/graphs/info").items():
        if info["run_graph"]:
            text = server.get("plugin/graphs/graph", run=run).decode()
            runs[run]["graph"] = graph_nodes(text_format.Parse(text, graph_pb2.GraphDef()))
    return runs


def size(runs):
    """How much there is: a server is asked again until it has loaded what the accumulator has."""
    series = [points for run in runs.values() for kind in ("scalars", "histograms") for points in run[kind].values()]
    return sum(map(len, series)) + sum(len(run["graph"]) for run in runs.values())


def serve(logdir, flags):
    expected = size(accumulator(logdir))
    server = Server(logdir, flags)
    try:
        deadline = time.monotonic() + SERVER_TIMEOUT_S
        while True:
            runs = served(server)
            if size(runs) >= expected or time.monotonic() > deadline:
                return runs
            time.sleep(0.3)
    finally:
        server.stop()


# --- plugins ---


def plugins(logdir):
    server = Server(logdir, ["--load_fast=false"])
    try:
        deadline = time.monotonic() + SERVER_TIMEOUT_S
        # The writer adds the mesh after every other kind but the projector's, which is a file.
        while not server.get_json("plugin/mesh/tags").get("."):
            if time.monotonic() > deadline:
                raise SystemExit("the plugins show no mesh")
            time.sleep(0.3)
        return shown(server)
    finally:
        server.stop()


def shown(server):
    image = server.get_json("plugin/images/images", run=".", tag="kinds/image", sample=0)[0]
    audio = server.get_json("plugin/audio/audio", run=".", tag="kinds/audio", sample=0)[0]
    post = lambda path, body: json.loads(server.post(f"plugin/hparams/{path}", json.dumps(body)))
    groups = {"allowedStatuses": ["STATUS_SUCCESS"], "colParams": [], "startIndex": 0, "sliceSize": 9}
    part = lambda kind: server.get("plugin/mesh/data", run=".", tag="kinds/mesh", content_type=kind, sample=0, step=3)
    return {
        "image": server.get("plugin/images/individualImage", **dict(urllib.parse.parse_qsl(image["query"]))).hex(),
        "image_step": image["step"],
        "audio": server.get("plugin/audio/individualAudio", **dict(urllib.parse.parse_qsl(audio["query"]))).hex(),
        "text": server.get_json("plugin/text/text", run=".", tag="kinds/text"),
        "table": server.get_json("plugin/text/text", run=".", tag="kinds/table"),
        "pr": server.get_json("plugin/pr_curves/pr_curves", run=".", tag="kinds/pr"),
        "layout": server.get_json("plugin/custom_scalars/layout"),
        "experiment": post("experiment", {}),
        "groups": post("session_groups", groups),
        "mesh": {kind: part(kind).hex() for kind in ("VERTEX", "FACE", "COLOR")},
        "run_metadata": server.get("plugin/graphs/run_metadata", run=".", tag="step 3").decode(),
        "projector": server.get_json("plugin/projector/info", run="."),
        "embedding": server.get("plugin/projector/tensor", run=".", name="words").hex(),
        "embedding_labels": server.get("plugin/projector/metadata", run=".", name="words").decode(),
    }


def main():
    modes = {"accumulator": accumulator, "server": serve, "plugins": plugins}
    if len(sys.argv) < 3 or sys.argv[1] not in modes:
        raise SystemExit(__doc__)
    mode, logdir, flags = modes[sys.argv[1]], sys.argv[2], sys.argv[3:]
    json.dump(mode(logdir, flags) if mode is serve else mode(logdir), sys.stdout)


if __name__ == "__main__":
    main()
