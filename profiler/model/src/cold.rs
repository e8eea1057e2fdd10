//! Lanes whose slices are not in memory: on disk, or in another process.

use crate::columns::SliceColumns;
use crate::event::Event;
use crate::lod::SpanMerger;
use std::fmt::Debug;
use std::ops::Range;

/// Slices of a lane that are loaded from disk or from another process on demand. Indices count from the first slice.
pub trait ColdLane: Debug + Send + Sync {
    /// Number of slices.
    fn n_slices(&self) -> usize;

    /// Number of evicted slices before the first one.
    fn evicted(&self) -> u64 {
        0
    }

    /// Upper bound of the slices' durations, ns.
    fn longest_ns(&self) -> i64;

    /// From the first slice's start to the last one's end.
    fn range(&self) -> Range<i64>;

    /// A cursor that reads slices from disk, and requests slices of another process.
    fn cursor(&self) -> Box<dyn SliceCursor + '_>;

    /// A cursor over the slices that are in memory now.
    fn cursor_in_memory(&self) -> Box<dyn SliceCursor + '_>;

    /// Feeds the slices that touch a view to `merger`, without waiting, and requests missing ones.
    fn feed_spans(&self, view: &Range<i64>, merger: &mut SpanMerger<'_>);

    /// Feeds the slices with these indices to `merger`, and waits for the disk; feeds none if the slices are in another
    /// process.
    fn feed_spans_blocking(&self, indices: Range<u32>, merger: &mut SpanMerger<'_>);

    /// Whether the slices are in another process; no method waits for such slices.
    fn is_remote(&self) -> bool {
        false
    }

    /// Start of the slice at `index`. Does not read from disk if the slice is the first of a block of
    /// [`BLOCK`](crate::layout::BLOCK) slices.
    fn start_of(&self, index: usize) -> Option<i64>;

    /// Numbers of the blocks that touch a view and are in another process.
    fn remote_blocks(&self, _view: &Range<i64>) -> Range<u64> {
        0..0
    }

    /// Whether a block is completely in memory; requests a missing one.
    fn has_block(&self, _block: u64) -> bool {
        true
    }
}

/// A cursor over the slices of a [`ColdLane`], which keeps the last block in memory.
pub trait SliceCursor {
    /// The columns that hold the slice at `index`, with the range of rows from this slice to the last of the lane's
    /// slices there; `None` past the end, and if the slice is damaged or missing now.
    fn rows(&mut self, index: u64) -> Option<(&SliceColumns, Range<usize>)>;

    /// The slice at `index`; `None` as for [`rows`](SliceCursor::rows).
    fn slice(&mut self, index: u64) -> Option<Event> {
        let (columns, rows) = self.rows(index)?;
        columns.slice(rows.start)
    }

    /// Index of the first slice that ends after `time`, or starts at `time`. If slices that decide this are missing, an
    /// earlier index.
    fn first_touching(&mut self, time: i64) -> u32;

    /// Index of the first slice that starts at or after `time`. If slices that decide this are missing, a later index.
    fn first_from(&mut self, time: i64) -> u32;
}
