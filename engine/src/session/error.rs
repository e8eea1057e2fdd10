//! Why a session could not run a step.

use crate::dtype::DType;
use crate::executor::ExecuteError;
use crate::graph::GraphError;
use crate::plan::PlanError;
use crate::shape::{PartialShape, Shape};

/// Why a step was not run, or failed. The session stays usable in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The session's threads could not be started.
    #[error("cannot start worker threads: {0}")]
    Threads(#[source] std::io::Error),
    /// A feed, fetch or target does not exist.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// What was asked cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// More or fewer feeds than were prepared.
    #[error("expected {expected} feeds, got {got}")]
    FeedCount {
        /// How many were prepared.
        expected: usize,
        /// How many were given.
        got: usize,
    },
    /// A feed's value does not fit its node.
    #[error("feed {name}: expected {expected_dtype}{expected_shape}, got {got_dtype}{got_shape}")]
    Feed {
        /// `name:port`.
        name: String,
        /// The output's element type.
        expected_dtype: DType,
        /// The output's shape, as far as it is known.
        expected_shape: PartialShape,
        /// The value's element type.
        got_dtype: DType,
        /// The value's shape.
        got_shape: Shape,
    },
    /// The step began and did not end well.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}
