//! Why a kernel could not be made or could not compute.

use std::sync::Arc;

use super::rendezvous::RendezvousError;
use crate::buffer::AllocError;
use crate::checkpoint::CheckpointError;
use crate::ops::{AttrError, ShapeError};
use crate::resources::ResourceError;
use crate::tensor::TensorError;

/// Why a kernel could not be made or could not compute. The executor adds the node and the op.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// An input is not there.
    #[error("input {0} is missing")]
    MissingInput(usize),
    /// The inputs do not fit the op.
    #[error("{0}")]
    Invalid(String),
    /// A variable was read before it was assigned.
    #[error("variable {0} is not initialised: run its initialiser first")]
    Uninitialised(Arc<str>),
    /// A tensor is of the wrong type or too large, or there is no memory for it.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The name of a resource is taken by another type.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// An attribute is missing or of the wrong kind.
    #[error(transparent)]
    Attr(#[from] AttrError),
    /// There is no more: a queue is closed and too short, a reader is at its end.
    #[error("{0}")]
    OutOfRange(Box<str>),
    /// A queue takes no more rows.
    #[error("{0}")]
    QueueClosed(Box<str>),
    /// A result holds NaN or infinities.
    #[error("{0}")]
    Numerics(Box<str>),
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    File(Box<str>, #[source] std::io::Error),
    /// A checkpoint cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] Box<CheckpointError>),
    /// The step was cancelled, or failed elsewhere, while the kernel waited.
    #[error("the step ended while the kernel waited")]
    Cancelled,
    /// An asynchronous kernel will never end.
    #[error("the kernel dropped its completion")]
    Abandoned,
    /// A value did not come from another device.
    #[error(transparent)]
    Rendezvous(#[from] RendezvousError),
    /// A function that is called within its own body failed.
    #[error("function {function}: {source}")]
    Function {
        /// The function.
        function: Arc<str>,
        /// What went wrong in it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A function calls itself more often than is sensible.
    #[error("function {function} calls itself {limit} deep: what ends it never comes, or too late")]
    TooDeep {
        /// The function.
        function: Arc<str>,
        /// How many calls may be open at once.
        limit: u32,
    },
    /// No kernel is registered for the op with these types on this device.
    #[error("no kernel for op {op} on {wanted}")]
    NoKernel {
        /// The op.
        op: &'static str,
        /// The device type, and the node's type attributes, as ` with T=float, ...`.
        wanted: Box<str>,
    },
}

impl From<ShapeError> for KernelError {
    fn from(error: ShapeError) -> KernelError {
        KernelError::Invalid(error.0)
    }
}

impl From<AllocError> for KernelError {
    fn from(error: AllocError) -> KernelError {
        KernelError::Tensor(TensorError::Memory(error))
    }
}

impl KernelError {
    /// An error about the inputs, in words.
    pub fn invalid(text: impl Into<String>) -> KernelError {
        KernelError::Invalid(text.into())
    }
}

impl From<CheckpointError> for KernelError {
    fn from(error: CheckpointError) -> KernelError {
        KernelError::Checkpoint(Box::new(error))
    }
}
