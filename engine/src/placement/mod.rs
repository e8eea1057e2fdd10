//! Placement: which device runs which node (white paper sections 3.2.1 and 4.3).
//!
//! [`constraints`] finds the nodes that must be together and the devices where they can be, [`cost_model`] and [`estimate`] tell
//! what each node takes, [`simulate`] decides by a simulated execution. TensorFlow as published never did the last step: it takes
//! the first device by priority, a GPU where there is one. Here the simulation decides.
//!
//! Nodes with state are placed once per session, from the whole graph, and stay: the plan that initialises a variable and the
//! one that trains it must mean the same device.

mod constraints;
pub mod cost_model;
pub mod device_set;
pub mod estimate;
pub mod simulate;

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::device::{Device, DeviceName, DeviceNameConflict, DeviceNameError, Link};
use crate::functions;
use crate::graph::{Node, Nodes};
use crate::kernels;
use crate::partition::Pair;
use crate::passes::{PIPELINE, PassContext, Source, WorkGraph, WorkId, WorkNode};
use crate::plan::PlanError;
pub use constraints::MAX_DEVICES;
use constraints::{Constraints, Groups};
pub use cost_model::CostModel;
use device_set::DeviceSet;
use simulate::{SimDevice, SimEdge, SimNode, Simulation};

/// What can be chosen for placement.
#[derive(Debug, Clone, Default)]
pub struct PlacementOptions {
    /// Whether a request that no device fits, or that contradicts another one, gives way instead of being an error:
    /// TensorFlow's `allow_soft_placement`. What gave way is told ([`RelaxedRequest`]).
    pub is_soft: bool,
    /// What was measured; without it costs are estimated.
    pub cost_model: Option<Arc<CostModel>>,
}

/// Why nodes cannot be placed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// A request is not the name of a device.
    #[error("node {node}: {source}")]
    Name {
        /// The node.
        node: String,
        /// What is wrong with it.
        source: DeviceNameError,
    },
    /// Two nodes that must be together ask for different devices.
    #[error(
        "nodes {first} and {second} must be on one device ({why}), but their requests contradict each other: {conflict}"
    )]
    Requests {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// Why they must be together.
        why: &'static str,
        /// The two requests.
        conflict: Box<DeviceNameConflict>,
    },
    /// Two nodes that must be together have kernels for different device types.
    #[error(
        "nodes {first} (kernels for {first_kinds}) and {second} (kernels for {second_kinds}) must be on one device ({why}), \
         but no device type has kernels for both"
    )]
    Kernels {
        /// The one.
        first: String,
        /// Its device types.
        first_kinds: String,
        /// The other.
        second: String,
        /// Its device types.
        second_kinds: String,
        /// Why they must be together.
        why: &'static str,
    },
    /// The session has no device that a node asks for and that has its kernels.
    #[error(
        "node {node} (op {op}) asks for {asked}{}, which none of the session's devices is ({devices}; kernels for {kinds})",
        restricted.as_ref().map(|other| format!(" together with node {other}")).unwrap_or_default()
    )]
    NoDevice {
        /// The node.
        node: String,
        /// Its op.
        op: &'static str,
        /// The request, all that must be with it included.
        asked: Box<str>,
        /// Another node of its group that restricts the device types.
        restricted: Option<Box<str>>,
        /// Device types that have all kernels.
        kinds: Box<str>,
        /// The session's devices.
        devices: Box<str>,
    },
    /// More devices than placement can tell apart.
    #[error("a session has at most {MAX_DEVICES} devices, got {0}")]
    TooManyDevices(usize),
}

impl PlacementError {
    /// Whether soft placement would have placed the nodes.
    pub fn gives_way(&self) -> bool {
        matches!(self, PlacementError::Requests { .. } | PlacementError::NoDevice { .. })
    }
}

/// A request for a device that was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelaxedRequest {
    /// The node.
    pub node: String,
    /// Its op.
    pub op: &'static str,
    /// The device that it asks for, as it writes it.
    pub asked: Arc<str>,
    /// The device that runs it.
    pub device: Arc<str>,
}

/// Where nodes with state are: by name, the number of the device.
pub type Pins = FxHashMap<Arc<str>, u32>;

/// The pass: gives each node of a graph its device. Gives how many nodes are not on the first one.
///
/// # Errors
/// See [`PlacementError`].
pub fn place(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, PlanError> {
    if context.devices.len() > MAX_DEVICES {
        return Err(PlacementError::TooManyDevices(context.devices.len()).into());
    }
    if context.devices.len() == 1 {
        *context.relaxed.borrow_mut() = relaxed(graph, context.devices)?;
        return Ok(0);
    }
    let pinned = |node: &WorkNode| context.pins.get(node.name()).copied();
    let groups = Constraints::new(graph, context.devices, context.placement.is_soft).groups(pinned)?;
    let order = graph.order()?;
    let costs = Costs::new(context.devices, context.placement.cost_model.as_deref());
    let simulation = simulation(graph, &order, &groups, context.devices, &costs);
    let outcome = simulation.place();
    let mut n_elsewhere = 0;
    for id in order {
        let Some(node) = graph.get_mut(id) else { continue };
        let decided = outcome.device_of_group[groups.of_node[id.index()] as usize];
        // A pin wins where two groups with state came together later.
        node.device = context.pins.get(node.name()).copied().unwrap_or(decided);
        n_elsewhere += usize::from(node.device != 0);
    }
    *context.relaxed.borrow_mut() = relaxed(graph, context.devices)?;
    Ok(n_elsewhere)
}

/// The nodes that are on another device than they ask for.
fn relaxed(graph: &WorkGraph, devices: &[Arc<Device>]) -> Result<Vec<RelaxedRequest>, PlacementError> {
    let mut met: FxHashMap<(&str, u32), bool> = FxHashMap::default();
    let mut relaxed = Vec::new();
    let asks = |node: &WorkNode| !node.def.device.is_empty() && !node.def.attrs.contains_key(functions::DEFAULT_DEVICE);
    for (_, node) in graph.iter().filter(|(_, node)| asks(node)) {
        let Some(device) = devices.get(node.device as usize) else { continue };
        let is_met = match met.entry((&node.def.device, node.device)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(request(node)?.admits(device.full_name())),
        };
        if !is_met {
            let (node, op, asked) = (node.name().to_string(), node.op(), Arc::clone(&node.def.device));
            relaxed.push(RelaxedRequest { node, op, asked, device: device.name().into() });
        }
    }
    Ok(relaxed)
}

/// The device that a node asks for.
fn request(node: &WorkNode) -> Result<DeviceName, PlacementError> {
    node.def.device.parse().map_err(|source| PlacementError::Name { node: node.name().to_string(), source })
}

/// Whether each request of a graph's nodes means one of the devices, be the node needed or not: as TensorFlow, which places
/// a graph as a whole.
///
/// # Errors
/// A request is no device's name, or none of the devices is meant.
pub(crate) fn check_requests(nodes: &Nodes, devices: &[Arc<Device>]) -> Result<(), PlacementError> {
    let mut known: FxHashSet<&str> = FxHashSet::default();
    for node in nodes.iter().filter(|node| !node.device.is_empty()) {
        if !known.insert(&node.device) {
            continue;
        }
        let name = node.device.parse::<DeviceName>();
        let name = name.map_err(|source| PlacementError::Name { node: node.name.to_string(), source })?;
        if devices.iter().any(|device| name.admits(device.full_name())) {
            continue;
        }
        let mut kinds: Vec<&str> = devices.iter().map(|device| device.kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.retain(|kind| kernels::supports(node, kind));
        let names: Vec<&str> = devices.iter().map(|device| device.name()).collect();
        return Err(PlacementError::NoDevice {
            node: node.name.to_string(),
            op: node.op.name,
            asked: name.to_string().into(),
            restricted: None,
            kinds: kinds.join(", ").into(),
            devices: names.join(", ").into(),
        });
    }
    Ok(())
}

/// Places a whole graph and notes where its nodes with state are; those of `pins` stay where they are.
///
/// # Errors
/// Nodes that must be on one device ask for different ones, be they needed or not: as TensorFlow. Whatever else is wrong with
/// nodes that no step needs is no error of the steps that are asked for.
pub(crate) fn pin(nodes: &Nodes, context: &PassContext<'_>) -> Result<Pins, PlanError> {
    let mut graph = whole(nodes);
    let mut pins = context.pins.clone();
    let needed = PIPELINE.iter().take_while(|pass| pass.name != "place").filter(|pass| !pass.is_optional);
    let passed = { needed }.try_for_each(|pass| (pass.run)(&mut graph, context).map(drop));
    match passed.and_then(|()| place(&mut graph, context)) {
        Ok(_) => {
            for (_, node) in graph.iter().filter(|(_, node)| holds_state(node)) {
                pins.entry(Arc::clone(node.name())).or_insert(node.device);
            }
            Ok(pins)
        }
        Err(PlanError::Placement(error)) if matches!(*error, PlacementError::Requests { .. }) => {
            Err(PlanError::Placement(error))
        }
        Err(_) => Ok(pins),
    }
}

/// Whether a node's device keeps something for it between steps: it hands out a resource.
fn holds_state(node: &WorkNode) -> bool {
    let hands_out = (0..node.outputs().len() as u32).any(|port| constraints::hands_out(node, port));
    node.is_stateful() && hands_out && node.inputs.is_empty()
}

/// All nodes of a graph, nothing fed or fetched.
fn whole(nodes: &Nodes) -> WorkGraph {
    let mut graph = WorkGraph::default();
    for node in nodes.iter() {
        graph.add(WorkNode {
            inputs: node.inputs.iter().map(|output| Source::Port(WorkId(output.node.0), output.port)).collect(),
            control_inputs: node.control_inputs.iter().map(|id| WorkId(id.0)).collect(),
            origin: Some(node.id),
            device: 0,
            def: Arc::<Node>::clone(node),
        });
    }
    graph
}

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
fn simulation(
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
