//! What one step needs while it runs: input slots, pending counts, the workers' stacks. Kept for the plan's next steps.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crossbeam_deque::{Steal, Stealer, Worker};
use parking_lot::Mutex;

use super::flow::FlowState;
use super::parking::Parking;
use crate::kernels::Slot;
use crate::plan::Plan;
use crate::pool::Pool;
use crate::rendezvous::LocalRendezvous;
use crate::resources::ResourceManager;

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

/// What one worker has to itself. Only thread `i` of the pool locks seat `i`, so nobody ever waits for the lock.
pub(crate) struct Seat<T> {
    /// Ready nodes that only this worker runs: cheap ones. The last in runs first, while its inputs are in the cache.
    pub local: Vec<T>,
    /// Ready nodes that others may take.
    pub shared: Worker<T>,
    /// Outputs of the node that runs.
    pub outputs: Vec<Slot>,
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

impl<T> Seat<T> {
    pub fn new(plan: &Plan) -> Seat<T> {
        Seat {
            local: Vec::new(),
            shared: Worker::new_lifo(),
            outputs: std::iter::repeat_with(|| None).take(plan.max_outputs).collect(),
        }
    }

    /// Drops what a step that ended early left behind.
    pub fn clear(&mut self) {
        self.local.clear();
        while self.shared.pop().is_some() {}
        self.outputs.fill_with(|| None);
    }
}

/// A ready node of another worker than `worker`.
pub(crate) fn steal<T>(stealers: &[Stealer<T>], worker: usize) -> Option<T> {
    let n = stealers.len();
    for i in 1..n {
        let victim = &stealers[(worker + i) % n];
        loop {
            match victim.steal() {
                Steal::Success(ready) => return Some(ready),
                Steal::Empty => break,
                Steal::Retry => {}
            }
        }
    }
    None
}

/// The input slots of all nodes.
pub(crate) struct Slots(Box<[UnsafeCell<Slot>]>);

// SAFETY: a slot is written by its one producer before the consumer's pending count falls (release), and used by the
// consumer after it fell to zero (acquire); see the contracts of `put` and `inputs`.
unsafe impl Sync for Slots {}

impl Slots {
    pub fn new(n: usize) -> Slots {
        Slots(std::iter::repeat_with(|| UnsafeCell::new(None)).take(n).collect())
    }

    /// Puts a value into a slot.
    ///
    /// # Safety
    /// The caller runs the slot's producer (or feeds it before the step), and has not yet counted the arrival at
    /// the slot's consumer.
    #[inline]
    pub unsafe fn put(&self, slot: u32, value: Slot) {
        // SAFETY: by the contract nobody else has this slot.
        unsafe { *self.0[slot as usize].get() = value };
    }

    /// The slots of a node's inputs.
    ///
    /// # Safety
    /// The caller runs the node whose slots these are, which all arrivals made ready, or no thread runs nodes.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the contract gives the caller sole access")]
    pub unsafe fn inputs(&self, first: usize, n: usize) -> &mut [Slot] {
        let cells = &self.0[first..first + n];
        // SAFETY: `UnsafeCell<Slot>` has the layout of `Slot`; by the contract nobody else has these.
        unsafe { std::slice::from_raw_parts_mut(cells.as_ptr().cast_mut().cast::<Slot>(), n) }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        for slot in &mut self.0 {
            *slot.get_mut() = None;
        }
    }
}

/// States that wait for a plan's next steps.
#[derive(Default)]
pub(crate) struct StatePool(Mutex<Vec<State>>);

/// More concurrent steps of one plan than this allocate their states anew.
const MAX_STATES: usize = 16;

impl StatePool {
    /// A clean state with a seat for each of the pool's threads. All steps of a plan run on one pool.
    pub fn take(&self, plan: &Plan, pool: &Pool) -> State {
        let pooled = self.0.lock().pop();
        pooled.unwrap_or_else(|| State::new(plan, pool))
    }

    /// Takes a state back after a step that succeeded (all slots were consumed) or failed.
    pub fn give_back(&self, plan: &Plan, mut state: State, failed: bool) {
        if failed {
            state.clear();
        }
        state.resources.clear_all();
        match &state.flow {
            Some(flow) => flow.reset(plan),
            None => state.reset_counts(plan),
        }
        if plan.has_transfers {
            state.rendezvous.reset();
        }
        let mut states = self.0.lock();
        if states.len() < MAX_STATES {
            states.push(state);
        }
    }
}
