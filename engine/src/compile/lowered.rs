//! A session's copy of its graph in which function nodes are replaced by what they call.

use rustc_hash::FxHashSet;

use engine_core::graph::{FunctionError, Graph, NodeId};
use engine_ops::gradients::lower;

/// A copy of a graph with the same nodes under the same ids, but for function nodes that steps need: those are lowered,
/// and what they call follows after the graph's own nodes.
#[derive(Default)]
pub(crate) struct Lowered {
    copy: Option<(Graph, usize)>,
    done: FxHashSet<NodeId>,
}

impl Lowered {
    /// The copy, with these nodes lowered too, of `max_nodes` at most. Whether it is a new one, since the graph grew: ids of nodes that are not
    /// the graph's own then mean others than before.
    ///
    /// # Errors
    /// A function that is missing or does not fit.
    pub fn with(&mut self, graph: &Graph, ids: &[NodeId], max_nodes: usize) -> Result<(Graph, bool), FunctionError> {
        let n_now = graph.n_nodes();
        let known = self.copy.take().filter(|(_, n)| *n == n_now);
        let is_new = known.is_none();
        if is_new {
            self.done.clear();
        }
        let fork = || {
            let copy = graph.fork();
            let n_nodes = copy.n_nodes();
            (copy, n_nodes)
        };
        let (copy, n_nodes) = known.unwrap_or_else(fork);
        let new: Vec<NodeId> = ids.iter().copied().filter(|id| !self.done.contains(id)).collect();
        // Where this fails the half-lowered copy is dropped.
        lower(&copy, &new, max_nodes)?;
        self.done.extend(new);
        self.copy = Some((copy.clone(), n_nodes));
        Ok((copy, is_new))
    }
}
