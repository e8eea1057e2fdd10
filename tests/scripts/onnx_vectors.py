#!/usr/bin/env python3
"""Packs ONNX's node tests into engine/tests/data/onnx.bin.gz, for the engine's tests to be run without the package.

    python3 -m venv venv && venv/bin/pip install onnx==1.16.2
    venv/bin/python tests/scripts/onnx_vectors.py engine/tests/data/onnx.bin.gz

The package has them in onnx/backend/test/data. Tests whose model and data exceed LIMIT bytes are left out; set
STEPSCOPE_ONNX to that folder to run all. Unpacked, the file is a row of tests, each: name, model, number of data
sets, and for each data set the number of inputs, the inputs, the number of outputs, the outputs. Numbers are u32, little endian;
names and messages are preceded by their length.
"""
import glob
import gzip
import os
import struct
import sys

import onnx

LIMIT = 40_000
root = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")


def files(folder, kind):
    names = glob.glob(os.path.join(folder, f"{kind}_*.pb"))
    return [open(n, "rb").read() for n in sorted(names, key=lambda n: int(n.rsplit("_", 1)[1][:-3]))]


def blob(data):
    return struct.pack("<I", len(data)) + data


packed, n_packed, n_large = [], 0, 0
for test in sorted(os.listdir(root)):
    folder = os.path.join(root, test)
    model = open(os.path.join(folder, "model.onnx"), "rb").read()
    sets = [(files(s, "input"), files(s, "output")) for s in sorted(glob.glob(os.path.join(folder, "test_data_set_*")))]
    if len(model) + sum(len(d) for s in sets for part in s for d in part) > LIMIT:
        n_large += 1
        continue
    n_packed += 1
    packed.append(blob(test.encode()) + blob(model) + struct.pack("<I", len(sets)))
    for s in sets:
        for part in s:
            packed.append(struct.pack("<I", len(part)) + b"".join(map(blob, part)))
with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as f:
    f.write(b"".join(packed))
print(f"{n_packed} tests packed, {n_large} too large, {os.path.getsize(sys.argv[1])} bytes")
