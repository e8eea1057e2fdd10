//! Calls of functions while a step runs.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cancellation::Cancellation;
use super::error::KernelError;
use crate::checkpoint::{CheckpointError, Fields};
use crate::dtype::DType;
use crate::graph::FuncRef;
use crate::tensor::Tensor;

/// Runs functions of the graph's library within a step, in the caller's thread.
pub trait Functions: Sync {
    /// What the function gives for these arguments; `types` of its results. Ends early when `cancellation` says so.
    fn call(
        &self,
        f: &FuncRef,
        args: Vec<Tensor>,
        types: &[DType],
        cancellation: Cancellation,
    ) -> Result<Vec<Tensor>, KernelError>;

    /// The kernels of the session, whose own state checkpoints have; `None` outside of sessions.
    fn kernels(&self) -> Option<&dyn KernelStates> {
        None
    }
}

/// The state that a session's kernels hold themselves (random generators), by the names of their nodes.
pub trait KernelStates {
    /// The state of those that were made.
    fn save(&self) -> Vec<(Arc<str>, Fields)>;

    /// Gives them their state, those that are made later included.
    fn restore(&self, state: FxHashMap<Arc<str>, Fields>) -> Result<(), CheckpointError>;
}

/// There are none: outside of sessions.
pub struct NoFunctions;

impl Functions for NoFunctions {
    fn call(&self, f: &FuncRef, _: Vec<Tensor>, _: &[DType], _: Cancellation) -> Result<Vec<Tensor>, KernelError> {
        Err(KernelError::invalid(format!("function {} cannot be called outside of a session", f.name)))
    }
}
