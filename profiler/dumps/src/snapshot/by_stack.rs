//! Bytes by the place in the program that allocated them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{
    lifetimes::Allocation,
    model::{Block, BlockState, Snapshot},
};
use crate::stacks::{FrameId, StackId, Stacks};

/// What a stack allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackBytes {
    /// The stack.
    pub stack: StackId,
    /// As the program asked for them.
    pub bytes: u64,
    /// How many allocations.
    pub count: u64,
}

/// What a frame allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBytes {
    /// The frame; `None` for allocations without a stack.
    pub frame: Option<FrameId>,
    /// As the program asked for them.
    pub bytes: u64,
    /// How many allocations.
    pub count: u64,
}

/// Sums of allocations by stack, the largest first: of all, of those live at an event ([`super::live_at`]), of a peak.
pub fn by_stack<'a>(allocations: impl IntoIterator<Item = &'a Allocation>) -> Vec<StackBytes> {
    sums(allocations.into_iter().map(|one| (one.stack, one.size)))
}

/// The live blocks at the time of the snapshot by stack, the largest sums first: all devices, without the trace.
pub fn live_blocks(snapshot: &Snapshot) -> Vec<StackBytes> {
    let blocks = snapshot.devices.iter().flat_map(|device| &device.blocks);
    let live = blocks.filter(|block: &&Block| block.state == BlockState::Allocated);
    sums(live.map(|block| (block.stack, block.requested)))
}

fn sums(sizes: impl Iterator<Item = (StackId, u64)>) -> Vec<StackBytes> {
    let mut sums: Vec<StackBytes> = Vec::new();
    for (stack, size) in sizes {
        // Stacks are numbered without gaps.
        let number = stack.0 as usize;
        if sums.len() <= number {
            let next = sums.len() as u32;
            sums.extend((next..=stack.0).map(|id| StackBytes { stack: StackId(id), bytes: 0, count: 0 }));
        }
        let sum = &mut sums[number];
        (sum.bytes, sum.count) = (sum.bytes.saturating_add(size), sum.count + 1);
    }
    sums.retain(|sum| sum.count > 0);
    sums.sort_by_key(|sum| Reverse(sum.bytes));
    sums
}

/// The same sums by innermost frame of the user's code ([`Stacks::user_frame`]), the largest first.
pub fn by_user_frame(stacks: &Stacks, sums: &[StackBytes]) -> Vec<FrameBytes> {
    let mut frames: BTreeMap<Option<FrameId>, (u64, u64)> = BTreeMap::new();
    for sum in sums {
        let (bytes, count) = frames.entry(stacks.user_frame(sum.stack)).or_default();
        (*bytes, *count) = (bytes.saturating_add(sum.bytes), *count + sum.count);
    }
    let mut frames: Vec<FrameBytes> =
        frames.into_iter().map(|(frame, (bytes, count))| FrameBytes { frame, bytes, count }).collect();
    frames.sort_by_key(|sum| Reverse(sum.bytes));
    frames
}
