//! Plans without control flow: each node runs once, when its pending count has fallen to zero.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::error::Stop;
use super::slots::Slots;
use super::worker::{Action, Mode, Worker};
use super::workers::Workers;
use crate::compile::plan::{NodeRecord, Plan};
use crate::kernel::{ExecutionTag, FrameTag, KernelError, Slot};
use crate::trace::Readiness;

/// The state of a step of such a plan; clean between steps: slots empty, counts at their initial values.
pub(crate) struct FlatState {
    pub slots: Slots,
    /// By node: the arrivals that it waits for.
    pending: Box<[AtomicU32]>,
    /// In a stamped step, which event node made each node ready (high half) and when (low half of the ticks).
    ready: Box<[AtomicU64]>,
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
    fn arrive<const SHARED: bool>(&self, node: u32) -> bool {
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

impl<'a> Mode<'a> for &'a FlatState {
    type Ready = u32;

    fn workers(self) -> &'a Workers<u32> {
        &self.workers
    }

    fn root(self, node: u32) -> u32 {
        node
    }

    #[inline]
    fn node(node: u32) -> u32 {
        node
    }

    #[inline]
    fn readiness(self, node: u32) -> &'a AtomicU64 {
        &self.ready[node as usize]
    }

    #[inline]
    unsafe fn inputs(self, _: u32, record: &NodeRecord) -> &'a mut [Slot] {
        // SAFETY: as the caller promises.
        unsafe { self.slots.inputs(record.first_slot as usize, record.n_inputs as usize) }
    }

    #[inline]
    fn action(self, _: &mut u32, _: &mut [Slot]) -> Action {
        Action::Kernel
    }

    fn forward(self, _: u32, _: &mut [Slot], _: &mut [Slot]) -> Result<(), KernelError> {
        Ok(())
    }

    #[inline]
    fn frame_tag(_: u32) -> FrameTag {
        FrameTag::default()
    }

    #[inline]
    fn execution_tag(node: u32) -> ExecutionTag {
        ExecutionTag::new(node, 0)
    }

    unsafe fn tagged(tag: &ExecutionTag) -> Option<u32> {
        Some(tag.node)
    }

    #[inline]
    fn deliver<const SHARED: bool, const STAMPED: bool>(
        worker: &mut Worker<'a, Self, SHARED, STAMPED>,
        node: u32,
        record: &NodeRecord,
        readiness: Readiness,
    ) -> Result<(), Stop> {
        let (plan, state) = (worker.plan, worker.mode);
        for edge in plan.data_edges(record.data) {
            let value = worker.output(edge);
            if value.is_none() {
                return Err(worker.left_unset(node, edge.port()));
            }
            // SAFETY: this worker runs the producer, and counts the arrival only below.
            unsafe { state.slots.put(edge.slot, value) };
            if edge.is_sole() || state.arrive::<SHARED>(edge.consumer) {
                worker.make_ready(edge.consumer, readiness);
            }
        }
        for edge in plan.control_edges(record.control) {
            if edge.is_sole() || state.arrive::<SHARED>(edge.consumer()) {
                worker.make_ready(edge.consumer(), readiness);
            }
        }
        worker.drop_unused_outputs(record);
        Ok(())
    }
}
