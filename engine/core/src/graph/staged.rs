//! Nodes that come into a graph together or not at all.

use std::sync::Arc;

use parking_lot::RwLockWriteGuard;

use super::{Graph, GraphError, NodeBuilder, NodeId, Nodes};
use crate::ops::Library;

/// A graph to which nodes are being added. Nobody else sees it meanwhile; without [`Staged::commit`] they go again.
pub(super) struct Staged<'g> {
    nodes: RwLockWriteGuard<'g, Nodes>,
    n_before: usize,
    n_contexts: usize,
    functions_before: Arc<Library>,
    /// Names that were not asked for before.
    claimed: Vec<String>,
}

impl<'g> Staged<'g> {
    pub(super) fn begin(graph: &'g Graph) -> Staged<'g> {
        let nodes = graph.nodes.write();
        Staged {
            n_before: nodes.len(),
            n_contexts: nodes.contexts.len(),
            functions_before: Arc::clone(&nodes.functions),
            nodes,
            claimed: Vec::new(),
        }
    }

    pub(super) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub(super) fn functions_mut(&mut self) -> &mut Library {
        self.nodes.functions_mut()
    }

    pub(super) fn nodes_mut(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    /// Adds a node under exactly the name it asks for.
    pub(super) fn add(&mut self, node: NodeBuilder<'_>) -> Result<NodeId, GraphError> {
        let (id, is_new_name) = node.build_in(&mut self.nodes)?;
        if is_new_name && let Some(node) = self.nodes.get(id) {
            self.claimed.push(node.name.to_lowercase());
        }
        Ok(id)
    }

    pub(super) fn commit(mut self) {
        self.n_before = self.nodes.len();
        self.n_contexts = self.nodes.contexts.len();
        self.functions_before = Arc::clone(&self.nodes.functions);
        self.claimed.clear();
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        let nodes = &mut *self.nodes;
        for node in nodes.nodes.drain(self.n_before..) {
            nodes.by_name.remove(&node.name);
        }
        nodes.contexts.truncate(self.n_before, self.n_contexts);
        nodes.functions = Arc::clone(&self.functions_before);
        for name in &self.claimed {
            nodes.names.remove(name);
        }
    }
}
