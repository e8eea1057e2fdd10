//! Threads that compute what a frame requests, so that no frame waits.
//!
//! [`Background`] computes the newest request and drops older ones: a frame posts a request and goes on with the latest
//! result, which itself says which question it answers. [`Refresher`] asks a question again whenever it changes.
//! [`Queue`] computes every request in order. The threads end when their owners are dropped.

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

/// The state shared by the owner and the thread.
struct Slots<In, Out> {
    request: Option<In>,
    result: Option<Arc<Out>>,
    is_working: bool,
    has_ended: bool,
    /// The duration of the last computation, ns.
    cost_ns: i64,
}

/// Pause before the next question about growing data, as a multiple of the last computation's duration: questions take
/// at most a tenth of a core, however long the trace is.
const PAUSE_PER_WORK: f64 = 9.0;
/// Computations of at least this duration use much memory, ns.
const LARGE_NS: i64 = 50_000_000;

/// The slots with the condition variable that wakes the thread.
struct Mailbox<In, Out> {
    slots: Mutex<Slots<In, Out>>,
    changed: Condvar,
    cancel: Cancel,
}

/// Ends a computation early.
#[derive(Default)]
pub struct Cancel {
    flag: AtomicBool,
    action: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

impl Cancel {
    /// True once the computation is to end.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Sets the function that ends the computation; `None` where nothing can be ended.
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

/// A thread that computes the newest request. A new request replaces the waiting one.
pub struct Background<In, Out> {
    mailbox: Arc<Mailbox<In, Out>>,
    thread: Option<JoinHandle<()>>,
}

impl<In: Send + 'static, Out: Send + Sync + 'static> Background<In, Out> {
    /// Starts the thread. It calls `wake` after each result, to request a frame. Where the system has no thread left,
    /// requests get no results.
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
        let slots = Slots { request: None, result: None, is_working: false, has_ended: false, cost_ns: 0 };
        let mailbox =
            Arc::new(Mailbox { slots: Mutex::new(slots), changed: Condvar::new(), cancel: Cancel::default() });
        let shared = Arc::clone(&mailbox);
        let work = move || {
            while let Some(request) = shared.next() {
                let start = events::clock::mono_now();
                let result = Arc::new(compute(request, &shared.cancel));
                let mut slots = shared.slots.lock();
                slots.cost_ns = events::clock::mono_now() - start;
                slots.result = Some(result);
                slots.is_working = false;
                let is_large = slots.cost_ns > LARGE_NS;
                drop(slots);
                wake();
                if is_large {
                    trim_heap();
                }
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work).ok();
        Self { mailbox, thread }
    }

    /// Requests a computation, in place of the waiting request.
    pub fn request(&self, request: In) {
        self.mailbox.slots.lock().request = Some(request);
        self.mailbox.changed.notify_one();
    }

    /// The latest result.
    pub fn result(&self) -> Option<Arc<Out>> {
        self.mailbox.slots.lock().result.clone()
    }

    /// Time between two requests about growing data, seconds: `min_s`, or longer where computations take long.
    fn refresh_s(&self, min_s: f64) -> f64 {
        min_s.max(self.mailbox.slots.lock().cost_ns as f64 * 1e-9 * (1.0 + PAUSE_PER_WORK))
    }

    /// Whether a request waits or is being computed.
    pub fn is_busy(&self) -> bool {
        let slots = self.mailbox.slots.lock();
        slots.is_working || slots.request.is_some()
    }
}

impl<In, Out> Background<In, Out> {
    /// Ends the computation under way early, where it can be cancelled.
    pub fn cancel(&self) {
        self.mailbox.cancel.cancel();
    }
}

/// Returns the memory of a large computation to the system. The C library retains memory that threads free: 230 of 820
/// MB for a trace of ten million slices.
fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes no pointers and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

impl<In, Out> Mailbox<In, Out> {
    /// Waits for the next request; `None` once the owner is dropped.
    fn next(&self) -> Option<In> {
        let mut slots = self.slots.lock();
        loop {
            if slots.has_ended {
                return None;
            }
            if let Some(request) = slots.request.take() {
                slots.is_working = true;
                self.cancel.flag.store(false, Ordering::Relaxed);
                return Some(request);
            }
            self.changed.wait(&mut slots);
        }
    }
}

impl<In, Out> Drop for Background<In, Out> {
    fn drop(&mut self) {
        self.mailbox.slots.lock().has_ended = true;
        self.mailbox.changed.notify_one();
        // Dropping waits for the thread, whose computation may have minutes to go.
        self.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has no consequence here: no more results come.
            let _ = thread.join();
        }
    }
}

/// A question for a [`Refresher`].
pub trait Question: Clone + PartialEq {
    /// The urgency of this question after the different question `previous`.
    fn urgency(&self, previous: &Self) -> Urgency {
        let _ = previous;
        Urgency::AtOnce
    }
}

impl Question for usize {}
impl Question for (usize, usize) {}

/// How soon a question is asked after the previous one. A question under way is always finished first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// At once.
    AtOnce,
    /// After the least time between two questions.
    Soon,
    /// After a multiple of the last computation's duration, as only the data has grown.
    WhenCheap,
}

/// The latest answer to a question that may change in every frame.
pub struct Refresher<Q, In, Out> {
    background: Option<Background<In, Out>>,
    /// The last question and its time on the frame's clock, seconds.
    last: Option<(Q, f64)>,
}

impl<Q, In, Out> Default for Refresher<Q, In, Out> {
    fn default() -> Self {
        Self { background: None, last: None }
    }
}

impl<Q: Question, In: Send + 'static, Out: Send + Sync + 'static> Refresher<Q, In, Out> {
    /// Asks the question where it is due; returns the latest answer. `min_s`: the least time between two questions,
    /// seconds. `request` makes a request from the question and the latest answer.
    pub fn ask(
        &mut self,
        ctx: &Context,
        (name, compute): (&str, fn(In) -> Out),
        min_s: f64,
        question: Q,
        request: impl FnOnce(Q, Option<Arc<Out>>) -> In,
    ) -> Option<Arc<Out>> {
        let now = ctx.input(|input| input.time);
        let background = self.background.get_or_insert_with(|| {
            let ctx = ctx.clone();
            Background::start(name, compute, move || ctx.request_repaint())
        });
        let result = background.result();
        let wait_s = match &self.last {
            Some((previous, _)) if *previous == question => return result,
            None => 0.0,
            Some((previous, asked_at)) => match question.urgency(previous) {
                Urgency::AtOnce => 0.0,
                Urgency::Soon => asked_at + min_s - now,
                Urgency::WhenCheap => asked_at + background.refresh_s(min_s) - now,
            },
        };
        if background.is_busy() {
            // The answer will request a frame.
        } else if wait_s > 0.0 {
            ctx.request_repaint_after_secs(wait_s as f32);
        } else {
            background.request(request(question.clone(), result.clone()));
            self.last = Some((question, now));
        }
        result
    }

    /// The last question.
    pub fn last_question(&self) -> Option<&Q> {
        self.last.as_ref().map(|(question, _)| question)
    }

    /// Forgets the last question, so that the next one is asked at once.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// The latest answer.
    pub fn result(&self) -> Option<Arc<Out>> {
        self.background.as_ref()?.result()
    }

    /// Whether an answer is being computed.
    pub fn is_busy(&self) -> bool {
        self.background.as_ref().is_some_and(Background::is_busy)
    }
}

/// A thread that computes every request in order.
pub struct Queue<In, Out> {
    requests: mpsc::Sender<In>,
    results: mpsc::Receiver<Out>,
}

impl<In: Send + 'static, Out: Send + 'static> Queue<In, Out> {
    /// Starts the thread. It calls `wake` after each result, to request a frame.
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

    /// Adds a request; returns whether there is a thread that will compute it.
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
