//! From one iteration to another: what `Enter`, `Exit` and `NextIteration` do, and how iterations and frames begin and
//! end.
//!
//! An `Enter` leads to iteration 0 of a frame, a constant one to all of its iterations. A live `NextIteration` leads to
//! the next one, which it begins, unless as many run as may: then it waits until the oldest has ended. A dead one stops
//! there. A live `Exit` leads to where the frame was entered; exits through which nothing left are dead once the frame
//! has ended.

use std::sync::atomic::Ordering;

use super::counts;
use super::mode::Frames;
use super::state::{FrameControl, FrameRef, IterationRef, Ready};
use crate::compile::plan::NodeRecord;
use crate::compile::plan::frames::FlowKind;
use crate::run::executor::error::Stop;
use crate::run::executor::worker::Worker;
use engine_core::trace::Readiness;

impl<'a, const SHARED: bool, const STAMPED: bool> Worker<'_, 'a, Frames<'a>, SHARED, STAMPED> {
    /// An execution is over, its outputs in the worker's state: delivers them where they belong, counts, and lets go of its
    /// iteration.
    #[inline]
    pub fn propagate(&mut self, ready: Ready, record: &NodeRecord, readiness: Readiness) -> Result<(), Stop> {
        let Ready { iteration, node, is_dead } = ready;
        match record.kind {
            FlowKind::Enter => {
                let frame =
                    self.mode.state.enter(self.plan, self.mode.flow, iteration, self.mode.flow.args[node as usize]);
                if let Some(first) = frame.first() {
                    let n_ready = self.deliver_in(first, node, record, is_dead, readiness)?;
                    self.hold(first, n_ready as i32 - 1)?;
                }
                self.hold(iteration, -1)?;
            }
            FlowKind::ConstantEnter => {
                let frame =
                    self.mode.state.enter(self.plan, self.mode.flow, iteration, self.mode.flow.args[node as usize]);
                self.add_invariant(frame, node, is_dead, readiness)?;
                self.hold(iteration, -1)?;
            }
            FlowKind::Exit => {
                if let Some(frame) = iteration.frame().filter(|_| !is_dead)
                    && let Some(parent) = frame.parent()
                {
                    frame.live_exits[self.mode.flow.args[node as usize] as usize].store(true, Ordering::Relaxed);
                    let n_ready = self.deliver_in(parent, node, record, false, readiness)?;
                    self.hold(parent, n_ready as i32)?;
                }
                self.hold(iteration, -1)?;
            }
            FlowKind::NextIteration => {
                if !is_dead {
                    self.next_iteration(iteration, node, record, readiness)?;
                }
                self.hold(iteration, -1)?;
            }
            _ => {
                let n_ready = self.deliver_in(iteration, node, record, is_dead, readiness)?;
                self.hold(iteration, n_ready as i32 - 1)?;
            }
        }
        Ok(())
    }

    /// Adds to what keeps the iteration, and retires it when nothing does.
    #[inline]
    fn hold(&mut self, iteration: IterationRef, by: i32) -> Result<(), Stop> {
        match counts::hold::<SHARED>(&iteration.holds, by) {
            true => self.retire(iteration),
            false => Ok(()),
        }
    }

    /// Delivers a value that does not change to all iterations there are, and notes it for those to come.
    fn add_invariant(&mut self, frame: FrameRef, node: u32, is_dead: bool, readiness: Readiness) -> Result<(), Stop> {
        let record = &self.plan.nodes[node as usize];
        let value = self.state.outputs[0].take();
        let mut control = frame.control.lock();
        let iterations = control.iterations.clone();
        for iteration in &iterations {
            self.state.outputs[0] = value.clone();
            let n_ready = self.deliver_in(*iteration, node, record, is_dead, readiness)?;
            // Not its last hold: the frame misses this `Enter`.
            counts::hold::<SHARED>(&iteration.holds, n_ready as i32);
        }
        control.invariants.push((node, value));
        drop(control);
        match frame.first() {
            Some(first) => self.hold(first, -1),
            None => Ok(()),
        }
    }

    /// Delivers a live value to the next iteration, or has it wait for that.
    fn next_iteration(
        &mut self,
        iteration: IterationRef,
        node: u32,
        record: &NodeRecord,
        readiness: Readiness,
    ) -> Result<(), Stop> {
        let next = match iteration.next() {
            Some(next) => Some(next),
            None => self.begin_next(iteration, node, readiness)?,
        };
        if let Some(next) = next {
            let n_ready = self.deliver_in(next, node, record, false, readiness)?;
            // Not its last hold: its predecessor, this iteration, has not ended.
            counts::hold::<SHARED>(&next.holds, n_ready as i32);
        }
        Ok(())
    }

    /// The iteration after the newest; `None` where it cannot begin yet and the value waits.
    #[cold]
    fn begin_next(
        &mut self,
        iteration: IterationRef,
        node: u32,
        readiness: Readiness,
    ) -> Result<Option<IterationRef>, Stop> {
        let Some(frame) = iteration.frame() else { return Ok(None) };
        let value = self.state.outputs[0].take();
        let mut control = frame.control.lock();
        let next = match iteration.next() {
            Some(next) => next,
            None if control.iterations.len()
                >= self.mode.flow.frames[frame.spec as usize].parallel_iterations as usize =>
            {
                control.deferred.push((node, value));
                return Ok(None);
            }
            None => self.begin_iteration(frame, &mut control, readiness)?,
        };
        drop(control);
        self.state.outputs[0] = value;
        Ok(Some(next))
    }

    /// Begins an iteration of the frame: with what waited for it, and with what does not change.
    fn begin_iteration(
        &mut self,
        frame: FrameRef,
        control: &mut FrameControl,
        readiness: Readiness,
    ) -> Result<IterationRef, Stop> {
        // Kept by its predecessor, or where that has ended by whoever retired it.
        let iteration = self.mode.state.take_iteration(self.plan, self.mode.flow, frame, control.n_started, 1);
        control.n_started += 1;
        let mut n_ready = 0;
        let mut deferred = std::mem::take(&mut control.deferred);
        for (node, value) in deferred.drain(..) {
            self.state.outputs[0] = value;
            n_ready += self.deliver_in(iteration, node, &self.plan.nodes[node as usize], false, readiness)?;
        }
        control.deferred = deferred;
        for (node, value) in &control.invariants {
            self.state.outputs[0] = value.clone();
            let record = &self.plan.nodes[*node as usize];
            n_ready += self.deliver_in(iteration, *node, record, value.is_none(), readiness)?;
        }
        counts::hold::<SHARED>(&iteration.holds, n_ready as i32);
        if let Some(newest) = control.iterations.back() {
            newest.next.store(iteration.as_ptr(), Ordering::Release);
        }
        control.iterations.push_back(iteration);
        Ok(iteration)
    }

    /// An iteration has ended: nothing keeps it.
    #[cold]
    fn retire(&mut self, iteration: IterationRef) -> Result<(), Stop> {
        // The root's end is the step's.
        let Some(frame) = iteration.frame() else { return Ok(()) };
        let mut control = frame.control.lock();
        // It is the oldest: others are kept by their predecessors.
        control.iterations.pop_front();
        self.mode.state.give_iteration(self.mode.flow, iteration);
        if !control.deferred.is_empty() {
            self.begin_iteration(frame, &mut control, Readiness::UNKNOWN)?;
        }
        let next = control.iterations.front().copied();
        drop(control);
        match next {
            Some(next) => self.hold(next, -1),
            None => self.end_frame(frame),
        }
    }

    /// A frame's instance has ended: exits through which nothing left are dead.
    #[cold]
    fn end_frame(&mut self, frame: FrameRef) -> Result<(), Stop> {
        let Some(parent) = frame.parent() else { return Ok(()) };
        let spec = &self.mode.flow.frames[frame.spec as usize];
        let mut n_ready = 0;
        for (exit, node) in spec.exits.iter().enumerate() {
            if !frame.live_exits[exit].swap(false, Ordering::Relaxed) {
                let record = &self.plan.nodes[*node as usize];
                n_ready += self.deliver_in(parent, *node, record, true, Readiness::UNKNOWN)?;
            }
        }
        {
            let mut control = frame.control.lock();
            control.invariants.clear();
            control.n_started = 0;
        }
        parent.children[spec.child_idx as usize].store(std::ptr::null_mut(), Ordering::Relaxed);
        self.mode.state.give_frame(frame);
        self.hold(parent, n_ready as i32 - 1)
    }
}
