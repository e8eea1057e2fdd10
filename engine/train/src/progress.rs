//! The progress of a run: counters that the training thread writes and others read.

use std::borrow::Cow;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use engine::tasks::Quality;

use crate::stall::StopRequest;

/// Counters of a run, and the request to stop it.
pub struct Progress {
    steps: AtomicU64,
    done: AtomicU64,
    /// Steps that were done before this process began: those of the checkpoint.
    restored: AtomicU64,
    /// When the first step began and the last one ended, by `events::clock`; 0: not yet.
    begun_ns: AtomicI64,
    ended_ns: AtomicI64,
    loss: AtomicU32,
    quality: AtomicU32,
    quality_name: OnceLock<Cow<'static, str>>,
    stop: Arc<StopRequest>,
}

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Steps done.
    pub done: u64,
    /// Steps there are to be.
    pub steps: u64,
    /// Steps per second of this process: those of a checkpoint took it no time.
    pub steps_per_second: f64,
    /// The newest training loss.
    pub loss: Option<f32>,
    /// The newest quality.
    pub quality: Option<(Cow<'static, str>, f64)>,
    /// The time left at this rate, nanoseconds; none where the run ends.
    pub left_ns: Option<i64>,
}

impl Progress {
    /// A run of `steps` steps, none done.
    pub fn new(steps: u64) -> Progress {
        let unknown = || AtomicU32::new(f32::NAN.to_bits());
        Progress {
            steps: AtomicU64::new(steps),
            done: AtomicU64::new(0),
            restored: AtomicU64::new(0),
            begun_ns: AtomicI64::new(0),
            ended_ns: AtomicI64::new(0),
            loss: unknown(),
            quality: unknown(),
            quality_name: OnceLock::new(),
            stop: Arc::default(),
        }
    }

    /// Sets how many steps there are to be.
    pub fn set_steps(&self, steps: u64) {
        self.steps.store(steps, Relaxed);
    }

    /// Asks the run to end after its current step; asked again, or where that step hangs, the step is cancelled.
    pub fn stop(&self) {
        self.stop.make();
    }

    /// Whether the run was asked to end.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_made()
    }

    /// Steps done.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// The counters now; `None` before this process has done a step.
    pub fn snapshot(&self, now_ns: i64) -> Option<Snapshot> {
        let done = self.done();
        let own = done.saturating_sub(self.restored.load(Relaxed));
        if own == 0 {
            return None;
        }
        let until = match self.ended_ns.load(Relaxed) {
            0 => now_ns,
            ended => ended,
        };
        let elapsed_ns = (until - self.begun_ns.load(Relaxed)).max(1);
        let (steps, rate) = (self.steps.load(Relaxed), own as f64 / (elapsed_ns as f64 / 1e9));
        let left = steps.saturating_sub(done) as f64 / rate.max(1e-9);
        let read = |value: &AtomicU32| Some(f32::from_bits(value.load(Relaxed))).filter(|value| value.is_finite());
        Some(Snapshot {
            done,
            steps,
            steps_per_second: rate,
            loss: read(&self.loss),
            quality: self.quality_name.get().cloned().zip(read(&self.quality).map(f64::from)),
            left_ns: (left > 0.0 && !self.is_stopping()).then_some((left * 1e9) as i64),
        })
    }

    /// The request to stop.
    pub(crate) fn stop_request(&self) -> &Arc<StopRequest> {
        &self.stop
    }

    /// The steps begin, after those of the checkpoint.
    pub(crate) fn begin(&self, restored: u64, now_ns: i64) {
        self.restored.store(restored, Relaxed);
        self.done.store(restored, Relaxed);
        self.begun_ns.store(now_ns, Relaxed);
    }

    /// The steps are over.
    pub(crate) fn end(&self, now_ns: i64) {
        self.ended_ns.store(now_ns, Relaxed);
    }

    /// One more step is done.
    pub(crate) fn step_done(&self, done: u64) {
        self.done.store(done, Relaxed);
    }

    /// Sets the newest training loss.
    pub(crate) fn set_loss(&self, loss: f32) {
        self.loss.store(loss.to_bits(), Relaxed);
    }

    /// Sets the newest quality.
    pub(crate) fn set_quality(&self, quality: &Quality) {
        self.quality_name.get_or_init(|| quality.name.clone());
        self.quality.store((quality.value as f32).to_bits(), Relaxed);
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
        progress.step_done(250);
        progress.set_loss(0.5);
        progress.set_quality(&Quality { name: "test accuracy".into(), value: 0.5, goal: 0.95, is_limit: false });
        let quality = Some(("test accuracy".into(), 0.5));
        let (loss, left_ns) = (Some(0.5), Some(3_000_000_000));
        let expected = Snapshot { done: 250, steps: 1000, steps_per_second: 250.0, loss, quality, left_ns };
        assert_eq!(progress.snapshot(6_000_000_000), Some(expected));
        progress.stop();
        assert_eq!(progress.snapshot(6_000_000_000).unwrap().left_ns, None, "it ends");
    }

    #[test]
    fn steps_of_a_checkpoint_took_no_time() {
        let progress = Progress::new(1000);
        progress.begin(900, 5_000_000_000);
        assert_eq!(progress.snapshot(6_000_000_000), None, "no step of its own is done");
        progress.step_done(910);
        let snapshot = progress.snapshot(6_000_000_000).unwrap();
        assert_eq!((snapshot.steps_per_second, snapshot.left_ns), (10.0, Some(9_000_000_000)));
    }

    #[test]
    fn what_comes_after_the_last_step_does_not_count() {
        let progress = Progress::new(1000);
        progress.begin(900, 5_000_000_000);
        progress.step_done(1000);
        progress.end(15_000_000_000);
        let snapshot = progress.snapshot(99_000_000_000).unwrap();
        assert_eq!((snapshot.steps_per_second, snapshot.left_ns), (10.0, None));
    }
}
