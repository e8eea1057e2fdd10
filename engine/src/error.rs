//! The error of programs that use the engine as a whole.

use std::fmt;

use crate::checkpoint::CheckpointError;
use crate::session::{ExtendError, RunError};
use engine_core::graph::{GraphError, ImportError};
use engine_core::tensor::TensorError;
use engine_ops::gradients::GradientError;

/// Why a program that builds, differentiates, runs or saves graphs fails: what its parts say.
#[derive(thiserror::Error)]
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

/// The text, which quotes its sources: a program whose `main` returns the error prints it by `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::CompileError;
    use crate::{DType, Graph};

    #[test]
    fn a_program_that_fails_says_why_in_words() {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [2, 3]);
        let text = format!("{:?}", Error::from(x.matmul(x).try_output().unwrap_err()));
        assert!(text.starts_with("node MatMul (MatMul) with inputs [2,3], [2,3]: inner dimensions differ"), "{text}");
        let dump = CompileError::Dump(std::io::Error::other("the disk is full"));
        let text = format!("{:?}", Error::from(RunError::Plan(dump)));
        assert_eq!(text, "cannot write the graph of a pass: the disk is full");
    }
}
