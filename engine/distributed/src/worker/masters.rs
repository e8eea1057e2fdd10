//! What masters registered: the parts of their graphs, and the steps that run them. When a master goes, so does everything it registered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::session::{SharedKernels, TaskSession};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use threads::Condvar;

use super::claims::Claims;
use super::peers::{Routes, Task};
use super::steps::{Step, Steps};
use crate::protocol::{Failure, FailureKind};

/// A part of a graph, ready to run.
pub(super) struct Part {
    /// What runs.
    pub session: TaskSession,
    /// The session of the master that it belongs to.
    pub of: u64,
    /// All tasks that take part.
    pub tasks: Arc<[Task]>,
    /// Where its sends go.
    pub routes: Arc<Routes>,
}

#[derive(Default)]
struct Master {
    /// Two for a moment, where it came again before its first connection was seen to end.
    n_connections: usize,
    kernels: FxHashMap<u64, SharedKernels>,
    parts: FxHashMap<u64, Arc<Part>>,
    steps: Steps,
}

/// The masters by incarnation.
#[derive(Default)]
pub(super) struct Masters {
    masters: Mutex<FxHashMap<u64, Master>>,
    claims: Mutex<Claims>,
    n_late: AtomicU64,
    /// Steps that run at this moment.
    n_running: Arc<(Mutex<usize>, Condvar)>,
}

/// A step that runs, as long as this is there.
pub(super) struct Running(Arc<(Mutex<usize>, Condvar)>);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.0.lock() -= 1;
        self.0.1.notify_all();
    }
}

impl Masters {
    /// A master connected.
    pub fn add(&self, master: u64) {
        self.claims.lock().add(master);
        self.masters.lock().entry(master).or_default().n_connections += 1;
    }

    /// A connection to a master ended. With the last one it is gone: its steps end, its parts are forgotten.
    pub fn remove(&self, master: u64, why: &str) {
        let gone = {
            let mut masters = self.masters.lock();
            let Some(known) = masters.get_mut(&master) else { return };
            known.n_connections -= 1;
            if known.n_connections > 0 { None } else { masters.remove(&master) }
        };
        if gone.is_some() {
            self.claims.lock().leave(master);
        }
        for step in gone.map(|mut gone| gone.steps.take_all()).unwrap_or_default() {
            step.fail(Failure::new(FailureKind::Lost, format!("the master was lost: {why}")));
        }
    }

    /// The kernels with state of a master's session.
    pub fn kernels(&self, master: u64, session: u64) -> Option<SharedKernels> {
        let mut masters = self.masters.lock();
        Some(masters.get_mut(&master)?.kernels.entry(session).or_default().clone())
    }

    /// Keeps a part. Where its master is gone nobody needs it.
    ///
    /// # Errors
    /// Another master took the task.
    pub fn register(&self, master: u64, number: u64, part: Part) -> Result<(), Failure> {
        let mut masters = self.masters.lock();
        // Under the lock: who takes the task forgets all parts then.
        if !self.claims.lock().admits(master) {
            let text =
                "another client took this task for itself: open a new session when it has ended, or reset the task";
            return Err(Failure::new(FailureKind::Invalid, text));
        }
        if let Some(known) = masters.get_mut(&master) {
            known.parts.insert(number, Arc::new(part));
        }
        Ok(())
    }

    /// A step begins: its part, what is known of it, and what says as long as it is kept that the step runs.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn begin(
        &self,
        master: u64,
        part: u64,
        step: u64,
        oldest: u64,
    ) -> Result<(Arc<Part>, Arc<Step>, Running), Failure> {
        let invalid = |what: String| Failure::new(FailureKind::Invalid, what);
        let (over, begun) = {
            let mut masters = self.masters.lock();
            let known = masters.get_mut(&master).ok_or_else(|| invalid("the master is unknown".into()))?;
            let found = known.parts.get(&part).cloned();
            let found = found.ok_or_else(|| invalid(format!("part {part} is not registered")))?;
            let over = known.steps.forget_before(oldest);
            let begun = known.steps.begin(step, &found.tasks);
            // Under the lock: who forgets all parts and then waits for what runs waits for this one.
            (over, begun.map(|step| (found, step, self.running())))
        };
        // Outside the lock, as everything that calls others.
        over.iter().for_each(|step| step.end_elsewhere());
        begun.ok_or_else(|| invalid(format!("step {step} was run before")))
    }

    /// The step that a value came for; `None`, and counted, where it is over.
    pub fn step(&self, master: u64, step: u64) -> Option<Arc<Step>> {
        let found = self.masters.lock().get_mut(&master).and_then(|known| known.steps.find_or_create(step));
        if found.is_none() {
            self.n_late.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// A step ended well.
    pub fn end(&self, master: u64, step: u64) {
        if let Some(known) = self.masters.lock().get_mut(&master) {
            known.steps.end(step);
        }
    }

    /// A master ends a step.
    pub fn cancel(&self, master: u64, step: u64) {
        let found = self.masters.lock().get_mut(&master).and_then(|known| known.steps.find_or_create(step));
        if let Some(step) = found {
            step.end_elsewhere();
        }
    }

    /// A task is gone: the steps that it takes part in end.
    pub fn lose(&self, task: &str, incarnation: u64, why: &str) {
        let steps: Vec<Arc<Step>> =
            self.masters.lock().values().flat_map(|known| known.steps.with(task, incarnation)).collect();
        for step in steps {
            let failure = Failure::new(FailureKind::Lost, why);
            step.fail(Failure { task: task.to_owned(), ..failure });
        }
    }

    /// Sessions of a master are closed, or single parts are not needed any more.
    pub fn forget(&self, master: u64, sessions: &[u64], parts: &[u64]) {
        if let Some(known) = self.masters.lock().get_mut(&master) {
            known.kernels.retain(|session, _| !sessions.contains(session));
            known.parts.retain(|number, part| !sessions.contains(&part.of) && !parts.contains(number));
        }
    }

    fn running(&self) -> Running {
        *self.n_running.0.lock() += 1;
        Running(Arc::clone(&self.n_running))
    }

    /// A master takes the task for itself. All parts and kernels are forgotten, as they may hold variables that are to be dropped, and
    /// the steps of all masters end: when this returns none runs, and none will that was begun before. What masters that came before
    /// prepared is void, and what they prepare yet, as long as this one is there.
    ///
    /// # Errors
    /// A step does not end in time; the master is gone, and what it asked for may be against another's will by now.
    pub fn take_over(&self, master: u64, within: Duration) -> Result<(), Failure> {
        let steps: Vec<Arc<Step>> = {
            let mut masters = self.masters.lock();
            if !masters.contains_key(&master) {
                return Err(Failure::new(FailureKind::Cancelled, "the master is gone"));
            }
            self.claims.lock().claim(master);
            for known in masters.values_mut() {
                known.kernels.clear();
                known.parts.clear();
            }
            masters.values().flat_map(|known| known.steps.all()).collect()
        };
        for step in steps {
            step.fail(Failure::new(FailureKind::Other, "the task's variables were dropped meanwhile"));
        }
        let (n, changed) = &*self.n_running;
        let mut n = n.lock();
        if changed.wait_while_for(&mut n, |n| *n > 0, within) {
            return Ok(());
        }
        Err(Failure::new(FailureKind::Other, format!("a step does not end within {} s", within.as_secs())))
    }

    /// Values that came for steps which were over.
    pub fn n_late(&self) -> u64 {
        self.n_late.load(Ordering::Relaxed)
    }

    /// Masters that are connected.
    pub fn n_masters(&self) -> usize {
        self.masters.lock().len()
    }

    /// Steps that are known.
    pub fn n_steps(&self) -> usize {
        self.masters.lock().values().map(|known| known.steps.len()).sum()
    }
}
