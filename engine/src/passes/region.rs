//! What control flow does to a graph, as far as passes must know.

use super::{WorkGraph, WorkId};

/// Ops whose outputs are dead or live one by one, so that having run says nothing of a value.
pub fn is_switch(op: &str) -> bool {
    matches!(op, "Switch" | "RefSwitch" | "_SwitchN")
}

/// Ops that make up loops and conditionals, which passes leave alone unless they know better.
pub fn is_control_flow(op: &str) -> bool {
    is_switch(op)
        || matches!(op, "Merge" | "RefMerge" | "Enter" | "RefEnter" | "Exit" | "RefExit" | "NextIteration")
        || matches!(op, "RefNextIteration" | "LoopCond" | "ControlTrigger")
}

/// By number: whether a node may run never, or several times, in a step: it lies behind a switch, in a loop, or behind
/// a receive, which may receive a dead value.
pub fn conditional(graph: &WorkGraph) -> Vec<bool> {
    let mut is_conditional = vec![false; graph.n_ids()];
    let begins = |op: &str| is_switch(op) || matches!(op, "Enter" | "RefEnter") || op.contains("Recv");
    let mut stack: Vec<WorkId> = graph.iter().filter(|(_, n)| begins(n.op())).map(|(id, _)| id).collect();
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
