//! The hot loop of plans with control flow: as `executor::worker`, for tagged executions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::counts;
use super::state::{FlowState, IterationRef, Ready};
use crate::compile::plan::cost::TAKEN_TICKS;
use crate::compile::plan::frames::{FlowKind, FlowNode, FlowPlan};
use crate::compile::plan::{NodeRecord, Plan};
use crate::kernel::{AnyKernel, Completion, CompletionSink, ExecutionTag, FrameTag, KernelContext, KernelError, Slot};
use crate::run::executor::error::Stop;
use crate::run::executor::seat::{Seat, steal};
use crate::run::executor::step::Step;
use crate::run::executor::worker::{OpSharder, SPILL_AT, finished, left_unset, panicked, refused};
use crate::tensor::Tensor;
use crate::trace::{self, Readiness};

/// A worker of the pool, at one step.
pub(super) struct Worker<'a, const SHARED: bool, const STAMPED: bool> {
    pub step: &'a Step<'a>,
    pub plan: &'a Plan,
    pub flow: &'a FlowPlan,
    pub state: &'a FlowState,
    pub seat: &'a mut Seat<Ready>,
    worker: usize,
    /// The node that runs, for whoever catches its panic.
    current: u32,
    n_done: u32,
    /// Expensive executions that became ready: offered to others once they are counted in their iterations.
    expensive: Vec<Ready>,
    spill_at: usize,
    stamp: u64,
}

/// Runs `ready` and all executions that become ready, until none is left that this worker could take, or the step
/// fails.
pub(in crate::run::executor) fn run<const SHARED: bool, const STAMPED: bool>(
    step: &Step<'_>,
    state: &FlowState,
    seat: &mut Seat<Ready>,
    worker: usize,
    ready: &[u32],
) {
    let Some(flow) = &step.plan.flow else { return };
    let mut this = Worker::<SHARED, STAMPED> {
        step,
        plan: step.plan,
        flow,
        state,
        seat,
        worker,
        current: 0,
        n_done: 0,
        expensive: Vec::new(),
        spill_at: SPILL_AT,
        stamp: if STAMPED { events::clock::now() } else { 0 },
    };
    let result = catch_unwind(AssertUnwindSafe(|| this.run(ready)));
    let (n_done, current) = (this.n_done, this.current);
    match result {
        Ok(Ok(()) | Err(Stop::Halted)) => {}
        Ok(Err(Stop::Error(error))) => step.fail(*error),
        // What the kernel half did is in slots and outputs that the failed step drops.
        Err(payload) => step.fail(panicked(step, current, payload.as_ref())),
    }
    step.add_done(n_done, worker);
}

impl<const SHARED: bool, const STAMPED: bool> Worker<'_, SHARED, STAMPED> {
    fn run(&mut self, ready: &[u32]) -> Result<(), Stop> {
        for &node in ready {
            let iteration = self.state.root;
            self.make_ready(Ready { iteration, node, is_dead: false }, Readiness::at_begin(self.step.begin));
        }
        self.publish();
        let has_limits = self.step.has_limits();
        loop {
            while let Some(ready) = self.next() {
                if SHARED && self.step.is_halted() {
                    return Err(Stop::Halted);
                }
                if has_limits {
                    self.step.check_limits(self.n_done)?;
                }
                self.execute(ready)?;
            }
            if !self.plan.has_async || !self.complete()? {
                return Ok(());
            }
        }
    }

    #[inline]
    fn next(&mut self) -> Option<Ready> {
        if let Some(ready) = self.seat.local.pop() {
            return Some(ready);
        }
        if !SHARED {
            return None;
        }
        if let Some(ready) = self.seat.shared.pop() {
            return Some(ready);
        }
        let ready = steal(&self.state.stealers, self.worker)?;
        if STAMPED {
            self.stamp = events::clock::now();
        }
        Some(ready)
    }

    /// Delivers the outputs of an asynchronous kernel that ended. Whether there was one.
    fn complete(&mut self) -> Result<bool, Stop> {
        let Some((tag, readiness)) = finished::<STAMPED>(self.step, &mut self.seat.outputs, &mut self.stamp)? else {
            return Ok(false);
        };
        // SAFETY: `compute` put it there, in this step, and the execution keeps its iteration.
        let iteration = unsafe { IterationRef::from_ptr(tag.iteration as *mut _) };
        if let Some(iteration) = iteration {
            self.propagate(Ready { iteration, node: tag.node, is_dead: false }, readiness)?;
        }
        Ok(true)
    }

    #[inline]
    fn execute(&mut self, mut ready: Ready) -> Result<(), Stop> {
        let Ready { iteration, node, .. } = ready;
        let record = &self.plan.nodes[node as usize];
        let flow = self.flow.nodes[node as usize];
        self.current = node;
        let first = (record.first_slot - iteration.first_slot) as usize;
        // SAFETY: the execution is ready, and ready executions are handed to one worker only, here.
        let inputs = unsafe { iteration.slots.inputs(first, record.n_inputs as usize) };
        if ready.is_dead {
            inputs.fill_with(|| None);
            match flow.kind {
                FlowKind::ControlTrigger => ready.is_dead = false,
                FlowKind::Transfer => {}
                _ => return self.propagate(ready, Readiness::UNKNOWN),
            }
        }
        let slice = if STAMPED {
            let place = &iteration.ready[(node - iteration.first_node) as usize];
            let readiness = Readiness::from_bits(place.load(Ordering::Relaxed));
            let is_long = self.plan.costs.is_expensive(node);
            let event_id = self.plan.infos[node as usize].event_id;
            trace::OpSlice::begin(self.step.traced_step, self.stamp, record.op_site, event_id, readiness, is_long)
        } else {
            trace::OpSlice::Off
        };
        let is_over = match flow.kind {
            FlowKind::Compute | FlowKind::Transfer => self.compute(ready, record, inputs)?,
            _ => {
                if let Err(error) = forward(flow, inputs, &mut self.seat.outputs[..record.n_outputs as usize]) {
                    return Err(Stop::error(refused(self.step, node, inputs, error)));
                }
                true
            }
        };
        inputs.fill_with(|| None);
        let mut readiness = Readiness::UNKNOWN;
        if STAMPED {
            let end = events::clock::now();
            slice.end(end);
            if self.step.is_measured {
                self.plan.costs.measured(node, end.saturating_sub(self.stamp));
            }
            self.stamp = end;
            readiness = Readiness::new(self.plan.infos[node as usize].event_id, end);
        }
        if is_over { self.propagate(ready, readiness) } else { Ok(()) }
    }

    /// Runs the kernel. Whether the execution is over, rather than waiting for something.
    #[inline]
    fn compute(&mut self, ready: Ready, record: &NodeRecord, inputs: &mut [Slot]) -> Result<bool, Stop> {
        let (step, node) = (self.step, ready.node);
        let device = &step.env.devices[usize::from(record.device)];
        let frame = FrameTag {
            frame: ready.iteration.frame().map_or(0, |frame| frame.id.load(Ordering::Relaxed)),
            iteration: ready.iteration.number.load(Ordering::Relaxed),
        };
        let mut context = KernelContext {
            inputs,
            outputs: &mut self.seat.outputs[..record.n_outputs as usize],
            node: &self.plan.infos[node as usize],
            step_id: step.env.step_id,
            traced_step: step.traced_step,
            resources: device.resources(),
            step_resources: &step.state.resources,
            cancellation: &step.cancellation,
            functions: step.env.functions,
            allocator: device.allocator(),
            driver: device.driver(),
            sharder: &OpSharder { step, node, worker: self.worker },
            frame,
            rendezvous: step.rendezvous(),
        };
        match &self.plan.kernels[node as usize] {
            AnyKernel::Sync(kernel) => match kernel.compute(&mut context) {
                Ok(()) => Ok(true),
                Err(error) => Err(Stop::error(refused(step, node, context.inputs, error))),
            },
            AnyKernel::Async(kernel) => {
                step.state.parking.begin();
                let sink: Arc<dyn CompletionSink> = step.state.parking.clone();
                let tag = ExecutionTag::new(node, ready.iteration.as_ptr() as usize);
                kernel.start(&mut context, Completion::new(sink, tag));
                Ok(false)
            }
        }
    }

    /// Hands the outputs in the seat to the node's consumers in `iteration`, and makes those ready that waited for
    /// nothing else; gives their number, which is not yet counted in the iteration. `is_dead`: the outputs are absent.
    #[inline]
    pub fn deliver(
        &mut self,
        iteration: IterationRef,
        node: u32,
        is_dead: bool,
        readiness: Readiness,
    ) -> Result<u32, Stop> {
        let record = &self.plan.nodes[node as usize];
        let kind = self.flow.nodes[node as usize].kind;
        let may_be_dead = is_dead || matches!(kind, FlowKind::Switch | FlowKind::SwitchN | FlowKind::Transfer);
        let mut n_ready = 0;
        for edge in self.plan.data_edges(record.data) {
            let output = &mut self.seat.outputs[edge.port()];
            let value = if edge.is_last() { output.take() } else { output.clone() };
            if value.is_none() && !may_be_dead {
                return Err(Stop::error(left_unset(self.step, node, edge.port())));
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
        if record.has_unused_output {
            self.seat.outputs[..record.n_outputs as usize].fill_with(|| None);
        }
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

    #[inline]
    fn make_ready(&mut self, ready: Ready, readiness: Readiness) {
        if STAMPED {
            let place = &ready.iteration.ready[(ready.node - ready.iteration.first_node) as usize];
            place.store(readiness.bits(), Ordering::Relaxed);
        }
        if SHARED && !ready.is_dead && self.plan.costs.is_expensive(ready.node) {
            self.expensive.push(ready);
        } else {
            self.seat.local.push(ready);
        }
    }

    /// An execution is over, and its consumers are counted.
    #[inline]
    pub fn done(&mut self) {
        self.n_done += 1;
        self.publish();
    }

    /// Lets others take what is worth it, and calls for help where this worker has more than it can begin at once.
    #[inline]
    fn publish(&mut self) {
        if !SHARED {
            return;
        }
        if !self.expensive.is_empty() {
            for ready in self.expensive.drain(..) {
                self.seat.shared.push(ready);
            }
            // One expensive node alone is this worker's own next.
            if self.seat.shared.len() > 1 {
                self.step.announce(self.worker);
            }
        }
        if self.seat.local.len() >= self.spill_at {
            self.spill();
        }
    }

    /// Offers the older half of a long local stack, if its nodes are worth taking.
    #[cold]
    fn spill(&mut self) {
        let half = self.seat.local.len() / 2;
        let costs = &self.plan.costs;
        let ticks: u64 = self.seat.local[..half].iter().map(|ready| u64::from(costs.ticks(ready.node))).sum();
        if ticks / half as u64 >= u64::from(TAKEN_TICKS) && self.step.env.pool.n_free() > 0 {
            for ready in self.seat.local.drain(..half) {
                self.seat.shared.push(ready);
            }
            self.step.announce(self.worker);
            self.spill_at = SPILL_AT;
        } else {
            self.spill_at = 2 * self.seat.local.len();
        }
    }
}

/// What a node of the iteration waits for.
#[inline]
fn count(iteration: &IterationRef, node: u32) -> &AtomicU32 {
    &iteration.counts[(node - iteration.first_node) as usize]
}

/// What a primitive does with its inputs.
#[inline]
fn forward(flow: FlowNode, inputs: &mut [Slot], outputs: &mut [Slot]) -> Result<(), KernelError> {
    match flow.kind {
        FlowKind::ControlTrigger => {}
        FlowKind::Switch => {
            let pred = inputs.get(1).and_then(Option::as_ref).ok_or(KernelError::MissingInput(1))?.item::<bool>()?;
            outputs[usize::from(pred)] = inputs[0].take();
        }
        FlowKind::SwitchN => {
            let side = inputs.get(1).and_then(Option::as_ref).ok_or(KernelError::MissingInput(1))?.item::<i32>()?;
            // What is no side means the last one.
            let last = outputs.len().saturating_sub(1);
            let side = usize::try_from(side).map_or(last, |side| side.min(last));
            if let Some(output) = outputs.get_mut(side) {
                *output = inputs[0].take();
            }
        }
        FlowKind::Merge => {
            let first = inputs.iter().position(Option::is_some).ok_or(KernelError::MissingInput(0))?;
            outputs[0] = inputs[first].take();
            if flow.arg != 0 {
                outputs[1] = Some(Tensor::scalar(first as i32));
            }
        }
        _ => outputs[0] = inputs.first_mut().and_then(Option::take),
    }
    Ok(())
}
