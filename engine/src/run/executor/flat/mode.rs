//! Executions are nodes: each runs once.

use std::sync::atomic::AtomicU64;

use super::state::FlatState;
use crate::compile::plan::NodeRecord;
use crate::run::executor::error::Stop;
use crate::run::executor::worker::{Action, Mode, Worker};
use crate::run::executor::workers::Workers;
use engine_core::kernel::{ExecutionTag, FrameTag, KernelError, Slot};
use engine_core::trace::Readiness;

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
    fn is_dead(_: u32) -> bool {
        false
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
    fn action(_: &mut u32, _: &NodeRecord, _: &mut [Slot]) -> Action {
        Action::Kernel
    }

    fn forward(_: &NodeRecord, _: &mut [Slot], _: &mut [Slot]) -> Result<(), KernelError> {
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
        worker: &mut Worker<'_, 'a, Self, SHARED, STAMPED>,
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
