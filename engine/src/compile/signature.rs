//! What a step is asked for: the key of a plan.

use crate::graph::{NodeId, Output};

/// What a step is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Signature {
    /// Outputs whose values the caller gives.
    pub feeds: Vec<Output>,
    /// Outputs whose values the caller wants.
    pub fetches: Vec<Output>,
    /// Nodes that shall run.
    pub targets: Vec<NodeId>,
}
