//! An order in which values die early: of all nodes that could be next, the one that leaves the least behind.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::estimate::Lives;
use crate::compile::{WorkGraph, WorkId};

/// What a node leaves in memory; less is better, then less to take, then the order in which nodes were made.
type Key = (isize, usize, u32);

/// The order. Loops keep the order they have: their nodes wait for each other as in [`WorkGraph::order`].
pub(super) fn frugal(graph: &WorkGraph, lives: &Lives) -> Vec<WorkId> {
    let mut waits_for = vec![0u32; graph.n_ids()];
    for (id, node) in graph.iter() {
        waits_for[id.index()] = node.before().filter(|before| !graph.is_back_edge(*before, id)).count() as u32;
    }
    let uses = graph.uses();
    let mut left = lives.n_uses().to_vec();
    let key = |id: WorkId, left: &[u32]| -> Key {
        let (taken, freed) = graph.get(id).map_or((0, 0), |node| lives.change(id, node, left));
        (taken as isize - freed as isize, taken, id.0)
    };
    let mut ready = BinaryHeap::new();
    let mut keys = vec![None; graph.n_ids()];
    let mut order = Vec::with_capacity(graph.len());
    let offer = |id: WorkId, left: &[u32], ready: &mut BinaryHeap<Reverse<Key>>, keys: &mut [Option<Key>]| {
        let now = key(id, left);
        if keys[id.index()] != Some(now) {
            keys[id.index()] = Some(now);
            ready.push(Reverse(now));
        }
    };
    for (id, _) in graph.iter().filter(|(id, _)| waits_for[id.index()] == 0) {
        offer(id, &left, &mut ready, &mut keys);
    }
    while let Some(Reverse(next)) = ready.pop() {
        let id = WorkId(next.2);
        // What was offered again with another key, or ran, is stale.
        if keys[id.index()] != Some(next) {
            continue;
        }
        keys[id.index()] = None;
        waits_for[id.index()] = u32::MAX;
        order.push(id);
        let Some(node) = graph.get(id) else { continue };
        lives.use_up(node, &mut left);
        for one in uses.of_node(id).iter().filter(|one| !graph.is_back_edge(id, one.consumer)) {
            let count = &mut waits_for[one.consumer.index()];
            *count = count.saturating_sub(1);
            if *count == 0 {
                offer(one.consumer, &left, &mut ready, &mut keys);
            }
        }
        // Those for whom a value is now the last of its uses got cheaper.
        for from in node.inputs.iter().filter_map(|source| source.node()) {
            for one in uses.of_node(from).iter().take(64).filter(|one| waits_for[one.consumer.index()] == 0) {
                offer(one.consumer, &left, &mut ready, &mut keys);
            }
        }
    }
    order
}
