#!/usr/bin/env python3
"""TensorFlow's own gRPC servers beside us: what `stepscope-bench distributed` compares its figures with, measured in the same run.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python tests/bench/distributed_peer.py < requests > answers

A request is a line of JSON: {"case": NAME, "repeat": N}. The answer is one too: {"wall_ns": [...], "cpu_ns": [...], "nodes": null}.
Task 0 and the master are in this process, the other tasks in one each, all on loopback.

    null N      a step with one no-op on each of tasks 1 to N
    tensor N    a step that sends N bytes, a variable's value, from task 1 to task 0
"""
import json
import os
import socket
import subprocess
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def config():
    c = tf1.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=2)
    c.graph_options.rewrite_options.disable_meta_optimizer = True
    return c


def server(tasks, task):
    return tf1.train.Server({"worker": tasks}, job_name="worker", task_index=task, config=config())


if len(sys.argv) == 3:
    own = server(json.loads(sys.argv[1]), int(sys.argv[2]))
    print("listening", flush=True)
    sys.stdin.read()
    os._exit(0)


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return [f"127.0.0.1:{p}" for p in ports]


class Cluster:
    def __init__(self, n):
        tasks = free_ports(n + 1)
        pipe = subprocess.PIPE
        command = [sys.executable, __file__, json.dumps(tasks)]
        self.others = [subprocess.Popen(command + [str(k)], stdin=pipe, stdout=pipe) for k in range(1, n + 1)]
        for other in self.others:
            other.stdout.readline()
        self.server = server(tasks, 0)

    def end(self):
        for other in self.others:
            other.kill()
            other.wait()


def device(task):
    return tf1.device(f"/job:worker/task:{task}")


def null(n):
    ops = []
    for task in range(1, n + 1):
        with device(task):
            ops.append(tf1.no_op())
    return ops


def tensor(n):
    with device(1):
        v = tf1.get_variable("v", initializer=tf.ones([n // 4]))
        value = tf.identity(v.read_value() if hasattr(v, "read_value") else v)
    with device(0):
        return tf.slice(value, [0], [1])


def main():
    cluster = case = session = call = None
    for line in sys.stdin:
        request = json.loads(line)
        name = request["case"]
        if name != case:
            kind, n = name.split()
            n_tasks = int(n) if kind == "null" else 1
            if cluster is None or len(cluster.others) != n_tasks:
                if cluster is not None:
                    cluster.end()
                cluster = Cluster(n_tasks)
            graph = tf1.Graph()
            with graph.as_default():
                fetch = null(n_tasks) if kind == "null" else tensor(int(n))
                init = tf1.global_variables_initializer()
            tf1.Session.reset(cluster.server.target, config=config())
            session = tf1.Session(cluster.server.target, graph=graph, config=config())
            session.run(init)
            case, call = name, session.make_callable(fetch)
            for _ in range(5):
                call()
        wall, cpu = [], []
        for _ in range(request["repeat"]):
            c, w = time.process_time_ns(), time.perf_counter_ns()
            call()
            wall.append(time.perf_counter_ns() - w)
            cpu.append(time.process_time_ns() - c)
        print(json.dumps({"wall_ns": wall, "cpu_ns": cpu, "nodes": None}), flush=True)
    if cluster is not None:
        cluster.end()
    os._exit(0)


main()
