#!/usr/bin/env python3
"""Writes what TensorFlow's registry says of every op: engine/tests/data/tf_ops.txt, which engine/tests/op_facts.rs reads.

One op a line: its name, then the words that hold of it: `stateful`, `commutative`, and `ref` where an input or output
is a reference (TensorFlow's first variables, queues, readers and tables, whose state it tells by that).

    python tests/scripts/tf_op_facts.py > engine/tests/data/tf_ops.txt      # TensorFlow 2.21
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import op_def_pb2  # noqa: E402
from tensorflow.python.client import pywrap_tf_session  # noqa: E402


def facts(op):
    """The words of an op."""
    if op.is_stateful:
        yield "stateful"
    if op.is_commutative:
        yield "commutative"
    if any(arg.is_ref for arg in [*op.input_arg, *op.output_arg]):
        yield "ref"


def main():
    """Writes all ops, by name."""
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    print(f"# TensorFlow {tf.__version__}")
    for op in sorted(ops.op, key=lambda op: op.name):
        print(" ".join([op.name, *facts(op)]))


main()
