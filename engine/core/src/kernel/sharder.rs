//! How a kernel's work is split over threads.

use std::ops::Range;

/// Splits the work of one kernel over several threads.
pub trait Sharder: Sync {
    /// The threads that can work at once, this one included.
    fn n_workers(&self) -> usize;

    /// Calls `body` on disjoint ranges that cover `0..total`, possibly at once, and returns when all are done.
    /// `cost_per_unit_ns` says how long one unit takes alone: little work stays on this thread.
    fn parallel_for(&self, total: usize, cost_per_unit_ns: u64, body: &(dyn Fn(Range<usize>) + Sync));
}

/// A sharder that does all work on the calling thread.
pub struct Serial;

impl Sharder for Serial {
    fn n_workers(&self) -> usize {
        1
    }

    fn parallel_for(&self, total: usize, _cost_per_unit_ns: u64, body: &(dyn Fn(Range<usize>) + Sync)) {
        if total > 0 {
            body(0..total);
        }
    }
}
