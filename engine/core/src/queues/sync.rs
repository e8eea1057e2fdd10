//! The lock of `attempts`, in one place so that its model test (`tests/queue_model.rs`) compiles the same source on loom's.

pub use parking_lot::Mutex;
