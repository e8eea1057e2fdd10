//! The pass that places nodes, and what is asked of devices.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::constraints::{Constraints, hands_out, request};
use super::costs::{Costs, simulation};
use super::device_set::MAX_DEVICES;
use super::error::PlacementError;
use super::options::RelaxedRequest;
use crate::compile::passes::PassContext;
use crate::compile::{CompileError, WorkGraph, WorkNode};
use engine_core::device::{Device, DeviceName};
use engine_core::functions;
use engine_core::graph::Nodes;
use engine_core::kernel;

/// The pass: gives each node of a graph its device. Gives how many nodes are not on the first one.
///
/// # Errors
/// See [`PlacementError`].
pub fn place(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
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
        kinds.retain(|kind| kernel::supports(node, kind));
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

/// Whether a node's device keeps something for it between steps: it hands out a resource.
pub(crate) fn holds_state(node: &WorkNode) -> bool {
    let hands_out = (0..node.outputs().len() as u32).any(|port| hands_out(node, port));
    node.is_stateful() && hands_out && node.inputs.is_empty()
}
