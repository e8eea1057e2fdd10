//! Handles that bring what their nodes use to the place where the nodes are.

use std::sync::Arc;

use super::{ContextId, Graph, GraphError, NodeId, Output};

/// What a graph handle does to the inputs of the nodes that it adds.
pub(crate) trait Capture: Send + Sync {
    /// Replaces the inputs of a node of `op` that is about to be added; gives a node that it must run after.
    fn capture(&self, op: &str, inputs: &mut [Output]) -> Result<Option<NodeId>, GraphError>;
}

impl Graph {
    /// This handle, the inputs of whose nodes `capture` replaces.
    pub(crate) fn with_capture(&self, capture: Arc<dyn Capture>) -> Graph {
        Graph { capture: Some(capture), context: ContextId::ROOT, pivot: None, ..self.clone() }
    }
}
