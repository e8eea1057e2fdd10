//! The steps of one master that this task takes part in.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use engine::run::rendezvous::{LocalRendezvous, Rendezvous, RendezvousError};
use engine::session::CancelToken;
use parking_lot::Mutex;

use super::peers::Task;
use crate::protocol::{Failure, FailureKind};

/// More steps at once than this are a mistake.
const MAX_STEPS: usize = 1 << 16;

/// A step, from the first that is heard of it: values may come before the master's message.
#[derive(Default)]
pub(super) struct Step {
    /// Where values from other tasks meet their receives.
    pub rendezvous: LocalRendezvous,
    /// Cancelled when the step fails elsewhere.
    pub cancel: CancelToken,
    /// The tasks that take part, once it began.
    tasks: OnceLock<Arc<[Task]>>,
    /// Why it failed, where that is not what its own nodes say.
    failure: Mutex<Option<Failure>>,
}

impl Step {
    /// Ends it early. The first reason stays.
    pub fn fail(&self, failure: Failure) {
        let text: Arc<str> = failure.message.as_str().into();
        self.failure.lock().get_or_insert(failure);
        self.rendezvous.abort(RendezvousError::Remote(text));
        self.cancel.cancel();
    }

    /// Ends it because the master did.
    pub fn end_elsewhere(&self) {
        self.fail(Failure::new(FailureKind::Derived, "the step ended elsewhere"));
    }

    /// Why it was ended early.
    pub fn failure(&self) -> Option<Failure> {
        self.failure.lock().clone()
    }

    fn has(&self, task: &str, incarnation: u64) -> bool {
        let is_it = |known: &Task| known.name == task && known.incarnation == incarnation;
        self.tasks.get().is_some_and(|tasks| tasks.iter().any(is_it))
    }
}

/// The steps by number.
#[derive(Default)]
pub(super) struct Steps {
    /// All before are over.
    oldest: u64,
    steps: BTreeMap<u64, Arc<Step>>,
}

impl Steps {
    /// The step, which may begin to exist; `None` where it is over.
    pub fn find_or_create(&mut self, number: u64) -> Option<Arc<Step>> {
        if number < self.oldest || (self.steps.len() >= MAX_STEPS && !self.steps.contains_key(&number)) {
            return None;
        }
        Some(Arc::clone(self.steps.entry(number).or_default()))
    }

    /// The step begins here; `None` where it did before.
    pub fn begin(&mut self, number: u64, tasks: &Arc<[Task]>) -> Option<Arc<Step>> {
        let step = self.find_or_create(number)?;
        step.tasks.set(Arc::clone(tasks)).ok().map(|()| step)
    }

    /// All before `oldest` are over: gives those that were not ended here.
    pub fn forget_before(&mut self, oldest: u64) -> Vec<Arc<Step>> {
        if oldest <= self.oldest {
            return Vec::new();
        }
        self.oldest = oldest;
        let later = self.steps.split_off(&oldest);
        std::mem::replace(&mut self.steps, later).into_values().collect()
    }

    /// The step ended well here: nothing more comes for it. One that failed stays, for what still comes, until the master
    /// says that it is over.
    pub fn end(&mut self, number: u64) {
        self.steps.remove(&number);
    }

    /// The steps that a task takes part in.
    pub fn with(&self, task: &str, incarnation: u64) -> Vec<Arc<Step>> {
        self.steps.values().filter(|step| step.has(task, incarnation)).cloned().collect()
    }

    /// All steps.
    pub fn all(&self) -> Vec<Arc<Step>> {
        self.steps.values().cloned().collect()
    }

    /// All steps, which are over with this.
    pub fn take_all(&mut self) -> Vec<Arc<Step>> {
        self.oldest = u64::MAX;
        std::mem::take(&mut self.steps).into_values().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_known_until_all_before_a_later_one_are_over() {
        let (mut steps, tasks) = (Steps::default(), Arc::from([]));
        let early = steps.find_or_create(5).unwrap();
        let begun = steps.begin(5, &tasks).unwrap();
        assert!(Arc::ptr_eq(&early, &begun));
        assert!(steps.begin(5, &tasks).is_none(), "a step begins once");
        assert!(steps.forget_before(3).is_empty());
        assert!(steps.find_or_create(2).is_none() && steps.find_or_create(3).is_some());
        assert_eq!(steps.forget_before(9).len(), 2, "whoever still runs is notified");
        assert!(steps.find_or_create(5).is_none() && steps.begin(9, &tasks).is_some());
        assert_eq!(steps.len(), 1);
    }

    #[test]
    fn a_step_cancelled_before_it_begins_does_not_run() {
        let (mut steps, tasks) = (Steps::default(), Arc::from([]));
        steps.find_or_create(4).unwrap().end_elsewhere();
        let step = steps.begin(4, &tasks).unwrap();
        assert!(step.cancel.is_cancelled() && step.failure().is_some());
    }
}
