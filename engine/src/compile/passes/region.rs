//! What control flow does to a graph, as far as passes must know.

use super::{WorkGraph, WorkId};
use engine_core::ops::OpKind;

/// By number: whether a node may run never, or several times, in a step: it lies behind a switch, in a loop, or behind
/// a receive, which may receive a dead value.
pub fn conditional(graph: &WorkGraph) -> Vec<bool> {
    let mut is_conditional = vec![false; graph.n_ids()];
    let begins = |kind: OpKind| kind.is_switch() || matches!(kind, OpKind::Enter | OpKind::Recv | OpKind::Collective);
    let mut stack: Vec<WorkId> = graph.iter().filter(|(_, n)| begins(n.kind())).map(|(id, _)| id).collect();
    if stack.is_empty() {
        return is_conditional;
    }
    let uses = graph.uses();
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut is_conditional[id.index()], true) {
            stack.extend(uses.of_node(id).iter().map(|one| one.consumer));
        }
    }
    is_conditional
}
