//! Why there are no gradients.

use engine_core::graph::{FunctionError, GraphError};

/// Why there are no gradients.
#[derive(Debug, thiserror::Error)]
pub enum GradientError {
    /// A gradient would have to pass an op that has no rule.
    #[error("node {node}: op {op} has no gradient")]
    NoRule {
        /// The node.
        node: String,
        /// Its op.
        op: &'static str,
    },
    /// The op has a gradient, but not for this node's attributes or constants.
    #[error("node {node} ({op}): no gradient {why}")]
    Unsupported {
        /// The node.
        node: String,
        /// Its op.
        op: &'static str,
        /// Which case it is.
        why: &'static str,
    },
    /// The number of given gradients is not that of the `ys`.
    #[error("{given} gradients given for {ys} outputs")]
    Count {
        /// Outputs to differentiate.
        ys: usize,
        /// Gradients given.
        given: usize,
    },
    /// The `ys` and `xs` are not all in one loop, or outside of all.
    #[error("{name} is inside of another loop than the other outputs and inputs to differentiate")]
    OtherLoop {
        /// The output, as `node:port`.
        name: String,
    },
    /// A function between `ys` and `xs` cannot be put in its callers' places.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// Somebody added nodes to the graph while functions were put in their callers' places.
    #[error("the graph changed while it was differentiated")]
    Changed,
    /// A node could not be added.
    #[error(transparent)]
    Graph(#[from] GraphError),
}
