//! Steps that hang: reports what they wait for, and cancels them on a request to stop the run.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::RunOptions;
use engine::session::{CancelToken, OnStall};

use crate::event::{Event, Observer};

/// How long a step may make no progress before it is reported.
const STALL_TIME: Duration = Duration::from_secs(3);

/// A request to end a run.
#[derive(Default)]
pub(crate) struct StopRequest {
    is_made: AtomicBool,
    /// Cancels the steps that are under way.
    steps: CancelToken,
}

impl StopRequest {
    /// Asks the run to end after the current step; a second call cancels the step.
    pub fn make(&self) {
        if self.is_made.swap(true, SeqCst) {
            self.steps.cancel();
        }
    }

    /// Whether the request was made.
    pub fn is_made(&self) -> bool {
        self.is_made.load(SeqCst)
    }
}

/// Watches the steps of a run.
pub(crate) struct StallWatch {
    stop: Arc<StopRequest>,
    observer: Arc<dyn Observer>,
    /// The waits that were reported last, so that the same waits are not reported twice.
    reported: Mutex<Vec<String>>,
}

impl StallWatch {
    /// A watch over the steps of a run that ends on request.
    pub fn new(stop: Arc<StopRequest>, observer: Arc<dyn Observer>) -> StallWatch {
        StallWatch { stop, observer, reported: Mutex::default() }
    }

    /// Runs a step with these options; reports its waits when it makes no progress.
    pub fn run_step<T>(&self, options: &RunOptions<'_>, run: impl FnOnce(&RunOptions<'_>) -> T) -> T {
        let report = |waiting: &[String]| self.report_stall(options, waiting);
        let on_stall = Some(OnStall { after: STALL_TIME, report: &report });
        // A stop also cancels a step that has a cancel token of its own.
        let _stop_link = options.cancel.map(|cancel| cancel.cancelled_with(&self.stop.steps));
        run(&RunOptions { on_stall, cancel: options.cancel.or(Some(&self.stop.steps)), ..options.clone() })
    }

    fn report_stall(&self, options: &RunOptions<'_>, waiting: &[String]) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if *reported != waiting {
            self.observer.on_event(&Event::Stalled { step: options.summary_step, label: options.label, waiting });
            *reported = waiting.to_vec();
        }
        drop(reported);
        // A stalled step would not end by itself after the request to stop.
        if self.stop.is_made() {
            self.stop.steps.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_request_ends_a_step_that_hangs_and_not_one_that_moves() {
        let stop = Arc::new(StopRequest::default());
        let watch = StallWatch::new(Arc::clone(&stop), Arc::new(|_: &Event<'_>| {}));
        let token = CancelToken::new();
        let options = RunOptions { cancel: Some(&token), ..RunOptions::default() };
        watch.run_step(&options, |options| {
            stop.make();
            assert!(!options.cancel.is_some_and(CancelToken::is_cancelled), "it may end by itself");
            if let Some(on_stall) = options.on_stall {
                (on_stall.report)(&["a value".to_owned()]);
            }
            assert!(options.cancel.is_some_and(CancelToken::is_cancelled));
        });
    }

    #[test]
    fn a_second_request_ends_the_step_at_once() {
        let stop = Arc::new(StopRequest::default());
        let watch = StallWatch::new(Arc::clone(&stop), Arc::new(|_: &Event<'_>| {}));
        watch.run_step(&RunOptions::default(), |options| {
            stop.make();
            assert!(!options.cancel.is_some_and(CancelToken::is_cancelled));
            stop.make();
            assert!(options.cancel.is_some_and(CancelToken::is_cancelled));
        });
    }

    #[test]
    fn the_same_waits_are_reported_once() {
        let texts: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&texts);
        let watch =
            StallWatch::new(Arc::default(), Arc::new(move |e: &Event<'_>| sink.lock().unwrap().push(e.to_string())));
        watch.run_step(&RunOptions { label: "train", ..RunOptions::default() }, |options| {
            let on_stall = options.on_stall.unwrap();
            for waits in ["a", "a", "b"] {
                (on_stall.report)(&[waits.to_owned()]);
            }
        });
        let texts = texts.lock().unwrap();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[1].ends_with("it waits for b"), "{texts:?}");
    }
}
