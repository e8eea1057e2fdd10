//! Lanes whose slices are not in memory: on disk, or in another process.

use crate::event::Event;
use crate::lod::Merge;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Range;

/// Slices of a lane that come from elsewhere when they are asked for. Indices count from its first slice.
pub trait ColdLane: Debug + Send + Sync {
    /// Number of slices.
    fn n_slices(&self) -> usize;

    /// How many slices the lane had before its first.
    fn evicted(&self) -> u64 {
        0
    }

    /// Upper bound of the slices' durations, ns.
    fn longest_ns(&self) -> i64;

    /// From the first slice's start to the last one's end.
    fn range(&self) -> Range<i64>;

    /// A cursor that reads from disk what it needs, and requests what another process has.
    fn cursor(&self) -> Box<dyn SliceCursor + '_>;

    /// A cursor over what is in memory now.
    fn cursor_in_memory(&self) -> Box<dyn SliceCursor + '_>;

    /// Feeds what touches a view to `merge`, without waiting; what is missing is requested.
    fn walk(&self, view: &Range<i64>, merge: &mut Merge<'_>);

    /// Feeds the slices with these indices to `merge`, and waits for the disk; none where they are in another process.
    fn walk_waiting(&self, indices: Range<u32>, merge: &mut Merge<'_>);

    /// Whether they are in another process, for which nobody waits.
    fn is_remote(&self) -> bool {
        false
    }

    /// Start of the slice at `index`, without reading from the disk where it is the first of a block of [`BLOCK`](crate::layout::BLOCK)
    /// slices.
    fn start_of(&self, index: usize) -> Option<i64>;

    /// The blocks of slices that touch a view and are in another process.
    fn remote_blocks(&self, _view: &Range<i64>) -> Range<u64> {
        0..0
    }

    /// Whether all of a block is in memory; it is requested if not.
    fn has_block(&self, _block: u64) -> bool {
        true
    }
}

/// A cursor over the slices of a [`ColdLane`]; it holds on to what it used last.
pub trait SliceCursor {
    /// The slice at `index`; `None` past the end, where it is damaged, and where it cannot be had now.
    fn slice(&mut self, index: u64) -> Option<Event>;

    /// Appends the slices of a range with their indices; leaves out those that [`SliceCursor::slice`] does not have.
    fn slices(&mut self, indices: Range<u32>, out: &mut VecDeque<(u32, Event)>) {
        out.extend(indices.filter_map(|index| Some((index, self.slice(u64::from(index))?))));
    }

    /// The first slice that does not end before `time`, or end at it after having begun before it. Where the slices that decide
    /// cannot be had: one before it.
    fn first_touching(&mut self, time: i64) -> u32;

    /// The first slice that starts at or after `time`. Where the slices that decide cannot be had: one after it.
    fn first_from(&mut self, time: i64) -> u32;
}
