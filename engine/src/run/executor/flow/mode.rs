//! Plans with control flow: tagged executions, delivered within iterations.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::counts;
use super::state::{FlowState, IterationRef, Ready};
use crate::compile::plan::NodeRecord;
use crate::compile::plan::frames::{FlowKind, FlowPlan};
use crate::run::executor::error::Stop;
use crate::run::executor::worker::{Action, Mode, Worker};
use crate::run::executor::workers::Workers;
use engine_core::kernel::{ExecutionTag, FrameTag, KernelError, Slot};
use engine_core::tensor::Tensor;
use engine_core::trace::Readiness;

/// The frames of a step's plan.
#[derive(Clone, Copy)]
pub(in crate::run::executor) struct Frames<'a> {
    pub flow: &'a FlowPlan,
    pub state: &'a FlowState,
}

impl<'a> Mode<'a> for Frames<'a> {
    type Ready = Ready;

    fn workers(self) -> &'a Workers<Ready> {
        &self.state.workers
    }

    fn root(self, node: u32) -> Ready {
        Ready { iteration: self.state.root, node, is_dead: false }
    }

    #[inline]
    fn node(ready: Ready) -> u32 {
        ready.node
    }

    #[inline]
    fn is_dead(ready: Ready) -> bool {
        ready.is_dead
    }

    #[inline]
    fn readiness(self, Ready { iteration, node, .. }: Ready) -> &'a AtomicU64 {
        &iteration.within(self.state).ready[(node - iteration.first_node) as usize]
    }

    #[inline]
    unsafe fn inputs(self, Ready { iteration, .. }: Ready, record: &NodeRecord) -> &'a mut [Slot] {
        let first = (record.first_slot - iteration.first_slot) as usize;
        // SAFETY: as the caller promises.
        unsafe { iteration.within(self.state).slots.inputs(first, record.n_inputs as usize) }
    }

    #[inline]
    fn action(ready: &mut Ready, record: &NodeRecord, inputs: &mut [Slot]) -> Action {
        if ready.is_dead {
            inputs.fill_with(|| None);
            match record.kind {
                FlowKind::ControlTrigger => ready.is_dead = false,
                FlowKind::Transfer => {}
                _ => return Action::Skip,
            }
        }
        match record.kind {
            FlowKind::Compute | FlowKind::NoOp | FlowKind::Transfer => Action::Kernel,
            _ => Action::Forward,
        }
    }

    #[inline]
    fn forward(record: &NodeRecord, inputs: &mut [Slot], outputs: &mut [Slot]) -> Result<(), KernelError> {
        forward(record.kind, inputs, outputs)
    }

    #[inline]
    fn frame_tag(Ready { iteration, .. }: Ready) -> FrameTag {
        FrameTag {
            frame: iteration.frame().map_or(0, |frame| frame.id.load(Ordering::Relaxed)),
            iteration: iteration.number.load(Ordering::Relaxed),
        }
    }

    #[inline]
    fn execution_tag(Ready { iteration, node, .. }: Ready) -> ExecutionTag {
        ExecutionTag::new(node, iteration.as_ptr() as usize)
    }

    unsafe fn tagged(tag: &ExecutionTag) -> Option<Ready> {
        // SAFETY: `execution_tag` put it there, in this step, and the execution keeps its iteration.
        let iteration = unsafe { IterationRef::from_ptr(tag.iteration as *mut _) }?;
        Some(Ready { iteration, node: tag.node, is_dead: false })
    }

    #[inline]
    fn deliver<const SHARED: bool, const STAMPED: bool>(
        worker: &mut Worker<'_, 'a, Self, SHARED, STAMPED>,
        ready: Ready,
        record: &NodeRecord,
        readiness: Readiness,
    ) -> Result<(), Stop> {
        worker.propagate(ready, record, readiness)
    }
}

impl<'a, const SHARED: bool, const STAMPED: bool> Worker<'_, 'a, Frames<'a>, SHARED, STAMPED> {
    /// Hands the outputs in the worker's state to the node's consumers in `iteration`, and makes those ready that waited for
    /// nothing else; gives their number, which is not yet counted in the iteration. `is_dead`: the outputs are absent.
    #[inline]
    pub fn deliver_in(
        &mut self,
        iteration: IterationRef,
        node: u32,
        record: &NodeRecord,
        is_dead: bool,
        readiness: Readiness,
    ) -> Result<u32, Stop> {
        let kind = record.kind;
        let may_be_dead = is_dead || matches!(kind, FlowKind::Switch | FlowKind::SwitchN | FlowKind::Transfer);
        let mut n_ready = 0;
        for edge in self.plan.data_edges(record.data) {
            let value = self.output(edge);
            if value.is_none() && !may_be_dead {
                return Err(self.left_unset(node, edge.port()));
            }
            let slot = edge.slot - iteration.first_slot;
            let arrived = if edge.is_merge() {
                self.arrive_at_merge(iteration, edge.consumer, slot, value, kind)
            } else {
                let is_dead = value.is_none();
                if !is_dead {
                    // SAFETY: this worker runs the producer, and counts the arrival only below.
                    unsafe { iteration.slots.put(slot, value) };
                }
                if edge.is_sole() {
                    Some(is_dead)
                } else {
                    counts::arrive::<SHARED>(count(&iteration, edge.consumer), is_dead)
                }
            };
            if let Some(is_dead) = arrived {
                self.make_ready(Ready { iteration, node: edge.consumer, is_dead }, readiness);
                n_ready += 1;
            }
        }
        for edge in self.plan.control_edges(record.control) {
            let consumer = edge.consumer();
            let arrived = if edge.is_sole() {
                Some(is_dead)
            } else if edge.is_merge() {
                let n_inputs = self.plan.nodes[consumer as usize].n_inputs;
                counts::arrive_control::<SHARED>(count(&iteration, consumer), n_inputs)
            } else {
                counts::arrive::<SHARED>(count(&iteration, consumer), is_dead)
            };
            if let Some(is_dead) = arrived {
                self.make_ready(Ready { iteration, node: consumer, is_dead }, readiness);
                n_ready += 1;
            }
        }
        self.drop_unused_outputs(record);
        Ok(n_ready)
    }

    #[inline]
    fn arrive_at_merge(
        &self,
        iteration: IterationRef,
        node: u32,
        slot: u32,
        value: Slot,
        from: FlowKind,
    ) -> Option<bool> {
        let word = count(&iteration, node);
        if value.is_some() {
            if !counts::claim::<SHARED>(word) {
                return None;
            }
            // SAFETY: only one producer claims the `Merge`, and counts the arrival only below.
            unsafe { iteration.slots.put(slot, value) };
            return counts::arrive_live::<SHARED>(word).then_some(false);
        }
        let n_inputs = self.plan.nodes[node as usize].n_inputs;
        // What would come round never will: a loop that is entered dead is dead.
        let n = if from.is_enter() { n_inputs } else { 1 };
        counts::arrive_dead::<SHARED>(word, n, n_inputs).then_some(true)
    }
}

/// What a node of the iteration waits for.
#[inline]
fn count(iteration: &IterationRef, node: u32) -> &AtomicU32 {
    &iteration.counts[(node - iteration.first_node) as usize]
}

/// What a primitive does with its inputs.
#[inline]
fn forward(kind: FlowKind, inputs: &mut [Slot], outputs: &mut [Slot]) -> Result<(), KernelError> {
    match kind {
        FlowKind::ControlTrigger => {}
        FlowKind::Switch => {
            let pred =
                inputs.get(1).and_then(Option::as_ref).ok_or_else(|| KernelError::MissingInput(1))?.item::<bool>()?;
            outputs[usize::from(pred)] = inputs[0].take();
        }
        FlowKind::SwitchN => {
            let side =
                inputs.get(1).and_then(Option::as_ref).ok_or_else(|| KernelError::MissingInput(1))?.item::<i32>()?;
            // What is no side means the last one.
            let last = outputs.len().saturating_sub(1);
            let side = usize::try_from(side).map_or(last, |side| side.min(last));
            if let Some(output) = outputs.get_mut(side) {
                *output = inputs[0].take();
            }
        }
        FlowKind::Merge | FlowKind::IndexedMerge => {
            let first = inputs.iter().position(Option::is_some).ok_or_else(|| KernelError::MissingInput(0))?;
            outputs[0] = inputs[first].take();
            if kind == FlowKind::IndexedMerge {
                outputs[1] = Some(Tensor::scalar(first as i32));
            }
        }
        _ => outputs[0] = inputs.first_mut().and_then(Option::take),
    }
    Ok(())
}
