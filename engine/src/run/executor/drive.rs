//! Runs a step, alone or shared.

use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use super::error::ExecuteError;
use super::flow::Frames;
use super::state::{Executable, Executions, State};
use super::step::{Environment, Step};
use super::worker::{self, Mode};
use crate::compile::plan::Plan;
use crate::denormals::DenormalsAreZero;
use crate::run::pool::{Job, Running, Scope};
use engine_core::kernel::{Slot, StepCancellation};
use engine_core::tensor::Tensor;
use engine_core::trace::StepTag;

/// Runs one step of a plan.
///
/// # Errors
/// The first kernel's error, a panic, cancellation, or the deadline.
pub(crate) fn run(
    executable: &Executable,
    feeds: &[Tensor],
    env: &Environment<'_>,
    trace: StepTag,
) -> Result<Vec<Tensor>, ExecuteError> {
    let plan = &executable.plan;
    let running = env.pool.enter();
    let _mode = DenormalsAreZero::begin();
    let mut state = executable.take_state(env.pool);
    feed(plan, feeds, &mut state);
    let is_measured = plan.costs.next_step_is_measured();
    let step = Step {
        plan,
        state: &state,
        env,
        traced_step: trace.step,
        is_measured,
        is_stamped: is_measured || trace.step != 0,
        begin: trace.begin,
        n_done: CachePadded::new(AtomicU32::new(0)),
        n_helping: AtomicU32::new(0),
        cancellation: StepCancellation::default(),
        failure: Mutex::new(None),
    };
    let is_shared = env.pool.n_free() > 0 && plan.costs.has_width();
    let wake = (step.wake_when_cancelled(), step.abort_when_cancelled());
    if is_shared {
        step.run_shared(&running);
    } else {
        step.run_alone(&running);
    }
    drop(wake);
    let failure = step.failure.into_inner();
    if is_measured && failure.is_none() {
        plan.update_width();
    }
    let result = match failure {
        Some(error) => Err(error),
        None => fetch(plan, &mut state),
    };
    let is_dirty = result.is_err() || !state.executions.are_over();
    executable.give_back(state, is_dirty);
    result
}

fn feed(plan: &Plan, feeds: &[Tensor], state: &mut State) {
    let slots = state.root_slots();
    for (spec, value) in plan.feeds.iter().zip(feeds) {
        for edge in plan.data_edges(spec.edges) {
            slots[edge.slot as usize] = Some(value.clone());
        }
    }
}

fn fetch(plan: &Plan, state: &mut State) -> Result<Vec<Tensor>, ExecuteError> {
    let slots = &mut state.root_slots()[plan.fetch_slots()];
    let value = |(slot, name): (&mut Slot, &String)| {
        // Every fetch has a producer in the plan or a feed, and a producer without the value fails the step.
        slot.take().ok_or_else(|| ExecuteError::DeadFetch { name: name.clone() })
    };
    slots.iter_mut().zip(&plan.fetches).map(value).collect()
}

impl Step<'_> {
    fn run_alone(&self, running: &Running<'_>) {
        let mut ready = &self.plan.roots[..];
        loop {
            let ticket = self.caller().ticket();
            self.work::<false>(0, ready);
            ready = &[];
            if !self.plan.has_async || self.is_over() {
                return;
            }
            self.wait(running, ticket);
        }
    }

    fn run_shared(&self, running: &Running<'_>) {
        self.state.parking.is_shared.store(true, Ordering::Relaxed);
        self.env.pool.share(self, || {
            let mut ready = &self.plan.roots[..];
            loop {
                let ticket = self.caller().ticket();
                self.work::<true>(0, ready);
                ready = &[];
                if self.is_over() {
                    return;
                }
                if self.has_work() || self.help_own_shards() {
                    continue;
                }
                self.wait(running, ticket);
            }
        });
        self.state.parking.is_shared.store(false, Ordering::Relaxed);
    }

    /// Runs nodes until none is left to take.
    fn work<const SHARED: bool>(&self, worker: usize, ready: &[u32]) {
        match (&self.state.executions, &self.plan.flow) {
            (Executions::Flat(flat), _) => self.work_as::<_, SHARED>(flat, worker, ready),
            (Executions::Frames(state), Some(flow)) => {
                self.work_as::<_, SHARED>(Frames { flow, state }, worker, ready);
            }
            (Executions::Frames(_), None) => {}
        }
    }

    fn work_as<'a, M: Mode<'a>, const SHARED: bool>(&'a self, mode: M, worker: usize, ready: &[u32]) {
        match self.is_stamped {
            true => worker::run::<M, SHARED, true>(self, mode, worker, ready),
            false => worker::run::<M, SHARED, false>(self, mode, worker, ready),
        }
    }

    fn help_own_shards(&self) -> bool {
        let execution = self.scope().execution;
        self.env.pool.help_one(|scope| scope.is_shards && scope.execution == execution)
    }
}

impl Job for Step<'_> {
    fn has_work(&self) -> bool {
        !self.is_halted() && (self.state.parking.has_finished() || self.state.executions.have_shared())
    }

    fn help(&self, worker: usize) {
        self.n_helping.fetch_add(1, Ordering::SeqCst);
        self.work::<true>(worker, &[]);
        if self.n_helping.fetch_sub(1, Ordering::SeqCst) == 1 && self.plan.flow.is_some() {
            self.caller().notify();
        }
    }

    fn scope(&self) -> Scope {
        Scope { execution: self.env.step_id, traced_step: self.traced_step, is_shards: false }
    }
}
