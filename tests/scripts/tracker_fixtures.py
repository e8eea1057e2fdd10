#!/usr/bin/env python3
"""Logs of other tools, written by them, and what their own readers give: fixtures of summaries/trackers.

    python3 -m venv now && now/bin/pip install trackio==0.43.0 mlflow==3.17.2 transformers==5.24.0 pytorch-lightning==2.6.6
    python3 -m venv files && files/bin/pip install mlflow-skinny==3.1.4 numpy pillow    # later ones write no mlruns
    now/bin/python tests/scripts/tracker_fixtures.py write FOLDER       # trackio, mlflow.db, lightning, trainer_state, JSON lines
    files/bin/python tests/scripts/tracker_fixtures.py mlruns FOLDER

FOLDER is summaries/trackers/tests/fixtures. What an owner's reader gives is in FOLDER/TOOL.json:

    {run: {"scalars": {tag: [[step, time or null, value]]}, "files": {tag: [[step, CRC-32 of the file]]},
           "texts": {tag: [[step, text]]}, "params": {name: value}}}

with times and values as the 16 hexadecimal digits of a double. Weights & Biases has a script of its own, wandb_fixtures.py.
"""
import csv
import gzip
import json
import math
import os
import shutil
import sqlite3
import struct
import sys
import zlib
from datetime import datetime
from pathlib import Path

STEPS = 12
START = 1_700_000_000_000


def bits(value):
    """A double as digits; there is one NaN."""
    value = math.nan if math.isnan(value) else float(value)
    return struct.pack(">d", value).hex()


def rows(step):
    """What is logged at a step."""
    special = {3: math.nan, 4: math.inf, 5: -math.inf}
    return {"loss": 1 / (step + 3), "big": 2**53 + 2 * step, "special": special.get(step, 0.1 + step)}


def flatten(value, separator, prefix=""):
    """The values of nested dictionaries by their paths."""
    for key, inner in value.items():
        if isinstance(inner, dict) and "_type" not in inner:
            yield from flatten(inner, separator, f"{prefix}{key}{separator}")
        else:
            yield f"{prefix}{key}", inner


def flatten_lists(value, prefix=""):
    """Like flatten, with the indices of lists as names."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, (dict, list, tuple)):
            yield from flatten_lists(inner, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", inner


def parameter(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return {"bits": bits(value)} if isinstance(value, (int, float)) else str(value)


def empty_run():
    return {"scalars": {}, "files": {}, "texts": {}, "params": {}}


def add(run, kind, tag, *point):
    run[kind].setdefault(tag, []).append(list(point))


def crc(file):
    return zlib.crc32(Path(file).read_bytes())


def save(folder, name, expected):
    (folder / f"{name}.json").write_text(json.dumps(expected, indent=None, sort_keys=True).replace("}, ", "},\n") + "\n")


def pack(file):
    """A database as one small file, without a journal next to it: it is mostly empty tables and indices."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()
    file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    file.unlink()


def write_trackio(folder):
    work = folder / "trackio"
    shutil.rmtree(work, ignore_errors=True)
    os.environ["TRACKIO_DIR"] = str(work)
    import numpy as np
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    for name in ("first", "same", "same"):
        config = {"lr": 0.1, "name": name, "flag": True, "opt": {"name": "adam", "warmup": 10}}
        trackio.init(project="project", name=name, config=config, auto_log_gpu=False)
        for step in range(STEPS):
            trackio.log({**rows(step), "nested": {"a": step, "b": {"c": 2.5}}, "note": f"step {step}"}, step=step)
        if name == "first":
            image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
            sound = trackio.Audio(np.arange(50, dtype=np.int16), sample_rate=8000)
            trackio.log({"image": trackio.Image(image), "sound": sound, "report": trackio.Markdown("*hello*")}, step=20)
            trackio.log({"hist": trackio.Histogram([1, 2, 3, 3], num_bins=4), "val/acc": 1}, step=21)
            table = trackio.Table(columns=["a", "b"], data=[[1, "x"], [2.5, "y"]])
            trackio.log({"table": table}, step=22)
            trackio.alert("careful", "the loss is high")
        for load in (12.5, 25, 1 / 3):
            trackio.log_system({"cpu": load, "gpu/0/utilization": load / 7})
        trackio.finish()
    expected = {}
    for record in SQLiteStorage.get_run_records("project"):
        name, identity = record["name"], record["id"]
        run = expected[f"project/{name}" + (f"-{identity[:8]}" if name == "same" else "")] = empty_run()
        read_trackio(run, SQLiteStorage, name, identity, work)
    save(folder, "trackio", expected)
    for file in work.iterdir():
        if file.name not in ("project.db", "media"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    pack(work / "project.db")


def read_trackio(run, storage, name, identity, work):
    def time(row):
        return bits(datetime.fromisoformat(row.pop("timestamp")).timestamp())

    for row in storage.get_logs("project", name, run_id=identity):
        step, wall = row.pop("step"), time(row)
        for tag, value in flatten(row, "."):
            if isinstance(value, (int, float)):
                add(run, "scalars", tag, step, wall, bits(value))
            elif isinstance(value, str):
                add(run, "texts", tag, step, value)
            elif "file_path" in value:
                add(run, "files", tag, step, crc(work / "media" / value["file_path"]))
            elif value["_type"] == "trackio.markdown":
                add(run, "texts", tag, step, value["_value"])
    for index, row in enumerate(storage.get_system_logs("project", name, run_id=identity)):
        wall = time(row)
        for tag, value in flatten(row, "."):
            add(run, "scalars", f"system/{tag}", index, wall, bits(value))
    config = storage.get_run_config("project", name, run_id=identity)
    run["params"] = {key: parameter(value) for key, value in flatten(config, ".") if not key.startswith("_")}


def log_mlflow(client, experiment):
    """Two runs of one name, one of another, and a deleted one, with all that a client logs."""
    for index, name in enumerate(["run", "run", "other/name", "deleted"]):
        run = client.create_run(experiment, run_name=name).info.run_id
        for key, value in {"lr": 0.1, "name": "net", "flag": True, "n": index, "group/x": "1e-05"}.items():
            client.log_param(run, key, value)
        for step in range(STEPS if index < 2 else 2):
            time = START + step * 250
            for tag, value in {**rows(step), "val/acc": step / 7}.items():
                client.log_metric(run, tag, float(value), timestamp=time, step=step)
        # Twice at one step, and back in time.
        client.log_metric(run, "loss", 0.125, timestamp=START + 9000, step=1)
        client.log_metric(run, "loss", 0.25, timestamp=START + 9001, step=1)
        client.set_tag(run, "mlflow.note.content", "a *note*,\nof two lines")
        client.set_terminated(run)
        if name == "deleted":
            client.delete_run(run)


def read_mlflow(client, experiment):
    """Every point of every metric in the order of their times, which is the order in which they were logged."""
    expected = {}
    for stored in client.search_runs([experiment]):
        identity, name = stored.info.run_id, stored.info.run_name.replace("/", "_")
        name += f"-{identity[:8]}" if name == "run" else ""
        run = expected[f"experiment/{name}"] = empty_run()
        for tag in stored.data.metrics:
            history = client.get_metric_history(identity, tag)
            for point in sorted(history, key=lambda point: point.timestamp):
                # "Some special values such as +/- Infinity may be replaced by other values depending on the store."
                value = math.copysign(math.inf, point.value) if abs(point.value) == sys.float_info.max else point.value
                add(run, "scalars", tag, point.step, bits(point.timestamp / 1e3), bits(value))
        add(run, "texts", "note", 0, stored.data.tags["mlflow.note.content"])
        run["params"] = stored.data.params
    return expected


def write_mlflow_database(folder):
    from mlflow import MlflowClient

    file = folder / "mlflow.db"
    file.unlink(missing_ok=True)
    client = MlflowClient(f"sqlite:///{file}")
    experiment = client.create_experiment("experiment", artifact_location=str(folder / "artifacts"))
    log_mlflow(client, experiment)
    save(folder, "mlflow_database", read_mlflow(client, experiment))
    client._tracking_client.store.engine.dispose()
    pack(file)


def write_mlruns(folder):
    import numpy as np
    from mlflow import MlflowClient

    store = folder / "mlruns"
    shutil.rmtree(store, ignore_errors=True)
    client = MlflowClient(f"file://{store}")
    experiment = client.create_experiment("experiment")
    client.delete_experiment(client.create_experiment("deleted"))
    log_mlflow(client, experiment)
    expected = read_mlflow(client, experiment)
    for stored in client.search_runs([experiment]):
        if stored.info.run_name == "other/name":
            image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
            for step in (7, 3):
                client.log_image(stored.info.run_id, image + step, key="a/image", step=step, timestamp=START + step)
            run = expected["experiment/other_name"]
            for file in client.list_artifacts(stored.info.run_id, "images"):
                if file.path.endswith(".png"):
                    step = int(file.path.split("%")[2])
                    # The client cannot download names with `%`.
                    artifacts = Path(stored.info.artifact_uri.removeprefix("file://"))
                    add(run, "files", "a/image", step, crc(artifacts / file.path))
            run["files"]["a/image"].sort()
    save(folder, "mlruns", expected)
    for file in list(store.rglob("*.webp")):
        file.unlink()
    for meta in store.rglob("meta.yaml"):
        # The folder of the machine that wrote it.
        meta.write_text(meta.read_text().replace(str(folder), ""))


def write_lightning(folder):
    import yaml
    from pytorch_lightning.loggers import CSVLogger

    shutil.rmtree(folder / "lightning_logs", ignore_errors=True)
    logger = CSVLogger(str(folder), flush_logs_every_n_steps=1)
    logger.log_hyperparams({"lr": 1e-5, "layers": [8, 16], "opt": {"name": "adam"}, "flag": True, "text": "0.5"})
    for step in range(STEPS):
        # A new column in the middle makes it write the table anew.
        logger.log_metrics({**rows(step), "epoch": step // 4, **({"val/acc": step / 7} if step > 5 else {})}, step)
        logger.save()
    run = empty_run()
    with open(folder / "lightning_logs/version_0/metrics.csv", newline="") as file:
        for row in csv.DictReader(file):
            step = int(row.pop("step"))
            for tag, value in row.items():
                if value:
                    add(run, "scalars", tag, step, None, bits(float(value)))
    params = yaml.safe_load((folder / "lightning_logs/version_0/hparams.yaml").read_text())
    run["params"] = {key: parameter(value) for key, value in flatten_lists(params)}
    save(folder, "lightning", {"lightning_logs/version_0": run})


def write_trainer_state(folder):
    from transformers import TrainerState
    from transformers.integrations.integration_utils import rewrite_logs

    work = folder / "trainer"
    shutil.rmtree(work, ignore_errors=True)
    state = TrainerState(max_steps=STEPS, num_train_epochs=2, train_batch_size=8, logging_steps=1)
    for step in range(1, STEPS + 1):
        state.global_step, state.epoch = step, step / 6
        state.log_history.append({"loss": rows(step)["special"], "grad_norm": 0.1 * step, "epoch": step / 6, "step": step})
        if step % 6 == 0:
            state.log_history.append({"eval_loss": 2 / step, "epoch": step / 6, "step": step})
            (work / f"checkpoint-{step}").mkdir(parents=True)
            state.save_to_json(str(work / f"checkpoint-{step}" / "trainer_state.json"))
    state.log_history.append({"train_runtime": 1.5, "test_accuracy": 1 / 3, "step": STEPS})
    state.save_to_json(str(work / "trainer_state.json"))
    state = TrainerState.load_from_json(str(work / "trainer_state.json"))
    run, seen = empty_run(), set()
    for row in state.log_history:
        step = row.pop("step")
        for tag, value in rewrite_logs(row).items():
            if (step, tag) not in seen:
                seen.add((step, tag))
                add(run, "scalars", tag, step, None, bits(value))
    names = ("num_train_epochs", "max_steps", "train_batch_size", "logging_steps", "eval_steps", "save_steps")
    run["params"] = {name: parameter(getattr(state, name)) for name in names}
    save(folder, "trainer", {"trainer": run})


def write_json_lines(folder):
    work = folder / "json_lines"
    work.mkdir(exist_ok=True)
    with open(work / "metrics.jsonl", "w") as file:
        for step in range(STEPS):
            time = START / 1000 + step / 8
            row = {**rows(step), "step": step, "timestamp": time, "nested": {"a": {"b": step / 3}}, "huge": 2**70 + step}
            if step % 2:
                row |= {"timestamp": datetime.fromtimestamp(time).astimezone().isoformat(), "flag": True, "time": 0.25}
            file.write(json.dumps({**row, "text": "é\n", "list": [1, 2], "none": None}) + "\n")
    run = empty_run()
    for line in open(work / "metrics.jsonl"):
        row = json.loads(line)
        step, time = row.pop("step"), row.pop("timestamp")
        wall = time if isinstance(time, float) else datetime.fromisoformat(time).timestamp()
        for tag, value in flatten(row, "/"):
            if isinstance(value, (int, float)):
                add(run, "scalars", tag, step, bits(wall), bits(value))
    save(folder, "json_lines", {"json_lines": run})


def main():
    what, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if what == "mlruns":
        return write_mlruns(folder)
    for write in (write_trackio, write_mlflow_database, write_lightning, write_trainer_state, write_json_lines):
        write(folder)


if __name__ == "__main__":
    main()
