//! Events of a running program: clock, ids, the event record, per-thread rings in files, the tracing layer.
