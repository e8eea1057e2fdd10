//! The arrays of a plan.

use std::ops::Range;

use super::cost::{Costs, EXPENSIVE_TICKS, TAKEN_TICKS};
use super::frames::{FlowKind, FlowPlan};
use engine_core::dtype::DType;
use engine_core::kernel::{AnyKernel, NodeInfo};
use engine_core::shape::PartialShape;

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
    pub kind: FlowKind,
    /// Call sites of its events, in categories `op` and `shard`.
    pub op_site: events::SiteId,
    pub shard_site: events::SiteId,
}

const _: () = assert!(size_of::<NodeRecord>() <= 40);

/// A value's way from an output port, or a feed, into an input slot.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct DataEdge {
    pub consumer: u32,
    pub slot: u32,
    /// Output port, [`DataEdge::LAST`], [`DataEdge::SOLE`].
    pub(super) port_flags: u32,
}

impl DataEdge {
    /// The value is not needed again: move it.
    pub(super) const LAST: u32 = 1 << 31;
    /// The consumer waits for this alone: it is ready.
    pub(super) const SOLE: u32 = 1 << 30;
    /// The consumer is a `Merge`.
    pub(super) const MERGE: u32 = 1 << 29;
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
pub(crate) struct ControlEdge(pub(super) u32);

impl ControlEdge {
    pub(super) const SOLE: u32 = 1 << 31;
    /// The consumer is a `Merge`.
    pub(super) const MERGE: u32 = 1 << 30;
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
    pub flow: Option<FlowPlan>,
    pub n_slots: usize,
    pub max_outputs: usize,
    pub costs: Costs,
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

    /// Decides again whether several threads would have something to do at once: the time of all nodes that are worth
    /// being taken exceeds that of the longest path by more than a thread's wake-up.
    pub fn update_width(&self) {
        let mut finish = vec![0u64; self.nodes.len()];
        let (mut total, mut longest) = (0, 0);
        // Nodes are numbered in topological order, except where there are frames.
        let order = self.flow.as_ref().map(|flow| &flow.order);
        for i in 0..self.kernels.len() {
            let node = order.map_or(i, |order| order[i] as usize);
            let record = &self.nodes[node];
            let ticks = u64::from(Some(self.costs.ticks(node as u32)).filter(|t| *t >= TAKEN_TICKS).unwrap_or(0));
            let end = finish[node] + ticks;
            total += ticks;
            longest = longest.max(end);
            let data = self.data_edges(record.data).iter().map(|e| e.consumer);
            let control = self.control_edges(record.control).iter().map(|e| e.consumer());
            for consumer in data.chain(control) {
                let begin = &mut finish[consumer as usize];
                *begin = (*begin).max(end);
            }
        }
        self.costs.set_width(total - longest > 2 * u64::from(EXPENSIVE_TICKS));
    }
}
