//! One step on all workers: their parts are started, their answers awaited, errors end it everywhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{RunOptions, Tensor};
use parking_lot::Mutex;
use threads::Condvar;

use super::link::{Answer, Link};
use super::{Shared, session::Registered};
use crate::arrows::{self, Arrival, Way};
use crate::error::DistributedError;
use crate::protocol::{Cancel, Failure, FailureKind, Head, Run, Task};
use crate::wire;

/// How often a token is looked at.
const TOKEN_PERIOD: Duration = Duration::from_millis(10);
/// How long the workers have to end a step that failed or was cancelled.
const GRACE: Duration = Duration::from_secs(3);
/// The same, where a task was lost: whoever goes on takes all tasks anew, which ends what runs there. Who is slow must not keep the loss
/// from being told; others may still explain it better.
const GRACE_OF_LOST: Duration = Duration::from_millis(200);

/// The parts' answers.
pub(super) struct Answers {
    /// The tasks that take part.
    tasks: Arc<[Task]>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    fetches: Vec<Option<Vec<Tensor>>>,
    /// Of the answers, as they came.
    arrivals: Vec<Arrival>,
    n_left: usize,
    /// What parts wait for, by their tasks, where they told and nobody was told.
    stalled: BTreeMap<String, Vec<String>>,
    /// The failure that tells most, and whose.
    failure: Option<(usize, Failure)>,
}

impl Answers {
    fn new(tasks: &Arc<[Task]>) -> Answers {
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

    fn put(&self, part: usize, answer: Answer) {
        let mut state = self.state.lock();
        let failure = match answer {
            Answer::Ran(Ok(fetches), arrival) => {
                state.fetches[part] = Some(fetches);
                state.arrivals.extend(arrival);
                None
            }
            Answer::Ran(Err(failure), _) | Answer::Done(Some(failure)) => Some(failure),
            Answer::Lost(why) => Some(Failure::new(FailureKind::Lost, why)),
            Answer::Described(_) | Answer::Done(None) => {
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
    fn grace(&self) -> Duration {
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

/// Runs a step of a signature that is registered.
pub(super) fn run(
    master: &Shared,
    registered: &Registered,
    options: &RunOptions<'_>,
    feeds: &[Tensor],
) -> Result<Vec<Tensor>, DistributedError> {
    let division = &registered.division;
    if feeds.len() != division.n_feeds {
        let text = format!("expected {} feeds, got {}", division.n_feeds, feeds.len());
        return Err(DistributedError::Invalid(text));
    }
    let answers = Arc::new(Answers::new(&registered.tasks));
    let (step, oldest) = master.begin_step(&answers);
    let result = run_numbered(registered, options, feeds, step, oldest, &answers);
    master.end_step(step);
    let mut parts = result?;
    let mut fetches: Vec<Option<Tensor>> = vec![None; division.n_fetches];
    for (part, values) in division.parts.iter().zip(&mut parts) {
        for ((position, _), value) in part.fetches.iter().zip(values.drain(..)) {
            fetches[*position] = Some(value);
        }
    }
    for (position, feed) in &division.passed_on {
        fetches[*position] = Some(feeds[*feed].clone());
    }
    let all = fetches.into_iter().collect::<Option<Vec<Tensor>>>();
    all.ok_or_else(|| DistributedError::Invalid("a worker gave fewer values than it was asked for".into()))
}

fn run_numbered(
    registered: &Registered,
    options: &RunOptions<'_>,
    feeds: &[Tensor],
    step: u64,
    oldest: u64,
    answers: &Arc<Answers>,
) -> Result<Vec<Vec<Tensor>>, DistributedError> {
    let mut frames = Vec::with_capacity(registered.parts.len());
    for (part, (_, number)) in registered.division.parts.iter().zip(&registered.parts) {
        let mut body = Vec::new();
        let heads = part.feeds.iter().map(|(position, _)| wire::put(&feeds[*position], &mut body));
        let heads =
            heads.collect::<Result<Vec<_>, _>>().map_err(|e| DistributedError::Invalid(format!("a feed: {e}")))?;
        let run = Run {
            call: 0,
            step,
            part: *number,
            feeds: heads,
            oldest,
            label: options.label.to_owned(),
            summary_step: options.summary_step,
            arrow: 0,
        };
        frames.push((run, body));
    }
    for (i, ((link, _), (run, body))) in registered.parts.iter().zip(frames).enumerate() {
        let answers = Arc::clone(answers);
        let arrow = arrows::leaves(Way::Run);
        link.call(|call| Run { call, arrow, ..run }.frame(body), Box::new(move |answer| answers.put(i, answer)));
    }
    wait(registered, options, step, answers)
}

/// Waits until all parts are over.
fn wait(
    registered: &Registered,
    options: &RunOptions<'_>,
    step: u64,
    answers: &Answers,
) -> Result<Vec<Vec<Tensor>>, DistributedError> {
    let begin = threads::now();
    // When the step was ended here, and why where no worker says.
    let mut ended: Option<(Duration, Option<DistributedError>)> = None;
    let mut state = answers.state.lock();
    while state.n_left > 0 {
        let now = threads::since(begin);
        let until = match &ended {
            Some((at, _)) => (*at + state.grace()).saturating_sub(now),
            None => options.timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(now)),
        };
        let why = if state.failure.is_some() {
            Some(None)
        } else if options.cancel.is_some_and(engine::session::CancelToken::is_cancelled) {
            Some(Some(DistributedError::Cancelled))
        } else if ended.is_none() && until.is_zero() {
            Some(options.timeout.map(DistributedError::DeadlineExceeded))
        } else {
            None
        };
        match (why, &ended) {
            (Some(why), None) => {
                ended = Some((now, why));
                drop(state);
                registered.parts.iter().for_each(|(link, _)| link.tell(&Cancel { step }));
                state = answers.state.lock();
                continue;
            }
            (_, Some(_)) if until.is_zero() => break,
            _ => {}
        }
        if let Some(on_stall) = options.on_stall.filter(|_| ended.is_none() && !state.stalled.is_empty()) {
            let stalled = std::mem::take(&mut state.stalled);
            drop(state);
            let of_task = |(task, waiting): (&String, &Vec<String>)| format!("{task}: {}", waiting.join(", "));
            (on_stall.report)(&stalled.iter().map(of_task).collect::<Vec<_>>());
            state = answers.state.lock();
            continue;
        }
        let period = if options.cancel.is_some() && ended.is_none() { until.min(TOKEN_PERIOD) } else { until };
        if period == Duration::MAX {
            answers.changed.wait(&mut state);
        } else {
            answers.changed.wait_for(&mut state, period);
        }
    }
    state.arrivals.drain(..).for_each(Arrival::emit);
    if let Some((_, Some(why))) = ended {
        return Err(why);
    }
    if let Some((part, failure)) = state.failure.take() {
        return Err(error(&registered.parts[part].0, failure));
    }
    let fetches = std::mem::take(&mut state.fetches).into_iter().collect::<Option<Vec<_>>>();
    fetches.ok_or_else(|| DistributedError::Invalid("a worker did not end its part in time".into()))
}

/// The error that a worker's failure is to the client.
pub(super) fn error(link: &Link, failure: Failure) -> DistributedError {
    match failure.kind() {
        FailureKind::Lost if failure.task.is_empty() => link.error(failure.message),
        FailureKind::Lost => DistributedError::Lost { task: failure.task, why: failure.message },
        kind => DistributedError::Failed {
            task: link.task.clone(),
            message: failure.message,
            is_end_of_data: kind == FailureKind::OutOfRange,
        },
    }
}
