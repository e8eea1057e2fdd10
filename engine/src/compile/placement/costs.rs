//! What nodes cost, and the simulations that are made of it.

use std::sync::Arc;

use super::constraints::Groups;
use super::cost_model::CostModel;
use super::device_set::DeviceSet;
use super::estimate;
use super::simulate::{SimDevice, SimEdge, SimNode, Simulation};
use crate::compile::{Pair, Source, WorkGraph, WorkId, WorkNode};
use engine_core::device::{Device, Link};

/// The time that nodes take, by device type.
pub(crate) struct Costs<'a> {
    model: Option<&'a CostModel>,
    /// One device of each type.
    kinds: Vec<&'a Device>,
}

impl<'a> Costs<'a> {
    pub fn new(devices: &'a [Arc<Device>], model: Option<&'a CostModel>) -> Costs<'a> {
        let mut kinds: Vec<&Device> = devices.iter().map(|device| &**device).collect();
        kinds.sort_by_key(|device| device.kind());
        kinds.dedup_by_key(|device| device.kind());
        Costs { model, kinds }
    }

    /// The number of a device's type.
    pub fn kind(&self, device: &Device) -> usize {
        self.kinds.iter().position(|known| known.kind() == device.kind()).unwrap_or(0)
    }

    /// Nanoseconds in a step on each device type.
    pub fn time_ns(&self, graph: &WorkGraph, node: &WorkNode) -> Vec<f64> {
        let work = estimate::work(graph, node);
        let of = |device: &&Device| {
            let estimate = work.time_ns(device.speed());
            let Some(model) = self.model else { return estimate };
            match model.node_ns(node.name(), device.kind()) {
                Some(ns) => ns * model.executions(node.name(), device.kind()),
                None if work.is_free => estimate,
                None => model.op_ns(node.op(), device.kind()).unwrap_or(estimate),
            }
        };
        self.kinds.iter().map(of).collect()
    }

    /// Bytes of an output.
    pub fn bytes(&self, graph: &WorkGraph, source: Source) -> f64 {
        let Some((dtype, shape)) = graph.port(source) else { return 0.0 };
        if shape.known().is_none()
            && let (Some(model), Source::Port(id, port)) = (self.model, source)
            && let Some(bytes) = graph.get(id).and_then(|node| model.bytes(node.name(), port as usize))
        {
            return bytes as f64;
        }
        estimate::bytes_of(dtype, shape)
    }
}

/// What placement decides on: the groups' nodes and devices.
pub(super) fn simulation(
    graph: &WorkGraph,
    order: &[WorkId],
    groups: &Groups,
    devices: &[Arc<Device>],
    costs: &Costs<'_>,
) -> Simulation {
    let number = numbers(graph, order);
    let sim_node = |id: &WorkId| {
        let group = groups.of_node[id.index()];
        sim_node(graph, *id, group, &number, costs)
    };
    Simulation {
        nodes: order.iter().map(sim_node).collect(),
        devices: sim_devices(devices, costs),
        links: links(devices),
        feasible: groups.feasible.clone(),
    }
}

/// A graph that is divided already, each node its own group: values go from a `_Send` to its `_Recv`. And the number of each
/// node in it.
pub(crate) fn fixed_simulation(
    graph: &WorkGraph,
    order: &[WorkId],
    pairs: &[Pair],
    devices: &[Arc<Device>],
    costs: &Costs<'_>,
) -> (Simulation, Vec<u32>) {
    let number = numbers(graph, order);
    let nodes = order.iter().enumerate().map(|(i, id)| sim_node(graph, *id, i as u32, &number, costs));
    let mut nodes: Vec<SimNode> = nodes.collect();
    for pair in pairs {
        let (send, recv) = (number[pair.send.index()], number[pair.recv.index()] as usize);
        let bytes = nodes[recv].bytes;
        nodes[recv].inputs.push(SimEdge { from: send, bytes });
    }
    let feasible = vec![DeviceSet::all(devices.len()); nodes.len()];
    (Simulation { nodes, devices: sim_devices(devices, costs), links: links(devices), feasible }, number)
}

fn numbers(graph: &WorkGraph, order: &[WorkId]) -> Vec<u32> {
    let mut number = vec![u32::MAX; graph.n_ids()];
    order.iter().enumerate().for_each(|(i, id)| number[id.index()] = i as u32);
    number
}

fn sim_node(graph: &WorkGraph, id: WorkId, group: u32, number: &[u32], costs: &Costs<'_>) -> SimNode {
    let Some(node) = graph.get(id) else { return SimNode::default() };
    let data = node.inputs.iter().filter_map(|source| Some((source.node()?, costs.bytes(graph, *source))));
    let control = node.control_inputs.iter().map(|from| (*from, 0.0));
    let inputs = data.chain(control).filter(|(from, _)| !graph.is_back_edge(*from, id));
    let outputs = (0..node.outputs().len() as u32).map(|port| costs.bytes(graph, Source::Port(id, port)));
    SimNode {
        group,
        time_ns: costs.time_ns(graph, node),
        bytes: outputs.sum(),
        resident: estimate::resident_bytes(node),
        inputs: inputs.map(|(from, bytes)| SimEdge { from: number[from.index()], bytes }).collect(),
    }
}

fn sim_devices(devices: &[Arc<Device>], costs: &Costs<'_>) -> Vec<SimDevice> {
    let memory = |device: &Device| match device.memory_limit() {
        usize::MAX => f64::MAX,
        limit => limit as f64,
    };
    devices.iter().map(|device| SimDevice { kind: costs.kind(device), memory: memory(device) }).collect()
}

fn links(devices: &[Arc<Device>]) -> Vec<Vec<Link>> {
    devices.iter().map(|from| devices.iter().map(|to| to.link_from(from)).collect()).collect()
}
