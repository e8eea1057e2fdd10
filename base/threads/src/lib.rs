//! Threads, waits and the clock, of the system or of a simulation.
//!
//! Code that communicates with other processes starts its threads ([`spawn`]), waits ([`Condvar`], [`Mutex`],
//! [`sleep`]) and reads the clock ([`now`]) through this crate. Outside of simulations these are the system's, at the
//! cost of one relaxed load each. In a [`simulation::Simulation`] the same code runs one thread at a time; the order
//! and the clock follow from a seed, so that a run can be repeated.
//!
//! A lock whose holder never waits may be `parking_lot`'s: where one thread runs at a time, such a lock is always free.

pub mod simulation;
mod sync;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use sync::{Condvar, Mutex, MutexGuard};

/// Monotonic time, nanoseconds.
#[must_use]
pub fn now() -> i64 {
    match simulation::seat() {
        Some(seat) => seat.now(),
        None => events::clock::mono_now(),
    }
}

/// The time since `begin`, a time of [`now`].
#[must_use]
pub fn since(begin: i64) -> Duration {
    Duration::from_nanos(now().saturating_sub(begin).max(0).unsigned_abs())
}

/// Blocks the thread for `time`.
pub fn sleep(time: Duration) {
    match simulation::seat() {
        Some(seat) => seat.sleep(time),
        None => std::thread::sleep(time),
    }
}

/// Lets other threads run first, if any are ready.
pub fn yield_now() {
    match simulation::seat() {
        Some(seat) => seat.may_switch(),
        None => std::thread::yield_now(),
    }
}

/// A number that differs from those of other processes and of earlier starts of this one.
#[must_use]
pub fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if let Some(seat) = simulation::seat() {
        return seat.simulation().unique();
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let time = events::clock::wall_now_ns().unsigned_abs();
    time.rotate_left(20) ^ (u64::from(std::process::id()) << 32) ^ number
}

/// A started thread, whose end can be waited for.
#[derive(Debug)]
pub struct JoinHandle(HandleKind);

#[derive(Debug)]
enum HandleKind {
    System(std::thread::JoinHandle<()>),
    Simulated(simulation::ThreadEnd),
}

/// Starts a thread. In a simulation it belongs to the process of its caller.
///
/// # Errors
/// The system cannot start a thread.
pub fn spawn(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle> {
    let name = name.into();
    if let Some(seat) = simulation::seat() {
        return Ok(JoinHandle(HandleKind::Simulated(seat.spawn(&name, body)?)));
    }
    let thread = std::thread::Builder::new().name(name).spawn(body)?;
    Ok(JoinHandle(HandleKind::System(thread)))
}

impl JoinHandle {
    /// Waits for the thread's end. Returns `false` where the thread panicked.
    #[must_use = "a thread that panicked did not do its work"]
    pub fn join(self) -> bool {
        match self.0 {
            HandleKind::System(thread) => thread.join().is_ok(),
            HandleKind::Simulated(thread) => thread.join(),
        }
    }
}
