//! Where asynchronous kernels of a step report their end, and where the step's caller waits for it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::run::pool::{Sleep, Waker};
use engine_core::kernel::{CompletionSink, ExecutionTag, KernelError, Outputs};

/// An asynchronous kernel's end that no worker has looked at yet.
pub(crate) struct Finished {
    pub tag: ExecutionTag,
    pub result: Result<Outputs, KernelError>,
}

/// The meeting point of a step's workers with the threads that end its asynchronous kernels. It is kept with
/// the step's state for the next step: a step ends only when all kernels that it started have ended.
pub(crate) struct Parking {
    finished: Mutex<Vec<Finished>>,
    /// `finished.len()`, readable without the lock.
    n_finished: AtomicU32,
    /// Kernels that were started and whose end was not yet taken.
    n_outstanding: AtomicU32,
    /// Where the step's caller waits.
    pub caller: Sleep,
    pool: Waker,
    /// Whether the pool's workers take part in the step.
    pub is_shared: AtomicBool,
}

impl Parking {
    pub fn new(pool: Waker) -> Parking {
        Parking {
            finished: Mutex::default(),
            n_finished: AtomicU32::new(0),
            n_outstanding: AtomicU32::new(0),
            caller: Sleep::new(),
            pool,
            is_shared: AtomicBool::new(false),
        }
    }

    /// Counts a kernel that is about to be started.
    pub fn begin(&self) {
        self.n_outstanding.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a kernel's end waits to be looked at. It may be out of date by a moment.
    #[inline]
    pub fn has_finished(&self) -> bool {
        self.n_finished.load(Ordering::Acquire) > 0
    }

    /// The end of a kernel.
    pub fn take(&self) -> Option<Finished> {
        if !self.has_finished() {
            return None;
        }
        let mut finished = self.finished.lock();
        let first = finished.pop()?;
        self.n_finished.store(finished.len() as u32, Ordering::Release);
        drop(finished);
        self.n_outstanding.fetch_sub(1, Ordering::AcqRel);
        Some(first)
    }

    /// Whether all kernels that were started have ended and were taken.
    pub fn is_empty(&self) -> bool {
        self.n_outstanding.load(Ordering::Acquire) == 0
    }
}

impl CompletionSink for Parking {
    fn finished(&self, tag: ExecutionTag, result: Result<Outputs, KernelError>) {
        let mut finished = self.finished.lock();
        finished.push(Finished { tag, result });
        self.n_finished.store(finished.len() as u32, Ordering::Release);
        drop(finished);
        self.caller.notify();
        if self.is_shared.load(Ordering::Relaxed) {
            self.pool.notify();
        }
    }
}
