//! Kernels that may wait for something outside of their step, without holding a thread: queues, receives, barriers.

use std::sync::Arc;

use events::SiteId;
use smallvec::SmallVec;

use super::context::KernelContext;
use super::error::KernelError;
use super::info::Slot;
use crate::trace::{Arrival, Awaits, Parked};

/// An implementation of an op that may have to wait (white paper section 5.3).
///
/// It is started like any kernel, but it may end later, on any thread. To wait, keep the [`Completion`] where
/// whoever has the answer finds it, register a callback with [`KernelContext::cancellation`] that finishes it with
/// [`KernelError::Cancelled`], and return.
pub trait AsyncKernel: Send + Sync {
    /// Begins, and never blocks. What it needs of the inputs it takes or clones: they are dropped when it returns.
    /// Outputs go to `done`, not to the context.
    fn start(&self, ctx: &mut KernelContext<'_>, done: Completion);

    /// Whether `start` may take more than about a microsecond.
    fn is_expensive(&self) -> bool {
        false
    }
}

/// The outputs of an asynchronous kernel, by port. `None` is a dead value, which only receives have.
pub type Outputs = SmallVec<[Slot; 2]>;

/// Which execution of which node ended.
#[derive(Debug, Clone, Copy)]
pub struct ExecutionTag {
    /// The node's number in its plan.
    pub node: u32,
    /// Identifies the node's iteration to its executor.
    pub iteration: usize,
    /// The transfer that brought its value, where one did and it is traced.
    pub arrival: Option<Arrival>,
    /// Its wait, where it is traced.
    pub parked: Option<Parked>,
}

impl ExecutionTag {
    /// An execution that no transfer brought and whose wait is not traced.
    pub fn new(node: u32, iteration: usize) -> ExecutionTag {
        ExecutionTag { node, iteration, arrival: None, parked: None }
    }
}

/// Takes the results of asynchronous kernels: a step of an executor.
pub trait CompletionSink: Send + Sync {
    /// The execution ended so. Called from any thread; it neither blocks nor runs nodes.
    fn finished(&self, tag: ExecutionTag, result: Result<Outputs, KernelError>);
}

/// The end of one execution of an asynchronous kernel, to be reported once. Dropped without, it fails the step.
#[must_use = "dropping it fails the step"]
pub struct Completion {
    sink: Option<Arc<dyn CompletionSink>>,
    tag: ExecutionTag,
}

impl Completion {
    /// The end of the execution `tag`, for `sink` to hear.
    pub fn new(sink: Arc<dyn CompletionSink>, tag: ExecutionTag) -> Completion {
        Completion { sink: Some(sink), tag }
    }

    /// Notes the transfer that brings the value, for the event of its consumers being unblocked.
    pub fn arrived(&mut self, arrival: Option<Arrival>) {
        self.tag.arrival = arrival;
    }

    /// Notes that the execution may wait from now on, for its event; `site` is of category `parked`.
    pub fn waits(&mut self, site: SiteId, awaits: Awaits) {
        self.tag.parked = Parked::begin(site, awaits);
    }

    /// Ends the execution, from any thread: the outputs in order of their ports, or why there are none.
    pub fn finish(mut self, result: Result<Outputs, KernelError>) {
        if let Some(sink) = self.sink.take() {
            if let Some(parked) = &mut self.tag.parked {
                parked.end();
            }
            sink.finished(self.tag, result);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            sink.finished(self.tag, Err(KernelError::Abandoned));
        }
    }
}
