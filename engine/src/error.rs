//! The error of programs that use the engine as a whole.

use crate::checkpoint::CheckpointError;
use crate::gradients::GradientError;
use crate::graph::{GraphError, ImportError};
use crate::session::{ExtendError, RunError};
use crate::tensor::TensorError;

/// Why a program that builds, differentiates, runs or saves graphs fails: what its parts say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A node does not fit into its graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A GraphDef is no graph.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// There are no gradients.
    #[error(transparent)]
    Gradient(#[from] GradientError),
    /// A step was not run, or failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A session's graph was not extended.
    #[error(transparent)]
    Extend(#[from] ExtendError),
    /// Numbers are not those of a tensor's type or shape.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A checkpoint cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}
