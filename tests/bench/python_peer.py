#!/usr/bin/env python3
"""What marking costs in Python, for `stepscope-bench python`: ours and other tracers, each in a process of its own.

    python3 -m venv venv && venv/bin/pip install viztracer==1.1.1 perfetto==0.59.1 pytracy==0.0.2
    PYTHONPATH=FOLDER_OF_stepscope venv/bin/python tests/bench/python_peer.py CASE

Prints the least nanoseconds of a repetition, the loop around it taken off. Without a case it lists them.
"""
import sys
import tempfile
import threading
import time

N = 20_000
ROUNDS = 25


def least(loop):
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        loop()
        best = min(best, time.perf_counter_ns() - begin)
    return best / N


def empty():
    for _ in range(N):
        pass


def entered(make):
    """A `with` statement on what `make` gives each time."""
    def loop():
        for _ in range(N):
            with make("step"):
                pass
    return loop


def work():
    pass


def called(function):
    def loop():
        for _ in range(N):
            function()
    return loop


def lock():
    """What a `with` statement costs on an object of C that nobody else wants."""
    held = threading.Lock()

    def loop():
        for _ in range(N):
            with held:
                pass
    return least(loop)


def recording(loop):
    import stepscope

    with tempfile.TemporaryDirectory() as folder, stepscope.record(folder + "/trace"):
        return least(loop)


def stepscope_slice():
    import stepscope

    return recording(entered(stepscope.slice))


def stepscope_off():
    import stepscope

    return least(entered(stepscope.slice))


def stepscope_argument():
    import stepscope

    def loop():
        for i in range(N):
            with stepscope.slice("step", batch=i):
                pass
    return recording(loop)


def stepscope_function():
    import stepscope

    return recording(called(stepscope.traced(work)))


def stepscope_calls():
    import stepscope

    with tempfile.TemporaryDirectory() as folder, stepscope.record(folder + "/trace"), stepscope.trace_calls():
        return least(called(work))


def viztracer(max_stack_depth):
    from viztracer import VizTracer

    # Its buffer is a ring: older entries give way.
    return VizTracer(verbose=0, tracer_entries=1_000_000, max_stack_depth=max_stack_depth)


def viztracer_event():
    tracer = viztracer(0)
    tracer.start()
    try:
        return least(entered(tracer.log_event))
    finally:
        tracer.stop()


def viztracer_calls():
    tracer = viztracer(-1)
    tracer.start()
    try:
        return least(called(work))
    finally:
        tracer.stop()


def perfetto_builder():
    """Perfetto has no tracing for Python: a slice is two packets of its builder, stamped and written."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

    with tempfile.TemporaryFile() as file:
        builder = StreamingTraceProtoBuilder(file)

        def write(kind):
            packet = builder.create_packet()
            packet.timestamp = time.perf_counter_ns()
            packet.track_event.type = kind
            packet.track_event.track_uuid = 1
            packet.track_event.name = "step"
            packet.trusted_packet_sequence_id = 1
            builder.write_packet(packet)

        def loop():
            for _ in range(N):
                write(TrackEvent.TYPE_SLICE_BEGIN)
                write(TrackEvent.TYPE_SLICE_END)
        return least(loop)


def pytracy_calls():
    import pytracy

    pytracy.set_filtering_mode(True, True, False)
    pytracy.enable_tracing(True)
    try:
        return least(called(work))
    finally:
        pytracy.enable_tracing(False)


CASES = {
    "with a lock": lock,
    "stepscope, slice": stepscope_slice,
    "stepscope, slice, not recording": stepscope_off,
    "stepscope, slice with an argument": stepscope_argument,
    "viztracer, log_event": viztracer_event,
    "perfetto, two packets": perfetto_builder,
    "plain call": lambda: least(called(work)),
    "stepscope, traced function": stepscope_function,
    "stepscope, all calls": stepscope_calls,
    "viztracer, all calls": viztracer_calls,
    "pytracy, all calls": pytracy_calls,
}

if __name__ == "__main__":
    if len(sys.argv) == 1:
        print("\n".join(CASES))
    else:
        print(CASES[sys.argv[1]]() - least(empty))
