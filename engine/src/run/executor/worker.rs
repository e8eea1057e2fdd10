//! The hot loop: one worker's share of a step.
//!
//! Compiled for each case. `SHARED`: other workers run nodes of the step too. `STAMPED`: each node's begin and end are
//! taken (one reading per node: where the next one follows inline, it begins when this one ends), for events and costs.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::error::{ExecuteError, Stop};
use super::parking::Finished;
use super::seat::Seat;
use super::step::Step;
use crate::compile::plan::NodeRecord;
use crate::compile::plan::cost::TAKEN_TICKS;
use crate::kernel::{
    AnyKernel, Completion, CompletionSink, ExecutionTag, FrameTag, KernelContext, KernelError, Sharder, Slot,
};
use crate::run::pool::{ShardTag, run_shards};
use crate::trace;
use crate::trace::Readiness;

/// A worker of the pool, at one step.
struct Worker<'a, const SHARED: bool, const STAMPED: bool> {
    step: &'a Step<'a>,
    seat: &'a mut Seat<u32>,
    worker: usize,
    /// The node that runs, for whoever catches its panic.
    current: u32,
    n_done: u32,
    /// Nodes put where others can take them since the last look.
    n_offered: u32,
    /// Length of the local stack at which to look whether others should get some of it.
    spill_at: usize,
    /// When the last node ended, or this worker got its node.
    stamp: u64,
}

/// A local stack of this many nodes may be worth sharing.
pub(super) const SPILL_AT: usize = 32;

/// Runs `ready` and all nodes that become ready, until none is left that this worker could take, or the step fails.
pub(crate) fn run<const SHARED: bool, const STAMPED: bool>(
    step: &Step<'_>,
    seat: &mut Seat<u32>,
    worker: usize,
    ready: &[u32],
) {
    let stamp = if STAMPED { events::clock::now() } else { 0 };
    let mut this = Worker::<SHARED, STAMPED> {
        step,
        seat,
        worker,
        current: 0,
        n_done: 0,
        n_offered: 0,
        spill_at: SPILL_AT,
        stamp,
    };
    let result = catch_unwind(AssertUnwindSafe(|| this.run(ready)));
    let (n_done, current) = (this.n_done, this.current);
    match result {
        Ok(Ok(())) => {}
        Ok(Err(Stop::Halted)) => {}
        Ok(Err(Stop::Error(error))) => step.fail(*error),
        // What the kernel half did is in slots and outputs that the failed step drops.
        Err(payload) => step.fail(panicked(step, current, payload.as_ref())),
    }
    step.add_done(n_done, worker);
}

impl<const SHARED: bool, const STAMPED: bool> Worker<'_, SHARED, STAMPED> {
    fn run(&mut self, ready: &[u32]) -> Result<(), Stop> {
        for &node in ready {
            self.make_ready(node, Readiness::at_begin(self.step.begin));
        }
        self.offer();
        let has_limits = self.step.has_limits();
        loop {
            while let Some(node) = self.next() {
                if SHARED && self.step.is_halted() {
                    return Err(Stop::Halted);
                }
                if has_limits {
                    self.step.check_limits(self.n_done)?;
                }
                self.execute(node)?;
            }
            if !self.step.plan.has_async || !self.complete()? {
                return Ok(());
            }
        }
    }

    /// Delivers the outputs of an asynchronous kernel that ended. Whether there was one.
    fn complete(&mut self) -> Result<bool, Stop> {
        let Some((tag, readiness)) = finished::<STAMPED>(self.step, &mut self.seat.outputs, &mut self.stamp)? else {
            return Ok(false);
        };
        self.deliver(tag.node, &self.step.plan.nodes[tag.node as usize], readiness)?;
        Ok(true)
    }

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if let Some(node) = self.seat.local.pop() {
            return Some(node);
        }
        if !SHARED {
            return None;
        }
        if let Some(node) = self.seat.shared.pop() {
            return Some(node);
        }
        let node = self.step.steal(self.worker)?;
        if STAMPED {
            self.stamp = events::clock::now();
        }
        Some(node)
    }

    #[inline]
    fn execute(&mut self, node: u32) -> Result<(), Stop> {
        let step = self.step;
        let plan = step.plan;
        let record = &plan.nodes[node as usize];
        let info = &plan.infos[node as usize];
        self.current = node;
        if !STAMPED && record.is_no_op {
            return self.deliver(node, record, Readiness::UNKNOWN);
        }
        // SAFETY: the node is ready, and ready nodes are handed to one worker only, here.
        let inputs = unsafe { step.state.slots.inputs(record.first_slot as usize, record.n_inputs as usize) };
        let outputs = &mut self.seat.outputs[..record.n_outputs as usize];
        let slice = if STAMPED {
            let readiness = Readiness::from_bits(step.state.ready[node as usize].load(Ordering::Relaxed));
            let is_long = plan.costs.is_expensive(node);
            trace::OpSlice::begin(step.traced_step, self.stamp, record.op_site, info.event_id, readiness, is_long)
        } else {
            trace::OpSlice::Off
        };
        let device = &step.env.devices[usize::from(record.device)];
        let mut context = KernelContext {
            inputs,
            outputs,
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
            frame: FrameTag::default(),
            rendezvous: step.rendezvous(),
        };
        let kernel = &plan.kernels[node as usize];
        match kernel {
            AnyKernel::Sync(kernel) => {
                if let Err(error) = kernel.compute(&mut context) {
                    return Err(Stop::error(refused(step, node, context.inputs, error)));
                }
            }
            AnyKernel::Async(kernel) => {
                step.state.parking.begin();
                let sink: Arc<dyn CompletionSink> = step.state.parking.clone();
                kernel.start(&mut context, Completion::new(sink, ExecutionTag::new(node, 0)));
            }
        }
        for input in context.inputs {
            *input = None;
        }
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
        if kernel.is_async() {
            return Ok(());
        }
        self.deliver(node, record, readiness)
    }

    /// Hands the outputs to their consumers and makes those ready that waited for nothing else.
    #[inline]
    fn deliver(&mut self, node: u32, record: &NodeRecord, readiness: Readiness) -> Result<(), Stop> {
        let plan = self.step.plan;
        for edge in plan.data_edges(record.data) {
            let output = &mut self.seat.outputs[edge.port()];
            let value = if edge.is_last() { output.take() } else { output.clone() };
            if value.is_none() {
                return Err(Stop::error(left_unset(self.step, node, edge.port())));
            }
            // SAFETY: this worker runs the producer, and counts the arrival only below.
            unsafe { self.step.state.slots.put(edge.slot, value) };
            if edge.is_sole() || self.arrive(edge.consumer) {
                self.make_ready(edge.consumer, readiness);
            }
        }
        for edge in plan.control_edges(record.control) {
            if edge.is_sole() || self.arrive(edge.consumer()) {
                self.make_ready(edge.consumer(), readiness);
            }
        }
        if record.has_unused_output {
            self.seat.outputs[..record.n_outputs as usize].fill_with(|| None);
        }
        self.n_done += 1;
        self.offer();
        Ok(())
    }

    #[inline]
    fn arrive(&self, node: u32) -> bool {
        if SHARED { self.step.state.arrive_shared(node) } else { self.step.state.arrive_alone(node) }
    }

    #[inline]
    fn make_ready(&mut self, node: u32, readiness: Readiness) {
        if STAMPED {
            self.step.state.ready[node as usize].store(readiness.bits(), Ordering::Relaxed);
        }
        if SHARED && self.step.plan.costs.is_expensive(node) {
            self.seat.shared.push(node);
            self.n_offered += 1;
        } else {
            self.seat.local.push(node);
        }
    }

    /// Calls for help where this worker has more than it can begin at once.
    #[inline]
    fn offer(&mut self) {
        if !SHARED {
            return;
        }
        if self.n_offered > 0 {
            self.n_offered = 0;
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
        let costs = &self.step.plan.costs;
        let ticks: u64 = self.seat.local[..half].iter().map(|&node| u64::from(costs.ticks(node))).sum();
        if ticks / half as u64 >= u64::from(TAKEN_TICKS) && self.step.env.pool.n_free() > 0 {
            // Taken from the other end by thieves: the oldest first.
            for node in self.seat.local.drain(..half) {
                self.seat.shared.push(node);
            }
            self.step.announce(self.worker);
            self.spill_at = SPILL_AT;
        } else {
            self.spill_at = 2 * self.seat.local.len();
        }
    }
}

/// Splits the work of the node that runs.
pub(super) struct OpSharder<'a> {
    pub step: &'a Step<'a>,
    pub node: u32,
    pub worker: usize,
}

/// Shorter shards are not worth handing to another thread.
const MIN_SHARD_NS: u64 = 10_000;
/// Shards per thread: more even out threads of unequal speed, fewer keep kernels in their best shapes.
const SHARDS_PER_THREAD: usize = 2;

impl Sharder for OpSharder<'_> {
    fn n_workers(&self) -> usize {
        self.step.env.pool.n_free() + 1
    }

    fn parallel_for(&self, total: usize, cost_per_unit_ns: u64, body: &(dyn Fn(Range<usize>) + Sync)) {
        let n_workers = self.n_workers();
        let worth = (total as u64).saturating_mul(cost_per_unit_ns) / MIN_SHARD_NS;
        let n_shards = if n_workers == 1 { 1 } else { (worth as usize).min(n_workers * SHARDS_PER_THREAD) };
        if n_shards <= 1 {
            if total > 0 {
                body(0..total);
            }
            return;
        }
        let tag = ShardTag {
            scope: crate::run::pool::Job::scope(self.step),
            site: self.step.plan.nodes[self.node as usize].shard_site,
            node: events::NodeId::new(self.step.plan.infos[self.node as usize].event_id),
        };
        let caller_may_help = || {
            if self.worker != 0 {
                self.step.caller().notify();
            }
        };
        run_shards(self.step.env.pool, tag, total, n_shards, caller_may_help, body);
    }
}

/// The end of an asynchronous kernel, if one ended: whose, with its outputs in `outputs` and what its consumers are
/// told. `stamp` becomes the present.
pub(super) fn finished<const STAMPED: bool>(
    step: &Step<'_>,
    outputs: &mut [Slot],
    stamp: &mut u64,
) -> Result<Option<(ExecutionTag, Readiness)>, Stop> {
    if step.is_halted() {
        return Err(Stop::Halted);
    }
    let Some(Finished { tag, result }) = step.state.parking.take() else { return Ok(None) };
    let values = result.map_err(|error| Stop::error(refused(step, tag.node, &[], error)))?;
    let n_outputs = step.plan.nodes[tag.node as usize].n_outputs as usize;
    outputs[..n_outputs].iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
    if !STAMPED {
        return Ok(Some((tag, Readiness::UNKNOWN)));
    }
    *stamp = events::clock::now();
    let event_id = step.plan.infos[tag.node as usize].event_id;
    if let Some(parked) = tag.parked {
        parked.emit(step.traced_step, event_id);
    }
    if let Some(arrival) = tag.arrival {
        arrival.unblocked(*stamp);
    }
    Ok(Some((tag, Readiness::new(event_id, *stamp))))
}

#[cold]
pub(super) fn refused(step: &Step<'_>, node: u32, inputs: &[Slot], source: KernelError) -> ExecuteError {
    let info = &step.plan.infos[node as usize];
    let shapes: Vec<String> = inputs.iter().flatten().map(|t| format!("{}{}", t.dtype(), t.shape())).collect();
    let inputs = if shapes.is_empty() { String::new() } else { format!(", inputs {}", shapes.join(" ")) };
    ExecuteError::Kernel { node: info.name.to_string(), op: info.op.to_string(), inputs, source: Box::new(source) }
}

#[cold]
pub(super) fn left_unset(step: &Step<'_>, node: u32, port: usize) -> ExecuteError {
    let info = &step.plan.infos[node as usize];
    ExecuteError::MissingOutput { node: info.name.to_string(), op: info.op.to_string(), port }
}

#[cold]
pub(super) fn panicked(step: &Step<'_>, node: u32, payload: &(dyn Any + Send)) -> ExecuteError {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no text)".to_owned());
    let info = &step.plan.infos[node as usize];
    ExecuteError::Panic { node: info.name.to_string(), op: info.op.to_string(), message }
}
