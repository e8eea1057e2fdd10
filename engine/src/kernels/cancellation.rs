//! Cancellation: how whoever waits inside a step learns that the step will not need what it waits for.
//!
//! A kernel that parks registers a callback with its step's [`Cancellation`] and holds no thread meanwhile. The callback
//! is called once, when the step is cancelled, is past its deadline, or failed elsewhere.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

type Callback = Box<dyn FnOnce() + Send>;

/// Tells its registered callbacks, once, that something was cancelled. Clones are the same one.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_cancelled: AtomicBool,
    callbacks: Mutex<Callbacks>,
}

#[derive(Default)]
struct Callbacks {
    next: u64,
    waiting: FxHashMap<u64, Callback>,
}

impl std::fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cancellation").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

impl Cancellation {
    /// One that is not cancelled.
    pub fn new() -> Cancellation {
        Cancellation::default()
    }

    /// Cancels, for good, and calls what is registered, in this thread.
    pub fn cancel(&self) {
        let waiting = {
            let mut callbacks = self.0.callbacks.lock();
            self.0.is_cancelled.store(true, Ordering::SeqCst);
            std::mem::take(&mut callbacks.waiting)
        };
        for callback in waiting.into_values() {
            callback();
        }
    }

    /// Whether it was cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
    }

    /// Has `callback` called once, by the thread that cancels; at once, in this thread, where that has happened. The
    /// caller must hold no lock that `callback` takes. Dropping the registration takes the callback back; a call that
    /// has begun goes on.
    #[must_use = "dropping the registration takes the callback back"]
    pub fn register(&self, callback: impl FnOnce() + Send + 'static) -> Registration {
        let mut callbacks = self.0.callbacks.lock();
        if self.0.is_cancelled.load(Ordering::Relaxed) {
            drop(callbacks);
            callback();
            return Registration { of: Weak::new(), id: 0 };
        }
        let id = callbacks.next;
        callbacks.next += 1;
        callbacks.waiting.insert(id, Box::new(callback));
        Registration { of: Arc::downgrade(&self.0), id }
    }
}

/// A callback that waits for a cancellation. Dropping it takes the callback back.
pub struct Registration {
    of: Weak<Inner>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(inner) = self.of.upgrade() {
            let callback = inner.callbacks.lock().waiting.remove(&self.id);
            // Outside the lock: what it holds may end other registrations.
            drop(callback);
        }
    }
}

/// The cancellation of one step, made when somebody asks for it: most steps end without.
#[derive(Default)]
pub(crate) struct StepCancellation {
    is_cancelled: AtomicBool,
    made: OnceLock<Cancellation>,
}

impl StepCancellation {
    /// The cancellation, to register with.
    pub fn get(&self) -> Cancellation {
        let made = self.made.get_or_init(Cancellation::new);
        // Either `cancel` sees what was made, or this sees that it was called.
        fence(Ordering::SeqCst);
        if self.is_cancelled.load(Ordering::Relaxed) {
            made.cancel();
        }
        made.clone()
    }

    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if let Some(made) = self.made.get() {
            made.cancel();
        }
    }

    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn callbacks_are_called_once_or_taken_back() {
        let calls = Arc::new(AtomicU32::new(0));
        let count = |by: u32| {
            let calls = Arc::clone(&calls);
            move || {
                calls.fetch_add(by, Ordering::Relaxed);
            }
        };
        let cancellation = Cancellation::new();
        let _kept = cancellation.register(count(1));
        drop(cancellation.register(count(10)));
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        cancellation.cancel();
        cancellation.cancel();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let _late = cancellation.register(count(100));
        assert_eq!(calls.load(Ordering::Relaxed), 101, "registered after it was cancelled");
    }

    #[test]
    fn a_step_that_failed_tells_those_that_ask_later() {
        let step = StepCancellation::default();
        step.cancel();
        assert!(step.get().is_cancelled());
    }
}
