//! What nodes of a step wait for, and the values that wait for them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::compile::plan::Plan;
use crate::run::executor::slots::Slots;
use crate::run::executor::workers::Workers;

/// The state of a step of a plan without control flow; clean between steps: slots empty, counts at their initial values.
pub(crate) struct FlatState {
    pub slots: Slots,
    /// By node: the arrivals that it waits for.
    pending: Box<[AtomicU32]>,
    /// In a stamped step, which event node made each node ready (high half) and when (low half of the ticks).
    pub ready: Box<[AtomicU64]>,
    pub workers: Workers<u32>,
}

impl FlatState {
    pub fn new(plan: &Plan, n_workers: usize) -> FlatState {
        let mut state = FlatState {
            slots: Slots::new(plan.n_slots),
            pending: std::iter::repeat_with(|| AtomicU32::new(0)).take(plan.pending.len()).collect(),
            ready: std::iter::repeat_with(|| AtomicU64::new(0)).take(plan.pending.len()).collect(),
            workers: Workers::new(plan, n_workers),
        };
        state.reset(plan);
        state
    }

    /// Makes the counts ready for a step.
    pub fn reset(&mut self, plan: &Plan) {
        // Plain stores through `get_mut`: one copy of memory.
        for (count, initial) in self.pending.iter_mut().zip(&plan.pending) {
            *count.get_mut() = *initial;
        }
    }

    /// Drops what a step that ended early left behind.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.workers.clear();
    }

    /// Whether the node got all it waits for, one arrival later.
    #[inline]
    pub fn arrive<const SHARED: bool>(&self, node: u32) -> bool {
        let count = &self.pending[node as usize];
        if SHARED {
            // Release: the value this thread put into a slot. Acquire: the values that others put.
            return count.fetch_sub(1, Ordering::AcqRel) == 1;
        }
        // The only thread: a plain load and store.
        let left = count.load(Ordering::Relaxed) - 1;
        count.store(left, Ordering::Relaxed);
        left == 0
    }
}
