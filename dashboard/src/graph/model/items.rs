//! Items of a graph and the edges between them.

/// An item of a [`Model`](super::Model): a name scope, a folded series or a node. Ids are pre-order positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub u32);

impl ItemId {
    /// The graph itself.
    pub const ROOT: Self = Self(0);

    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The entire graph.
    Root,
    Scope,
    /// Nodes of one op whose names differ in the trailing `_N` only.
    Series,
    Library,
    /// The body of a library function.
    Function,
    /// A node.
    Op,
}

/// The role of an item in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Drawn as a box.
    Shown,
    /// Drawn as an annotation of its consumers: a constant that feeds something.
    Constant,
    /// Drawn as an annotation of its producers: a summary op.
    Summary,
    /// Not drawn: a scope that holds only annotations.
    Empty,
}

/// The control flow of a scope's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A loop: the body runs repeatedly.
    Loop,
    /// One of two branches runs.
    Conditional,
}

impl Control {
    /// The name in the window.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Conditional => "conditional",
        }
    }
}

/// An edge of the graph as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub src: ItemId,
    pub dst: ItemId,
    /// The producer's output; 0 for control edges.
    pub port: u32,
    /// Whether the edge only orders execution and carries no tensor.
    pub is_control: bool,
    /// Whether the consumer writes the variable behind the tensor (input 0 of `Assign` and similar ops).
    pub is_reference: bool,
    /// Elements of the tensor, unknown dimensions counted as 1; 1 where no shape is known; 0 for control edges.
    pub size: u64,
}

/// All edges between two children of one scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaEdge {
    pub src: ItemId,
    pub dst: ItemId,
    pub n_data: u32,
    pub n_control: u32,
    /// Edges by which the consumer writes a variable; counted in `n_data` too.
    pub n_reference: u32,
    /// Elements over all tensors.
    pub size: u64,
    /// One of the edges, for the label.
    pub sample: Edge,
}

/// A structure shared by several scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Equal for items of equal structure; numbered by first appearance.
    pub class: u32,
    /// The number of items that share the structure.
    pub n_members: u32,
}

/// Something in the file that could not be shown as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub count: u64,
    /// The text of the warning, with one example.
    pub text: String,
}
