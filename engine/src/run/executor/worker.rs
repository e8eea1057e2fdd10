//! The hot loop: one worker's share of a step.
//!
//! Compiled for each case. `M`: whether the plan is flat or has frames ([`Mode`]). `SHARED`: other workers run nodes of the
//! step too. `STAMPED`: each node's begin and end are taken (one reading per node: where the next one follows inline, it
//! begins when this one ends), for events and costs.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{ExecuteError, Stop};
use super::parking::Finished;
use super::sharder::OpSharder;
use super::step::Step;
use super::workers::{WorkerState, Workers};
use crate::compile::plan::cost::TAKEN_TICKS;
use crate::compile::plan::frames::FlowKind;
use crate::compile::plan::{DataEdge, NodeRecord, Plan};
use engine_core::kernel::{
    AnyKernel, Completion, CompletionSink, ExecutionTag, FrameTag, KernelContext, KernelError, NodeInfo, Slot,
};
use engine_core::trace;
use engine_core::trace::Readiness;

/// What plans without and with control flow differ in: what an execution is, where its inputs are, and what its outputs
/// make ready.
pub(super) trait Mode<'a>: Copy + 'a {
    /// A ready execution of a node.
    type Ready: Copy + 'a;

    fn workers(self) -> &'a Workers<Self::Ready>;
    /// The execution of a node that waits for nothing.
    fn root(self, node: u32) -> Self::Ready;
    fn node(ready: Self::Ready) -> u32;
    /// Whether the execution computes nothing, being on a branch that was not taken.
    fn is_dead(ready: Self::Ready) -> bool;
    /// The cell that records which node made an execution ready, and when.
    fn readiness(self, ready: Self::Ready) -> &'a AtomicU64;
    /// The slots of an execution's inputs.
    ///
    /// # Safety
    /// The caller runs the execution, which all arrivals made ready.
    unsafe fn inputs(self, ready: Self::Ready, record: &NodeRecord) -> &'a mut [Slot];
    /// What is to be done for an execution.
    fn action(ready: &mut Self::Ready, record: &NodeRecord, inputs: &mut [Slot]) -> Action;
    /// Does what a primitive of control flow does: moves inputs to outputs.
    ///
    /// # Errors
    /// An input that decides is missing, or of the wrong type.
    fn forward(record: &NodeRecord, inputs: &mut [Slot], outputs: &mut [Slot]) -> Result<(), KernelError>;
    fn frame_tag(ready: Self::Ready) -> FrameTag;
    /// What finds the execution again when its asynchronous kernel has ended.
    fn execution_tag(ready: Self::Ready) -> ExecutionTag;
    /// The execution of a tag.
    ///
    /// # Safety
    /// [`Mode::execution_tag`] made the tag, in this step.
    unsafe fn tagged(tag: &ExecutionTag) -> Option<Self::Ready>;
    /// Hands the outputs to their consumers and makes those ready that waited for nothing else.
    fn deliver<const SHARED: bool, const STAMPED: bool>(
        worker: &mut Worker<'_, 'a, Self, SHARED, STAMPED>,
        ready: Self::Ready,
        record: &NodeRecord,
        readiness: Readiness,
    ) -> Result<(), Stop>;
}

/// What an execution is.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// The kernel computes.
    Kernel,
    /// A primitive of control flow moves inputs to outputs.
    Forward,
    /// Nothing: it is dead.
    Skip,
}

/// A worker of the pool, at one step.
pub(super) struct Worker<'s, 'a, M: Mode<'a>, const SHARED: bool, const STAMPED: bool> {
    pub step: &'a Step<'a>,
    pub plan: &'a Plan,
    pub mode: M,
    pub state: &'s mut WorkerState<M::Ready>,
    worker: usize,
    /// The node that runs, for whoever catches its panic.
    current: u32,
    n_done: u32,
    /// Length of the local stack at which to look whether others should get some of it.
    spill_at: usize,
    /// When the last node ended, or this worker got its node.
    stamp: u64,
}

/// A local stack of this many nodes may be worth sharing.
const SPILL_AT: usize = 32;

/// Runs `ready` and all nodes that become ready, until none is left that this worker could take, or the step fails.
pub(super) fn run<'a, M: Mode<'a>, const SHARED: bool, const STAMPED: bool>(
    step: &'a Step<'a>,
    mode: M,
    worker: usize,
    ready: &[u32],
) {
    let mut state = mode.workers().state(worker).lock();
    let mut this = Worker::<M, SHARED, STAMPED> {
        step,
        plan: step.plan,
        mode,
        state: &mut state,
        worker,
        current: 0,
        n_done: 0,
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

impl<'a, M: Mode<'a>, const SHARED: bool, const STAMPED: bool> Worker<'_, 'a, M, SHARED, STAMPED> {
    fn run(&mut self, ready: &[u32]) -> Result<(), Stop> {
        for &node in ready {
            self.make_ready(self.mode.root(node), Readiness::at_begin(self.step.begin));
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
    fn next(&mut self) -> Option<M::Ready> {
        if let Some(ready) = self.state.local.pop() {
            return Some(ready);
        }
        if !SHARED {
            return None;
        }
        if let Some(ready) = self.state.shared.pop() {
            return Some(ready);
        }
        let ready = self.mode.workers().steal(self.worker)?;
        if STAMPED {
            self.stamp = events::clock::now();
        }
        Some(ready)
    }

    #[inline]
    fn execute(&mut self, mut ready: M::Ready) -> Result<(), Stop> {
        let (step, plan, node) = (self.step, self.plan, M::node(ready));
        let record = &plan.nodes[node as usize];
        self.current = node;
        if !STAMPED && record.kind == FlowKind::NoOp {
            return self.deliver(ready, record, Readiness::UNKNOWN);
        }
        // SAFETY: the execution is ready, and ready executions are handed to one worker only, here.
        let inputs = unsafe { self.mode.inputs(ready, record) };
        let action = M::action(&mut ready, record, inputs);
        if matches!(action, Action::Skip) {
            return self.deliver(ready, record, Readiness::UNKNOWN);
        }
        // Once: after the kernel's call it would be read again.
        let info = &plan.infos[node as usize];
        let slice = if STAMPED {
            let readiness = Readiness::from_bits(self.mode.readiness(ready).load(Ordering::Relaxed));
            let is_long = plan.costs.is_expensive(node);
            trace::OpSlice::begin(step.traced_step, self.stamp, record.op_site, info.event_id, readiness, is_long)
        } else {
            trace::OpSlice::Off
        };
        let is_over = match action {
            Action::Forward => {
                let outputs = &mut self.state.outputs[..record.n_outputs as usize];
                if let Err(error) = M::forward(record, inputs, outputs) {
                    return Err(refused(step, node, inputs, error));
                }
                true
            }
            _ => self.compute(ready, record, info, inputs)?,
        };
        inputs.fill_with(|| None);
        let mut readiness = Readiness::UNKNOWN;
        if STAMPED {
            let end = events::clock::now();
            slice.end(end);
            if step.is_measured {
                plan.costs.measured(node, end.saturating_sub(self.stamp));
            }
            self.stamp = end;
            readiness = Readiness::new(info.event_id, end);
        }
        if is_over { self.deliver(ready, record, readiness) } else { Ok(()) }
    }

    /// Runs the kernel. Whether the execution is over, rather than waiting for something.
    #[inline]
    fn compute(
        &mut self,
        ready: M::Ready,
        record: &NodeRecord,
        info: &NodeInfo,
        inputs: &mut [Slot],
    ) -> Result<bool, Stop> {
        let (step, node) = (self.step, M::node(ready));
        let device = &step.env.devices[usize::from(record.device)];
        let mut context = KernelContext {
            inputs,
            outputs: &mut self.state.outputs[..record.n_outputs as usize],
            node: info,
            step_id: step.env.step_id,
            traced_step: step.traced_step,
            resources: device.resources(),
            step_resources: &step.state.resources,
            cancellation: &step.cancellation,
            functions: step.env.functions,
            allocator: device.allocator(),
            driver: device.driver(),
            sharder: &OpSharder { step, node, worker: self.worker },
            frame: M::frame_tag(ready),
            rendezvous: step.rendezvous(),
        };
        match &self.plan.kernels[node as usize] {
            AnyKernel::Sync(kernel) => match kernel.compute(&mut context) {
                Ok(()) => Ok(true),
                Err(error) => Err(refused(step, node, context.inputs, error)),
            },
            AnyKernel::Async(kernel) => {
                step.state.parking.begin();
                let sink: Arc<dyn CompletionSink> = step.state.parking.clone();
                kernel.start(&mut context, Completion::new(sink, M::execution_tag(ready)));
                Ok(false)
            }
        }
    }

    /// Delivers the outputs of an asynchronous kernel that ended. Whether there was one.
    fn complete(&mut self) -> Result<bool, Stop> {
        let step = self.step;
        if step.is_halted() {
            return Err(Stop::Halted);
        }
        let Some(Finished { tag, result }) = step.state.parking.take() else { return Ok(false) };
        let values = result.map_err(|error| refused(step, tag.node, &[], error))?;
        let record = &self.plan.nodes[tag.node as usize];
        let outputs = &mut self.state.outputs[..record.n_outputs as usize];
        outputs.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
        let mut readiness = Readiness::UNKNOWN;
        // SAFETY: `compute` made the tag, in this step, and what it refers to lives until the execution is over.
        let ready = unsafe { M::tagged(&tag) };
        if STAMPED {
            self.stamp = events::clock::now();
            let event_id = self.plan.infos[tag.node as usize].event_id;
            if let Some(parked) = tag.parked {
                parked.emit(step.traced_step, event_id);
            }
            if let Some(arrival) = tag.arrival {
                arrival.unblocked(self.stamp);
            }
            readiness = Readiness::new(event_id, self.stamp);
        }
        if let Some(ready) = ready {
            self.deliver(ready, record, readiness)?;
        }
        Ok(true)
    }

    /// An execution is over: its outputs go to their consumers, and what is worth it to other workers.
    #[inline]
    fn deliver(&mut self, ready: M::Ready, record: &NodeRecord, readiness: Readiness) -> Result<(), Stop> {
        M::deliver(self, ready, record, readiness)?;
        self.n_done += 1;
        self.publish();
        Ok(())
    }

    /// The output that an edge carries.
    #[inline]
    pub fn output(&mut self, edge: &DataEdge) -> Slot {
        let output = &mut self.state.outputs[edge.port()];
        if edge.is_last() { output.take() } else { output.clone() }
    }

    /// Drops the outputs that no edge carried.
    #[inline]
    pub fn drop_unused_outputs(&mut self, record: &NodeRecord) {
        if record.has_unused_output {
            self.state.outputs[..record.n_outputs as usize].fill_with(|| None);
        }
    }

    #[inline]
    pub fn make_ready(&mut self, ready: M::Ready, readiness: Readiness) {
        if STAMPED {
            self.mode.readiness(ready).store(readiness.bits(), Ordering::Relaxed);
        }
        if SHARED && !M::is_dead(ready) && self.plan.costs.is_expensive(M::node(ready)) {
            self.state.expensive.push(ready);
        } else {
            self.state.local.push(ready);
        }
    }

    /// Lets others take what is worth it, and calls for help where this worker has more than it can begin at once.
    #[inline]
    fn publish(&mut self) {
        if !SHARED {
            return;
        }
        let state = &mut *self.state;
        if !state.expensive.is_empty() {
            state.expensive.drain(..).for_each(|ready| state.shared.push(ready));
            // One expensive node alone is this worker's own next.
            if state.shared.len() > 1 {
                self.step.announce(self.worker);
            }
        }
        if self.state.local.len() >= self.spill_at {
            self.spill();
        }
    }

    /// Offers the older half of a long local stack, if its nodes are worth taking.
    #[cold]
    fn spill(&mut self) {
        let state = &mut *self.state;
        let half = state.local.len() / 2;
        let costs = &self.plan.costs;
        let ticks: u64 = state.local[..half].iter().map(|ready| u64::from(costs.ticks(M::node(*ready)))).sum();
        if ticks / half as u64 >= u64::from(TAKEN_TICKS) && self.step.env.pool.n_free() > 0 {
            // Taken from the other end by thieves: the oldest first.
            state.local.drain(..half).for_each(|ready| state.shared.push(ready));
            self.step.announce(self.worker);
            self.spill_at = SPILL_AT;
        } else {
            self.spill_at = 2 * state.local.len();
        }
    }

    /// The error of a kernel that set no value for an output that is used.
    #[cold]
    pub fn left_unset(&self, node: u32, port: usize) -> Stop {
        let info = &self.plan.infos[node as usize];
        Stop::error(ExecuteError::MissingOutput { node: info.name.to_string(), op: info.op.to_string(), port })
    }
}

#[cold]
fn refused(step: &Step<'_>, node: u32, inputs: &[Slot], source: KernelError) -> Stop {
    let info = &step.plan.infos[node as usize];
    let shapes: Vec<String> = inputs.iter().flatten().map(|t| format!("{}{}", t.dtype(), t.shape())).collect();
    let inputs = if shapes.is_empty() { String::new() } else { format!(", inputs {}", shapes.join(" ")) };
    let (node, op) = (info.name.to_string(), info.op.to_string());
    Stop::error(ExecuteError::Kernel { node, op, inputs, source: Box::new(source) })
}

#[cold]
fn panicked(step: &Step<'_>, node: u32, payload: &(dyn Any + Send)) -> ExecuteError {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no text)".to_owned());
    let info = &step.plan.infos[node as usize];
    ExecuteError::Panic { node: info.name.to_string(), op: info.op.to_string(), message }
}
