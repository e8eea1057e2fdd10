//! The clocks of the standard library, for systems that are not Unix; nanoseconds.
//!
//! `wasm32-unknown-unknown` has no clock: there the standard library panics at the first reading.

#![allow(clippy::disallowed_methods, reason = "the module that reads clocks")]

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Since the process first read this clock: the standard library shows no other zero.
pub(super) fn mono_ns() -> i64 {
    static ZERO: OnceLock<Instant> = OnceLock::new();
    i64::try_from(ZERO.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn wall_ns() -> i64 {
    let nanos = |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    SystemTime::now().duration_since(UNIX_EPOCH).map_or_else(|before| -nanos(before.duration()), nanos)
}

pub(super) fn process_cpu_ns() -> i64 {
    0
}

pub(super) fn thread_cpu_ns() -> i64 {
    0
}
