//! What one step needs while it runs, kept for the plan's next steps.

use std::sync::Arc;

use parking_lot::Mutex;

use super::flat::FlatState;
use super::flow::FlowState;
use super::parking::Parking;
use crate::compile::plan::Plan;
use crate::run::pool::Pool;
use crate::run::rendezvous::LocalRendezvous;
use engine_core::kernel::Slot;
use engine_core::resources::ResourceManager;

/// The state of a step, clean between steps.
pub(crate) struct State {
    pub executions: Executions,
    /// The step's own objects.
    pub resources: ResourceManager,
    pub parking: Arc<Parking>,
    /// Where the devices' sends and receives meet.
    pub rendezvous: Arc<LocalRendezvous>,
}

/// Values that wait for their consumers, counts of what nodes wait for, and what is ready.
pub(crate) enum Executions {
    /// Of a plan without control flow.
    Flat(FlatState),
    /// Of a plan with loops or branches.
    Frames(FlowState),
}

impl State {
    fn new(plan: &Plan, pool: &Pool) -> State {
        let executions = match &plan.flow {
            None => Executions::Flat(FlatState::new(plan, pool.n_threads())),
            Some(flow) => Executions::Frames(FlowState::new(plan, flow, pool.n_threads())),
        };
        State {
            executions,
            resources: ResourceManager::default(),
            parking: Arc::new(Parking::new(pool.waker())),
            rendezvous: Arc::default(),
        }
    }

    /// The slots that feeds and fetches are in, while no thread runs nodes.
    pub fn root_slots(&mut self) -> &mut [Slot] {
        let slots = match &self.executions {
            Executions::Flat(flat) => &flat.slots,
            Executions::Frames(flow) => &flow.root.within(flow).slots,
        };
        // SAFETY: `self` is borrowed for writing, so no thread runs nodes.
        unsafe { slots.inputs(0, slots.len()) }
    }
}

impl Executions {
    /// Whether an execution can be taken from some worker.
    pub fn have_shared(&self) -> bool {
        match self {
            Executions::Flat(flat) => flat.workers.have_shared(),
            Executions::Frames(flow) => flow.workers.have_shared(),
        }
    }

    /// Whether all that began in the step also ended.
    pub fn are_over(&self) -> bool {
        match self {
            Executions::Flat(_) => true,
            Executions::Frames(flow) => flow.is_clean(),
        }
    }

    fn clear(&mut self) {
        match self {
            Executions::Flat(flat) => flat.clear(),
            Executions::Frames(flow) => flow.clear(),
        }
    }

    fn reset(&mut self, plan: &Plan) {
        match self {
            Executions::Flat(flat) => flat.reset(plan),
            Executions::Frames(flow) => flow.reset(plan),
        }
    }
}

/// A plan that can be run, with the states of steps that ended, for the next ones.
pub(crate) struct Executable {
    pub plan: Plan,
    #[expect(clippy::vec_box, reason = "a step moves a pointer instead of some hundred bytes")]
    states: Mutex<Vec<Box<State>>>,
}

impl From<Plan> for Executable {
    fn from(plan: Plan) -> Executable {
        Executable { plan, states: Mutex::default() }
    }
}

/// More concurrent steps of one plan than this allocate their states anew.
const MAX_STATES: usize = 16;

impl Executable {
    /// A clean state with a worker for each of the pool's threads. All steps of a plan run on one pool.
    pub fn take_state(&self, pool: &Pool) -> Box<State> {
        let pooled = self.states.lock().pop();
        pooled.unwrap_or_else(|| Box::new(State::new(&self.plan, pool)))
    }

    /// Takes a state back after a step that succeeded (all slots were consumed) or failed.
    pub fn give_back(&self, mut state: Box<State>, failed: bool) {
        if failed {
            state.executions.clear();
        }
        state.resources.clear_all();
        state.executions.reset(&self.plan);
        if self.plan.has_transfers {
            state.rendezvous.reset();
        }
        let mut states = self.states.lock();
        if states.len() < MAX_STATES {
            states.push(state);
        }
    }
}
