//! What a step is asked for: the key of a plan.

use engine_core::graph::{NodeId, Output};

/// What a step is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Signature {
    /// Outputs whose values the caller gives.
    pub(crate) feeds: Vec<Output>,
    /// Outputs whose values the caller wants.
    pub(crate) fetches: Vec<Output>,
    /// Nodes that shall run.
    pub(crate) targets: Vec<NodeId>,
}
