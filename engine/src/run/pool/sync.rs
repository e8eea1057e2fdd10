//! The synchronisation types of `sleep`, in one place so that its model test (`tests/sleep_model.rs`)
//! compiles the same source on loom's types.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU32, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Polls before a thread parks: about 10 microseconds, less than what waking a parked thread costs.
pub(crate) const SPINS: u32 = 200;
