//! What each worker has to itself, and what the others may take from it.

use crossbeam_deque::{Steal, Stealer, Worker};
use parking_lot::Mutex;

use crate::compile::plan::Plan;
use engine_core::kernel::Slot;

/// What one worker has to itself. Only thread `i` of the pool locks that of worker `i`, so nobody ever waits for the lock.
pub(crate) struct WorkerState<T> {
    /// Ready executions that only this worker runs: cheap ones. The last in runs first, while its inputs are in the cache.
    pub local: Vec<T>,
    /// Ready executions that others may take.
    pub shared: Worker<T>,
    /// Expensive executions: moved to `shared` once the end of the node that made them ready is counted.
    pub expensive: Vec<T>,
    /// Outputs of the node that runs.
    pub outputs: Vec<Slot>,
}

/// The states of all workers of a step.
pub(crate) struct Workers<T> {
    states: Box<[Mutex<WorkerState<T>>]>,
    stealers: Box<[Stealer<T>]>,
}

impl<T> Workers<T> {
    pub fn new(plan: &Plan, n: usize) -> Workers<T> {
        let new = || WorkerState {
            local: Vec::new(),
            shared: Worker::new_lifo(),
            expensive: Vec::new(),
            outputs: std::iter::repeat_with(|| None).take(plan.max_outputs).collect(),
        };
        let states: Box<[WorkerState<T>]> = std::iter::repeat_with(new).take(n).collect();
        Workers {
            stealers: states.iter().map(|state| state.shared.stealer()).collect(),
            states: states.into_iter().map(Mutex::new).collect(),
        }
    }

    /// The state of a worker.
    pub fn state(&self, worker: usize) -> &Mutex<WorkerState<T>> {
        &self.states[worker]
    }

    /// Whether an execution can be taken from some worker.
    pub fn have_shared(&self) -> bool {
        self.stealers.iter().any(|stealer| !stealer.is_empty())
    }

    /// A ready execution of another worker than `worker`.
    pub fn steal(&self, worker: usize) -> Option<T> {
        let n = self.stealers.len();
        for i in 1..n {
            let victim = &self.stealers[(worker + i) % n];
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

    /// Drops what a step that ended early left behind.
    pub fn clear(&mut self) {
        for state in &mut self.states {
            let state = state.get_mut();
            state.local.clear();
            state.expensive.clear();
            while state.shared.pop().is_some() {}
            state.outputs.fill_with(|| None);
        }
    }
}
