//! Why a cluster did not do what was asked.

use engine::session::{ExtendError, RunError};
use net::NetError;

use crate::cluster::{ClusterError, TaskName};

/// Why a session, or a step, did not come to be or failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DistributedError {
    /// The cluster's specification.
    #[error("{0}")]
    Cluster(std::sync::Arc<ClusterError>),
    /// A task could not be reached.
    #[error("{task} at {address} cannot be reached: {source}")]
    Unreachable {
        /// The task.
        task: TaskName,
        /// Where it should be.
        address: String,
        /// What happened.
        source: NetError,
    },
    /// A task ended, or is silent. Its variables are gone: make a new session, and restore what it needs.
    #[error("{task} was lost: {why}; its variables are gone with it: open a new session and restore a checkpoint")]
    Lost {
        /// The task.
        task: String,
        /// What happened.
        why: String,
    },
    /// A part of a step failed.
    #[error("{task}: {message}")]
    Failed {
        /// The task.
        task: TaskName,
        /// The node and what it says.
        message: String,
        /// Whether it is the end of the data: a queue closed and empty, a reader at its end.
        is_end_of_data: bool,
    },
    /// What was asked cannot be planned.
    #[error("{0}")]
    Plan(std::sync::Arc<RunError>),
    /// The graph was not extended.
    #[error("{0}")]
    Extend(std::sync::Arc<ExtendError>),
    /// What was asked is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The step's token was cancelled.
    #[error("the step was cancelled")]
    Cancelled,
    /// The step's deadline passed.
    #[error("the deadline of {0:?} passed")]
    DeadlineExceeded(std::time::Duration),
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
    /// A master in another process says so, or is not there.
    #[error("{message}")]
    Master {
        /// What kind of error it is, as gRPC counts.
        code: tonic::Code,
        /// What it says.
        message: String,
    },
}

impl DistributedError {
    /// Whether it is the end of the data: a pipeline's normal end.
    pub fn is_end_of_data(&self) -> bool {
        matches!(
            self,
            DistributedError::Failed { is_end_of_data: true, .. }
                | DistributedError::Master { code: tonic::Code::OutOfRange, .. }
        )
    }

    /// Whether a task was lost: a new session may do better.
    pub fn is_lost(&self) -> bool {
        use DistributedError::{Lost, Master, Unreachable};
        matches!(self, Lost { .. } | Unreachable { .. } | Master { code: tonic::Code::Aborted, .. })
    }

    /// The kind of error that TensorFlow's clients, and gRPC's, know.
    pub(crate) fn code(&self) -> tonic::Code {
        use tonic::Code;
        match self {
            DistributedError::Unreachable { .. } => Code::Unavailable,
            // The code for a session that must be made anew.
            DistributedError::Lost { .. } => Code::Aborted,
            DistributedError::Failed { is_end_of_data: true, .. } => Code::OutOfRange,
            DistributedError::Failed { message, .. } if message.contains("is not initialised") => {
                Code::FailedPrecondition
            }
            DistributedError::Failed { .. }
            | DistributedError::Cluster(_)
            | DistributedError::Plan(_)
            | DistributedError::Invalid(_) => Code::InvalidArgument,
            DistributedError::Extend(error) if matches!(**error, ExtendError::Version { .. }) => Code::Aborted,
            DistributedError::Extend(_) => Code::InvalidArgument,
            DistributedError::Cancelled | DistributedError::Closed => Code::Cancelled,
            DistributedError::DeadlineExceeded(_) => Code::DeadlineExceeded,
            DistributedError::Master { code, .. } => *code,
        }
    }
}

impl From<ClusterError> for DistributedError {
    fn from(error: ClusterError) -> DistributedError {
        DistributedError::Cluster(error.into())
    }
}

impl From<RunError> for DistributedError {
    fn from(error: RunError) -> DistributedError {
        DistributedError::Plan(error.into())
    }
}

impl From<ExtendError> for DistributedError {
    fn from(error: ExtendError) -> DistributedError {
        DistributedError::Extend(error.into())
    }
}
