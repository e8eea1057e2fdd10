//! How a graph's nodes and their outputs are named by number.

/// The position of a node in its graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The position, for indexing.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An output of a node: where an edge begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Output {
    /// The node.
    pub node: NodeId,
    /// Which of its outputs.
    pub port: u32,
}

impl Output {
    /// In the place of an output that could not be added; no graph has it.
    pub(super) const INVALID: Output = Output { node: NodeId(u32::MAX), port: 0 };
}

impl From<NodeId> for Output {
    /// The node's first output.
    fn from(node: NodeId) -> Output {
        Output { node, port: 0 }
    }
}
