//! Flame graphs: numbers of samples by call stack.

use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{Category, NO_STACK, TrackId};
use trace_store::{Store, Track};

/// A function in the context of its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameNode {
    /// Index of the caller's node, `None` for an outermost function.
    pub parent: Option<usize>,
    /// The number of callers, direct and indirect.
    pub depth: usize,
    /// The function's name.
    pub name: String,
    /// Samples in the function and its callees.
    pub total: u64,
    /// Samples in the function itself.
    pub self_samples: u64,
}

/// The flame graph of the samples of some tracks (of all if `tracks` is empty) in `range`, ns from the origin. A node
/// comes after its caller's node.
#[must_use]
pub fn flame(store: &Store, tracks: &[TrackId], range: Range<i64>) -> Vec<FlameNode> {
    let mut by_stack: FxHashMap<u32, u64> = FxHashMap::default();
    for track in store.tracks().iter().filter(|t| tracks.is_empty() || tracks.contains(&t.id)) {
        samples(store, track, &range).for_each(|(_, stack)| *by_stack.entry(stack).or_default() += 1);
    }
    let mut stacks: Vec<(u32, u64)> = by_stack.into_iter().collect();
    stacks.sort_unstable();
    let mut tree = Tree::default();
    for (stack, n) in stacks {
        tree.add(store, stack, n);
    }
    tree.nodes
}

/// Returns the samples of a track in a range: time and row of the stack.
pub(crate) fn samples<'a>(
    store: &'a Store,
    track: &'a Track,
    range: &Range<i64>,
) -> impl Iterator<Item = (i64, u32)> + use<'a> {
    let range = range.clone();
    let is_sample = |site: u32| store.sites().get(site as usize).is_some_and(|s| s.category == Category::Sample);
    let inside = track.instants.iter().filter(move |i| range.contains(&i.time) && is_sample(i.site));
    inside.map(|i| (i.time, i.arg as u32))
}

#[derive(Default)]
struct Tree {
    nodes: Vec<FlameNode>,
    by_name: FxHashMap<(Option<usize>, String), usize>,
}

impl Tree {
    fn add(&mut self, store: &Store, stack: u32, n: u64) {
        let mut parent = None;
        let mut names = stack_names(store, stack);
        if names.is_empty() {
            names.push("(no stack)".to_owned());
        }
        for name in names {
            let depth = parent.map_or(0, |parent: usize| self.nodes[parent].depth + 1);
            let nodes = &mut self.nodes;
            let node = *self.by_name.entry((parent, name)).or_insert_with_key(|(parent, name)| {
                nodes.push(FlameNode { parent: *parent, depth, name: name.clone(), total: 0, self_samples: 0 });
                nodes.len() - 1
            });
            self.nodes[node].total += n;
            parent = Some(node);
        }
        if let Some(leaf) = parent {
            self.nodes[leaf].self_samples += n;
        }
    }
}

/// Returns the functions of a stack, including inlined ones, outermost first.
pub fn stack_names(store: &Store, stack: u32) -> Vec<String> {
    let mut names = Vec::new();
    let mut current = stack;
    // The row of a stack is larger than the row of its caller. The check below ends the loop in a damaged trace.
    while let Some(row) = store.stacks().get(current as usize) {
        match store.frames().get(row.frame as usize) {
            Some(frame) if frame.functions.is_empty() => names.push(frame.name()),
            Some(frame) => names.extend(frame.functions.iter().rev().map(|f| f.name.clone())),
            None => {}
        }
        current = if row.parent < current { row.parent } else { NO_STACK };
    }
    names.reverse();
    names
}
