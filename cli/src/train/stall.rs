//! Steps that hang: what they wait for is told, and who asks for the end gets it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::RunOptions;
use engine::session::{CancelToken, OnStall};

/// How long nothing happens in a step before it is told.
const AFTER: Duration = Duration::from_secs(3);
/// Waits that a line names.
const N_NAMED: usize = 4;

/// The end of a run, for which somebody may ask.
#[derive(Default)]
pub(super) struct Ending {
    is_asked: AtomicBool,
    /// Ends the steps that are under way.
    steps: CancelToken,
}

impl Ending {
    /// Asks for the end after the current step; asked again, the step ends at once.
    pub fn ask(&self) {
        if self.is_asked.swap(true, SeqCst) {
            self.steps.cancel();
        }
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(SeqCst)
    }
}

/// Watches the steps of a run.
#[derive(Default)]
pub(super) struct Watch {
    ending: Arc<Ending>,
    /// What was told last, so that the same is not told again.
    told: Mutex<Vec<String>>,
}

impl Watch {
    /// Of the steps of a run that ends so.
    pub fn new(ending: &Arc<Ending>) -> Watch {
        Watch { ending: Arc::clone(ending), told: Mutex::default() }
    }

    /// Runs a step with these options, watched.
    pub fn step<T>(&self, options: &RunOptions<'_>, run: impl FnOnce(&RunOptions<'_>) -> T) -> T {
        let tell = |waiting: &[String]| self.stalled(options, waiting);
        let on_stall = Some(OnStall { after: AFTER, tell: &tell });
        // What ends the step for other reasons ends it for this one, too.
        let _joined = options.cancel.map(|cancel| cancel.cancelled_with(&self.ending.steps));
        run(&RunOptions { on_stall, cancel: options.cancel.or(Some(&self.ending.steps)), ..options.clone() })
    }

    fn stalled(&self, options: &RunOptions<'_>, waiting: &[String]) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != waiting {
            note!("stepscope: {}", line(options, waiting));
            *told = waiting.to_vec();
        }
        drop(told);
        // It would not end by itself.
        if self.ending.is_asked() {
            self.ending.steps.cancel();
        }
    }
}

/// `step 7 (train) makes no progress: it waits for node input/batch (QueueDequeueManyV2) at FIFOQueue input/rows`
fn line(options: &RunOptions<'_>, waiting: &[String]) -> String {
    let step = options.summary_step.map_or(String::new(), |step| format!(" {step}"));
    let mut named = waiting.iter().take(N_NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    if waiting.len() > N_NAMED {
        named += &format!("; and {} more", waiting.len() - N_NAMED);
    }
    if named.is_empty() {
        named = "something that does not say so".to_owned();
    }
    format!("step{step} ({}) makes no progress: it waits for {named}", options.label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_step_and_what_it_waits_for() {
        let options = RunOptions { label: "train", summary_step: Some(7), ..RunOptions::default() };
        let waits: Vec<String> = (0..6).map(|i| format!("node n{i} (Recv)")).collect();
        assert_eq!(
            line(&options, &waits),
            "step 7 (train) makes no progress: it waits for node n0 (Recv); node n1 (Recv); node n2 (Recv); node n3 (Recv); and 2 more"
        );
    }

    #[test]
    fn who_asks_ends_a_step_that_hangs_and_not_one_that_moves() {
        let ending = Arc::new(Ending::default());
        let watch = Watch::new(&ending);
        let token = CancelToken::new();
        let options = RunOptions { cancel: Some(&token), ..RunOptions::default() };
        watch.step(&options, |options| {
            ending.ask();
            assert!(!options.cancel.is_some_and(CancelToken::is_cancelled), "it may end by itself");
            if let Some(on_stall) = options.on_stall {
                (on_stall.tell)(&["a value".to_owned()]);
            }
            assert!(options.cancel.is_some_and(CancelToken::is_cancelled));
        });
    }
}
