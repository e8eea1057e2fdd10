"""Writes dashboard/tests/fixtures/meshes: the same tetrahedron by tensorboardX, by TensorBoard's summaries for TensorFlow 2
and 1 (torch's SummaryWriter names its tags as the latter), one without vertices and one under a name scope.

    mesh_fixtures.py FOLDER

Needs tensorboard, tensorboardX and TensorFlow.
"""

import sys
from pathlib import Path

import numpy as np
import tensorboardX
import tensorflow as tf
from tensorboard.plugins.mesh import metadata, summary as mesh_v1, summary_v2 as mesh_v2

VERTICES = np.array([[[1, 1, 1], [-1, -1, 1], [1, -1, -1], [-1, 1, -1]]], np.float32)
COLORS = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 0, 255]]], np.uint8)
FACES = np.array([[[0, 2, 3], [0, 3, 1], [0, 1, 2], [1, 3, 2]]], np.int32)


def by_tensorboardx(folder):
    with tensorboardX.SummaryWriter(str(folder)) as writer:
        writer.add_mesh("solid", VERTICES, COLORS, FACES, global_step=3)
        writer.add_mesh("shapes/cloud", VERTICES, COLORS, global_step=3)


def by_tensorboard_2(folder):
    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default():
        for step in (3, 4):
            mesh_v2.mesh("solid", VERTICES * step, faces=FACES, colors=COLORS, step=step)
    writer.close()


def by_tensorboard_1(folder):
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.compat.v1.name_scope("shapes"):
            solid = mesh_v1.op("solid", tf.constant(VERTICES), tf.constant(FACES), tf.constant(COLORS))
        writer = tf.compat.v1.summary.FileWriter(str(folder))
        writer.add_summary(session.run(solid), 3)
        writer.add_summary(mesh_v1.pb("cloud", VERTICES, colors=COLORS), 3)
        writer.close()


def without_vertices(folder):
    summary = tf.compat.v1.Summary.FromString(mesh_v1.pb("solid", VERTICES, FACES).SerializeToString())
    vertex = metadata.get_instance_name("solid", 1)
    kept = [value for value in summary.value if value.tag != vertex]
    with tf.compat.v1.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(str(folder))
        writer.add_summary(tf.compat.v1.Summary(value=kept), 3)
        writer.close()


def main(root):
    for write in (by_tensorboardx, by_tensorboard_2, by_tensorboard_1, without_vertices):
        folder = root / write.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        write(folder)
        # One file of a name without the host; TensorFlow 2's empty first file goes.
        files = sorted(folder.iterdir(), key=lambda file: file.stat().st_size)
        for file in files[:-1]:
            file.unlink()
        files[-1].rename(folder / "events.out.tfevents.1")


main(Path(sys.argv[1]))
