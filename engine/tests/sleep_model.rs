//! A model of the parking protocol: loom runs the interleavings of the threads, weak memory included.
//!
//! All of those with at most one preemption, a second; with `STEPSCOPE_SOAK` set, with two, half a minute.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, missing_docs, reason = "the module under test is compiled here on loom's types")]

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;

    pub(crate) const SPINS: u32 = 1;
}

#[path = "../src/run/pool/sleep.rs"]
mod sleep;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use sleep::Sleep;

struct Shared {
    sleep: Sleep,
    work: AtomicU32,
}

/// Takes one unit of work, sleeping until there is one.
fn take(shared: &Shared) {
    loop {
        let ticket = shared.sleep.ticket();
        let work = shared.work.load(Ordering::Relaxed);
        if work > 0 {
            if shared.work.compare_exchange(work, work - 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return;
            }
            continue;
        }
        shared.sleep.wait(ticket);
    }
}

fn check(n_workers: u32, post: fn(&Shared, u32)) {
    let mut builder = loom::model::Builder::new();
    let is_soak = std::env::var_os("STEPSCOPE_SOAK").is_some();
    builder.preemption_bound = Some(if is_soak { 2 } else { 1 });
    builder.check(move || {
        let shared = Arc::new(Shared { sleep: Sleep::new(), work: AtomicU32::new(0) });
        let workers: Vec<_> = (0..n_workers)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || take(&shared))
            })
            .collect();
        post(&shared, n_workers);
        // A lost wake-up leaves a worker asleep: loom reports the deadlock.
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn one_notification_wakes_one_sleeper() {
    check(1, |shared, n| {
        shared.work.fetch_add(n, Ordering::Relaxed);
        shared.sleep.notify();
    });
}

#[test]
fn each_unit_of_work_finds_a_sleeper() {
    check(2, |shared, n| {
        for _ in 0..n {
            shared.work.fetch_add(1, Ordering::Relaxed);
            shared.sleep.notify();
        }
    });
}

#[test]
fn notify_all_wakes_all() {
    check(2, |shared, n| {
        shared.work.fetch_add(n, Ordering::Relaxed);
        shared.sleep.notify_all();
    });
}
