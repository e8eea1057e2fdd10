#!/usr/bin/env python3
"""Makes engine/tests/data/io.json: what TensorFlow decodes, parses and takes out of queues.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/scripts/tf_io_fixtures.py engine/tests/data/io.json

`cases`: an op with attributes, inputs (lists of tensors where the op takes lists) and outputs. `queues`: a script of
operations on a queue, with what each gives. Tensors are [dtype, shape, values], strings in hex.
"""
import io
import json
import os
import sys
import wave
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(5)
NAMES = {"float32": "float", "float64": "double", "float16": "half"}
cases = []


def pack(a):
    a = a.numpy() if hasattr(a, "numpy") else a
    # NumPy's own strings lose the zeros at their end.
    a = np.asarray(a, object) if isinstance(a, bytes) else np.asarray(a)
    if a.dtype == object or a.dtype.kind in "SU":
        flat = [v if isinstance(v, bytes) else str(v).encode() for v in a.ravel()]
        return ["string", list(a.shape), [v.hex() for v in flat]]
    # JSON has no infinities: those are texts.
    values = [float(v) if np.isfinite(v) else str(v) for v in a.ravel()] if a.dtype.kind == "f" else [int(v) for v in a.ravel()]
    name = tf.as_dtype(a.dtype).name
    return [NAMES.get(name, name), list(a.shape), values]


def attr(v):
    if isinstance(v, tf.DType):
        return {"type": NAMES.get(v.name, v.name)}
    if isinstance(v, list) and v and isinstance(v[0], tf.DType):
        return {"types": [NAMES.get(t.name, t.name) for t in v]}
    if isinstance(v, list) and v and isinstance(v[0], tf.TensorShape):
        return {"shapes": [[-1 if d is None else d for d in s.as_list()] for s in v]}
    if isinstance(v, list) and v and isinstance(v[0], str):
        return {"strings": v}
    return v


def case(op, inputs, attrs=None, tolerance=0, **extra):
    """`inputs`: name -> tensor or list of tensors."""
    attrs = attrs or {}
    as_tf = {k: ([tf.constant(t) for t in v] if isinstance(v, list) else tf.constant(v)) for k, v in inputs.items()}
    try:
        got = getattr(tf.raw_ops, op)(**as_tf, **attrs)
    except tf.errors.InvalidArgumentError:
        cases.append({"op": op, "attrs": {k: attr(v) for k, v in attrs.items()}, "error": True,
                      "inputs": [[pack(t) for t in v] if isinstance(v, list) else pack(v) for v in inputs.values()], **extra})
        return
    flat = []
    for g in (got if isinstance(got, (tuple, list)) else [got]):
        flat += list(g) if isinstance(g, (tuple, list)) else [g]
    cases.append({"op": op, "attrs": {k: attr(v) for k, v in attrs.items()}, "tolerance": tolerance,
                  "inputs": [[pack(t) for t in v] if isinstance(v, list) else pack(v) for v in inputs.values()],
                  "outputs": [pack(f) for f in flat], **extra})


def strings(*v):
    return np.array(v, dtype=object)


raw = rng.integers(0, 256, 48).astype(np.uint8).tobytes()
for t in [tf.uint8, tf.int8, tf.int16, tf.uint16, tf.int32, tf.int64]:
    for little in [True, False]:
        case("DecodeRaw", {"bytes": strings(raw[:24], raw[24:])}, {"out_type": t, "little_endian": little})
case("DecodeRaw", {"bytes": strings(b"abc")}, {"out_type": tf.int16})
case("DecodeRaw", {"bytes": strings(np.float32([1.5, -2]).tobytes())}, {"out_type": tf.float32})
case("DecodeRaw", {"bytes": strings(np.float32([1.5, -2]).byteswap().tobytes())}, {"out_type": tf.float32, "little_endian": False})
case("DecodePaddedRaw", {"input_bytes": strings(b"abcdef", b"", b"0123456789"), "fixed_length": np.int32(8)}, {"out_type": tf.int16})
case("DecodeCompressed", {"bytes": strings(zlib.compress(b"hello" * 99), zlib.compress(b""))}, {"compression_type": "ZLIB"})
case("DecodeCompressed", {"bytes": strings(b"hello")}, {"compression_type": ""})
csv = strings(b'1,2.5,"a ""b"", c",7', b',,,', b'-3,1e3,x,9')
defaults = [np.int32([5]), np.float32([0.5]), strings(b"dd"), np.int64([11])]
case("DecodeCSV", {"records": csv, "record_defaults": defaults})
case("DecodeCSV", {"records": strings(b"1|NA|z"), "record_defaults": [np.int32([5]), np.float64([0.5]), strings(b"d")]}, {"field_delim": "|", "na_value": "NA"})
case("DecodeCSV", {"records": strings(b"1,2,3,4", b"5,6,7,8"), "record_defaults": [np.int64([0]), np.int64([0])]}, {"select_cols": [1, 3]})
case("DecodeCSV", {"records": strings(b'a"b,c'), "record_defaults": [strings(b""), strings(b"")]}, {"use_quote_delim": False})
for bad in [b"1,2", b'"a', b'"a"b,1', b"x,1", b",1"]:
    case("DecodeCSV", {"records": strings(bad), "record_defaults": [np.zeros(0, np.int32), strings(b""), strings(b"")]})
for t in [np.float32([[1, 2]]), np.array([b"a", b"\xff"], dtype=object), np.int64(7), np.array([True, False]), np.uint16([3, 4])]:
    serialized = tf.io.serialize_tensor(tf.constant(t)).numpy()
    case("ParseTensor", {"serialized": strings(serialized)[0:1].reshape([])[()]}, {"out_type": tf.constant(t).dtype})

for channels in [1, 2, 3, 4]:
    for dtype in [np.uint8, np.uint16]:
        image = rng.integers(0, np.iinfo(dtype).max + 1, (5, 7, channels)).astype(dtype)
        png = tf.io.encode_png(image).numpy()
        for wanted in [0, 1, 3, 4]:
            # libpng rounds its weights of 16-bit samples elsewhere.
            tolerance = 3 if wanted == 1 and channels > 2 and dtype == np.uint16 else 0
            case("DecodePng", {"contents": png}, {"channels": wanted, "dtype": tf.as_dtype(dtype)}, tolerance)
    case("DecodeImage", {"contents": tf.io.encode_png(rng.integers(0, 256, (3, 4, channels)).astype(np.uint8)).numpy()}, {"channels": 3})
case("DecodePng", {"contents": b"\x89PNG\r\n\x1a\nxx"}, {"channels": 0})
y, x = np.mgrid[0:24, 0:20]
smooth = np.stack([x * 12, y * 10, 255 - x * 6 - y * 5], -1).astype(np.uint8)
for wanted in [0, 1, 3]:
    case("DecodeJpeg", {"contents": tf.io.encode_jpeg(smooth, quality=95).numpy()}, {"channels": wanted}, 6)
grey = tf.io.encode_jpeg(smooth[:, :, :1], format="grayscale").numpy()
# TensorFlow's default is libjpeg's fast transform, which is off by some units itself.
case("DecodeJpeg", {"contents": grey}, {"channels": 0}, 4)
case("DecodeJpeg", {"contents": grey}, {"channels": 0, "dct_method": "INTEGER_ACCURATE"}, 1)
sound = io.BytesIO()
with wave.open(sound, "wb") as w:
    w.setnchannels(2)
    w.setsampwidth(2)
    w.setframerate(8000)
    w.writeframes(rng.integers(-32768, 32768, 20).astype("<i2").tobytes())
for n, c in [(-1, -1), (4, 1), (15, 2), (-1, 3)]:
    case("DecodeWav", {"contents": sound.getvalue()}, {"desired_samples": n, "desired_channels": c}, 1e-6)
case("EncodeWav", {"audio": np.float32([[0.5, -0.5], [1, -1], [2, -2], [0.1234, 0]]), "sample_rate": np.int32(44100)})
case("DecodeWav", {"contents": b"RIFFxxxxWAVE"})


def example(**features):
    def feature(v):
        if isinstance(v[0] if v else 0, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=v))
        if isinstance(v[0] if v else 0, float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=v))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=v))
    return tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in features.items()})).SerializeToString()


all_examples = strings(example(a=[1.0, 2.0], b=[7], s=[b"x", b"yy"], v=[1, 2, 3]), example(a=[3.0, 4.0], s=[b""], v=[9]), example(a=[5.0, 6.0], b=[-8]))
shapes = [tf.TensorShape([2]), tf.TensorShape([]), tf.TensorShape([None])]
dense = {"dense_keys": [np.array(k, dtype=object) for k in [b"a", b"b", b"v"]],
         "dense_defaults": [np.zeros(0, np.float32), np.int64(-1), np.int64(0)]}
# A key that occurs twice is refused.
case("ParseExample", {"serialized": all_examples, "names": strings(), "sparse_keys": [np.array(b"s", dtype=object), np.array(b"v", dtype=object)], **dense},
     {"sparse_types": [tf.string, tf.int64], "dense_shapes": shapes}, tdense=["float", "int64", "int64"])
case("ParseExampleV2", {"serialized": all_examples, "names": strings(), "sparse_keys": strings(b"s"), "dense_keys": strings(b"a", b"b", b"v"),
                        "ragged_keys": strings(b"v"), "dense_defaults": dense["dense_defaults"]},
     {"num_sparse": 1, "sparse_types": [tf.string], "ragged_value_types": [tf.int64], "ragged_split_types": [tf.int32], "dense_shapes": shapes})
case("ParseSingleExample", {"serialized": all_examples[0], "dense_defaults": dense["dense_defaults"][:2]},
     {"num_sparse": 1, "sparse_keys": ["s"], "dense_keys": ["a", "b"], "sparse_types": [tf.string], "dense_shapes": shapes[:2]})
two = {"dense_keys": dense["dense_keys"][:2], "dense_defaults": dense["dense_defaults"][:2]}
case("ParseExample", {"serialized": all_examples, "names": strings(), "sparse_keys": [np.array(b"s", dtype=object)], **dense},
     {"sparse_types": [tf.string], "dense_shapes": shapes})
case("ParseExample", {"serialized": all_examples, "names": strings(), "sparse_keys": [np.array(b"s", dtype=object), np.array(b"v", dtype=object)], **two},
     {"sparse_types": [tf.string, tf.int64], "dense_shapes": shapes[:2]})
case("ParseExampleV2", {"serialized": all_examples, "names": strings(), "sparse_keys": strings(b"s"), "dense_keys": strings(b"a", b"b"),
                        "ragged_keys": strings(b"v"), "dense_defaults": dense["dense_defaults"][:2]},
     {"num_sparse": 1, "sparse_types": [tf.string], "ragged_value_types": [tf.int64], "ragged_split_types": [tf.int32], "dense_shapes": shapes[:2]})
# Cut off within the features; TensorFlow does not notice what is cut off before them.
case("ParseExampleV2", {"serialized": strings(b"\x0a\x02\x0a\x7f"), "names": strings(), "sparse_keys": strings(), "dense_keys": strings(), "ragged_keys": strings(b"v"), "dense_defaults": []},
     {"num_sparse": 0, "sparse_types": [], "ragged_value_types": [tf.int64], "ragged_split_types": [tf.int64], "dense_shapes": []})
case("CheckNumerics", {"tensor": np.float32([1, 2])}, {"message": "m"})
case("CheckNumerics", {"tensor": np.float64([1, np.inf])}, {"message": "m"})


def queues():
    """Scripts: each operation with what it gives."""
    out = []
    for op, make in [("FIFOQueueV2", lambda: tf.queue.FIFOQueue(20, [tf.int64], [[]])),
                     ("RandomShuffleQueueV2", lambda: tf.queue.RandomShuffleQueue(20, 3, [tf.int64], [[]], seed=None)),
                     ("PriorityQueueV2", lambda: tf.queue.PriorityQueue(20, [tf.int64], [[]]))]:
        if op == "RandomShuffleQueueV2":
            # The seeds of the op itself, not of the Python layer.
            handle = tf.raw_ops.RandomShuffleQueueV2(component_types=[tf.int64], shapes=[[]], capacity=20, min_after_dequeue=3, seed=17, seed2=4)
        else:
            kept = make()
            handle = kept.queue_ref
        script = []
        is_priority = op == "PriorityQueueV2"
        types = [tf.int64] * (2 if is_priority else 1)
        values = rng.permutation(16)
        comps = [tf.constant(values, tf.int64), tf.constant(values * 10, tf.int64)] if is_priority else [tf.constant(values, tf.int64)]
        tf.raw_ops.QueueEnqueueManyV2(handle=handle, components=comps)
        script.append(["put", [pack(c) for c in comps]])
        for n in [None, 3, None, 5]:
            got = tf.raw_ops.QueueDequeueV2(handle=handle, component_types=types) if n is None else \
                tf.raw_ops.QueueDequeueManyV2(handle=handle, n=n, component_types=types)
            script.append(["take", n, [pack(g) for g in got]])
        tf.raw_ops.QueueCloseV2(handle=handle)
        script.append(["close"])
        if is_priority:
            # TensorFlow's priority queue gives no smaller batch.
            out.append({"op": op, "script": script})
            continue
        got = tf.raw_ops.QueueDequeueUpToV2(handle=handle, n=10, component_types=types)
        script.append(["up_to", 10, [pack(g) for g in got]])
        out.append({"op": op, "script": script})
    return out


fixture = {"made_by": f"tests/scripts/tf_io_fixtures.py, TensorFlow {tf.__version__}", "cases": cases, "queues": queues()}
with open(sys.argv[1], "w") as f:
    json.dump(fixture, f, separators=(",", ":"))
    f.write("\n")
print(len(cases), "cases,", sum("error" in c for c in cases), "errors,", os.path.getsize(sys.argv[1]), "bytes")
