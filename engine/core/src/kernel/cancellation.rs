//! Cancellation: how whoever waits inside a step learns that the step will not need what it waits for.
//!
//! A kernel that parks registers a callback with its step's [`Cancellation`] and holds no thread meanwhile. The callback
//! is called once, when the step is cancelled, is past its deadline, or failed elsewhere.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::info::NodeInfo;

type Callback = Box<dyn FnOnce() + Send>;

/// Notifies its registered callbacks, once, that something was cancelled. Clones are the same one.
#[derive(Clone, Default)]
pub struct Cancellation {
    inner: Arc<Inner>,
    /// The node whose kernel registers.
    node: Option<NodeInfo>,
}

/// Whoever waits until it is cancelled, or done.
struct Waiting {
    node: Option<NodeInfo>,
    /// What it waits at: a kind of object, and its name.
    at: Option<(&'static str, Arc<str>)>,
    callback: Callback,
}

impl std::fmt::Display for Waiting {
    /// `node input/batch (QueueDequeueManyV2) at queue input/rows`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(NodeInfo { name, op, .. }) = &self.node {
            write!(f, "node {name} ({op})")?;
        }
        match &self.at {
            Some((kind, name)) => write!(f, " at {kind} {name}"),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Inner {
    is_cancelled: AtomicBool,
    callbacks: Mutex<Callbacks>,
}

#[derive(Default)]
struct Callbacks {
    next: u64,
    waiting: FxHashMap<u64, Waiting>,
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

    /// The same, for what a node's kernel registers.
    pub fn of_node(mut self, node: &NodeInfo) -> Cancellation {
        self.node = Some(node.clone());
        self
    }

    /// Which nodes wait, and at what.
    pub fn waiting(&self) -> Vec<String> {
        let callbacks = self.inner.callbacks.lock();
        let mut waiting: Vec<(u64, &Waiting)> = callbacks.waiting.iter().map(|(id, one)| (*id, one)).collect();
        waiting.sort_unstable_by_key(|(id, _)| *id);
        waiting.iter().filter(|(_, one)| one.node.is_some()).map(|(_, one)| one.to_string()).collect()
    }

    /// Cancels, for good, and calls what is registered, in this thread.
    pub fn cancel(&self) {
        let waiting = {
            let mut callbacks = self.inner.callbacks.lock();
            self.inner.is_cancelled.store(true, Ordering::SeqCst);
            std::mem::take(&mut callbacks.waiting)
        };
        for waiting in waiting.into_values() {
            (waiting.callback)();
        }
    }

    /// Whether it was cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled.load(Ordering::Relaxed)
    }

    /// Has `callback` called once, by the thread that cancels; at once, in this thread, where that has happened. The
    /// caller must hold no lock that `callback` takes. Dropping the registration takes the callback back; a call that
    /// has begun goes on.
    #[must_use = "dropping the registration takes the callback back"]
    pub fn register(&self, callback: impl FnOnce() + Send + 'static) -> Registration {
        self.register_at(None, callback)
    }

    /// As [`Cancellation::register`], by who waits at an object: its kind and its name, for whoever asks why a step
    /// does not end.
    #[must_use = "dropping the registration takes the callback back"]
    pub(crate) fn register_at(
        &self,
        at: Option<(&'static str, Arc<str>)>,
        callback: impl FnOnce() + Send + 'static,
    ) -> Registration {
        let mut callbacks = self.inner.callbacks.lock();
        if self.inner.is_cancelled.load(Ordering::Relaxed) {
            drop(callbacks);
            callback();
            return Registration { of: Weak::new(), id: 0 };
        }
        let id = callbacks.next;
        callbacks.next += 1;
        let waiting = Waiting { node: self.node.clone(), at, callback: Box::new(callback) };
        callbacks.waiting.insert(id, waiting);
        Registration { of: Arc::downgrade(&self.inner), id }
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
pub struct StepCancellation {
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

    /// Which nodes wait, and at what.
    pub fn waiting(&self) -> Vec<String> {
        self.made.get().map(Cancellation::waiting).unwrap_or_default()
    }

    /// Ends the step: what waits is called, what has yet to begin finds it cancelled.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if let Some(made) = self.made.get() {
            made.cancel();
        }
    }

    /// Whether it was cancelled.
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
    fn a_failed_step_is_cancelled_for_those_that_ask_later() {
        let step = StepCancellation::default();
        step.cancel();
        assert!(step.get().is_cancelled());
    }
}
