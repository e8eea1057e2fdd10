//! Why definitions of graphs and functions cannot be used. The two errors name each other: graphs have functions, whose
//! bodies are imported as graphs.

use super::GraphError;
use crate::device::DeviceNameError;
use crate::ops::LibraryError;

/// Why a `GraphDef` could not be added to a graph. Nothing of it is added then.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ImportError {
    /// A node uses an input that is neither in the definition nor in the graph.
    #[error("node {node}: there is no input node {input}")]
    MissingInput {
        /// The node.
        node: String,
        /// The input, as it is written.
        input: String,
    },
    /// An input is written in a way that means nothing.
    #[error("node {node}: {input:?} is not an input")]
    BadInput {
        /// The node.
        node: String,
        /// The input, as it is written.
        input: String,
    },
    /// Nodes depend on each other in a circle.
    #[error(
        "the graph has a cycle through node {node} that is no loop: none of its edges is from a NextIteration to a Merge"
    )]
    Cycle {
        /// One of its nodes.
        node: String,
    },
    /// Two nodes of the definition have one name.
    #[error("two nodes are named {name}")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// An attribute has a value that this engine does not know.
    #[error("node {node}: attribute {attr}: {reason}")]
    Attr {
        /// The node.
        node: String,
        /// The attribute.
        attr: String,
        /// What is wrong.
        reason: String,
    },
    /// A node asks for a device by a name that cannot be read.
    #[error("node {node}: {source}")]
    Device {
        /// The node.
        node: String,
        /// What is wrong with the name.
        source: DeviceNameError,
    },
    /// A function of the library does not fit, or is missing.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The node does not fit its op.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Why a function cannot be added, or a node cannot call one.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// The function cannot be added to the library.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The library has no such function.
    #[error("node {node}: the library has no function {function}")]
    Missing {
        /// The node that calls it.
        node: String,
        /// The function.
        function: String,
    },
    /// The node does not fit what the function takes and gives.
    #[error("node {node}: function {function} {problem}")]
    Signature {
        /// The node that calls it.
        node: String,
        /// The function.
        function: String,
        /// What does not fit.
        problem: String,
    },
    /// The body means nothing.
    #[error("function {function}: {problem}")]
    Body {
        /// The function.
        function: String,
        /// What is wrong.
        problem: String,
    },
    /// With all bodies in their callers' places the graph is too large.
    #[error(
        "node {node}: with the bodies of functions in the place of their calls ({chain}) the graph has {n_nodes} nodes; \
         the limit is {limit}"
    )]
    TooLarge {
        /// The node at which it became so.
        node: String,
        /// The nodes so far, or all where they can be counted.
        n_nodes: usize,
        /// The limit.
        limit: usize,
        /// From the function that is called to where most nodes are.
        chain: String,
    },
    /// Functions that call functions that call functions.
    #[error("node {node}: calls are nested more than {limit} deep, at function {function}")]
    TooDeep {
        /// The node that begins it.
        node: String,
        /// The function that is one too many.
        function: String,
        /// The limit.
        limit: usize,
    },
    /// A node of the body does not fit.
    #[error("function {function}, called by node {node}: {source}")]
    Import {
        /// The node that calls it.
        node: String,
        /// The function.
        function: String,
        /// What is wrong.
        source: Box<ImportError>,
    },
    /// A node could not be added.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The gradient of a function could not be made.
    #[error("node {node}: {problem}")]
    Gradient {
        /// The node that asks for it.
        node: String,
        /// What is wrong.
        problem: String,
    },
}
