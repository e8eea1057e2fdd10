//! From the nodes that must run to a plan's flat arrays.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cost::Costs;
use super::prune::{Signature, find, prune};
use super::{ControlEdge, DataEdge, FeedSpec, NodeRecord, Plan, PlanError};
use crate::executor::StatePool;
use crate::graph::{Node, NodeId, Nodes, Output};
use crate::kernels::{Kernel, NodeInfo};

/// A node's kernel, made once per session.
pub(crate) type KernelOf<'a> = &'a mut dyn FnMut(&Node) -> Result<(Arc<dyn Kernel>, NodeInfo), PlanError>;

/// Compiles a signature.
///
/// # Errors
/// What [`prune`] refuses, a kernel that cannot be made, a feed or fetch that does not exist.
pub(crate) fn compile(nodes: &Nodes, signature: &Signature, kernel_of: KernelOf<'_>) -> Result<Plan, PlanError> {
    let order = prune(nodes, signature)?;
    let layout = Layout::new(nodes, signature, &order)?;
    let (mut kernels, mut infos) = (Vec::with_capacity(order.len()), Vec::with_capacity(order.len()));
    for id in &order {
        let (kernel, info) = kernel_of(find(nodes, *id)?)?;
        kernels.push(kernel);
        infos.push(info);
    }
    let edges = Edges::collect(nodes, signature, &order, &layout)?;
    let mut plan = Plan {
        nodes: Box::default(),
        costs: Costs::new(kernels.iter().map(|k| k.is_expensive())),
        kernels: kernels.into(),
        infos: infos.into(),
        data: Box::default(),
        control: Box::default(),
        roots: (0..order.len() as u32).filter(|n| edges.pending[*n as usize] == 0).collect(),
        pending: Box::default(),
        feeds: Box::default(),
        fetches: signature.fetches.iter().map(|f| output_name(nodes, *f)).collect::<Result<_, _>>()?,
        n_slots: layout.n_slots,
        max_outputs: 0,
        states: StatePool::default(),
    };
    edges.lay_out(nodes, signature, &order, &layout, &mut plan)?;
    plan.pending = edges.pending.into();
    plan.costs.update_width(&plan);
    Ok(plan)
}

fn output_name(nodes: &Nodes, output: Output) -> Result<String, PlanError> {
    let node = find(nodes, output.node)?;
    if output.port as usize >= node.outputs.len() {
        return Err(PlanError::NoSuchPort { node: node.name.to_string(), port: output.port });
    }
    Ok(format!("{}:{}", node.name, output.port))
}

/// The numbers of nodes, feeds and slots.
struct Layout {
    number: FxHashMap<NodeId, u32>,
    fed: FxHashMap<Output, u32>,
    first_slot: Vec<u32>,
    n_slots: usize,
}

impl Layout {
    fn new(nodes: &Nodes, signature: &Signature, order: &[NodeId]) -> Result<Layout, PlanError> {
        let mut fed = FxHashMap::default();
        for (i, feed) in signature.feeds.iter().enumerate() {
            let name = output_name(nodes, *feed)?;
            if fed.insert(*feed, i as u32).is_some() {
                return Err(PlanError::FedTwice { name });
            }
        }
        let mut n_slots = 0;
        let mut first_slot = Vec::with_capacity(order.len() + 1);
        for id in order {
            first_slot.push(n_slots as u32);
            let node = find(nodes, *id)?;
            n_slots += node.inputs.len();
            if node.outputs.len() > DataEdge::MAX_PORTS {
                return Err(PlanError::TooLarge);
            }
        }
        first_slot.push(n_slots as u32);
        n_slots += signature.fetches.len();
        if n_slots > u32::MAX as usize || order.len() >= ControlEdge::MAX_NODES {
            return Err(PlanError::TooLarge);
        }
        let number = order.iter().enumerate().map(|(i, id)| (*id, i as u32)).collect();
        Ok(Layout { number, fed, first_slot, n_slots })
    }
}

/// Where a value comes from: a port of a node (by number), or a feed.
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
}

impl Edges {
    fn collect(nodes: &Nodes, signature: &Signature, order: &[NodeId], layout: &Layout) -> Result<Edges, PlanError> {
        let sink = order.len() as u32;
        let mut edges = Edges { data: Vec::new(), control: Vec::new(), pending: vec![0; order.len() + 1] };
        for (consumer, id) in order.iter().enumerate() {
            let node = find(nodes, *id)?;
            for (i, input) in node.inputs.iter().enumerate() {
                edges.add(layout, *input, consumer as u32, layout.first_slot[consumer] + i as u32)?;
            }
            // A control edge beside a data edge from the same node says nothing new.
            let data: FxHashSet<NodeId> =
                node.inputs.iter().filter(|i| !layout.fed.contains_key(i)).map(|i| i.node).collect();
            for before in node.control_inputs.iter().filter(|before| !data.contains(before)) {
                // Not in the plan: a placeholder that is fed.
                if let Some(from) = layout.number.get(before) {
                    edges.control.push((*from, consumer as u32));
                    edges.pending[consumer] += 1;
                }
            }
        }
        for (i, fetch) in signature.fetches.iter().enumerate() {
            edges.add(layout, *fetch, sink, layout.first_slot[order.len()] + i as u32)?;
        }
        edges.pending[order.len()] += 1; // it never runs
        edges.data.sort_unstable();
        edges.control.sort_unstable();
        Ok(edges)
    }

    fn add(&mut self, layout: &Layout, from: Output, consumer: u32, slot: u32) -> Result<(), PlanError> {
        let source = match layout.fed.get(&from) {
            Some(feed) => Source::Feed(*feed),
            None => {
                let number = *layout.number.get(&from.node).ok_or(PlanError::ForeignNode { id: from.node })?;
                self.pending[consumer as usize] += 1;
                Source::Port(number, from.port)
            }
        };
        self.data.push((source, consumer, slot));
        Ok(())
    }

    /// Writes records, edges and feeds into the plan.
    fn lay_out(
        &self,
        nodes: &Nodes,
        signature: &Signature,
        order: &[NodeId],
        layout: &Layout,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        plan.data = self.data_edges();
        let sole = |consumer: u32| if self.pending[consumer as usize] == 1 { ControlEdge::SOLE } else { 0 };
        plan.control = self.control.iter().map(|(_, consumer)| ControlEdge(consumer | sole(*consumer))).collect();
        let mut records = Vec::with_capacity(order.len() + 1);
        let (mut data, mut control) = (0, 0);
        for (number, id) in order.iter().enumerate() {
            let (node, number) = (find(nodes, *id)?, number as u32);
            let is_own = |edge: &(Source, u32, u32)| matches!(edge.0, Source::Port(n, _) if n == number);
            let data_end = data + self.data[data..].iter().take_while(|edge| is_own(edge)).count();
            let control_end = control + self.control[control..].iter().take_while(|edge| edge.0 == number).count();
            let ports: FxHashSet<usize> = plan.data[data..data_end].iter().map(|edge| edge.port()).collect();
            records.push(NodeRecord {
                first_slot: layout.first_slot[number as usize],
                n_inputs: node.inputs.len() as u32,
                n_outputs: node.outputs.len() as u32,
                data: (data as u32, data_end as u32),
                control: (control as u32, control_end as u32),
                has_unused_output: ports.len() < node.outputs.len(),
                op_site: events::site("op", node.op.name),
                shard_site: events::site("shard", node.op.name),
            });
            plan.max_outputs = plan.max_outputs.max(node.outputs.len());
            (data, control) = (data_end, control_end);
        }
        records.push(sink(layout.first_slot[order.len()], signature.fetches.len()));
        plan.nodes = records.into();
        plan.feeds = self.feeds(nodes, signature, data)?;
        Ok(())
    }

    fn data_edges(&self) -> Box<[DataEdge]> {
        let edge = |(i, &(source, consumer, slot)): (usize, &(Source, u32, u32))| {
            let is_last = self.data.get(i + 1).is_none_or(|next| next.0 != source);
            let is_sole = matches!(source, Source::Port(..)) && self.pending[consumer as usize] == 1;
            let port = if let Source::Port(_, port) = source { port } else { 0 };
            let flags = if is_last { DataEdge::LAST } else { 0 } | if is_sole { DataEdge::SOLE } else { 0 };
            DataEdge { consumer, slot, port_flags: port | flags }
        };
        self.data.iter().enumerate().map(edge).collect()
    }

    /// Feeds come after all ports in `data`, from `first` on.
    fn feeds(&self, nodes: &Nodes, signature: &Signature, first: usize) -> Result<Box<[FeedSpec]>, PlanError> {
        let mut begin = first;
        let spec = |(i, feed): (usize, &Output)| {
            let port = &find(nodes, feed.node)?.outputs[feed.port as usize];
            let of_feed = self.data[begin..].iter().take_while(|edge| edge.0 == Source::Feed(i as u32)).count();
            let edges = (begin as u32, (begin + of_feed) as u32);
            begin += of_feed;
            Ok(FeedSpec { name: output_name(nodes, *feed)?, dtype: port.dtype, shape: port.shape.clone(), edges })
        };
        signature.feeds.iter().enumerate().map(spec).collect()
    }
}

fn sink(first_slot: u32, n_fetches: usize) -> NodeRecord {
    NodeRecord {
        first_slot,
        n_inputs: n_fetches as u32,
        n_outputs: 0,
        data: (0, 0),
        control: (0, 0),
        has_unused_output: false,
        op_site: events::SiteId::OTHER,
        shard_site: events::SiteId::OTHER,
    }
}
