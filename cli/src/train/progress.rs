//! What a run says while it trains: shared counters, and the line on stderr.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::tasks::Quality;

use super::stall::Ending;
use crate::args::Verbosity;
use crate::human;

/// What the training thread tells and is told.
pub struct Shared {
    steps: AtomicU64,
    done: AtomicU64,
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
    pub fn start(shared: Arc<Shared>, verbosity: Verbosity, json: bool) -> Meter {
        let terminal = std::io::stderr().is_terminal();
        if verbosity == Verbosity::Quiet || (json && !terminal) {
            return Meter { running: None };
        }
        let (end, ended) = channel::<()>();
        let period = if terminal { Duration::from_millis(100) } else { Duration::from_secs(2) };
        let thread = std::thread::Builder::new().name("progress".into()).spawn(move || {
            let start = events::clock::mono_now();
            // The first line comes soon, so that a script sees that training has begun.
            let mut wait = Duration::from_millis(100);
            loop {
                let over = ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                wait = if shared.done.load(Relaxed) == 0 { Duration::from_millis(20) } else { period };
                if shared.done.load(Relaxed) > 0 {
                    print_line(&line(&shared, events::clock::mono_now() - start), terminal, over);
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

/// `step 1,200 of 10,000  812 steps/s  loss 0.0312  test accuracy 0.9720  10.8 s left`
fn line(shared: &Shared, elapsed_ns: i64) -> String {
    let done = shared.done.load(Relaxed);
    let rate = done as f64 / (elapsed_ns.max(1) as f64 / 1e9);
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
    line
}

fn print_line(line: &str, terminal: bool, last: bool) {
    let mut stderr = std::io::stderr().lock();
    // A closed stderr must not end the run.
    let _ = match (terminal, last) {
        (true, false) => write!(stderr, "\r\x1b[K{line}"),
        (true, true) => writeln!(stderr, "\r\x1b[K{line}"),
        (false, _) => writeln!(stderr, "{line}"),
    };
    let _ = stderr.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_rate_and_time_left() {
        let shared = Shared::new(1000);
        shared.step_done(250);
        shared.set_loss(0.5);
        shared.set_quality(&Quality { name: "test accuracy".into(), value: 0.9, goal: 0.95, is_limit: false });
        let shown = line(&shared, 1_000_000_000);
        assert_eq!(shown, "step 250 of 1,000  250 steps/s  loss 0.5000  test accuracy 0.9000  3.00 s left");
    }
}
