//! Moves control flow to its data: a `Switch` to what it switches, an `Exit` to what leaves, `Enter` and `NextIteration` to their
//! first consumers. Afterwards no edge into or out of an iteration crosses devices but at an `Enter`'s input and an
//! `Exit`'s output, which are outside of the frame.

use crate::compile::CompileError;
use crate::compile::{Source, WorkGraph, WorkId};
use engine_core::ops::OpKind;

/// # Errors
/// Nodes wait for each other.
pub(super) fn colocate(graph: &mut WorkGraph) -> Result<(), CompileError> {
    let order = graph.order()?;
    let uses = graph.uses();
    for id in &order {
        if matches!(graph.kind(*id), OpKind::Switch | OpKind::Exit) {
            let data = graph.get(*id).and_then(|node| node.inputs.first()).and_then(|source: &Source| source.node());
            follow(graph, *id, data);
        }
    }
    // Backwards: an Enter may feed another one.
    for id in order.iter().rev() {
        if matches!(graph.kind(*id), OpKind::Enter | OpKind::NextIteration) {
            let consumer = uses.of_node(*id).iter().find(|used| used.edge.is_some()).map(|used| used.consumer);
            follow(graph, *id, consumer);
        }
    }
    Ok(())
}

fn follow(graph: &mut WorkGraph, id: WorkId, other: Option<WorkId>) {
    if let Some(device) = other.and_then(|other| graph.get(other)).map(|other| other.device)
        && let Some(node) = graph.get_mut(id)
    {
        node.device = device;
    }
}
