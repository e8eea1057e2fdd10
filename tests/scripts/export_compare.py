"""Compares what `stepscope export LOGDIR` wrote with the points that TensorBoard reads, for tests/tests/logdir_commands.rs.

    export_compare.py LOGDIR ROWS.csv ROWS.jsonl ROWS.parquet

pandas reads the three files. Each must hold every scalar point of TensorBoard's EventAccumulator: the same runs, tags and
steps in the same order, and wall times and values equal bit for bit. Prints how many points that were.
"""

import json
import os
import sys

import pandas
import pyarrow.fs
from tensorboard.backend.event_processing import event_accumulator, io_wrapper
from tensorboard.util import tensor_util

COLUMNS = ["run", "tag", "step", "wall_time", "value"]


def points_of_tensorboard(logdir):
    guidance = {kind: 0 for kind in event_accumulator.DEFAULT_SIZE_GUIDANCE}
    for folder in io_wrapper.GetLogdirSubdirectories(logdir):
        run = os.path.relpath(folder, logdir)
        acc = event_accumulator.EventAccumulator(folder, size_guidance=guidance, purge_orphaned_data=False)
        acc.Reload()
        for tag in acc.Tags()["scalars"]:
            for e in acc.Scalars(tag):
                yield run, tag, e.step, e.wall_time, e.value
        for tag in acc.Tags()["tensors"]:
            metadata = acc.summary_metadata.get(tag)
            if not metadata or metadata.plugin_data.plugin_name != "scalars":
                continue
            for e in acc.Tensors(tag):
                yield run, tag, e.step, e.wall_time, tensor_util.make_ndarray(e.tensor_proto).item()


def read(path):
    if path.endswith(".parquet"):
        # Through the file system of pyarrow: a file object of Python's that a thread of pyarrow still holds when the
        # interpreter ends aborts the process (https://github.com/apache/arrow/issues/34314).
        return pandas.read_parquet(path, filesystem=pyarrow.fs.LocalFileSystem())
    if path.endswith(".csv"):
        return pandas.read_csv(path, float_precision="round_trip", keep_default_na=False, na_values={"value": ["NaN"]})
    with open(path, encoding="utf-8") as lines:
        return pandas.DataFrame(map(json.loads, lines)).astype({"value": float})


def main():
    logdir, *paths = sys.argv[1:]
    expected = pandas.DataFrame(points_of_tensorboard(logdir), columns=COLUMNS)
    expected = expected.sort_values(["run", "tag"], kind="stable", ignore_index=True)
    for path in paths:
        rows = read(path)
        assert sorted(rows.columns) == sorted(COLUMNS), (path, rows.columns)
        pandas.testing.assert_frame_equal(rows[COLUMNS], expected, check_exact=True, check_dtype=False)
    print(len(expected))


if __name__ == "__main__":
    main()
