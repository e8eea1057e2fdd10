//! Towers with their gradients, and the steps that move the variables by them.

use super::input::Began;
use super::options::TrainingOptions;
use crate::models::Tower;
use crate::slices::clip_by_global_norm;
use engine_core::graph::{Graph, GraphError, NodeId, Output, Var};

/// A tower with its input and its gradients.
pub(super) struct Built {
    pub tower: Tower,
    pub feeds: Vec<Output>,
    /// Of a queue of its own.
    pub began: Option<Began>,
    pub gradients: Vec<Output>,
}

/// The towers' side of training with backup workers.
#[derive(Debug, Clone)]
pub struct Pushes {
    /// What `begin` and all `ops` are fed, an int64 scalar: the number of training steps that are done, as the tower sees it.
    pub done: Output,
    /// Has the first training step take gradients that were computed after `done` steps. Run it before the first one.
    pub begin: NodeId,
    /// For each tower: computes its gradients and gives them away.
    pub ops: Vec<NodeId>,
    /// How many of them a training step waits for.
    pub n_required: usize,
}

/// What moves the variables.
pub(super) struct Updates {
    pub train_ops: Vec<NodeId>,
    /// The loss of each.
    pub losses: Vec<Output>,
    /// What the summaries report.
    pub accuracy: Option<Output>,
    /// Those of the first one.
    pub gradients: Vec<Output>,
    /// What initialises the optimizer.
    pub init: Vec<NodeId>,
    pub alike: Option<NodeId>,
    pub pushes: Option<Pushes>,
}

/// The gradients, shortened where that is wanted.
pub(super) fn clipped(
    g: &Graph,
    options: &TrainingOptions,
    trained: &[Var],
    grads: &[Output],
) -> Result<Vec<Output>, GraphError> {
    match options.clip_norm {
        // Pascanu et al. 2013.
        Some(norm) => Ok(clip_by_global_norm(g, trained, grads, f64::from(norm))?.0),
        None => Ok(grads.to_vec()),
    }
}
