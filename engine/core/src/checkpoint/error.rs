//! Why a checkpoint could not be written or read.

use std::path::{Path, PathBuf};

use crate::dtype::DType;
use crate::tensor::TensorError;

/// Why a checkpoint could not be written or read. Every variant names the file or the prefix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is nothing under this prefix.
    #[error("no checkpoint {}", prefix.display())]
    NotFound {
        /// The prefix that was asked for.
        prefix: PathBuf,
    },
    /// The file is not what it claims to be.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        problem: Box<str>,
    },
    /// The file's bytes changed since they were written.
    #[error("{}: {what} does not match its checksum", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The tensor or block.
        what: Box<str>,
    },
    /// The checkpoint has no such tensor.
    #[error("{}: no tensor {name}", path.display())]
    NoTensor {
        /// The checkpoint.
        path: PathBuf,
        /// What was asked for.
        name: Box<str>,
    },
    /// The tensor is of another type or shape than asked for.
    #[error("{}: tensor {name} is {got}, expected {expected}", path.display())]
    Mismatch {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: Box<str>,
        /// What was asked for.
        expected: Box<str>,
        /// What it is.
        got: Box<str>,
    },
    /// Tensors of this type cannot be stored.
    #[error("tensor {name}: {dtype} cannot be stored")]
    Unstorable {
        /// The tensor.
        name: Box<str>,
        /// Its type.
        dtype: DType,
    },
    /// Shards of one checkpoint say different things of a tensor, or a name is there twice.
    #[error("tensor {name}: {problem}")]
    Conflict {
        /// The tensor.
        name: Box<str>,
        /// The contradiction.
        problem: Box<str>,
    },
    /// A tensor could not be made.
    #[error("{}: tensor {name}: {source}", path.display())]
    Tensor {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: Box<str>,
        /// Why.
        source: TensorError,
    },
    /// A slice is not written as `d0 d1 ... start,length:...`, or lies outside of its tensor.
    #[error("{text:?} is not a slice: {problem}")]
    Slice {
        /// What was written.
        text: Box<str>,
        /// What is wrong.
        problem: Box<str>,
    },
    /// The state that was saved does not fit the object of this name.
    #[error("{name}: {problem}")]
    State {
        /// The object.
        name: Box<str>,
        /// What does not fit.
        problem: Box<str>,
    },
}

impl CheckpointError {
    /// A file could not be read or written.
    pub fn io(path: &Path, source: std::io::Error) -> CheckpointError {
        CheckpointError::Io { path: path.to_owned(), source }
    }

    /// A file is damaged.
    pub fn format(path: &Path, problem: impl Into<Box<str>>) -> CheckpointError {
        CheckpointError::Format { path: path.to_owned(), problem: problem.into() }
    }

    pub(super) fn checksum(path: &Path, what: impl Into<Box<str>>) -> CheckpointError {
        CheckpointError::Checksum { path: path.to_owned(), what: what.into() }
    }

    pub(super) fn conflict(name: &str, problem: impl Into<Box<str>>) -> CheckpointError {
        CheckpointError::Conflict { name: name.into(), problem: problem.into() }
    }

    /// Something about the state of object `name` that does not fit.
    pub fn state(name: &str, problem: impl Into<Box<str>>) -> CheckpointError {
        CheckpointError::State { name: name.into(), problem: problem.into() }
    }
}
