//! What must run for some fetches and targets, given some feeds (white paper section 4.2, Figure 6).

use rustc_hash::FxHashSet;

use super::PlanError;
use crate::graph::{Node, NodeId, Nodes, Output};

/// What a step is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Signature {
    /// Outputs whose values the caller gives.
    pub feeds: Vec<Output>,
    /// Outputs whose values the caller wants.
    pub fetches: Vec<Output>,
    /// Nodes that shall run.
    pub targets: Vec<NodeId>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    /// Its inputs are being visited.
    Open,
    Done,
}

/// The nodes that must run, each after what it waits for: found backwards from fetches and targets, stopping at
/// feeds.
///
/// # Errors
/// A placeholder that is not fed, or a cycle.
pub(crate) fn prune(nodes: &Nodes, signature: &Signature) -> Result<Vec<NodeId>, PlanError> {
    let fed: FxHashSet<Output> = signature.feeds.iter().copied().collect();
    let is_given = |id: &NodeId| {
        // Nothing is left to run of a placeholder that is fed.
        nodes.get(*id).is_some_and(|n| n.op.name == "Placeholder") && fed.contains(&Output::from(*id))
    };
    let wanted = signature.fetches.iter().filter(|f| !fed.contains(f)).map(|f| f.node);
    let targets = signature.targets.iter().filter(|id| !is_given(id));
    let wanted: Vec<NodeId> = wanted.chain(targets.copied()).collect();
    let mut marks = vec![Mark::New; nodes.len()];
    let mut order = Vec::new();
    // Depth first without recursion: graphs are deeper than stacks. A node is left when it comes up again.
    let mut stack: Vec<NodeId> = wanted.into_iter().rev().collect();
    while let Some(&id) = stack.last() {
        match marks[id.index()] {
            Mark::Done => {
                stack.pop();
            }
            Mark::Open => {
                marks[id.index()] = Mark::Done;
                order.push(id);
                stack.pop();
            }
            Mark::New => {
                let node = find(nodes, id)?;
                if node.op.name == "Placeholder" {
                    return Err(PlanError::not_fed(node));
                }
                marks[id.index()] = Mark::Open;
                let data = node.inputs.iter().filter(|input| !fed.contains(input)).map(|input| input.node);
                let control = node.control_inputs.iter().filter(|id| !is_given(id));
                for before in data.chain(control.copied()) {
                    match marks[before.index()] {
                        Mark::New => stack.push(before),
                        Mark::Open => return Err(PlanError::Cycle { node: node.name.to_string() }),
                        Mark::Done => {}
                    }
                }
            }
        }
    }
    Ok(order)
}

pub(super) fn find(nodes: &Nodes, id: NodeId) -> Result<&Node, PlanError> {
    nodes.get(id).map(|node| &**node).ok_or(PlanError::ForeignNode { id })
}
