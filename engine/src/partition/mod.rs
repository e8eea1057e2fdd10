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
mod frames;
mod parts;
pub mod schedule;
mod transfers;

use crate::passes::{PassContext, WorkGraph};
use crate::plan::PlanError;
use frames::Frames;
pub use parts::Part;
pub use transfers::Pair;

/// What can be chosen for transfers between devices.
#[derive(Debug, Clone)]
pub struct TransferOptions {
    /// Whether all `float` values travel as their upper 16 bits (section 5.5). A single edge is chosen with the attribute
    /// `_lossy_outputs` of the node that it comes from: a list of the ports whose values travel so.
    pub is_lossy: bool,
    /// Whether receives are delayed until their values are needed (section 5.2).
    pub delays_receives: bool,
}

impl Default for TransferOptions {
    fn default() -> TransferOptions {
        TransferOptions { is_lossy: false, delays_receives: true }
    }
}

/// Why a graph cannot be divided.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PartitionError {
    /// A loop on several devices has nothing that tells them whether it goes on.
    #[error("loop {frame} is on several devices and has no LoopCond")]
    NoCondition {
        /// The loop's frame.
        frame: String,
    },
    /// An edge goes from task to task without a transfer.
    #[error("node {node}: its inputs are in another task")]
    NotDivided {
        /// The node.
        node: String,
    },
}

/// The pass: replaces the edges between devices. Gives the number of transfers.
///
/// # Errors
/// A loop on several devices has no condition.
pub fn partition(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, PlanError> {
    let n_copies = boundary::insert(graph, context)?;
    Ok(divide(graph, context)?.len() + n_copies)
}

/// As [`partition`]; gives the transfers.
fn divide(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<Vec<Pair>, PlanError> {
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
