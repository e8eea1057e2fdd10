//! What one step needs while it runs: input slots, pending counts, the workers' stacks. Kept for the plan's next steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crossbeam_deque::Stealer;
use parking_lot::Mutex;

use super::flow::FlowState;
use super::parking::Parking;
use super::seat::{Seat, Slots};
use crate::compile::plan::Plan;
use crate::kernel::Slot;
use crate::resources::ResourceManager;
use crate::run::pool::Pool;
use crate::run::rendezvous::LocalRendezvous;

/// The state of a step, clean between steps: slots empty, stacks empty, counts at their initial values.
pub(crate) struct State {
    pub slots: Slots,
    pub pending: Box<[AtomicU32]>,
    /// In a stamped step, which event node made each node ready (high half) and when (low half of the ticks).
    pub ready: Box<[AtomicU64]>,
    pub seats: Box<[Mutex<Seat<u32>>]>,
    pub stealers: Box<[Stealer<u32>]>,
    /// Frames and iterations, where the plan has loops or branches: then it has all the tables above.
    pub flow: Option<FlowState>,
    /// The step's own objects.
    pub resources: ResourceManager,
    pub parking: Arc<Parking>,
    /// Where the devices' sends and receives meet.
    pub rendezvous: Arc<LocalRendezvous>,
}

impl State {
    fn new(plan: &Plan, pool: &Pool) -> State {
        let flow = plan.flow.as_ref().map(|flow| FlowState::new(plan, flow, pool.n_threads()));
        // Iterations have their own tables, the root one too.
        let is_flat = flow.is_none();
        let n_seats = if is_flat { pool.n_threads() } else { 0 };
        let seats: Box<[Seat<u32>]> = std::iter::repeat_with(|| Seat::new(plan)).take(n_seats).collect();
        let n_counts = if is_flat { plan.pending.len() } else { 0 };
        let mut state = State {
            slots: Slots::new(if is_flat { plan.n_slots } else { 0 }),
            flow,
            pending: std::iter::repeat_with(|| AtomicU32::new(0)).take(n_counts).collect(),
            ready: std::iter::repeat_with(|| AtomicU64::new(0)).take(n_counts).collect(),
            stealers: seats.iter().map(|seat| seat.shared.stealer()).collect(),
            seats: seats.into_iter().map(Mutex::new).collect(),
            resources: ResourceManager::default(),
            parking: Arc::new(Parking::new(pool.waker())),
            rendezvous: Arc::default(),
        };
        state.reset_counts(plan);
        state
    }

    fn reset_counts(&mut self, plan: &Plan) {
        // Plain stores through `get_mut`: one copy of memory.
        for (count, initial) in self.pending.iter_mut().zip(&plan.pending) {
            *count.get_mut() = *initial;
        }
    }

    /// Drops what a failed step left behind.
    fn clear(&mut self) {
        self.slots.clear();
        for seat in &mut self.seats {
            seat.get_mut().clear();
        }
        if let Some(flow) = &mut self.flow {
            flow.clear();
        }
    }

    /// The slots that feeds and fetches are in, while no thread runs nodes.
    pub fn root_slots(&mut self) -> &mut [Slot] {
        let slots = self.flow.as_ref().map_or(&self.slots, |flow| &flow.root.slots);
        // SAFETY: `self` is borrowed for writing, so no thread runs nodes.
        unsafe { slots.inputs(0, slots.len()) }
    }

    /// Whether the node got all it waits for, one arrival later; with other threads around.
    #[inline]
    pub fn arrive_shared(&self, node: u32) -> bool {
        // Release: the value this thread put into a slot. Acquire: the values that others put.
        self.pending[node as usize].fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The same on the only thread: a plain load and store.
    #[inline]
    pub fn arrive_alone(&self, node: u32) -> bool {
        let count = &self.pending[node as usize];
        let left = count.load(Ordering::Relaxed) - 1;
        count.store(left, Ordering::Relaxed);
        left == 0
    }
}

/// A plan that can be run, with the states of steps that ended, for the next ones.
pub(crate) struct Executable {
    pub plan: Plan,
    states: Mutex<Vec<State>>,
}

impl From<Plan> for Executable {
    fn from(plan: Plan) -> Executable {
        Executable { plan, states: Mutex::default() }
    }
}

/// More concurrent steps of one plan than this allocate their states anew.
const MAX_STATES: usize = 16;

impl Executable {
    /// A clean state with a seat for each of the pool's threads. All steps of a plan run on one pool.
    pub fn take_state(&self, pool: &Pool) -> State {
        let pooled = self.states.lock().pop();
        pooled.unwrap_or_else(|| State::new(&self.plan, pool))
    }

    /// Takes a state back after a step that succeeded (all slots were consumed) or failed.
    pub fn give_back(&self, mut state: State, failed: bool) {
        if failed {
            state.clear();
        }
        state.resources.clear_all();
        match &state.flow {
            Some(flow) => flow.reset(&self.plan),
            None => state.reset_counts(&self.plan),
        }
        if self.plan.has_transfers {
            state.rendezvous.reset();
        }
        let mut states = self.states.lock();
        if states.len() < MAX_STATES {
            states.push(state);
        }
    }
}
