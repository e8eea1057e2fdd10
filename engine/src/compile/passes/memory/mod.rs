//! The memory pass: keeps the peak of a step within a device's limit (white paper section 5.2 and the memory part of 9).
//!
//! The peak is estimated by walking through a topological order with the sizes that shapes give ([`estimate`]). Where it
//! exceeds a device's limit, nodes are ordered so that values die early ([`order`]), then cheap forward values that wait for
//! the backward part are computed again there ([`recompute`]). Control edges hold the order, between the nodes that make or
//! free much; they cost the step its parallelism, so graphs that fit are left alone. What control flow makes conditional is
//! never moved.

mod estimate;
mod order;
mod recompute;

use rustc_hash::FxHashMap;

use super::region::conditional;
use super::{PassContext, WorkGraph, WorkId, WorkNode};
use crate::compile::CompileError;
use estimate::Lives;
pub use estimate::PeakEstimate;

/// Rounds of recomputation.
const MAX_ROUNDS: usize = 64;
/// Values of less than this part of the limit do not matter for the order.
const SMALL: usize = 256;

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let transfers = transfers(graph);
    // An order that no device waits in for what another one is kept from sending.
    transfers.iter().for_each(|(send, receive)| graph.add_control(*receive, *send));
    let changed = reduce_all(graph, context);
    for (send, receive) in transfers {
        if let Some(node) = graph.get_mut(receive) {
            node.control_inputs.retain(|before| *before != send);
        }
    }
    changed
}

/// Each send with the receive of the same value.
fn transfers(graph: &WorkGraph) -> Vec<(WorkId, WorkId)> {
    let key = |node: &WorkNode| {
        let text = |name: &str| node.def.attrs.get(name).map(ToString::to_string);
        Some((text("tensor_name")?, text("recv_device")?))
    };
    let of = |op: &'static str| graph.iter().filter(move |(_, node)| node.op() == op);
    let sends: FxHashMap<_, _> = of("_Send").filter_map(|(id, node)| Some((key(node)?, id))).collect();
    of("_Recv").filter_map(|(id, node)| Some((*sends.get(&key(node)?)?, id))).collect()
}

fn reduce_all(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let mut n_changes = 0;
    let mut estimates = Vec::with_capacity(context.devices.len());
    for (device, limit) in context.devices.iter().map(|device| device.allocator().limit()).enumerate() {
        let order = graph.order()?;
        let before = Lives::of(graph, device, context.unknown_dim).walk(graph, &order).bytes;
        let mut after = before;
        if before > limit {
            let (n, bytes) = reduce(graph, context, device, limit)?;
            n_changes += n;
            after = bytes;
        }
        estimates.push(PeakEstimate { before, after, limit });
    }
    context.peaks.replace(estimates);
    Ok(n_changes)
}

/// Orders and recomputes until the estimate is within the limit, or nothing helps. Gives the changes and the estimate.
fn reduce(
    graph: &mut WorkGraph,
    context: &PassContext<'_>,
    device: usize,
    limit: usize,
) -> Result<(usize, usize), CompileError> {
    let mut best = graph.order()?;
    let mut bytes = Lives::of(graph, device, context.unknown_dim).walk(graph, &best).bytes;
    let mut n_recomputed = 0;
    for round in 0..MAX_ROUNDS {
        let lives = Lives::of(graph, device, context.unknown_dim);
        for order in [order::frugal(graph, &lives), graph.order()?] {
            let peak = lives.walk(graph, &order);
            // After a recomputation the old order lacks nodes: take the better one of the new.
            if peak.bytes < bytes || (round > 0 && best.len() != order.len()) {
                (best, bytes) = (order, peak.bytes);
            }
        }
        if bytes <= limit {
            break;
        }
        let is_conditional = conditional(graph);
        let mut trial = graph.clone();
        let n = recompute::once(&mut trial, &lives, &best, bytes - limit, &is_conditional)?;
        let lives = Lives::of(&trial, device, context.unknown_dim);
        let order = order::frugal(&trial, &lives);
        let peak = lives.walk(&trial, &order).bytes;
        if n == 0 || peak >= bytes {
            break;
        }
        *graph = trial;
        (best, bytes) = (order, peak);
        n_recomputed += n;
    }
    let n_edges = hold(graph, context, device, limit, &best);
    Ok((n_recomputed + n_edges, bytes))
}

/// Control edges between the nodes of the device that make or use much, in this order.
fn hold(graph: &mut WorkGraph, context: &PassContext<'_>, device: usize, limit: usize, order: &[WorkId]) -> usize {
    let is_conditional = conditional(graph);
    let lives = Lives::of(graph, device, context.unknown_dim);
    let matters = |id: &WorkId| !is_conditional[id.index()] && lives.touches(graph, *id, limit / SMALL);
    let large: Vec<WorkId> = order.iter().copied().filter(matters).collect();
    for pair in large.windows(2) {
        let has_edge = graph.get(pair[1]).is_some_and(|node| node.before().any(|before| before == pair[0]));
        if !has_edge {
            graph.add_control(pair[1], pair[0]);
        }
    }
    large.len().saturating_sub(1)
}
