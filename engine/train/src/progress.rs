//! The progress of a run: counters that the training thread writes and other threads read.

use std::borrow::Cow;
use std::sync::Arc;

use engine::tasks::Quality;
use parking_lot::Mutex;

use crate::stall::StopRequest;

/// Counters of a run, and the request to stop it.
pub struct Progress {
    counters: Mutex<Counters>,
    stop: Arc<StopRequest>,
}

#[derive(Default)]
struct Counters {
    /// The number of steps of the entire run.
    steps: u64,
    /// The number of steps that are done, including those of the checkpoint.
    n_done: u64,
    /// The number of steps that were done before this process began: those of the checkpoint.
    n_restored: u64,
    /// When the first step began and the last one ended, by `events::clock`.
    begin_ns: i64,
    end_ns: Option<i64>,
    loss: Option<f32>,
    quality: Option<(Cow<'static, str>, f64)>,
}

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The number of steps done.
    pub n_done: u64,
    /// The number of steps of the entire run.
    pub steps: u64,
    /// Steps per second of this process, without those of the checkpoint.
    pub steps_per_second: f64,
    /// The newest training loss.
    pub loss: Option<f32>,
    /// The newest quality.
    pub quality: Option<(Cow<'static, str>, f64)>,
    /// The time left at this rate, nanoseconds; `None` where the run is ending.
    pub left_ns: Option<i64>,
}

impl Progress {
    /// A run of `steps` steps, none done.
    pub fn new(steps: u64) -> Progress {
        Progress { counters: Mutex::new(Counters { steps, ..Counters::default() }), stop: Arc::default() }
    }

    /// Sets the number of steps of the entire run.
    pub fn set_steps(&self, steps: u64) {
        self.counters.lock().steps = steps;
    }

    /// Asks the run to end after its current step. A second call cancels that step, and so does a stall.
    pub fn stop(&self) {
        self.stop.make();
    }

    /// Whether the run was asked to end.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_made()
    }

    /// The number of steps done.
    pub fn n_done(&self) -> u64 {
        self.counters.lock().n_done
    }

    /// The counters now; `None` before this process has done a step.
    pub fn snapshot(&self, now_ns: i64) -> Option<Snapshot> {
        let counters = self.counters.lock();
        let n_done_by_process = counters.n_done.saturating_sub(counters.n_restored);
        if n_done_by_process == 0 {
            return None;
        }
        let elapsed_ns = (counters.end_ns.unwrap_or(now_ns) - counters.begin_ns).max(1);
        let rate = n_done_by_process as f64 / (elapsed_ns as f64 / 1e9);
        let left = counters.steps.saturating_sub(counters.n_done) as f64 / rate.max(1e-9);
        Some(Snapshot {
            n_done: counters.n_done,
            steps: counters.steps,
            steps_per_second: rate,
            loss: counters.loss.filter(|loss| loss.is_finite()),
            quality: counters.quality.clone().filter(|(_, value)| value.is_finite()),
            left_ns: (left > 0.0 && !self.is_stopping()).then_some((left * 1e9) as i64),
        })
    }

    /// The request to stop.
    pub(crate) fn stop_request(&self) -> &Arc<StopRequest> {
        &self.stop
    }

    /// Begins the steps after the `n_restored` ones of the checkpoint.
    pub(crate) fn begin(&self, n_restored: u64, now_ns: i64) {
        let mut counters = self.counters.lock();
        (counters.n_restored, counters.n_done, counters.begin_ns) = (n_restored, n_restored, now_ns);
    }

    /// Ends the steps.
    pub(crate) fn end(&self, now_ns: i64) {
        self.counters.lock().end_ns = Some(now_ns);
    }

    /// Sets the number of steps that are done.
    pub(crate) fn set_n_done(&self, n_done: u64) {
        self.counters.lock().n_done = n_done;
    }

    /// Sets the newest training loss.
    pub(crate) fn set_loss(&self, loss: f32) {
        self.counters.lock().loss = Some(loss);
    }

    /// Sets the newest quality.
    pub(crate) fn set_quality(&self, quality: &Quality) {
        self.counters.lock().quality = Some((quality.name.clone(), quality.value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_rate_and_time_left() {
        let progress = Progress::new(1000);
        progress.begin(0, 5_000_000_000);
        assert_eq!(progress.snapshot(6_000_000_000), None, "no step is done");
        progress.set_n_done(250);
        progress.set_loss(0.5);
        progress.set_quality(&Quality { name: "test accuracy".into(), value: 0.5, goal: 0.95, is_limit: false });
        let quality = Some(("test accuracy".into(), 0.5));
        let (loss, left_ns) = (Some(0.5), Some(3_000_000_000));
        let expected = Snapshot { n_done: 250, steps: 1000, steps_per_second: 250.0, loss, quality, left_ns };
        assert_eq!(progress.snapshot(6_000_000_000), Some(expected));
        progress.stop();
        assert_eq!(progress.snapshot(6_000_000_000).unwrap().left_ns, None, "it ends");
    }

    #[test]
    fn steps_of_a_checkpoint_took_no_time() {
        let progress = Progress::new(1000);
        progress.begin(900, 5_000_000_000);
        assert_eq!(progress.snapshot(6_000_000_000), None, "no step of its own is done");
        progress.set_n_done(910);
        let snapshot = progress.snapshot(6_000_000_000).unwrap();
        assert_eq!((snapshot.steps_per_second, snapshot.left_ns), (10.0, Some(9_000_000_000)));
    }

    #[test]
    fn what_comes_after_the_last_step_does_not_count() {
        let progress = Progress::new(1000);
        progress.begin(900, 5_000_000_000);
        progress.set_n_done(1000);
        progress.end(15_000_000_000);
        let snapshot = progress.snapshot(99_000_000_000).unwrap();
        assert_eq!((snapshot.steps_per_second, snapshot.left_ns), (10.0, None));
    }
}
