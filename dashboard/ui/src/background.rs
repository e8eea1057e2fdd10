//! One thread that computes what a frame asked for, newest request first and only that one.
//!
//! A frame posts a request and goes on with the latest result, whatever it was computed for; the result says so itself.
//! A request that comes while another waits replaces it, so the queue is never longer than one. The thread ends
//! when its owner is dropped.

use parking_lot::{Condvar, Mutex};
use std::{
    sync::Arc,
    thread::{self, JoinHandle},
};

struct Slots<In, Out> {
    request: Option<In>,
    result: Option<Arc<Out>>,
    working: bool,
    ended: bool,
    /// What the last answer took, ns.
    cost_ns: i64,
}

/// A growing source is asked anew after this many times what the last answer took: a tenth of a core at most, however
/// long the trace has become.
const PAUSE_PER_WORK: f64 = 9.0;
/// Answers that took longer used much memory.
const LARGE_NS: i64 = 50_000_000;

struct Mailbox<In, Out> {
    slots: Mutex<Slots<In, Out>>,
    changed: Condvar,
}

/// See the module's notes.
pub struct Background<In, Out> {
    mailbox: Arc<Mailbox<In, Out>>,
    thread: Option<JoinHandle<()>>,
}

impl<In: Send + 'static, Out: Send + Sync + 'static> Background<In, Out> {
    /// Starts the thread. `wake` is called after each result, to ask for a frame. Where the system has no thread left,
    /// requests stay unanswered.
    pub fn start(name: &str, compute: impl Fn(In) -> Out + Send + 'static, wake: impl Fn() + Send + 'static) -> Self {
        let slots = Slots { request: None, result: None, working: false, ended: false, cost_ns: 0 };
        let mailbox = Arc::new(Mailbox { slots: Mutex::new(slots), changed: Condvar::new() });
        let theirs = Arc::clone(&mailbox);
        let work = move || {
            while let Some(request) = theirs.next() {
                let begin = events::clock::mono_now();
                let result = Arc::new(compute(request));
                let mut slots = theirs.slots.lock();
                slots.cost_ns = events::clock::mono_now() - begin;
                slots.result = Some(result);
                slots.working = false;
                let is_large = slots.cost_ns > LARGE_NS;
                drop(slots);
                wake();
                if is_large {
                    give_back();
                }
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work).ok();
        Self { mailbox, thread }
    }

    /// Asks for this in place of what waits.
    pub fn request(&self, request: In) {
        self.mailbox.slots.lock().request = Some(request);
        self.mailbox.changed.notify_one();
    }

    /// The latest result.
    pub fn result(&self) -> Option<Arc<Out>> {
        self.mailbox.slots.lock().result.clone()
    }

    /// How long after a request to ask for the same of newer data, seconds: `least`, or longer where answers take long.
    pub fn refresh_s(&self, least: f64) -> f64 {
        least.max(self.mailbox.slots.lock().cost_ns as f64 * 1e-9 * (1.0 + PAUSE_PER_WORK))
    }

    /// Whether something waits or is being computed.
    pub fn is_busy(&self) -> bool {
        let slots = self.mailbox.slots.lock();
        slots.working || slots.request.is_some()
    }
}

/// Hands the system what a large answer's working memory was. The C library keeps what threads free: of a trace of ten
/// million slices that was 230 of 820 MB.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointers and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

impl<In, Out> Mailbox<In, Out> {
    fn next(&self) -> Option<In> {
        let mut slots = self.slots.lock();
        loop {
            if slots.ended {
                return None;
            }
            if let Some(request) = slots.request.take() {
                slots.working = true;
                return Some(request);
            }
            self.changed.wait(&mut slots);
        }
    }
}

impl<In, Out> Drop for Background<In, Out> {
    fn drop(&mut self) {
        self.mailbox.slots.lock().ended = true;
        self.mailbox.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there has no consequence here: its results just stop.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_newest_request_wins_and_each_result_wakes() {
        let (start, started) = mpsc::channel();
        let (go_on, gate) = mpsc::channel::<()>();
        let (woken, wakes) = mpsc::channel();
        let compute = move |x: u32| {
            start.send(x).unwrap();
            gate.recv().unwrap();
            x * 2
        };
        let background = Background::start("test", compute, move || woken.send(()).unwrap());
        background.request(1);
        assert_eq!(started.recv().unwrap(), 1);
        background.request(2);
        background.request(3);
        assert!(background.is_busy() && background.result().is_none());
        go_on.send(()).unwrap();
        wakes.recv().unwrap();
        assert_eq!(started.recv().unwrap(), 3, "2 was replaced");
        assert_eq!(background.result().as_deref(), Some(&2));
        go_on.send(()).unwrap();
        wakes.recv().unwrap();
        assert_eq!(background.result().as_deref(), Some(&6));
        assert!(!background.is_busy());
    }
}
