//! What changed between two snapshots.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{
    by_stack::{StackBytes, live_blocks},
    model::Snapshot,
};
use crate::stacks::Frame;

/// What a stack has live in two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackChange {
    /// What it has in the first one; its stack is one of that snapshot.
    pub before: Option<StackBytes>,
    /// What it has in the second one; its stack is one of that snapshot.
    pub after: Option<StackBytes>,
}

impl StackChange {
    /// How many bytes more the second snapshot has.
    pub fn bytes(&self) -> i64 {
        let bytes = |sum: &Option<StackBytes>| sum.map_or(0, |sum| sum.bytes as i64);
        bytes(&self.after).wrapping_sub(bytes(&self.before))
    }
}

/// The live blocks of two snapshots by stack, where they differ: what grew most first, what shrank most last. Stacks are the
/// same where their frames are.
pub fn difference(before: &Snapshot, after: &Snapshot) -> Vec<StackChange> {
    let mut changes: BTreeMap<Vec<Frame<'_>>, StackChange> = BTreeMap::new();
    for (snapshot, is_after) in [(before, false), (after, true)] {
        for sum in live_blocks(snapshot) {
            let stacks = &snapshot.stacks;
            let frames = stacks.frames(sum.stack).iter().map(|id| stacks.frame(*id)).collect();
            let change = changes.entry(frames).or_insert(StackChange { before: None, after: None });
            *(if is_after { &mut change.after } else { &mut change.before }) = Some(sum);
        }
    }
    let count = |sum: Option<StackBytes>| sum.map(|sum| (sum.bytes, sum.count));
    let mut changes: Vec<StackChange> = changes.into_values().collect();
    changes.retain(|change| count(change.before) != count(change.after));
    changes.sort_by_key(|change| Reverse(change.bytes()));
    changes
}
