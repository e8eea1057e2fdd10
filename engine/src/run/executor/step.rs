//! One step: set up, run alone or shared, collect the fetches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use super::error::{ExecuteError, Stop};
use super::state::{Executions, State};
use crate::compile::plan::Plan;
use crate::run::pool::{Pool, Running, Sleep, Ticket};
use crate::run::rendezvous::{LocalRendezvous, Rendezvous, RendezvousError};
use engine_core::device::Device;
use engine_core::kernel::{Cancellation, Functions, Registration, StepCancellation};

use engine_core::trace;

/// Cancels the steps that it was given to: between two kernels, and at once where they wait. Clones are the same token.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Cancellation);

impl CancelToken {
    /// A token that is cancelled together with what waits.
    pub(crate) fn of(cancellation: Cancellation) -> CancelToken {
        CancelToken(cancellation)
    }

    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels, for good.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Cancels this one too when `other` is cancelled, as long as the registration is there.
    pub fn cancelled_with(&self, other: &CancelToken) -> Registration {
        let own = self.clone();
        other.0.register(move || own.cancel())
    }
}

/// A report of what a step waits for, each time that nothing has happened in it for so long.
#[derive(Clone, Copy)]
pub struct OnStall<'a> {
    /// How long nothing happens.
    pub after: Duration,
    /// Called in the thread that runs the step, with the nodes that wait and what they wait for; not to wait in.
    pub report: &'a (dyn Fn(&[String]) + Sync),
}

impl std::fmt::Debug for OnStall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnStall").field("after", &self.after).finish_non_exhaustive()
    }
}

/// What may end a step early.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits<'a> {
    pub on_stall: Option<OnStall<'a>>,
    pub cancel: Option<&'a CancelToken>,
    /// `events::clock::mono_now` at which the step is too late.
    pub deadline: Option<i64>,
}

/// What a session gives to its steps.
pub(crate) struct Environment<'a> {
    pub pool: &'a Pool,
    /// The session's devices; plans refer to them by number.
    pub devices: &'a [Arc<Device>],
    pub limits: Limits<'a>,
    /// The functions of the session's graph.
    pub functions: &'a dyn Functions,
    /// Unique in the process.
    pub step_id: u64,
    /// Where sends and receives meet, in a step of which other processes run parts; `None`: the step's own rendezvous.
    pub rendezvous: Option<Arc<dyn Rendezvous>>,
}

/// A step while it runs.
pub(crate) struct Step<'a> {
    pub plan: &'a Plan,
    pub state: &'a State,
    pub env: &'a Environment<'a>,
    /// The step's number in events; 0 where it is not traced.
    pub traced_step: u32,
    /// Whether nodes are timed, for the costs.
    pub is_measured: bool,
    /// Whether their begins and ends are taken: in measured steps and in traced ones.
    pub is_stamped: bool,
    pub begin: u64,
    pub(super) n_done: CachePadded<AtomicU32>,
    /// Workers other than the caller that are at the step.
    pub(super) n_helping: AtomicU32,
    /// Cancelled when nodes must not begin any more.
    pub cancellation: StepCancellation,
    pub(super) failure: Mutex<Option<ExecuteError>>,
}

impl Step<'_> {
    /// Waits in the caller's thread until something happens in the step, or its deadline.
    pub(super) fn wait(&self, running: &Running<'_>, ticket: Ticket) {
        if self.state.parking.has_finished() {
            return;
        }
        // A step that was halted only waits for its kernels to end.
        let deadline = self.env.limits.deadline.filter(|_| self.plan.has_async && !self.is_halted());
        let at_most = deadline.map(|deadline| {
            let left = deadline.saturating_sub(events::clock::mono_now());
            Duration::from_nanos(u64::try_from(left).unwrap_or(0))
        });
        let on_stall = self.env.limits.on_stall.filter(|_| self.plan.has_async && !self.is_halted());
        let after = on_stall.map(|on_stall| on_stall.after);
        let begin = trace::idle_begin(self.traced_step);
        let waited = on_stall.map(|_| events::clock::mono_now());
        running.paused(|| self.caller().wait_for(ticket, at_most.into_iter().chain(after).min()));
        trace::idle_end(self.traced_step, begin, None);
        if let (Some(on_stall), Some(waited)) = (on_stall, waited)
            && events::clock::mono_now() - waited >= on_stall.after.as_nanos() as i64
        {
            (on_stall.report)(&self.waiting());
        }
        if self.plan.has_async
            && !self.is_halted()
            && let Err(Stop::Error(error)) = self.check_limits(0)
        {
            self.fail(*error);
        }
    }

    /// The nodes that wait, and what they wait for.
    fn waiting(&self) -> Vec<String> {
        let mut waiting = self.cancellation.waiting();
        waiting.extend(self.rendezvous().waiting().into_iter().map(|key| format!("value {key}")));
        waiting
    }

    /// Has the caller woken when the step's token is cancelled, where it may be waiting for a kernel.
    pub(super) fn wake_when_cancelled(&self) -> Option<Registration> {
        let token = self.env.limits.cancel.filter(|_| self.plan.has_async)?;
        let parking = Arc::clone(&self.state.parking);
        Some(token.0.register(move || parking.caller.notify()))
    }

    /// Has the receives that wait ended when the step fails or is cancelled.
    pub(super) fn abort_when_cancelled(&self) -> Option<Registration> {
        if !self.plan.has_transfers {
            return None;
        }
        let rendezvous: Arc<dyn Rendezvous> = match &self.env.rendezvous {
            Some(shared) => Arc::clone(shared),
            None => Arc::<LocalRendezvous>::clone(&self.state.rendezvous),
        };
        Some(self.cancellation.get().register(move || rendezvous.abort(RendezvousError::Aborted)))
    }

    /// Where sends and receives meet.
    #[inline]
    pub fn rendezvous(&self) -> &dyn Rendezvous {
        match &self.env.rendezvous {
            Some(shared) => &**shared,
            None => &*self.state.rendezvous,
        }
    }

    /// Where the caller's thread waits.
    pub fn caller(&self) -> &Sleep {
        &self.state.parking.caller
    }

    /// Whether nothing more will happen, to the caller's thread, which has nothing to run.
    pub(super) fn is_over(&self) -> bool {
        let parking = &self.state.parking;
        if self.is_halted() {
            while parking.take().is_some() {}
            return parking.is_empty();
        }
        match &self.state.executions {
            Executions::Flat(_) => self.n_done.load(Ordering::SeqCst) == self.plan.n_nodes(),
            // How often nodes run is not known beforehand: nobody runs one, and none is there to be run.
            Executions::Frames(flow) => {
                self.n_helping.load(Ordering::SeqCst) == 0 && !flow.workers.have_shared() && parking.is_empty()
            }
        }
    }

    /// Notifies idle threads that a node or shards can be taken.
    pub fn announce(&self, worker: usize) {
        self.env.pool.notify();
        if worker != 0 {
            self.caller().notify();
        }
    }

    /// `n` nodes ran on some worker.
    pub fn add_done(&self, n: u32, worker: usize) {
        let done = self.n_done.fetch_add(n, Ordering::SeqCst) + n;
        if done == self.plan.n_nodes() && worker != 0 {
            self.caller().notify();
        }
    }

    /// Notes why the step fails; the first reason stays. No further nodes begin.
    pub fn fail(&self, error: ExecuteError) {
        self.failure.lock().get_or_insert(error);
        self.cancellation.cancel();
        self.caller().notify();
    }

    /// Whether nodes must not begin any more.
    #[inline]
    pub fn is_halted(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    #[inline]
    pub fn has_limits(&self) -> bool {
        self.env.limits.cancel.is_some() || self.env.limits.deadline.is_some()
    }

    /// Whether the step was cancelled or is too late.
    pub fn check_limits(&self, own_done: u32) -> Result<(), Stop> {
        let (done, total) = (self.n_done.load(Ordering::Relaxed) + own_done, self.plan.n_nodes());
        let limits = &self.env.limits;
        if limits.cancel.is_some_and(CancelToken::is_cancelled) {
            return Err(Stop::error(ExecuteError::Cancelled { done, total }));
        }
        match limits.deadline {
            Some(deadline) if events::clock::mono_now() >= deadline => {
                Err(Stop::error(ExecuteError::DeadlineExceeded { done, total }))
            }
            _ => Ok(()),
        }
    }
}
