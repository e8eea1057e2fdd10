//! The answers of the parts of a step, as they come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::Tensor;
use parking_lot::Mutex;
use threads::Condvar;

use super::link::Reply;
use crate::arrows::Arrival;
use crate::protocol::{Failure, FailureKind, Task};

/// How long the workers have to end a step that failed or was cancelled.
const GRACE: Duration = Duration::from_secs(3);
/// The same, where a task was lost: whoever goes on takes all tasks anew, which ends what runs there. Who is slow must not keep the loss
/// from being reported; others may still explain it better.
const GRACE_OF_LOST: Duration = Duration::from_millis(200);

/// The parts' answers.
pub(super) struct Answers {
    /// The tasks that take part.
    pub tasks: Arc<[Task]>,
    pub state: Mutex<State>,
    pub changed: Condvar,
}

pub(super) struct State {
    pub fetches: Vec<Option<Vec<Tensor>>>,
    /// Of the answers, as they came.
    pub arrivals: Vec<Arrival>,
    pub n_left: usize,
    /// What parts wait for, by their tasks: reported by them, and not passed on to the client yet.
    pub stalled: BTreeMap<String, Vec<String>>,
    /// The failure that explains most, and the index of its part.
    pub failure: Option<(usize, Failure)>,
}

impl Answers {
    pub fn new(tasks: &Arc<[Task]>) -> Answers {
        let n = tasks.len();
        let state =
            State { fetches: vec![None; n], arrivals: Vec::new(), n_left: n, stalled: BTreeMap::new(), failure: None };
        Answers { tasks: Arc::clone(tasks), state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Whether a task takes part, in this life of it.
    pub fn has(&self, task: &str, incarnation: u64) -> bool {
        self.tasks.iter().any(|known| known.name == task && known.incarnation == incarnation)
    }

    /// Something went wrong between tasks.
    pub fn fail(&self, failure: Failure) {
        self.state.lock().failed(0, failure);
        self.changed.notify_all();
    }

    /// Nothing happens in a task's part.
    pub fn stalled(&self, task: &str, waiting: Vec<String>) {
        self.state.lock().stalled.insert(task.to_owned(), waiting);
        self.changed.notify_all();
    }

    pub fn put(&self, part: usize, answer: Reply) {
        let mut state = self.state.lock();
        let failure = match answer {
            Reply::Ran(Ok(fetches), arrival) => {
                state.fetches[part] = Some(fetches);
                state.arrivals.extend(arrival);
                None
            }
            Reply::Ran(Err(failure), _) | Reply::Done(Some(failure)) => Some(failure),
            Reply::Lost(why) => Some(Failure::new(FailureKind::Lost, why)),
            Reply::Described(_) | Reply::Done(None) => {
                Some(Failure::new(FailureKind::Other, "an answer to another question"))
            }
        };
        if let Some(failure) = failure {
            state.failed(part, failure);
        }
        state.n_left -= 1;
        if state.n_left == 0 || state.failure.is_some() {
            self.changed.notify_all();
        }
    }
}

impl State {
    pub fn grace(&self) -> Duration {
        let is_lost = self.failure.as_ref().is_some_and(|(_, failure)| failure.kind() == FailureKind::Lost);
        if is_lost { GRACE_OF_LOST } else { GRACE }
    }

    fn failed(&mut self, part: usize, failure: Failure) {
        if self.failure.as_ref().is_none_or(|(_, known)| weight(&failure) > weight(known)) {
            self.failure = Some((part, failure));
        }
    }
}

/// The loss of a task explains what others say, and what only follows from something else explains nothing.
fn weight(failure: &Failure) -> u8 {
    match failure.kind() {
        FailureKind::Derived => 0,
        FailureKind::Lost if failure.task.is_empty() => 3,
        FailureKind::Lost => 2,
        _ => 1,
    }
}
