//! Dead branches: a switch whose predicate is a constant takes one way for good, and what lies on the other goes.
//!
//! The merges behind it have one input left and become identities. A switch in a loop, or one whose dead side a loop, a
//! fetch or a target needs, stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{PassContext, Redirects, Source, Uses, WorkGraph, WorkId};
use crate::compile::CompileError;
use engine_core::graph::{Attr, Node};
use engine_core::ops::{self, OpKind as K};
use engine_core::tensor::Tensor;

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, _: &PassContext<'_>) -> Result<usize, CompileError> {
    let mut n_changes = 0;
    let switches: Vec<WorkId> = graph.iter().filter(|(_, n)| n.kind() == K::Switch).map(|(id, _)| id).collect();
    for switch in switches {
        let Some(taken) = constant_predicate(graph, switch) else { continue };
        let uses = graph.uses();
        let Some(dead) = Dead::from(graph, &uses, switch, 1 - taken) else { continue };
        dead.apply(graph, &uses, switch, taken)?;
        n_changes += 1;
    }
    if n_changes > 0 {
        graph.sweep();
    }
    Ok(n_changes)
}

/// The output that a switch always takes.
fn constant_predicate(graph: &WorkGraph, switch: WorkId) -> Option<u32> {
    let predicate = *graph.get(switch)?.inputs.get(1)?;
    let is_pinned = graph.get(predicate.node()?)?.control_inputs.is_empty();
    let value = graph.constant(predicate).filter(|_| is_pinned)?;
    value.item::<bool>().ok().map(u32::from)
}

/// What is dead once a switch never takes one of its outputs.
#[derive(Default)]
struct Dead {
    nodes: FxHashMap<WorkId, ()>,
    /// Merges with one input left alive, and which.
    merges: FxHashMap<WorkId, usize>,
}

impl Dead {
    /// `None` where the dead part reaches what must stay.
    fn from(graph: &WorkGraph, uses: &Uses, switch: WorkId, port: u32) -> Option<Dead> {
        if uses.is_wanted(switch) {
            return None;
        }
        let mut dead = Dead::default();
        let mut gone: FxHashMap<WorkId, SmallVec<[u32; 4]>> = FxHashMap::default();
        let is_dead_use = |one: &super::Use| one.edge.is_some_and(|(_, p)| p == port);
        let mut stack: Vec<_> = uses.of_node(switch).iter().filter(|one| is_dead_use(one)).copied().collect();
        while let Some(one) = stack.pop() {
            let id = one.consumer;
            match graph.kind(id) {
                K::Merge => {
                    let input = one.edge?.0;
                    let inputs = gone.entry(id).or_default();
                    if !inputs.contains(&input) {
                        inputs.push(input);
                    }
                    if inputs.len() < graph.get(id)?.inputs.len() {
                        continue;
                    }
                }
                K::Enter | K::Exit | K::NextIteration | K::LoopCond | K::ControlTrigger => return None,
                // Somebody waits for its value.
                K::Send | K::Collective => return None,
                _ => {}
            }
            if uses.is_wanted(id) {
                return None;
            }
            if dead.nodes.insert(id, ()).is_none() {
                stack.extend_from_slice(uses.of_node(id));
            }
        }
        for (merge, inputs) in gone.iter().filter(|(merge, _)| !dead.nodes.contains_key(merge)) {
            let n = graph.get(*merge)?.inputs.len();
            let alive = (0..n).find(|i| !inputs.contains(&(*i as u32))).filter(|_| inputs.len() + 1 == n)?;
            let from = graph.get(*merge)?.inputs[alive].node();
            // A loop's merge, or a merge whose other side is a dead side too, of a switch not yet looked at.
            if from.is_some_and(|from| graph.is_back_edge(from, *merge)) || uses.is_wanted(*merge) {
                return None;
            }
            dead.merges.insert(*merge, alive);
        }
        Some(dead)
    }

    fn apply(self, graph: &mut WorkGraph, uses: &Uses, switch: WorkId, taken: u32) -> Result<(), CompileError> {
        let mut redirects = Redirects::default();
        for (merge, alive) in &self.merges {
            keep_one(graph, uses, *merge, *alive, &mut redirects)?;
        }
        if let Some(node) = graph.get(switch) {
            let data = node.inputs[0];
            let before: SmallVec<[WorkId; 2]> =
                data.node().into_iter().chain(node.control_inputs.iter().copied()).collect();
            redirects.port(switch, taken, data);
            redirects.control(switch, &before);
            // Who takes its data must still wait for what the switch waited for.
            let after = node.control_inputs.clone();
            for one in uses.of_node(switch).iter().filter(|one| !self.nodes.contains_key(&one.consumer)) {
                after.iter().for_each(|before| graph.add_control(one.consumer, *before));
            }
        }
        for id in self.nodes.keys() {
            graph.remove(*id);
        }
        graph.redirect(&redirects);
        graph.remove(switch);
        Ok(())
    }
}

/// Makes a merge the identity of its only live input.
fn keep_one(
    graph: &mut WorkGraph,
    uses: &Uses,
    merge: WorkId,
    alive: usize,
    redirects: &mut Redirects,
) -> Result<(), CompileError> {
    let (Some(node), Some(identity)) = (graph.get(merge).cloned(), ops::lookup("Identity")) else { return Ok(()) };
    let dtype = node.outputs()[0].dtype;
    let def = Node {
        op: identity,
        attrs: BTreeMap::from([("T".to_owned(), Attr::Type(dtype))]),
        inputs: node.def.inputs[..1].to_vec(),
        outputs: node.outputs()[..1].to_vec(),
        id: node.def.id,
        name: Arc::clone(node.name()),
        control_inputs: Vec::new(),
        device: Arc::clone(&node.def.device),
    };
    graph.redefine(merge, Arc::new(def));
    if let Some(n) = graph.get_mut(merge) {
        n.inputs = SmallVec::from_slice(&[node.inputs[alive]]);
    }
    if uses.of_node(merge).iter().any(|one| one.edge.is_some_and(|(_, port)| port == 1)) {
        let index = Tensor::scalar(alive as i32);
        let index = graph.add_constant(&node, 1, &index, SmallVec::from_slice(&[merge]))?;
        redirects.port(merge, 1, Source::from(index));
    }
    Ok(())
}
