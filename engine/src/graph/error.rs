//! Why a graph cannot be what it was asked to be.

use crate::dtype::DType;
use crate::ops::AttrError;

use super::{ControlFlowError, NodeId};

/// Why a node could not be added, found or differentiated. Messages name node and op.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GraphError {
    /// The op is not registered.
    #[error("node {node}: unknown op {op}")]
    UnknownOp {
        /// The node.
        node: String,
        /// The op.
        op: String,
    },
    /// An attribute is missing, unknown, or of the wrong kind.
    #[error("node {node} ({op}): {source}")]
    Attr {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// What is wrong.
        source: AttrError,
    },
    /// A number was asked for of a type that has none.
    #[error("{dtype} is no type of numbers")]
    NotANumber {
        /// The type.
        dtype: DType,
    },
    /// The number of inputs is not the op's.
    #[error("node {node} ({op}): expected {expected} inputs, got {got}")]
    InputCount {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// How many the op and the attributes ask for.
        expected: usize,
        /// How many were given.
        got: usize,
    },
    /// An input's element type is not the one that the op and the attributes ask for.
    #[error("node {node} ({op}): input {input} is {got} (from {from}), expected {expected}")]
    InputType {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// The input's name in the op.
        input: &'static str,
        /// The node that the input comes from.
        from: String,
        /// What the op asks for.
        expected: DType,
        /// What it is.
        got: DType,
    },
    /// The inputs' shapes do not fit the op.
    #[error("node {node} ({op}) with inputs {inputs}: {source}")]
    Shape {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// The inputs' shapes.
        inputs: String,
        /// What is wrong.
        source: ShapeError,
    },
    /// A node does not fit into the graph's loops and branches.
    #[error("node {node} ({op}): {source}")]
    ControlFlow {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
        /// What is wrong.
        source: Box<ControlFlowError>,
    },
    /// A node of this name exists.
    #[error("node {name}: the name is taken")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The name has characters that names of nodes cannot have.
    #[error("{name:?} is not a name: letters, digits and _ . - / > only, the first a letter, a digit, . or >")]
    BadName {
        /// The name.
        name: String,
    },
    /// No node has this name.
    #[error("no node {name}")]
    NoSuchNode {
        /// The name.
        name: String,
    },
    /// The node has no such output.
    #[error("no output {name}: the node has {n_outputs} outputs")]
    NoSuchPort {
        /// The name, with the port where one was given.
        name: String,
        /// The node's outputs.
        n_outputs: usize,
    },
    /// An id that this graph did not give out.
    #[error("node id {} belongs to another graph", id.0)]
    ForeignNode {
        /// The id.
        id: NodeId,
    },
    /// The gradient of a node needs something that is only known when it runs.
    #[error("node {node} ({op}): its gradient needs a known rank, and axis 0 where it has an axis")]
    UnknownRank {
        /// The node.
        node: String,
        /// The op.
        op: &'static str,
    },
    /// The graph has more nodes than ids.
    #[error("a graph holds at most {} nodes", u32::MAX)]
    TooManyNodes,
}

/// Why shapes do not fit an op.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

impl ShapeError {
    /// An error in these words.
    pub fn new(text: impl Into<String>) -> ShapeError {
        ShapeError(text.into())
    }
}
