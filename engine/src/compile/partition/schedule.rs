//! Delays receives until just before their values are needed (white paper section 5.2).
//!
//! A receive that starts with the step holds its value's memory until the consumer runs, however late that is. Here a
//! simulated execution gives the order of each device's nodes; going backwards through it, each node gets the latest time at which
//! it can end without making the step longer:
//!
//! `latest(n) = min over consumers(latest(c) - time(c) - transfer)`, and before the next node of its device begins.
//!
//! A receive should begin a transfer's time before its value's latest time. A control edge makes it wait for the last node on its
//! device that ends before then: never for one that ends later, so the longest path does not grow. Such an edge
//! cannot close a circle: what depends on the receive has a later latest time than it.
//!
//! Devices take what is ready first, and with other times they may take it in a worse order though no path is longer. So the
//! step is simulated with the edges too, and where it became longer there are none.

use crate::compile::CompileError;
use crate::compile::Pair;
use crate::compile::passes::PassContext;
use crate::compile::placement::simulate::{Outcome, Simulation};
use crate::compile::placement::{Costs, fixed_simulation};
use crate::compile::{WorkGraph, WorkId};
use engine_core::ops::OpKind;

/// Adds the control edges; gives how many. `is_outside` says which nodes are outside of all loops: only their
/// receives are delayed, and only by their like.
///
/// # Errors
/// Nodes wait for each other.
pub(super) fn delay_receives(
    graph: &mut WorkGraph,
    pairs: &[Pair],
    is_outside: impl Fn(WorkId) -> bool,
    context: &PassContext<'_>,
) -> Result<usize, CompileError> {
    let order = graph.order()?;
    let costs = Costs::new(context.devices, context.placement.cost_model.as_deref());
    let (simulation, number) = fixed_simulation(graph, &order, pairs, context.devices, &costs);
    let device_of: Vec<u32> = order.iter().map(|id| graph.get(*id).map_or(0, |node| node.device)).collect();
    let outcome = simulation.run(&device_of);
    let latest = Latest::of(&simulation, &device_of, &outcome);
    let certain = certain(graph, &order, pairs);
    let mut local: Vec<Vec<(f64, u32)>> = vec![Vec::new(); context.devices.len()];
    for (i, id) in order.iter().enumerate() {
        let time = simulation.time_ns(i, device_of[i]);
        if time > 0.0 && certain[i] && is_outside(*id) && !is_transfer(graph, *id) {
            local[device_of[i] as usize].push((latest.finish[i], i as u32));
        }
    }
    local.iter_mut().for_each(|nodes| nodes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))));
    let mut delayed = graph.clone();
    let mut n_delayed = 0;
    for pair in pairs.iter().filter(|pair| is_outside(pair.recv)) {
        let (recv, send) = (number[pair.recv.index()] as usize, number[pair.send.index()] as usize);
        let bytes = simulation.nodes[recv].bytes;
        let link = simulation.links[device_of[send] as usize][device_of[recv] as usize];
        let begin = latest.finish[recv] - link.transfer_ns(bytes);
        let nodes = &local[device_of[recv] as usize];
        let n_before = nodes.partition_point(|(finish, _)| *finish <= begin);
        if let Some((_, last)) = n_before.checked_sub(1).and_then(|i| nodes.get(i)) {
            delayed.add_control(pair.recv, order[*last as usize]);
            n_delayed += 1;
        }
    }
    if n_delayed == 0 || makespan_ns(&delayed, pairs, context, &costs)? > outcome.makespan_ns {
        return Ok(0);
    }
    *graph = delayed;
    Ok(n_delayed)
}

/// How long the simulated step takes.
fn makespan_ns(
    graph: &WorkGraph,
    pairs: &[Pair],
    context: &PassContext<'_>,
    costs: &Costs<'_>,
) -> Result<f64, CompileError> {
    let order = graph.order()?;
    let (simulation, _) = fixed_simulation(graph, &order, pairs, context.devices, costs);
    let device_of: Vec<u32> = order.iter().map(|id| graph.get(*id).map_or(0, |node| node.device)).collect();
    Ok(simulation.run(&device_of).makespan_ns)
}

fn is_transfer(graph: &WorkGraph, id: WorkId) -> bool {
    graph.kind(id).is_transfer()
}

/// Whether each node is sure to run: not on a branch that may not be taken. A control edge from one that is not would
/// hand its deadness on.
fn certain(graph: &WorkGraph, order: &[WorkId], pairs: &[Pair]) -> Vec<bool> {
    let mut is_certain = vec![true; graph.n_ids()];
    // Twice over pairs in turn with the order: what a dead value reaches on the other side may come earlier in it.
    loop {
        let mut changed = false;
        for id in order {
            let Some(node) = graph.get(*id) else { continue };
            let is_open = node.kind().is_switch() || node.kind() == OpKind::Exit;
            if is_certain[id.index()] && (is_open || node.before().any(|before| !is_certain[before.index()])) {
                is_certain[id.index()] = false;
                changed = true;
            }
        }
        for pair in pairs {
            if is_certain[pair.recv.index()] && !is_certain[pair.send.index()] {
                is_certain[pair.recv.index()] = false;
                changed = true;
            }
        }
        if !changed {
            return order.iter().map(|id| is_certain[id.index()]).collect();
        }
    }
}

/// The latest end of each node that keeps the makespan.
struct Latest {
    finish: Vec<f64>,
}

impl Latest {
    fn of(simulation: &Simulation, device_of: &[u32], outcome: &Outcome) -> Latest {
        let mut finish = vec![outcome.makespan_ns; simulation.nodes.len()];
        let mut next_begins = vec![outcome.makespan_ns; simulation.devices.len()];
        for &node in outcome.order.iter().rev() {
            let (i, device) = (node as usize, device_of[node as usize]);
            let time = simulation.time_ns(i, device);
            if time > 0.0 {
                // The order of each device's nodes stays.
                finish[i] = finish[i].min(next_begins[device as usize]);
                next_begins[device as usize] = finish[i] - time;
            }
            let begin = finish[i] - time;
            for edge in &simulation.nodes[i].inputs {
                let from = edge.from as usize;
                let transfer = simulation.transfer(device_of[from], device, edge.bytes);
                finish[from] = finish[from].min(begin - transfer);
            }
        }
        Latest { finish }
    }
}
