//! Threads that compute what a frame asked for, so that no frame waits.
//!
//! [`Background`] computes the newest request and only that one: a frame posts a request and goes on with the latest result,
//! whatever it was computed for; the result says so itself. [`Refresher`] asks a question whenever it changes. [`Queue`] computes
//! every request, in their order. The threads end when their owners are dropped.

use egui::Context;
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

struct Slots<In, Out> {
    request: Option<In>,
    result: Option<Arc<Out>>,
    working: bool,
    ended: bool,
    /// The time that the last answer took, ns.
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
    cancel: Cancel,
}

/// Has a computation under way end early.
#[derive(Default)]
pub struct Cancel {
    flag: AtomicBool,
    action: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

impl Cancel {
    /// Set once the computation is to end.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// What to call to end the computation; `None` where nothing runs that could be ended.
    pub fn set_action(&self, action: Option<Arc<dyn Fn() + Send + Sync>>) {
        *self.action.lock() = action;
    }

    fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
        let action = self.action.lock().clone();
        if let Some(action) = action {
            action();
        }
    }
}

/// One thread that computes the newest request. A request that comes while another waits replaces it, so the queue is never
/// longer than one.
pub struct Background<In, Out> {
    mailbox: Arc<Mailbox<In, Out>>,
    thread: Option<JoinHandle<()>>,
}

impl<In: Send + 'static, Out: Send + Sync + 'static> Background<In, Out> {
    /// Starts the thread. `wake` is called after each result, to ask for a frame. Where the system has no thread left,
    /// requests stay unanswered.
    pub fn start(
        name: &str,
        mut compute: impl FnMut(In) -> Out + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> Self {
        Self::start_cancellable(name, move |request, _| compute(request), wake)
    }

    /// Starts a thread whose computations end early after [`cancel`](Self::cancel).
    pub fn start_cancellable(
        name: &str,
        mut compute: impl FnMut(In, &Cancel) -> Out + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> Self {
        let slots = Slots { request: None, result: None, working: false, ended: false, cost_ns: 0 };
        let mailbox =
            Arc::new(Mailbox { slots: Mutex::new(slots), changed: Condvar::new(), cancel: Cancel::default() });
        let theirs = Arc::clone(&mailbox);
        let work = move || {
            while let Some(request) = theirs.next() {
                let begin = events::clock::mono_now();
                let result = Arc::new(compute(request, &theirs.cancel));
                let mut slots = theirs.slots.lock();
                slots.cost_ns = events::clock::mono_now() - begin;
                slots.result = Some(result);
                slots.working = false;
                let is_large = slots.cost_ns > LARGE_NS;
                drop(slots);
                wake();
                if is_large {
                    free_unused();
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

    /// The time after a request until the same is asked of newer data, seconds: `least`, or longer where answers take long.
    fn refresh_s(&self, least: f64) -> f64 {
        least.max(self.mailbox.slots.lock().cost_ns as f64 * 1e-9 * (1.0 + PAUSE_PER_WORK))
    }

    /// Whether something waits or is being computed.
    pub fn is_busy(&self) -> bool {
        let slots = self.mailbox.slots.lock();
        slots.working || slots.request.is_some()
    }
}

impl<In, Out> Background<In, Out> {
    /// Has the computation under way end early, where it can.
    pub fn cancel(&self) {
        self.mailbox.cancel.cancel();
    }
}

/// Returns the working memory of a large answer to the system. The C library keeps what threads free: of a trace of ten
/// million slices that was 230 of 820 MB.
fn free_unused() {
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
                self.cancel.flag.store(false, Ordering::Relaxed);
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
        // The thread is waited for, and its work may have minutes to go.
        self.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic there has no consequence here: its results just stop.
            let _ = thread.join();
        }
    }
}

/// A question to a [`Refresher`].
pub trait Question: Clone + PartialEq {
    /// How soon it follows `asked`, which differs.
    fn urgency(&self, asked: &Self) -> Urgency {
        let _ = asked;
        Urgency::AtOnce
    }
}

impl Question for usize {}
impl Question for (usize, usize) {}

/// How soon a question follows the one before it. No question is asked while another is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// At once.
    AtOnce,
    /// After the least time between two questions.
    Soon,
    /// After many times what the answer took: only the data have grown.
    WhenCheap,
}

/// Answers to a question, which is asked anew whenever it differs.
pub struct Refresher<Q, In, Out> {
    background: Option<Background<In, Out>>,
    asked: Option<(Q, f64)>,
}

impl<Q, In, Out> Default for Refresher<Q, In, Out> {
    fn default() -> Self {
        Self { background: None, asked: None }
    }
}

impl<Q: Question, In: Send + 'static, Out: Send + Sync + 'static> Refresher<Q, In, Out> {
    /// The latest answer, after asking for a newer one where that is due. `least_s`: the least time between two questions,
    /// seconds. `request` is given the question and the latest answer.
    pub fn ask(
        &mut self,
        ctx: &Context,
        (name, compute): (&str, fn(In) -> Out),
        least_s: f64,
        question: Q,
        request: impl FnOnce(Q, Option<Arc<Out>>) -> In,
    ) -> Option<Arc<Out>> {
        let now = ctx.input(|input| input.time);
        let background = self.background.get_or_insert_with(|| {
            let ctx = ctx.clone();
            Background::start(name, compute, move || ctx.request_repaint())
        });
        let result = background.result();
        let wait_s = match &self.asked {
            Some((asked, _)) if *asked == question => return result,
            None => 0.0,
            Some((asked, at)) => match question.urgency(asked) {
                Urgency::AtOnce => 0.0,
                Urgency::Soon => at + least_s - now,
                Urgency::WhenCheap => at + background.refresh_s(least_s) - now,
            },
        };
        if background.is_busy() {
            // It asks for a frame when it has answered.
        } else if wait_s > 0.0 {
            ctx.request_repaint_after_secs(wait_s as f32);
        } else {
            background.request(request(question.clone(), result.clone()));
            self.asked = Some((question, now));
        }
        result
    }

    /// The question that was asked last.
    pub fn asked(&self) -> Option<&Q> {
        self.asked.as_ref().map(|(question, _)| question)
    }

    /// Asks the next question at once, whatever it is.
    pub fn forget(&mut self) {
        self.asked = None;
    }

    /// The latest answer.
    pub fn result(&self) -> Option<Arc<Out>> {
        self.background.as_ref()?.result()
    }

    /// Whether an answer is under way.
    pub fn is_busy(&self) -> bool {
        self.background.as_ref().is_some_and(Background::is_busy)
    }
}

/// One thread that computes every request, in their order.
pub struct Queue<In, Out> {
    requests: mpsc::Sender<In>,
    results: mpsc::Receiver<Out>,
}

impl<In: Send + 'static, Out: Send + 'static> Queue<In, Out> {
    /// Starts the thread. `wake` is called after each result, to ask for a frame.
    pub fn start(
        name: &str,
        mut compute: impl FnMut(In) -> Out + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> Self {
        let (requests, inbox) = mpsc::channel();
        let (outbox, results) = mpsc::channel();
        let work = move || {
            for request in inbox {
                if outbox.send(compute(request)).is_err() {
                    break;
                }
                wake();
            }
        };
        drop(thread::Builder::new().name(name.to_owned()).spawn(work));
        Self { requests, results }
    }

    /// Adds a request; whether there is a thread that will answer it.
    pub fn request(&self, request: In) -> bool {
        self.requests.send(request).is_ok()
    }

    /// The results since the last call.
    pub fn results(&self) -> impl Iterator<Item = Out> {
        self.results.try_iter()
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
