//! Threads, waits and the clock: the system's, or a simulation's.
//!
//! What talks to other processes starts its threads ([`spawn`]), waits ([`Condvar`], [`Mutex`], [`sleep`]) and looks at
//! the clock ([`now`]) through here. In a program these are the system's, for the cost of one relaxed load each. Below
//! [`simulation::Simulation`] the same code runs one thread at a time, in an order and with a clock that follow from a
//! seed: what happens once can be made to happen again.
//!
//! Locks that nobody waits below are `parking_lot`'s: where one thread runs at a time, they are free.

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

/// The time since `begin`, which [`now`] gave.
#[must_use]
pub fn since(begin: i64) -> Duration {
    Duration::from_nanos(now().saturating_sub(begin).max(0).unsigned_abs())
}

/// Lets time pass.
pub fn sleep(time: Duration) {
    match simulation::seat() {
        Some(seat) => seat.sleep(time),
        None => std::thread::sleep(time),
    }
}

/// Lets other threads of this processor run.
pub fn yield_now() {
    match simulation::seat() {
        Some(seat) => seat.may_switch(),
        None => std::thread::yield_now(),
    }
}

/// A number that nobody else has: no other process, no earlier start of this one.
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

/// A thread that was started.
#[derive(Debug)]
pub struct JoinHandle(Kind);

#[derive(Debug)]
enum Kind {
    System(std::thread::JoinHandle<()>),
    Simulated(simulation::Ended),
}

/// Starts a thread. In a simulation it belongs to the process of its caller.
///
/// # Errors
/// The system gives no thread.
pub fn spawn(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle> {
    let name = name.into();
    if let Some(seat) = simulation::seat() {
        return Ok(JoinHandle(Kind::Simulated(seat.spawn(&name, body)?)));
    }
    let thread = std::thread::Builder::new().name(name).spawn(body)?;
    Ok(JoinHandle(Kind::System(thread)))
}

impl JoinHandle {
    /// Waits for the thread's end; `false` where it panicked.
    #[must_use = "a thread that panicked did not do its work"]
    pub fn join(self) -> bool {
        match self.0 {
            Kind::System(thread) => thread.join().is_ok(),
            Kind::Simulated(ended) => ended.wait(),
        }
    }
}
