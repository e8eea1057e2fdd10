//! Partition: every edge between two devices becomes a `_Send` and a `_Recv` (white paper sections 3.2.2 and 4.4).
//!
//! 1. Control flow is moved to its data, so that no edge that changes the iteration crosses devices ([`colocate`]).
//! 2. Devices that receive within a loop get a control loop of that frame ([`control_loops`]).
//! 3. One pair per value and destination device takes the place of all edges there ([`transfers`]); control edges travel
//!    as empty tensors. Dead values travel too.
//! 4. Receives outside of loops are delayed until their values are needed ([`schedule`], section 5.2).
//!
//! Feeds and fetches of devices with their own memory are copied ([`boundary`]).
//!
//! The parts stay one graph, with a device number at each node: a process runs one plan, whatever the number of its
//! devices. Nothing but the rendezvous joins the parts, so that they could as well be in different processes.

mod boundary;
mod colocate;
mod control_loops;
mod error;
mod frames;
mod options;
mod parts;
pub mod schedule;
mod transfers;

use super::Pair;
use crate::compile::CompileError;
use crate::compile::WorkGraph;
use crate::compile::passes::PassContext;
pub use error::PartitionError;
use frames::Frames;
pub use options::TransferOptions;
pub use parts::Part;

/// The pass: replaces the edges between devices. Gives the number of transfers.
///
/// # Errors
/// A loop on several devices has no condition.
pub fn partition(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let n_copies = boundary::insert(graph, context)?;
    Ok(divide(graph, context)?.len() + n_copies)
}

/// As [`partition`]; gives the transfers.
fn divide(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<Vec<Pair>, CompileError> {
    let first = graph.iter().next().map_or(0, |(_, node)| node.device);
    if graph.iter().all(|(_, node)| node.device == first) {
        return Ok(Vec::new());
    }
    colocate::colocate(graph)?;
    let mut frames = Frames::of(graph)?;
    let pairs = transfers::insert(graph, &mut frames, context)?;
    if context.transfers.delays_receives {
        schedule::delay_receives(graph, &pairs, |id| frames.of_node(id) == frames::ROOT, context)?;
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests;
