//! Why a session could not run a step.

use crate::compile::CompileError;
use crate::run::executor::ExecuteError;
use engine_core::graph::{GraphError, ImportError};
use engine_core::kernel::KernelError;

/// Why a step was not run, or failed. The session stays usable in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The session's threads could not be started.
    #[error("cannot start worker threads: {0}")]
    Threads(#[source] std::io::Error),
    /// Two devices of the session have one name.
    #[error("two devices are named {name}")]
    SameDevice {
        /// The name.
        name: String,
    },
    /// A feed, fetch or target does not exist.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// What was asked cannot be planned.
    #[error(transparent)]
    Plan(#[from] CompileError),
    /// More or fewer feeds than were prepared.
    #[error("expected {expected} feeds, got {got}")]
    FeedCount {
        /// How many were prepared.
        expected: usize,
        /// How many were given.
        got: usize,
    },
    /// A feed's value does not fit its node.
    #[error("feed {name}: expected {expected}, got {got}")]
    Feed {
        /// `name:port`.
        name: String,
        /// What the output is, as `float[?,64]`.
        expected: String,
        /// What the value is.
        got: String,
    },
    /// The step began and did not end well.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}

impl RunError {
    /// What the kernel that ended the step says, where one did.
    pub fn kernel(&self) -> Option<&KernelError> {
        match self {
            RunError::Execute(ExecuteError::Kernel { source, .. }) => Some(source),
            _ => None,
        }
    }

    /// Whether a queue was closed and empty, or a reader at its end: a pipeline's normal end.
    pub fn is_end_of_data(&self) -> bool {
        matches!(self.kernel(), Some(KernelError::OutOfRange(_) | KernelError::QueueClosed(_)))
    }
}

/// Why a session's graph was not extended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtendError {
    /// The graph changed since the caller looked.
    #[error("the graph is at version {version}, expected {expected}")]
    Version {
        /// The version that the caller knew.
        expected: usize,
        /// The present one.
        version: usize,
    },
    /// A node does not fit.
    #[error(transparent)]
    Import(#[from] ImportError),
}
