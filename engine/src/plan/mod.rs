//! A plan: what one (feeds, fetches, targets) signature executes, compiled to flat arrays.
//!
//! [`crate::passes`] takes what a [`signature`] needs out of the graph and rewrites it; [`compile`] numbers the remaining
//! nodes and lays them out, [`cost`] keeps what their executions take. The executor's hot loop reads only the arrays here: a record per node, edges as `u32`s grouped
//! into data and control, no names, maps or graph nodes.
//!
//! ```text
//! nodes   | record 0 | record 1 | ... | record n-1 | sink |
//! data    | edges of node 0 by port | edges of node 1 | ... | edges of feed 0 | feed 1 | ...
//! control | consumers of node 0 | consumers of node 1 | ...
//! slots   | inputs of node 0 | inputs of node 1 | ... | fetches (the sink's inputs) |
//! ```
//!
//! The sink is a node that waits for one arrival more than it can get, so it never runs: fetched values stay in its
//! input slots. Feeds are in their slots before the step begins and are not waited for.

pub mod compile;
pub mod cost;
pub(crate) mod frames;
pub mod signature;

use std::ops::Range;

use crate::dtype::DType;
use crate::graph::{Node, NodeId};
use crate::kernels::{AnyKernel, KernelError, NodeInfo};
use crate::partition::PartitionError;
use crate::placement::PlacementError;
use crate::shape::PartialShape;
use cost::Costs;
pub(crate) use signature::Signature;

/// One node to the executor.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct NodeRecord {
    /// Its first input slot.
    pub first_slot: u32,
    pub n_inputs: u32,
    pub n_outputs: u32,
    /// Its edges in `Plan::data`.
    pub data: (u32, u32),
    /// Its edges in `Plan::control`.
    pub control: (u32, u32),
    /// The device that it runs on, by its number in the session.
    pub device: u16,
    /// Whether some output has no consumer, so that it is left to be dropped.
    pub has_unused_output: bool,
    /// Whether there is nothing to compute: a node that is only waited for.
    pub is_no_op: bool,
    /// Call sites of its events, in categories `op` and `shard`.
    pub op_site: events::SiteId,
    pub shard_site: events::SiteId,
}

const _: () = assert!(size_of::<NodeRecord>() <= 64);

/// A value's way from an output port, or a feed, into an input slot.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct DataEdge {
    pub consumer: u32,
    pub slot: u32,
    /// Output port, [`DataEdge::LAST`], [`DataEdge::SOLE`].
    port_flags: u32,
}

impl DataEdge {
    /// The value is not needed again: move it.
    const LAST: u32 = 1 << 31;
    /// The consumer waits for this alone: it is ready.
    const SOLE: u32 = 1 << 30;
    /// The consumer is a `Merge`.
    const MERGE: u32 = 1 << 29;
    /// Ports are below this.
    pub const MAX_PORTS: usize = Self::MERGE as usize;

    pub fn port(self) -> usize {
        (self.port_flags & (Self::MERGE - 1)) as usize
    }

    pub fn is_merge(self) -> bool {
        self.port_flags & Self::MERGE != 0
    }

    pub fn is_last(self) -> bool {
        self.port_flags & Self::LAST != 0
    }

    pub fn is_sole(self) -> bool {
        self.port_flags & Self::SOLE != 0
    }
}

/// A control edge: the consumer, and whether it waits for this alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControlEdge(u32);

impl ControlEdge {
    const SOLE: u32 = 1 << 31;
    /// The consumer is a `Merge`.
    const MERGE: u32 = 1 << 30;
    /// Node numbers are below this.
    pub const MAX_NODES: usize = Self::MERGE as usize;

    pub fn consumer(self) -> u32 {
        self.0 & (Self::MERGE - 1)
    }

    pub fn is_merge(self) -> bool {
        self.0 & Self::MERGE != 0
    }

    pub fn is_sole(self) -> bool {
        self.0 & Self::SOLE != 0
    }
}

/// What a feed must be.
#[derive(Debug, Clone)]
pub(crate) struct FeedSpec {
    /// `name:port`, for messages.
    pub name: String,
    pub dtype: DType,
    pub shape: PartialShape,
    /// Where the value goes, in `Plan::data`.
    pub edges: (u32, u32),
}

/// One signature, ready to execute. Immutable but for what it measures.
pub(crate) struct Plan {
    /// The nodes and, last, the sink.
    pub nodes: Box<[NodeRecord]>,
    pub kernels: Box<[AnyKernel]>,
    /// Whether some kernel may end after it returned.
    pub has_async: bool,
    /// Whether values cross from one device to another.
    pub has_transfers: bool,
    pub infos: Box<[NodeInfo]>,
    pub data: Box<[DataEdge]>,
    pub control: Box<[ControlEdge]>,
    /// Arrivals that each node waits for.
    pub pending: Box<[u32]>,
    /// Nodes that wait for nothing.
    pub roots: Box<[u32]>,
    pub feeds: Box<[FeedSpec]>,
    /// `name:port` of each fetch, for messages.
    pub fetches: Box<[String]>,
    /// Loops and branches, where the plan has some.
    pub flow: Option<frames::FlowPlan>,
    pub n_slots: usize,
    pub max_outputs: usize,
    pub costs: Costs,
    /// States of steps that ended, for the next ones.
    pub states: crate::executor::StatePool,
}

/// Why feeds, fetches and targets cannot be planned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
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
        source: Box<crate::graph::ControlFlowError>,
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
    Function(Box<crate::functions::FunctionError>),
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
impl From<crate::functions::FunctionError> for PlanError {
    fn from(error: crate::functions::FunctionError) -> PlanError {
        PlanError::Function(Box::new(error))
    }
}

impl From<PlacementError> for PlanError {
    fn from(error: PlacementError) -> PlanError {
        PlanError::Placement(Box::new(error))
    }
}

impl From<PartitionError> for PlanError {
    fn from(error: PartitionError) -> PlanError {
        PlanError::Partition(Box::new(error))
    }
}

impl PlanError {
    pub(crate) fn not_fed(node: &Node) -> PlanError {
        let expected = node.outputs.first().map(|port| format!("{}{}", port.dtype, port.shape)).unwrap_or_default();
        PlanError::NotFed { node: node.name.to_string(), op: node.op.name, expected }
    }
}

impl Plan {
    /// How many nodes a step executes.
    pub fn n_nodes(&self) -> u32 {
        self.kernels.len() as u32
    }

    /// The sink's slots, one per fetch.
    pub fn fetch_slots(&self) -> Range<usize> {
        self.n_slots - self.fetches.len()..self.n_slots
    }

    pub fn data_edges(&self, (begin, end): (u32, u32)) -> &[DataEdge] {
        &self.data[begin as usize..end as usize]
    }

    pub fn control_edges(&self, (begin, end): (u32, u32)) -> &[ControlEdge] {
        &self.control[begin as usize..end as usize]
    }
}
