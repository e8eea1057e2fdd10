"""Writes the fixtures of summaries/trackers/tests/wandb.rs with Weights & Biases' own program, offline, and what its own reader gives.

    python wandb_fixtures.py PYTHON_NEW PYTHON_OLD summaries/trackers/tests/fixtures/wandb

Both arguments are interpreters: one with `wandb==0.31.0`, `numpy` and `pillow`, one with `wandb==0.19.11` and `numpy`.

0.31.0 writes `core` and `typed`. 0.19.11 is the last release with a writer and a reader in Python (wandb.sdk.internal.datastore): it writes
`legacy`. `typed-only` is `typed` without the JSON of the values, as the messages allow.

`expected.json` next to a log has what that reader and the messages of 0.31.0 give. Numbers are the 16 hexadecimal digits of their 64 bits.
"""

import importlib.util
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import wave
import zlib
from pathlib import Path

OWN = ("_step", "_timestamp", "_runtime", "_wandb")


def bits(value):
    return struct.pack(">d", float(value)).hex()


# What is logged.

SCALARS = {
    "loss": 1.5,
    "whole": 3,
    "one": 1.0,
    "big": 2**60 + 1,
    "bigger": 10**30,
    "unsigned": 2**64 - 1,
    "negative": -5,
    "tiny": 5e-324,
    "third": 1 / 3,
    "nan": math.nan,
    "infinite": math.inf,
    "minus_infinite": -math.inf,
    "minus_zero": -0.0,
    "yes": True,
    "train": {"loss": 2.0, "deep": {"accuracy": 0.5}},
    "a.b": 1,
    "group/x": 0.1,
}


def flat(values, prefix=""):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def init(name, config, **settings):
    import wandb

    # Otherwise the log has the names of this machine and of its folders.
    os.environ |= {"WANDB_HOST": "host", "WANDB_DATA_DIR": "data"}
    settings = wandb.Settings(console="off", x_disable_meta=True, x_save_requirements=False, disable_git=True, save_code=False, **settings)
    return wandb.init(project="fixtures", mode="offline", id=name, config=config, settings=settings)


def write_core():
    import numpy as np
    import wandb

    config = {"lr": 0.1, "optimizer": {"name": "adam", "betas": [0.9, 0.99], "deep": {"x": 1}}, "flag": True, "none": None, "a.b": 3}
    run = init("core0001", config, x_stats_sampling_interval=0.5)
    run.define_metric("accuracy", step_metric="epoch")
    run.define_metric("low", summary="min")
    run.log({**SCALARS, "text": "hello", "list": [1, 2, 3], "nothing": None, "word_nan": "NaN"})
    rows = [SCALARS]
    numpy = {"float32": np.float32(0.1), "int64": np.int64(7), "epoch": 0, "accuracy": 0.25, "low": 4.0}
    run.log(numpy)
    rows.append(numpy)
    run.log(
        {
            "of_values": wandb.Histogram([1, 2, 3, 4, 5.5], num_bins=4),
            "of_numpy": wandb.Histogram(np_histogram=np.histogram([1, 2, 2, 9], bins=4)),
            "of_edges": wandb.Histogram(np_histogram=([1, 2, 3], [0, 0.5, 1, 4])),
            "of_array": np.arange(100.0),
            "nested": {"histogram": wandb.Histogram([1, 1, 1], num_bins=2), "number": 8.5},
        }
    )
    rows.append({"nested": {"number": 8.5}})
    run.log({"x": 1}, step=10)
    run.log({"y": 2}, step=10)
    # More than a block. Without a step it is added to the row.
    run.log({"long": "0123456789abcdef" * 2100, "after": 1.25})
    rows += [{}] * 7 + [{"x": 1, "y": 2, "after": 1.25}]
    pixels = [np.full((2, 3, 3), shade, np.uint8) for shade in (0, 90, 180)]
    box = {"position": {"minX": 0.1, "maxX": 0.2, "minY": 0.3, "maxY": 0.4}, "class_id": 0, "scores": {"score": 0.5}}
    mask = {"mask_data": np.zeros((2, 3), np.uint8), "class_labels": {0: "none"}}
    with wave.open("tone.wav", "wb") as sound:
        sound.setnchannels(1), sound.setsampwidth(2), sound.setframerate(8000)
        sound.writeframes(struct.pack("<40h", *range(0, 400, 10)))
    Path("film.mp4").write_bytes(b"no film")
    run.log(
        {
            "image": wandb.Image(pixels[0], caption="black"),
            "jpeg": wandb.Image(pixels[1], file_type="jpg"),
            "boxes": wandb.Image(
                pixels[2], boxes={"b": {"box_data": [box], "class_labels": {0: "x"}}}, masks={"m": mask}
            ),
            "images": [wandb.Image(one) for one in pixels],
            "single": [wandb.Image(pixels[2])],
            "sound": wandb.Audio("tone.wav", caption="tone"),
            "page": wandb.Html("<b>page</b>", inject=False),
            "pages": [wandb.Html("<i>1</i>", inject=False), wandb.Html("<i>2</i>", inject=False)],
            "table": wandb.Table(columns=["a", "b"], data=[[1, "x"], [2.5, None]]),
            "film": wandb.Video("film.mp4"),
            "cloud": wandb.Object3D(np.zeros((2, 3))),
            "media": {"deep": wandb.Image(pixels[1])},
            "extra": 6.5,
        }
    )
    rows.append({"extra": 6.5})
    run.config.update({"lr": 0.2, "optimizer": {"name": "sgd"}, "new": {"k": 1}}, allow_val_change=True)
    run.summary["best"] = 0.9
    run.summary["only"] = {"summary": 1, "text": "no number"}
    run.summary["loss"] = 0.01
    run.alert("Attention", "something happened", level="WARN")
    # Until there are system metrics: they are why this takes a while.
    import time

    time.sleep(2.5)
    run.log({"last": 1e-7})
    rows.append({"last": 1e-7})
    run.finish()
    return rows


def write_typed():
    run = init("typed001", {}, x_history_value_encoding="json,typed", x_disable_stats=True)
    import wandb

    run.log({**SCALARS, "text": "NaN", "list": [1, 2], "nothing": None, "histogram": wandb.Histogram([1, 2, 3], num_bins=2)})
    run.log({"loss": 0.5})
    run.finish()
    return [SCALARS, {"loss": 0.5}]


def write_legacy():
    import wandb

    wandb.require("legacy-service")
    run = init("legacy01", {"lr": 0.1, "optimizer": {"k": 1}})
    run.log({**SCALARS, "text": "NaN", "list": [1, 2], "nothing": None, "histogram": wandb.Histogram([1, 2, 3], num_bins=2)})
    rows = [SCALARS]
    for step in range(40):
        rows.append({"loss": 1 / (step + 3), "nested": {"value": math.sqrt(step), "huge": 10**25 + step}})
        run.log(rows[-1])
    run.log({"long": "0123456789abcdef" * 900})
    rows.append({})
    run.config.update({"later": True})
    run.summary["best"] = 3
    run.finish()
    return rows


# What the reader finds.


def datastore():
    """The reader: that of this release, or the file in DATASTORE."""
    import wandb

    wandb._assert_is_internal_process = True
    spec = importlib.util.spec_from_file_location("datastore", os.environ["DATASTORE"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DataStore()


def records(path):
    from wandb.proto import wandb_internal_pb2 as messages

    store = datastore()
    store.open_for_scan(path)
    while (data := store.scan_data()) is not None:
        record = messages.Record()
        record.ParseFromString(data)
        yield record


def value_of(item):
    if item.value_json:
        # Whole numbers as floats: `-0` has a sign.
        return json.loads(item.value_json, parse_int=float)
    kind = item.WhichOneof("value")
    value = getattr(item, kind)
    return {"none": None, "json": json.loads(value, parse_int=float) if kind == "json" else None}.get(kind, value)


def leaves(name, value):
    if isinstance(value, dict):
        for inner, inner_value in value.items():
            yield from leaves(f"{name}.{inner}", inner_value)
    else:
        yield name, value


def items(message):
    for item in message:
        name = ".".join(getattr(item, "nested_key", None) or [item.key])
        yield from leaves(name, value_of(item))


def owner(name, objects):
    parts = name.split(".")
    found = (".".join(parts[:n]) for n in range(1, len(parts)))
    return next((prefix for prefix in found if prefix in objects), None)


def param(value):
    """A number as its bits, all else as it is."""
    return {"bits": bits(value)} if isinstance(value, float) else value


def expect(path):
    scalars, texts, objects_found, configs, config = [], [], [], [], {}
    known, summary, start, last = set(), {}, 0.0, (0, 0.0)
    for record in records(path):
        kind = record.WhichOneof("record_type")
        if kind in ("run", "config"):
            changes = record.run.config if kind == "run" else record.config
            if kind == "run":
                start = record.run.start_time.seconds + record.run.start_time.nanos / 1e9
            before = dict(config)
            for item in changes.update:
                key = ".".join(item.nested_key or [item.key])
                if key != "_wandb":
                    config = {name: value for name, value in config.items() if name != key and not name.startswith(key + ".")}
                    config.update(leaves(key, value_of(item)))
            if config != before:
                configs.append({name: param(value) for name, value in config.items()})
        elif kind == "history":
            row = list(items(record.history.item))
            values = dict(row)
            step, wall = int(values["_step"]), values["_timestamp"]
            assert step == record.history.step.num
            objects = {name[: -len("._type")] for name, _ in row if name.endswith("._type")}
            for name, value in row:
                if name.split(".")[0] in OWN or owner(name, objects):
                    continue
                known.add(name)
                if isinstance(value, (bool, float, int)):
                    scalars.append([name, step, bits(wall), bits(value)])
                elif isinstance(value, str):
                    texts.append([name, step, value])
            for name in sorted(objects):
                if not owner(name, objects):
                    known.add(name)
                    fields = {key[len(name) + 1 :]: value for key, value in row if key.startswith(name + ".")}
                    found = {"tag": name, "step": step, "type": fields["_type"]}
                    if fields["_type"] == "histogram":
                        found |= {"bins": [bits(edge) for edge in fields["bins"]], "values": [bits(count) for count in fields["values"]]}
                    elif fields["_type"] == "images/separated":
                        found["paths"] = fields["filenames"]
                    elif fields["_type"] == "html":
                        found["paths"] = [page["path"] for page in fields["html"]]
                    else:
                        found["paths"] = [fields["path"]]
                    objects_found.append(found)
            last = (step, wall)
        elif kind == "stats":
            wall = record.stats.timestamp.seconds + record.stats.timestamp.nanos / 1e9
            for item in record.stats.item:
                scalars.append([f"system/{item.key}", max(int(wall - start), 0), bits(wall), bits(json.loads(item.value_json))])
        elif kind == "summary":
            row = list(items(record.summary.update))
            summary.update((name, value) for name, value in row if isinstance(value, (bool, float)) and name.split(".")[0] not in OWN)
        elif kind == "alert":
            texts.append(["alerts", last[0], f"**{record.alert.title}** ({record.alert.level})\n\n{record.alert.text}"])
    own = {name: value for name, value in summary.items() if name not in known and not owner(name, known)}
    scalars += [[name, last[0], bits(last[1]), bits(value)] for name, value in sorted(own.items())]
    # Of a long text its length and checksum.
    texts = [[name, step, text if len(text) < 1000 else [len(text), zlib.crc32(text.encode())]] for name, step, text in texts]
    return {"scalars": scalars, "texts": texts, "objects": objects_found, "configs": configs}


def save(expected, folder):
    text = json.dumps(expected, separators=(",", ":")).replace("],[", "],\n[")
    Path(folder, "expected.json").write_text(text + "\n")


def strip(source, target):
    """Copies a log, with values in the messages' own types only."""
    store = datastore()
    store.open_for_write(target)
    for record in records(source):
        for item in record.history.item if record.WhichOneof("record_type") == "history" else ():
            assert item.WhichOneof("value")
            item.value_json = ""
        store.write(record)
    store.close()


def main(new, old, folder):
    find = "import wandb, pathlib; print(pathlib.Path(wandb.__file__).parent / 'sdk/internal/datastore.py')"
    os.environ["DATASTORE"] = subprocess.run([old, "-c", find], check=True, capture_output=True, text=True).stdout.strip()
    script = str(Path(__file__).resolve())
    folder = Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    for name, python in [("core", new), ("typed", new), ("legacy", old)]:
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([python, script, "write", name], check=True, cwd=scratch)
            (run,) = Path(scratch, "wandb").glob("offline-run-*")
            (log,) = run.glob("*.wandb")
            (folder / name).mkdir(parents=True)
            shutil.copy(log, folder / name)
            if (run / "files/media").exists():
                shutil.copytree(run / "files/media", folder / name / "files/media")
            subprocess.run([new, script, "expect", str(folder / name), "rows.json"], check=True, cwd=scratch)
    (folder / "typed-only").mkdir()
    subprocess.run([new, script, "strip", str(folder / "typed"), str(folder / "typed-only")], check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", name]:
            rows = {"core": write_core, "typed": write_typed, "legacy": write_legacy}[name]()
            logged = [[step, key, bits(value)] for step, row in enumerate(rows) for key, value in flat(row)]
            Path("rows.json").write_text(json.dumps(logged))
        case ["expect", place, rows]:
            (log,) = Path(place).glob("*.wandb")
            expected = expect(str(log))
            # The reader has what the program logged.
            found = {(step, name): value for name, step, _, value in expected["scalars"] if not name.startswith("system/")}
            for step, name, value in json.loads(Path(rows).read_text()):
                assert found.get((step, name)) == value, (step, name, value, found.get((step, name)))
            save(expected, place)
        case ["strip", source, target]:
            (log,) = Path(source).glob("*.wandb")
            strip(str(log), str(Path(target, log.name)))
            save(expect(str(Path(target, log.name))), target)
        case [new, old, folder]:
            main(new, old, folder)
        case _:
            sys.exit(__doc__)
