//! What a run says while it trains: shared counters, and the line on stderr.

use std::borrow::Cow;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::tasks::Quality;

use super::stall::Ending;
use crate::args::Verbosity;
use crate::human;
use crate::out;
use crate::progress::ShownElsewhere;

/// What the training thread tells and is told.
pub struct Shared {
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
    ending: Arc<Ending>,
}

impl Shared {
    /// A run of `steps` steps, none done.
    pub fn new(steps: u64) -> Shared {
        let nothing = || AtomicU32::new(f32::NAN.to_bits());
        Shared {
            steps: AtomicU64::new(steps),
            done: AtomicU64::new(0),
            restored: AtomicU64::new(0),
            begun_ns: AtomicI64::new(0),
            ended_ns: AtomicI64::new(0),
            loss: nothing(),
            quality: nothing(),
            quality_name: OnceLock::new(),
            ending: Arc::default(),
        }
    }

    /// How many steps there are to be.
    pub fn set_steps(&self, steps: u64) {
        self.steps.store(steps, Relaxed);
    }

    /// Asks the run to end after its current step; asked again, or where that step hangs, the step is cancelled.
    pub fn stop(&self) {
        self.ending.ask();
    }

    /// The end that the run is asked for.
    pub(super) fn ending(&self) -> &Arc<Ending> {
        &self.ending
    }

    /// Whether the run was asked to end.
    pub fn stopped(&self) -> bool {
        self.ending.is_asked()
    }

    /// The steps begin, after those of the checkpoint.
    pub fn begin(&self, restored: u64, now_ns: i64) {
        self.restored.store(restored, Relaxed);
        self.done.store(restored, Relaxed);
        self.begun_ns.store(now_ns, Relaxed);
    }

    /// The steps are over.
    pub fn end(&self, now_ns: i64) {
        self.ended_ns.store(now_ns, Relaxed);
    }

    /// Steps that this process did, and the time they took so far, ns.
    fn own(&self, now_ns: i64) -> (u64, i64) {
        let own = self.done.load(Relaxed).saturating_sub(self.restored.load(Relaxed));
        let until = match self.ended_ns.load(Relaxed) {
            0 => now_ns,
            ended => ended,
        };
        (own, until - self.begun_ns.load(Relaxed))
    }

    /// One more step is done.
    pub fn step_done(&self, done: u64) {
        self.done.store(done, Relaxed);
    }

    /// Steps done.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// The newest training loss.
    pub fn set_loss(&self, loss: f32) {
        self.loss.store(loss.to_bits(), Relaxed);
    }

    /// The newest quality.
    pub fn set_quality(&self, quality: &Quality) {
        self.quality_name.get_or_init(|| quality.name.clone());
        self.quality.store((quality.value as f32).to_bits(), Relaxed);
    }
}

/// Prints progress until ended: one line that is rewritten on a terminal, a line every few seconds elsewhere.
pub struct Meter {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Meter {
    /// Starts to print, unless nobody wants to read it.
    pub fn start(shared: Arc<Shared>, verbosity: Verbosity) -> Meter {
        if verbosity == Verbosity::Quiet {
            return Meter { running: None };
        }
        let terminal = out::notes_are_seen();
        let (end, ended) = channel::<()>();
        let period = if terminal { Duration::from_millis(100) } else { Duration::from_secs(2) };
        let thread = std::thread::Builder::new().name("progress".into()).spawn(move || {
            let mut shown_elsewhere = None;
            // The first line comes soon, so that a script sees that training has begun.
            let mut wait = Duration::from_millis(100);
            loop {
                let over = ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                let line = line(&shared, events::clock::mono_now());
                wait = if line.is_none() { Duration::from_millis(20) } else { period };
                if let Some(line) = line {
                    shown_elsewhere.get_or_insert_with(ShownElsewhere::begin);
                    if terminal && !over {
                        out::progress(&line);
                    } else {
                        note!("{line}");
                    }
                }
                if over {
                    return;
                }
            }
        });
        // Without a thread for it there is no progress to see; training goes on.
        Meter { running: thread.ok().map(|thread| (end, thread)) }
    }

    /// Prints the last line and stops.
    pub fn end(self) {
        if let Some((end, thread)) = self.running {
            drop(end);
            // The thread only prints; if it panicked its message is on stderr already.
            let _ = thread.join();
        }
    }
}

/// `step 1,200 of 10,000  812 steps/s  loss 0.0312  test accuracy 0.9720  10.8 s left`, once a step is done. Rate and time left
/// are of the steps that this process does: those of a checkpoint took it no time.
fn line(shared: &Shared, now_ns: i64) -> Option<String> {
    let done = shared.done.load(Relaxed);
    let (own, elapsed_ns) = shared.own(now_ns);
    if own == 0 {
        return None;
    }
    let rate = own as f64 / (elapsed_ns.max(1) as f64 / 1e9);
    let steps = shared.steps.load(Relaxed);
    let mut line = format!("step {} of {}  {rate:.0} steps/s", human::count(done), human::count(steps));
    let loss = f32::from_bits(shared.loss.load(Relaxed));
    if loss.is_finite() {
        line += &format!("  loss {loss:.4}");
    }
    let quality = f32::from_bits(shared.quality.load(Relaxed));
    if let Some(name) = shared.quality_name.get().filter(|_| quality.is_finite()) {
        line += &format!("  {name} {}", human::quality(f64::from(quality)));
    }
    let left = steps.saturating_sub(done) as f64 / rate.max(1e-9);
    if left > 0.0 && !shared.stopped() {
        line += &format!("  {} left", human::duration((left * 1e9) as i64));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_rate_and_time_left() {
        let shared = Shared::new(1000);
        shared.begin(0, 5_000_000_000);
        assert_eq!(line(&shared, 6_000_000_000), None, "no step is done");
        shared.step_done(250);
        shared.set_loss(0.5);
        shared.set_quality(&Quality { name: "test accuracy".into(), value: 0.9, goal: 0.95, is_limit: false });
        let shown = line(&shared, 6_000_000_000).unwrap();
        assert_eq!(shown, "step 250 of 1,000  250 steps/s  loss 0.5000  test accuracy 0.9000  3.00 s left");
    }

    #[test]
    fn steps_of_a_checkpoint_took_no_time() {
        let shared = Shared::new(1000);
        shared.begin(900, 5_000_000_000);
        assert_eq!(line(&shared, 6_000_000_000), None, "no step of its own is done");
        shared.step_done(910);
        assert_eq!(line(&shared, 6_000_000_000).unwrap(), "step 910 of 1,000  10 steps/s  9.00 s left");
        shared.step_done(1000);
        shared.end(15_000_000_000);
        let tested = line(&shared, 99_000_000_000).unwrap();
        assert_eq!(tested, "step 1,000 of 1,000  10 steps/s", "what comes after the last step does not count");
    }
}
