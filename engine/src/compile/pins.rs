//! Where nodes with state are, for all steps of a session.

use std::sync::Arc;

use super::passes::PassContext;
use super::pipeline::PIPELINE;
use super::placement::{Pins, PlacementError, holds_state, place};
use super::{CompileError, Source, WorkGraph, WorkId, WorkNode};
use engine_core::graph::{Node, Nodes};

/// Places a whole graph and notes where its nodes with state are; those of `pins` stay where they are.
///
/// # Errors
/// Nodes that must be on one device ask for different ones, be they needed or not: as TensorFlow. Whatever else is wrong with
/// nodes that no step needs is no error of the steps that are asked for.
pub(super) fn pin(nodes: &Nodes, context: &PassContext<'_>) -> Result<Pins, CompileError> {
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
        Err(CompileError::Placement(error)) if matches!(*error, PlacementError::Requests { .. }) => {
            Err(CompileError::Placement(error))
        }
        Err(_) => Ok(pins),
    }
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
