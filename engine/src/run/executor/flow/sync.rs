//! The synchronisation types of `counts`, in one place so that its model test (`tests/flow_model.rs`) compiles the same
//! source on loom's types.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering};
