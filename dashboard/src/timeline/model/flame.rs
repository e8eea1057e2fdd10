//! Flame graphs of a range: slices summed up by their nesting, and samples by call stack.

use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_analysis::flame::FlameNode;
use trace_model::SliceRef;
use trace_store::Store;

/// Slices that are summed up, at most.
pub const MAX_SLICES: usize = 2_000_000;
/// Levels that are shown, at most.
const MAX_DEPTH: usize = 64;

/// A box of a flame graph.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameBox {
    pub name: String,
    /// Nesting level, 0 for the outermost.
    pub depth: usize,
    /// Left edge as a share of the width of all outermost boxes, 0..1.
    pub start: f64,
    /// Width as a share of that width.
    pub width: f64,
    /// Total weight, including nested boxes: ns, or samples.
    pub total: u64,
    /// Self weight, without nested boxes.
    pub self_weight: u64,
    /// The number of slices; 0 for samples.
    pub count: u64,
}

#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    /// The row of each node, by the row of its parent and its site.
    by_key: FxHashMap<(u32, u32), u32>,
}

struct Node {
    name: String,
    parent: u32,
    depth: usize,
    total: u64,
    /// Weight of the node's children.
    nested: u64,
    count: u64,
}

const ROOT: u32 = u32::MAX;

/// The flame graph of a range's slices on all tracks for which `is_shown` returns true, and whether slices were left
/// out.
pub fn of_slices(store: &Store, range: &Range<i64>, is_shown: impl Fn(u32) -> bool) -> (Vec<FlameBox>, bool) {
    let mut tree = Tree::default();
    let mut budget = MAX_SLICES;
    for track in store.tracks().iter().filter(|t| is_shown(t.id.0)) {
        // Begin, end and tree node of the slices of the lane above.
        let mut above: Vec<(i64, i64, u32)> = Vec::new();
        for (lane_idx, lane) in track.lanes.iter().enumerate() {
            let mut current = Vec::new();
            let mut next_above = 0;
            for slice in lane.slices(range) {
                if budget == 0 {
                    return (boxes(tree.nodes), true);
                }
                budget -= 1;
                while above.get(next_above).is_some_and(|(_, end, _)| *end <= slice.start) {
                    next_above += 1;
                }
                let parent = above.get(next_above).filter(|(start, end, _)| *start <= slice.start && slice.end <= *end);
                if parent.is_none()
                    && lane_idx > 0
                    && !above.is_empty()
                    && above.get(next_above).is_some_and(|(s, ..)| *s < slice.end)
                {
                    // A slice that overlaps another has a lane of its own, and is outermost here.
                    current.push((slice.start, slice.end, tree.add(store, ROOT, &slice, range)));
                    continue;
                }
                let node = tree.add(store, parent.map_or(ROOT, |(_, _, node)| *node), &slice, range);
                current.push((slice.start, slice.end, node));
            }
            if !current.is_empty() {
                above = current;
            }
        }
    }
    (boxes(tree.nodes), false)
}

impl Tree {
    /// Adds a slice's time within `range` to its node; returns the node's row.
    fn add(&mut self, store: &Store, parent: u32, slice: &SliceRef, range: &Range<i64>) -> u32 {
        let depth = self.nodes.get(parent as usize).map_or(0, |p| p.depth + 1);
        let nodes = &mut self.nodes;
        let row = *self.by_key.entry((parent, slice.site)).or_insert_with(|| {
            let name = store.sites().get(slice.site as usize).map_or_else(|| "?".to_owned(), |s| s.name.clone());
            nodes.push(Node { name, parent, depth, total: 0, nested: 0, count: 0 });
            nodes.len() as u32 - 1
        });
        let ns = slice.end.min(range.end).saturating_sub(slice.start.max(range.start)).max(0) as u64;
        let node = &mut self.nodes[row as usize];
        node.total += ns;
        node.count += 1;
        if let Some(parent) = self.nodes.get_mut(parent as usize) {
            parent.nested += ns;
        }
        row
    }
}

/// The boxes of nodes; siblings are adjacent, the heaviest first.
fn boxes(nodes: Vec<Node>) -> Vec<FlameBox> {
    let weights: Vec<_> = nodes.iter().map(|n| (n.parent, n.depth, n.total)).collect();
    let starts = left_edges(&weights);
    let total: u64 = nodes.iter().filter(|n| n.parent == ROOT).map(|n| n.total).sum();
    let share = |weight: u64| weight as f64 / total.max(1) as f64;
    let out = nodes.into_iter().zip(starts).map(|(n, start)| FlameBox {
        start: share(start),
        width: share(n.total),
        total: n.total,
        self_weight: n.total.saturating_sub(n.nested),
        count: n.count,
        name: n.name,
        depth: n.depth,
    });
    out.filter(|b| b.depth < MAX_DEPTH && b.total > 0).collect()
}

/// The flame graph of a range's samples by call stack.
pub fn of_samples(store: &Store, range: &Range<i64>) -> Vec<FlameBox> {
    let to_node = |n: FlameNode| {
        let (parent, nested) = (n.parent.map_or(ROOT, |p| p as u32), n.total - n.self_samples);
        Node { name: n.name, parent, depth: n.depth, total: n.total, nested, count: 0 }
    };
    boxes(trace_analysis::flame(store, &[], range.clone()).into_iter().map(to_node).collect())
}

/// The left edge of each node, given its parent, depth and weight; siblings from the heaviest to the lightest.
fn left_edges(nodes: &[(u32, usize, u64)]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|i| (nodes[*i].1, nodes[*i].0, std::cmp::Reverse(nodes[*i].2), *i));
    let mut starts = vec![0; nodes.len()];
    // The left edge of the next child of each node; the last element is for the outermost nodes.
    let mut next = vec![0_u64; nodes.len() + 1];
    for i in order {
        let (parent, _, weight) = nodes[i];
        let slot = (parent as usize).min(nodes.len());
        starts[i] = next[slot];
        next[slot] += weight;
        next[i] = starts[i];
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;

    #[test]
    fn slices_add_up_by_what_they_are_nested_in() {
        let store = demo(3);
        let (boxes, is_cut) = of_slices(&store, &store.range(), |_| true);
        let find = |name: &str, depth: usize| boxes.iter().find(|b| b.name == name && b.depth == depth).unwrap();
        assert!(!is_cut);
        let product = find("MatMul", 0);
        assert_eq!((product.total, product.count), (3 * (50_000 + 13_000), 6));
        assert_eq!(product.self_weight, 3 * (50_000 + 13_000 - 10_000 - 5_000));
        let shard = find("MatMul", 1);
        assert_eq!((shard.total, shard.count), (3 * 15_000, 6));
        assert!(shard.start >= product.start && shard.start + shard.width <= product.start + product.width + 1e-9);
        let outermost: f64 = boxes.iter().filter(|b| b.depth == 0).map(|b| b.width).sum();
        assert!((outermost - 1.0).abs() < 1e-9);
        // Half of a slice counts half.
        let (boxes, _) = of_slices(&store, &(20_000..45_000), |track| track == 1);
        assert_eq!(boxes[0].total, 25_000);
        assert_eq!(of_slices(&Store::new(), &(0..1), |_| true), (Vec::new(), false));
    }

    #[test]
    fn siblings_are_adjacent() {
        let nodes = [(ROOT, 0, 10), (ROOT, 0, 30), (1, 1, 5), (1, 1, 20), (3, 2, 20)];
        assert_eq!(left_edges(&nodes), [30, 0, 20, 0, 0]);
    }
}
