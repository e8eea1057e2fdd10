//! Kernels of mutexes: a lock is a tensor, and is free again when its last copy is gone. Who waits holds no thread.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::resource::{Key, object};
use super::support::{Built, cheap, cpu_any};
use super::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KERNEL_TABLES, KernelContext, KernelDef, KernelError,
    Registration,
};
use engine_core::graph::Node;
use engine_core::tensor::{ResourceHandle, Tensor};
use engine_core::trace::Awaits;

#[linkme::distributed_slice(KERNEL_TABLES)]
static MUTEX: &[KernelDef] = &[
    cpu_any("MutexV2", make),
    cpu_any("ConsumeMutexLock", |_| {
        // The lock goes with the input.
        cheap(|c| object::<Guard>(&c.take(0)?).map(drop))
    }),
];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static LOCK: &[AsyncKernelDef] =
    &[AsyncKernelDef { op: "MutexLock", device: "CPU", dtypes: ("", &[]), build: |_| Ok(Box::new(Lock)) }];

/// A mutex of a container.
#[derive(Default)]
struct StepMutex {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_locked: bool,
    next_id: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    id: u64,
    done: Completion,
    registration: Option<Registration>,
}

/// The lock that a step holds.
struct Guard {
    of: Arc<StepMutex>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.of.pass_on();
    }
}

impl StepMutex {
    /// The lock is free: the next who waits gets it.
    fn pass_on(self: &Arc<Self>) {
        let next = {
            let mut state = self.state.lock();
            let next = state.waiting.pop_front();
            state.is_locked = next.is_some();
            next
        };
        if let Some(Waiting { done, registration, .. }) = next {
            drop(registration);
            done.finish(Ok([Some(self.guard())].into_iter().collect()));
        }
    }

    fn guard(self: &Arc<Self>) -> Tensor {
        let object = Arc::new(Guard { of: Arc::clone(self) });
        Tensor::resource(ResourceHandle { container: "".into(), name: "lock".into(), object })
    }

    fn cancel(&self, id: u64) {
        let waiting = {
            let mut state = self.state.lock();
            let at = state.waiting.iter().position(|w| w.id == id);
            at.and_then(|at| state.waiting.remove(at))
        };
        if let Some(waiting) = waiting {
            waiting.done.finish(Err(KernelError::Cancelled));
        }
    }
}

fn make(node: &Node) -> Built {
    let key = Key::of(node)?;
    cheap(move |c| {
        let handle = key.object(c, StepMutex::default)?;
        c.set(0, handle);
        Ok(())
    })
}

struct Lock;

impl AsyncKernel for Lock {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        let mutex = match ctx.input(0).and_then(object::<StepMutex>) {
            Ok(mutex) => mutex,
            Err(error) => return done.finish(Err(error)),
        };
        let id = {
            let mut state = mutex.state.lock();
            if !state.is_locked {
                state.is_locked = true;
                drop(state);
                return done.finish(Ok([Some(mutex.guard())].into_iter().collect()));
            }
            done.waits(events::site!("parked", "lock"), Awaits::Turn);
            state.next_id += 1;
            let id = state.next_id;
            state.waiting.push_back(Waiting { id, done, registration: None });
            id
        };
        let weak: Weak<StepMutex> = Arc::downgrade(&mutex);
        let registration = ctx.cancellation().register(move || {
            if let Some(mutex) = weak.upgrade() {
                mutex.cancel(id);
            }
        });
        let mut state = mutex.state.lock();
        match state.waiting.iter_mut().find(|w| w.id == id) {
            Some(waiting) => waiting.registration = Some(registration),
            None => drop(registration),
        }
    }
}
