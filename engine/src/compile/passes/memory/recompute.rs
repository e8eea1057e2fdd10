//! Recomputation: a value that is made in the forward part and waits for the backward part is dropped, and made again
//! where it is needed, if that is cheap and what it is made of is still there. Several values made of one may be made again
//! even if that one must be kept for it: then it is held instead of all of them.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::estimate::{Lives, writes_in_place};
use crate::compile::CompileError;
use crate::compile::{Source, WorkGraph, WorkId, WorkNode};

/// A value to make again.
struct Candidate {
    id: WorkId,
    bytes: usize,
    /// Its uses after the peak.
    late: SmallVec<[WorkId; 4]>,
    /// What its second node waits for, so that it does not run too early.
    after: WorkId,
    /// The input's memory that must be kept longer for it.
    kept: Option<usize>,
}

/// Doubles nodes until about `needed` bytes less are held at the order's peak; gives their number.
pub(super) fn once(
    graph: &mut WorkGraph,
    lives: &Lives,
    order: &[WorkId],
    needed: usize,
    is_conditional: &[bool],
) -> Result<usize, CompileError> {
    let peak = lives.walk(graph, order).at;
    let mut position = vec![u32::MAX; graph.n_ids()];
    order.iter().enumerate().for_each(|(i, id)| position[id.index()] = i as u32);
    let uses = graph.uses();
    let last_use = last_uses(graph, lives, &position);
    let mut candidates: Vec<Candidate> = Vec::new();
    for &id in &order[..peak.min(order.len())] {
        let Some(node) = graph.get(id).filter(|node| is_cheap(node) && !is_conditional[id.index()]) else { continue };
        let late = uses.of_node(id).iter().filter(|one| position[one.consumer.index()] > peak as u32);
        let late: SmallVec<[(WorkId, u32); 4]> = late.filter_map(|one| Some((one.consumer, one.edge?.1))).collect();
        let is_late = |port: &u32| late.iter().any(|(_, of)| of == port);
        let ports = (0..node.outputs().len() as u32).filter(is_late);
        let bytes = ports.map(|port| lives.bytes(lives.port(id, port))).sum();
        let mut late: SmallVec<[WorkId; 4]> = late.iter().map(|(consumer, _)| *consumer).collect();
        late.sort_unstable_by_key(|id| position[id.index()]);
        late.dedup();
        let Some(first) = late.first().copied() else { continue };
        let Ok(kept) = kept(lives, node, &last_use, position[first.index()]) else { continue };
        let movable = !uses.is_wanted(id) && late.iter().all(|id| !is_conditional[id.index()]);
        let after = trigger(graph, &position, id, first).filter(|after| position[after.index()] >= peak as u32);
        if let (true, Some(after)) = (movable && bytes > 0, after) {
            candidates.push(Candidate { id, bytes, late, after, kept });
        }
    }
    let mut n = 0;
    let mut saved = 0;
    for group in groups(lives, candidates) {
        if saved >= needed {
            break;
        }
        saved += group.gain;
        n += group.members.len();
        group.members.iter().for_each(|candidate| double(graph, candidate));
    }
    Ok(n)
}

/// The memory that must be kept until position `until` to make a node again, `None` where all is there anyway; an error where
/// it is more than one value.
fn kept(lives: &Lives, node: &WorkNode, last_use: &[u32], until: u32) -> Result<Option<usize>, ()> {
    let mut kept = None;
    for owner in node.inputs.iter().filter_map(|source| lives.owner_of(*source)) {
        // What costs nothing is there.
        let lasts = lives.bytes(owner) == 0 || last_use[owner] >= until;
        match kept {
            _ if lasts => {}
            None => kept = Some(owner),
            Some(other) if other == owner => {}
            Some(_) => return Err(()),
        }
    }
    Ok(kept)
}

/// Values that are worth making again together.
struct Group {
    gain: usize,
    members: Vec<Candidate>,
}

/// Candidates by what must be kept for them, the most worthwhile first.
fn groups(lives: &Lives, candidates: Vec<Candidate>) -> Vec<Group> {
    let mut by_kept: FxHashMap<usize, Vec<Candidate>> = FxHashMap::default();
    let mut groups = Vec::new();
    for candidate in candidates {
        match candidate.kept {
            None => groups.push(Group { gain: candidate.bytes, members: vec![candidate] }),
            Some(owner) => by_kept.entry(owner).or_default().push(candidate),
        }
    }
    for (owner, members) in by_kept {
        let bytes: usize = members.iter().map(|candidate| candidate.bytes).sum();
        if let Some(gain) = bytes.checked_sub(lives.bytes(owner)).filter(|gain| *gain > 0) {
            groups.push(Group { gain, members });
        }
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.gain), group.members[0].id));
    groups
}

/// Ops that take little time for what they give.
fn is_cheap(node: &WorkNode) -> bool {
    let moves = matches!(node.op(), "Cast" | "BroadcastTo" | "Fill" | "ZerosLike" | "OnesLike" | "Transpose" | "Tile");
    (node.outputs().len() == 1 || node.op() == "_FusedElementwise")
        && !node.is_stateful()
        && node.control_inputs.is_empty()
        && (moves || writes_in_place(node.op()) || matches!(node.op(), "OneHot" | "Softmax" | "SelectV2" | "Select"))
}

/// The position of the last use of each owner's memory.
fn last_uses(graph: &WorkGraph, lives: &Lives, position: &[u32]) -> Vec<u32> {
    let mut last = vec![0; lives.n_uses().len()];
    for (id, node) in graph.iter() {
        for owner in node.inputs.iter().filter_map(|source| lives.owner_of(*source)) {
            last[owner] = last[owner].max(position[id.index()]);
        }
    }
    for owner in graph.fetches.iter().filter_map(|source| lives.owner_of(*source)) {
        last[owner] = u32::MAX;
    }
    last
}

/// The last of the nodes that `consumer` waits for besides `value`.
fn trigger(graph: &WorkGraph, position: &[u32], value: WorkId, consumer: WorkId) -> Option<WorkId> {
    graph.get(consumer)?.before().filter(|before| *before != value).max_by_key(|before| position[before.index()])
}

/// Makes a value again for its late uses.
fn double(graph: &mut WorkGraph, candidate: &Candidate) {
    let Some(node) = graph.get(candidate.id) else { return };
    let name = graph.free_name(&format!("{}/recomputed", node.name()));
    let mut def = (*node.def).clone();
    def.name = name;
    let second = WorkNode {
        def: std::sync::Arc::new(def),
        inputs: node.inputs.clone(),
        control_inputs: SmallVec::from_slice(&[candidate.after]),
        origin: None,
        device: node.device,
    };
    let second = graph.add(second);
    for late in &candidate.late {
        if let Some(consumer) = graph.get_mut(*late) {
            for input in &mut consumer.inputs {
                if let Source::Port(id, port) = *input
                    && id == candidate.id
                {
                    *input = Source::Port(second, port);
                }
            }
        }
    }
}
