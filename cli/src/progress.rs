//! The progress of a command on standard error, once it takes longer than a second. On a terminal a line that is
//! updated, and erased when the command ends; elsewhere a line every few seconds. `-q` turns it off.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use crate::args::Verbosity;
use crate::out;

/// The time before the first line and the time between two lines, on a terminal and elsewhere.
const ON_TERMINAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(200));
const ELSEWHERE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));

/// The work under way.
struct Activity {
    what: &'static str,
    /// The share of the work that is done, 0 to 1; `None` where it is unknown.
    share: Option<f64>,
    /// The number of [`HiddenGuard`]s.
    n_hidden: u32,
}

static ACTIVITY: Mutex<Activity> = Mutex::new(Activity { what: "working", share: None, n_hidden: 0 });

/// A thread that prints progress until this is dropped.
pub struct Ticker(Option<(Sender<()>, JoinHandle<()>)>);

impl Ticker {
    /// Calls `tick(false)` after `first`, then repeatedly after the time that the last call returned; calls
    /// `tick(true)` at the end.
    pub fn start(first: Duration, mut tick: impl FnMut(bool) -> Duration + Send + 'static) -> Ticker {
        let (end, ended) = channel::<()>();
        let run = move || {
            let (mut wait, mut is_over) = (first, false);
            while !is_over {
                is_over = ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                wait = tick(is_over);
            }
        };
        // Where no thread can be started there is no progress; the work is done all the same.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(run);
        Ticker(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // The panic hook has reported a panic of the thread, which only prints.
            let _ = thread.join();
        }
    }
}

/// Shows the progress of the activity `what` until the result is dropped; shows nothing for `None`.
pub fn begin(what: Option<&'static str>, verbosity: Verbosity) -> Option<Ticker> {
    set_activity(what.filter(|_| verbosity > Verbosity::Quiet)?);
    let on_terminal = out::is_stderr_terminal();
    let (first, next) = if on_terminal { ON_TERMINAL } else { ELSEWHERE };
    let begin_ns = events::clock::mono_now();
    let show = move |is_over: bool| {
        match line(events::clock::mono_now() - begin_ns) {
            _ if is_over => out::wipe(),
            Some(line) if on_terminal => out::progress(&line),
            Some(line) => note!("stepscope: {line}"),
            None => {}
        }
        next
    };
    Some(Ticker::start(first, show))
}

/// The text of the progress, as `reading, 43 %, 3.21 s`; `None` while it is hidden.
fn line(elapsed_ns: i64) -> Option<String> {
    let activity = ACTIVITY.lock();
    let share = activity.share.map_or_else(String::new, |share| format!(", {:.0} %", share * 100.0));
    (activity.n_hidden == 0).then(|| format!("{}{share}, {}", activity.what, text::duration(elapsed_ns)))
}

/// Sets the work under way.
pub fn set_activity(what: &'static str) {
    let mut activity = ACTIVITY.lock();
    (activity.what, activity.share) = (what, None);
}

/// Sets the share of the work that is done, 0 to 1.
pub fn set_share(share: f64) {
    ACTIVITY.lock().share = Some(share.clamp(0.0, 1.0));
}

/// A guard that hides the line while it exists: its owner shows progress, or there is a window.
pub struct HiddenGuard;

impl HiddenGuard {
    /// Hides the line from now on.
    pub fn begin() -> HiddenGuard {
        ACTIVITY.lock().n_hidden += 1;
        out::wipe();
        HiddenGuard
    }
}

impl Drop for HiddenGuard {
    fn drop(&mut self) {
        ACTIVITY.lock().n_hidden -= 1;
    }
}
