//! Why a step cannot be compiled.

use super::partition::PartitionError;
use super::placement::PlacementError;
use engine_core::functions::FunctionError;
use engine_core::graph::{ControlFlowError, Node, NodeId};
use engine_core::kernel::KernelError;

/// Why feeds, fetches and targets cannot be compiled to a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A placeholder is needed and not fed.
    #[error("node {node} (op {op}): a value of {expected} must be fed")]
    NotFed {
        /// The node's full name.
        node: String,
        /// Its op.
        op: &'static str,
        /// Element type and shape, as `float[?,64]`.
        expected: String,
    },
    /// Nodes wait for each other.
    #[error("node {node}: it waits for itself, through its inputs")]
    Cycle {
        /// A node of the cycle.
        node: String,
    },
    /// A node does not fit into the plan's loops.
    #[error("node {node} ({op}): {source}")]
    ControlFlow {
        /// The node's full name, or the fetch.
        node: String,
        /// Its op.
        op: &'static str,
        /// What is wrong.
        source: Box<ControlFlowError>,
    },
    /// A node's kernel could not be made.
    #[error("node {node} (op {op}): {source}")]
    Kernel {
        /// The node's full name.
        node: String,
        /// Its op.
        op: &'static str,
        /// What is wrong.
        #[source]
        source: Box<KernelError>,
    },
    /// An id that the session's graph did not give out.
    #[error("node id {} belongs to another graph", id.0)]
    ForeignNode {
        /// The id.
        id: NodeId,
    },
    /// An output that its node does not have.
    #[error("node {node} has no output {port}")]
    NoSuchPort {
        /// The node's full name.
        node: String,
        /// The output.
        port: u32,
    },
    /// The same output is fed twice.
    #[error("{name} is fed twice")]
    FedTwice {
        /// `name:port`.
        name: String,
    },
    /// A graph pass left a graph that cannot be right.
    #[error("pass {pass}: {problem}")]
    Pass {
        /// The pass.
        pass: &'static str,
        /// What is wrong with the graph.
        problem: String,
    },
    /// A node calls a function that is missing, recursive, or does not fit.
    #[error("{0}")]
    Function(Box<FunctionError>),
    /// The graphs of the passes could not be written.
    #[error("cannot write the graph of a pass: {0}")]
    Dump(#[source] std::io::Error),
    /// A node cannot be on any device, or not together with those that it must be with.
    #[error("{0}")]
    Placement(Box<PlacementError>),
    /// The devices' parts cannot work together.
    #[error("{0}")]
    Partition(Box<PartitionError>),
    /// More nodes, edges or ports than a plan can number.
    #[error("the graph is too large for one step")]
    TooLarge,
}

// Boxed, so that results stay small; the message is the error's own.
impl From<FunctionError> for CompileError {
    fn from(error: FunctionError) -> CompileError {
        CompileError::Function(Box::new(error))
    }
}

impl From<PlacementError> for CompileError {
    fn from(error: PlacementError) -> CompileError {
        CompileError::Placement(Box::new(error))
    }
}

impl From<PartitionError> for CompileError {
    fn from(error: PartitionError) -> CompileError {
        CompileError::Partition(Box::new(error))
    }
}

impl CompileError {
    pub(crate) fn not_fed(node: &Node) -> CompileError {
        let expected = node.outputs.first().map(|port| format!("{}{}", port.dtype, port.shape)).unwrap_or_default();
        CompileError::NotFed { node: node.name.to_string(), op: node.op.name, expected }
    }
}
