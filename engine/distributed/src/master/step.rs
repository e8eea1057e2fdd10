//! One step on all workers: their parts are started, their answers awaited, errors end it everywhere.

use std::sync::Arc;
use std::time::Duration;

use engine::session::Division;
use engine::{RunOptions, Tensor};

use super::answers::Answers;
use super::link::Link;
use super::shared::Shared;
use crate::arrows::{self, Arrival, MessageKind};
use crate::error::DistributedError;
use crate::protocol::{Cancel, Head, Run, Task};
use crate::wire;

/// How often a token is looked at.
const TOKEN_PERIOD: Duration = Duration::from_millis(10);
/// A signature whose parts the workers have.
pub(super) struct Registered {
    pub division: Division,
    /// The worker of each part, and the part's number there.
    pub parts: Vec<(Arc<Link>, u64)>,
    /// All tasks that take part.
    pub tasks: Arc<[Task]>,
    /// The master's resets when it was registered.
    pub n_resets: u64,
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
        let arrow = arrows::leaves(MessageKind::Run);
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
                registered.parts.iter().for_each(|(link, _)| link.notify(&Cancel { step }));
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
        return Err(registered.parts[part].0.failed(failure));
    }
    let fetches = std::mem::take(&mut state.fetches).into_iter().collect::<Option<Vec<_>>>();
    fetches.ok_or_else(|| DistributedError::Invalid("a worker did not end its part in time".into()))
}
