//! From the nodes that must run to a plan's flat arrays.

use rustc_hash::FxHashSet;

use super::arrays::{ControlEdge, DataEdge, FeedSpec, NodeRecord, Plan};
use super::cost::Costs;
use super::frames::{FlowKind, Frames};
use super::merge as merge_count;
use crate::compile::{self, CompileError, WorkGraph, WorkId, WorkNode};
use engine_core::kernel::{AnyKernel, NodeInfo};
use engine_core::ops::OpKind;

/// A node's kernel, made once per session.
pub(crate) type KernelOf<'a> = &'a mut dyn FnMut(&WorkNode) -> Result<(AnyKernel, NodeInfo), CompileError>;

/// Compiles a graph that all passes went over.
///
/// # Errors
/// A cycle, a kernel that cannot be made, more of something than a plan can number.
pub(crate) fn compile(graph: &WorkGraph, kernel_of: KernelOf<'_>) -> Result<Plan, CompileError> {
    let topological = graph.order()?;
    let frames = Frames::of(graph, &topological)?;
    let order = frames.as_ref().map_or_else(|| topological.clone(), |frames| frames.sorted(&topological));
    let nodes: Vec<&WorkNode> = order.iter().filter_map(|id| graph.get(*id)).collect();
    let layout = Layout::new(graph, &order, &nodes)?;
    let (mut kernels, mut infos) = (Vec::with_capacity(nodes.len()), Vec::with_capacity(nodes.len()));
    for node in &nodes {
        let (kernel, info) = kernel_of(node)?;
        kernels.push(kernel);
        infos.push(info);
    }
    let edges = Edges::collect(graph, &nodes, &layout)?;
    let flow = frames.map(|f| f.finish(graph, &topological, &order, &layout.number, &layout.first_slot));
    let mut plan = Plan {
        nodes: Box::default(),
        costs: Costs::new(kernels.iter().map(AnyKernel::is_expensive)),
        has_async: kernels.iter().any(AnyKernel::is_async),
        has_transfers: nodes.iter().any(|node| node.kind() == OpKind::Recv),
        kernels: kernels.into(),
        infos: infos.into(),
        data: Box::default(),
        control: Box::default(),
        roots: (0..nodes.len() as u32).filter(|n| edges.is_root(*n)).collect(),
        pending: Box::default(),
        feeds: Box::default(),
        fetches: graph.fetch_names.clone().into(),
        flow,
        n_slots: layout.n_slots,
        max_outputs: 0,
    };
    edges.lay_out(graph, &nodes, &layout, &mut plan);
    plan.pending = edges.pending.into();
    plan.update_width();
    Ok(plan)
}

/// The numbers of nodes and slots.
struct Layout {
    /// By [`WorkId`].
    number: Vec<u32>,
    first_slot: Vec<u32>,
    n_slots: usize,
}

impl Layout {
    fn new(graph: &WorkGraph, order: &[WorkId], nodes: &[&WorkNode]) -> Result<Layout, CompileError> {
        let mut n_slots = 0;
        let mut first_slot = Vec::with_capacity(nodes.len() + 1);
        for node in nodes {
            first_slot.push(n_slots as u32);
            n_slots += node.inputs.len();
            if node.outputs().len() > DataEdge::MAX_PORTS {
                return Err(CompileError::TooLarge);
            }
        }
        first_slot.push(n_slots as u32);
        n_slots += graph.fetches.len();
        if n_slots > u32::MAX as usize || nodes.len() >= ControlEdge::MAX_NODES {
            return Err(CompileError::TooLarge);
        }
        let mut number = vec![u32::MAX; graph.n_ids()];
        order.iter().enumerate().for_each(|(i, id)| number[id.index()] = i as u32);
        Ok(Layout { number, first_slot, n_slots })
    }
}

/// Where a value comes from: a port of a node (by number in the plan), or a feed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Port(u32, u32),
    Feed(u32),
}

/// All edges of the plan, sorted by where they come from.
struct Edges {
    data: Vec<(Source, u32, u32)>,
    control: Vec<(u32, u32)>,
    pending: Vec<u32>,
    is_merge: Vec<bool>,
}

impl Edges {
    fn collect(graph: &WorkGraph, nodes: &[&WorkNode], layout: &Layout) -> Result<Edges, CompileError> {
        let sink = nodes.len() as u32;
        let is_merge = nodes.iter().map(|node| node.kind() == OpKind::Merge).collect();
        let mut edges = Edges { data: Vec::new(), control: Vec::new(), pending: vec![0; nodes.len() + 1], is_merge };
        for (consumer, node) in nodes.iter().enumerate() {
            for (i, input) in node.inputs.iter().enumerate() {
                edges.add(layout, *input, consumer as u32, layout.first_slot[consumer] + i as u32);
            }
            // A control edge adds nothing to a data edge from the same node.
            let is_data = |before: &WorkId| node.inputs.iter().any(|input| input.node() == Some(*before));
            for before in node.control_inputs.iter().filter(|before| !is_data(before)) {
                edges.control.push((layout.number[before.index()], consumer as u32));
                edges.pending[consumer] += 1;
            }
        }
        for (i, fetch) in graph.fetches.iter().enumerate() {
            edges.add(layout, *fetch, sink, layout.first_slot[nodes.len()] + i as u32);
        }
        edges.pending[nodes.len()] += 1; // it never runs
        edges.data.sort_unstable();
        edges.control.sort_unstable();
        for (consumer, node) in nodes.iter().enumerate().filter(|(i, _)| edges.is_merge[*i]) {
            let n_data = node.inputs.iter().filter(|input| input.node().is_some()).count();
            let n_control = edges.pending[consumer] as usize - n_data;
            if node.inputs.len().max(n_control) > merge_count::MAX_EDGES {
                return Err(CompileError::TooLarge);
            }
            // A value that is fed is there before the step begins.
            let is_fed = n_data < node.inputs.len();
            let live = if is_fed { merge_count::CLAIMED } else { merge_count::NO_LIVE };
            edges.pending[consumer] = live + merge_count::CONTROL * n_control as u32;
        }
        Ok(edges)
    }

    /// Whether the node waits for nothing.
    fn is_root(&self, node: u32) -> bool {
        let pending = self.pending[node as usize];
        let is_merge = self.is_merge[node as usize];
        pending == 0 || (is_merge && pending & (merge_count::CONTROL_MASK | merge_count::NO_LIVE) == 0)
    }

    fn is_merge(&self, node: u32) -> bool {
        self.is_merge.get(node as usize).copied().unwrap_or(false)
    }

    /// Whether the node waits for one arrival only.
    fn is_sole(&self, node: u32) -> bool {
        self.pending[node as usize] == 1 && !self.is_merge(node)
    }

    fn add(&mut self, layout: &Layout, from: compile::Source, consumer: u32, slot: u32) {
        let source = match from {
            compile::Source::Feed(feed) => Source::Feed(feed),
            compile::Source::Port(node, port) => {
                self.pending[consumer as usize] += 1;
                Source::Port(layout.number[node.index()], port)
            }
        };
        self.data.push((source, consumer, slot));
    }

    /// Writes records, edges and feeds into the plan.
    fn lay_out(&self, graph: &WorkGraph, nodes: &[&WorkNode], layout: &Layout, plan: &mut Plan) {
        plan.data = self.data_edges();
        let flags = |consumer: u32| match (self.is_sole(consumer), self.is_merge(consumer)) {
            (true, _) => ControlEdge::SOLE,
            (false, true) => ControlEdge::MERGE,
            (false, false) => 0,
        };
        plan.control = self.control.iter().map(|(_, consumer)| ControlEdge(consumer | flags(*consumer))).collect();
        let mut records = Vec::with_capacity(nodes.len() + 1);
        let (mut data, mut control) = (0, 0);
        for (number, node) in nodes.iter().enumerate() {
            let (n_outputs, number) = (node.outputs().len(), number as u32);
            let is_own = |edge: &(Source, u32, u32)| matches!(edge.0, Source::Port(n, _) if n == number);
            let data_end = data + self.data[data..].iter().take_while(|edge| is_own(edge)).count();
            let control_end = control + self.control[control..].iter().take_while(|edge| edge.0 == number).count();
            let ports: FxHashSet<usize> = plan.data[data..data_end].iter().map(|edge| edge.port()).collect();
            records.push(NodeRecord {
                first_slot: layout.first_slot[number as usize],
                n_inputs: node.inputs.len() as u32,
                n_outputs: n_outputs as u32,
                data: (data as u32, data_end as u32),
                control: (control as u32, control_end as u32),
                // Sessions have fewer devices than this can number.
                device: node.device as u16,
                has_unused_output: ports.len() < n_outputs,
                kind: match FlowKind::of(node) {
                    FlowKind::Merge if ports.contains(&1) => FlowKind::IndexedMerge,
                    kind => kind,
                },
                op_site: events::site("op", node.op()),
                shard_site: events::site("shard", node.op()),
            });
            plan.max_outputs = plan.max_outputs.max(n_outputs);
            (data, control) = (data_end, control_end);
        }
        records.push(sink(layout.first_slot[nodes.len()], graph.fetches.len()));
        plan.nodes = records.into();
        plan.feeds = self.feeds(graph, data);
    }

    fn data_edges(&self) -> Box<[DataEdge]> {
        let edge = |(i, &(source, consumer, slot)): (usize, &(Source, u32, u32))| {
            let is_last = self.data.get(i + 1).is_none_or(|next| next.0 != source);
            let is_sole = matches!(source, Source::Port(..)) && self.is_sole(consumer);
            let port = if let Source::Port(_, port) = source { port } else { 0 };
            let flags = if is_last { DataEdge::LAST } else { 0 } | if is_sole { DataEdge::SOLE } else { 0 };
            let flags = flags | if self.is_merge(consumer) { DataEdge::MERGE } else { 0 };
            DataEdge { consumer, slot, port_flags: port | flags }
        };
        self.data.iter().enumerate().map(edge).collect()
    }

    /// Feeds come after all ports in `data`, from `first` on.
    fn feeds(&self, graph: &WorkGraph, first: usize) -> Box<[FeedSpec]> {
        let mut begin = first;
        let spec = |(i, feed): (usize, &compile::WorkFeed)| {
            let of_feed = self.data[begin..].iter().take_while(|edge| edge.0 == Source::Feed(i as u32)).count();
            let edges = (begin as u32, (begin + of_feed) as u32);
            begin += of_feed;
            FeedSpec { name: feed.name.clone(), dtype: feed.dtype, shape: feed.shape.clone(), edges }
        };
        graph.feeds.iter().enumerate().map(spec).collect()
    }
}

fn sink(first_slot: u32, n_fetches: usize) -> NodeRecord {
    NodeRecord {
        first_slot,
        n_inputs: n_fetches as u32,
        n_outputs: 0,
        data: (0, 0),
        control: (0, 0),
        device: 0,
        has_unused_output: false,
        kind: FlowKind::Compute,
        op_site: events::SiteId::OTHER,
        shard_site: events::SiteId::OTHER,
    }
}
