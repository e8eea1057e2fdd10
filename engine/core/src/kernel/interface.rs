//! What implements an op.

use std::sync::Arc;

use super::asynchronous::AsyncKernel;
use super::context::KernelContext;
use super::error::KernelError;

/// An implementation of an op.
pub trait Kernel: Send + Sync {
    /// Computes the outputs from the inputs.
    ///
    /// # Errors
    /// The inputs do not fit the op, or memory is short.
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError>;

    /// Whether one execution may take more than about a microsecond, so that another worker is worth waking.
    fn is_expensive(&self) -> bool {
        true
    }

    /// The state that executions leave behind in the kernel itself (a random generator), for checkpoints.
    fn state(&self) -> Option<&dyn crate::checkpoint::Checkpointed> {
        None
    }
}

/// The kernel of a node, whichever way it ends.
#[derive(Clone)]
pub enum AnyKernel {
    /// It has its outputs when it returns.
    Sync(Arc<dyn Kernel>),
    /// It may end later.
    Async(Arc<dyn AsyncKernel>),
}

impl AnyKernel {
    /// Whether one execution may keep its thread for more than about a microsecond.
    pub fn is_expensive(&self) -> bool {
        match self {
            AnyKernel::Sync(kernel) => kernel.is_expensive(),
            AnyKernel::Async(kernel) => kernel.is_expensive(),
        }
    }

    /// Whether it may end after it returned.
    pub fn is_async(&self) -> bool {
        matches!(self, AnyKernel::Async(_))
    }
}
