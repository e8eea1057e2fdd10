//! Flame graphs: samples added up by call stack.

use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{Category, NO_STACK, TrackId};
use trace_store::{Store, Track};

/// A function in the context of its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameNode {
    /// Index of its caller's node, `None` for the outermost.
    pub parent: Option<usize>,
    /// The number of callers, direct and indirect.
    pub depth: usize,
    /// The function's name.
    pub name: String,
    /// Samples in the function and its callees.
    pub total: u64,
    /// Samples in the function itself.
    pub own: u64,
}

/// The samples of some tracks (all where none is given) in `range`, ns from the origin. A node comes after its
/// caller's.
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

/// The samples of a track in a range: the time and the row of the stack.
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
        let mut at = None;
        let mut names = stack_names(store, stack);
        if names.is_empty() {
            names.push("(no stack)".to_owned());
        }
        for name in names {
            let depth = at.map_or(0, |parent: usize| self.nodes[parent].depth + 1);
            let nodes = &mut self.nodes;
            let node = *self.by_name.entry((at, name)).or_insert_with_key(|(parent, name)| {
                nodes.push(FlameNode { parent: *parent, depth, name: name.clone(), total: 0, own: 0 });
                nodes.len() - 1
            });
            self.nodes[node].total += n;
            at = Some(node);
        }
        if let Some(leaf) = at {
            self.nodes[leaf].own += n;
        }
    }
}

/// The functions of a stack, outermost first, the inlined ones too.
pub fn stack_names(store: &Store, stack: u32) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = stack;
    // A stack's row is larger than its caller's: a damaged trace must not make an endless loop.
    while let Some(row) = store.stacks().get(at as usize) {
        match store.frames().get(row.frame as usize) {
            Some(frame) if frame.functions.is_empty() => names.push(frame.name()),
            Some(frame) => names.extend(frame.functions.iter().rev().map(|f| f.name.clone())),
            None => {}
        }
        at = if row.parent < at { row.parent } else { NO_STACK };
    }
    names.reverse();
    names
}
