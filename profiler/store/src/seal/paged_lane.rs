//! A lane whose slices are on disk: the pyramid is mapped, and the columns are loaded by row group.

use super::paged_group::PagedGroup;
use super::pager::Pager;
use super::sidecar::{LaneEntry, Piece, SegmentEntry};
use crate::store::segment_parts;
use std::ops::Range;
use std::sync::Arc;
use trace_model::layout::{BLOCK, SEGMENT};
use trace_model::lod::{Columns, LEAF, LEVELS, Leaf, Nodes, SliceSource, SpanMerger, feed_spans};
use trace_model::{ColdLane, SliceColumns, SliceCursor, SliceHeader};

/// The level whose nodes have as many slices as a block of rows.
const BLOCK_LEVEL: usize = 4;
const _: () = assert!((LEAF << (2 * BLOCK_LEVEL)) as u64 == BLOCK);

/// A lane of a sealed trace, by its entry in the sidecar.
#[derive(Clone, Debug)]
pub(super) struct PagedLane {
    pager: Arc<Pager>,
    entry: LaneEntry,
}

impl PagedLane {
    pub(super) fn new(pager: &Arc<Pager>, entry: LaneEntry) -> PagedLane {
        PagedLane { pager: Arc::clone(pager), entry }
    }

    fn cursor_with(&self, on_missing: OnMissing) -> PagedCursor<'_> {
        let sidecar = self.pager.sidecar();
        PagedCursor {
            lane: self,
            segments: sidecar.segments(&self.entry),
            pieces: sidecar.pieces(&self.entry),
            headers: sidecar.headers(&self.entry),
            on_missing,
            current: None,
        }
    }
}

impl ColdLane for PagedLane {
    fn n_slices(&self) -> usize {
        self.entry.n as usize
    }

    fn longest_ns(&self) -> i64 {
        self.entry.longest
    }

    fn range(&self) -> Range<i64> {
        self.entry.start..self.entry.end
    }

    fn cursor(&self) -> Box<dyn SliceCursor + '_> {
        Box::new(self.cursor_with(OnMissing::Read))
    }

    fn cursor_in_memory(&self) -> Box<dyn SliceCursor + '_> {
        Box::new(self.cursor_with(OnMissing::Ignore))
    }

    /// Requests missing row groups if all row groups of the view fit into memory together.
    fn feed_spans(&self, view: &Range<i64>, merger: &mut SpanMerger<'_>) {
        let on_missing = if self.pager.has_room_for(view) { OnMissing::Request } else { OnMissing::Ignore };
        let mut cursor = self.cursor_with(on_missing);
        let (first, last) = (cursor.first_touching(view.start), cursor.first_from(view.end));
        cursor.feed_spans(first..last, merger);
    }

    fn feed_spans_blocking(&self, indices: Range<u32>, merger: &mut SpanMerger<'_>) {
        self.cursor_with(OnMissing::Read).feed_spans(indices, merger);
    }

    fn start_of(&self, index: usize) -> Option<i64> {
        self.cursor_with(OnMissing::Read).start_of(index)
    }
}

/// The reaction of a cursor to a row group that is not in memory.
#[derive(Clone, Copy, Debug)]
enum OnMissing {
    /// Read the row group, and wait.
    Read,
    /// Request the row group, and continue without its slices.
    Request,
    /// Continue without the row group's slices.
    Ignore,
}

/// A cursor over a paged lane, with the row group that it used last.
struct PagedCursor<'a> {
    lane: &'a PagedLane,
    segments: &'a [SegmentEntry],
    pieces: &'a [Piece],
    /// All slices of a sparse lane; `None` for another lane.
    headers: Option<&'a [SliceHeader]>,
    on_missing: OnMissing,
    current: Option<CurrentGroup>,
}

/// The ordinals of the lane's slices in a row group, the row of the first, and the group if it is in memory.
struct CurrentGroup {
    ordinals: Range<u64>,
    offset: u32,
    group: Option<Arc<PagedGroup>>,
}

impl CurrentGroup {
    /// Returns the row of a slice in the group.
    fn row(&self, ordinal: u64) -> usize {
        (ordinal - self.ordinals.start) as usize + self.offset as usize
    }
}

impl<'a> PagedCursor<'a> {
    /// Returns the row group that has the slice with this ordinal.
    #[inline]
    fn group_with(&mut self, ordinal: u64) -> Option<&CurrentGroup> {
        if self.current.as_ref().is_none_or(|current| !current.ordinals.contains(&ordinal)) {
            self.current = Some(self.find_group(ordinal)?);
        }
        self.current.as_ref()
    }

    fn find_group(&self, ordinal: u64) -> Option<CurrentGroup> {
        let n = self.lane.entry.n;
        let i = self.pieces.partition_point(|piece| piece.first <= ordinal).checked_sub(1)?;
        let piece = self.pieces[i];
        let end = self.pieces.get(i + 1).map_or(n, |next| next.first);
        let ordinals = piece.first..end;
        if !ordinals.contains(&ordinal) {
            return None;
        }
        let pager = &self.lane.pager;
        let group = match self.on_missing {
            OnMissing::Read => pager.load(piece.group),
            OnMissing::Request => pager.peek(piece.group, true),
            OnMissing::Ignore => pager.peek(piece.group, false),
        };
        Some(CurrentGroup { ordinals, offset: piece.offset, group })
    }

    /// Returns the columns of these slices, if one row group in memory has all of them.
    fn columns(&mut self, ordinals: &Range<u64>) -> Option<Columns<'_>> {
        if self.headers.is_some() {
            return None;
        }
        let current = self.group_with(ordinals.start).filter(|current| ordinals.end <= current.ordinals.end)?;
        let group = current.group.as_ref()?;
        group.slices.columns(current.row(ordinals.start)..current.row(ordinals.end))
    }

    /// Start of the slice at `index`. At a multiple of [`BLOCK`] a node of the pyramid begins, so no slice is read.
    fn start_of(&mut self, index: usize) -> Option<i64> {
        if self.headers.is_none() && (index as u64).is_multiple_of(BLOCK) {
            let segment = self.segments.get(index / SEGMENT)?;
            return Some(
                self.levels(index / SEGMENT, segment)[BLOCK_LEVEL].get(index % SEGMENT / BLOCK as usize)?.start,
            );
        }
        self.header(index as u64).map(|slice| slice.start)
    }

    fn header(&mut self, ordinal: u64) -> Option<SliceHeader> {
        match self.headers {
            Some(headers) => headers.get(ordinal as usize).copied(),
            None => {
                let current = self.group_with(ordinal)?;
                current.group.as_ref()?.slices.header(current.row(ordinal))
            }
        }
    }

    /// Returns the first slice for which `is_before` is false. `is_before` must hold for a prefix of the lane: for all
    /// slices that end before `time`, for none that starts at `time` or later. If a slice that decides is not in
    /// memory, rounds up or down to a leaf's boundary, so that a range between two results lacks no slice.
    fn partition_point(&mut self, time: i64, rounds_up: bool, is_before: impl Fn(&SliceHeader) -> bool) -> u32 {
        let n = self.lane.entry.n;
        if let Some(headers) = self.headers {
            return headers.partition_point(is_before) as u32;
        }
        let (from, to) = (self.leaf_by_end(time).min(n), self.leaf_by_start(time).min(n));
        for ordinal in from..to {
            match self.header(ordinal) {
                Some(slice) if is_before(&slice) => {}
                Some(_) => return ordinal as u32,
                None => return if rounds_up { to } else { ordinal / LEAF as u64 * LEAF as u64 } as u32,
            }
        }
        to as u32
    }

    /// Returns the ordinal of the first slice of the first leaf that does not end before `time`.
    fn leaf_by_end(&self, time: i64) -> u64 {
        let idx = self.segments.partition_point(|s| s.end < time);
        let Some(segment) = self.segments.get(idx) else { return self.lane.entry.n };
        let leaves = self.levels(idx, segment)[0];
        (idx * SEGMENT + leaves.partition_point(|leaf| leaf.end < time) * LEAF) as u64
    }

    /// Returns the ordinal of the first slice of the first leaf that starts at `time` or later.
    fn leaf_by_start(&self, time: i64) -> u64 {
        let next = self.segments.partition_point(|s| s.start < time);
        let Some(idx) = next.checked_sub(1) else { return 0 };
        let leaves = self.levels(idx, &self.segments[idx])[0];
        (idx * SEGMENT + leaves.partition_point(|leaf| leaf.start < time) * LEAF) as u64
    }

    /// Number of slices in a segment.
    fn n_in_segment(&self, segment: usize) -> usize {
        (self.lane.entry.n as usize - segment * SEGMENT).min(SEGMENT)
    }

    fn levels(&self, idx: usize, segment: &SegmentEntry) -> [Nodes<'a>; LEVELS] {
        self.lane.pager.sidecar().levels(segment, self.n_in_segment(idx))
    }

    /// Feeds the slices with these indices to `merger`.
    fn feed_spans(&mut self, indices: Range<u32>, merger: &mut SpanMerger<'_>) {
        for part in segment_parts(indices.start as usize..indices.end as usize) {
            let (idx, base) = (part.start / SEGMENT, part.start / SEGMENT * SEGMENT);
            let Some(segment) = self.segments.get(idx) else { return };
            let (n_slices, levels) = (self.n_in_segment(idx), self.levels(idx, segment));
            let mut segment = PagedSegment { first_ordinal: base as u64, n_slices, levels, cursor: self };
            feed_spans(&mut segment, base as u32, part.start - base..part.end - base, merger);
        }
    }
}

impl SliceCursor for PagedCursor<'_> {
    #[inline]
    fn rows(&mut self, index: u64) -> Option<(&SliceColumns, Range<usize>)> {
        let current = self.group_with(index)?;
        let slices = &current.group.as_ref()?.slices;
        Some((slices, current.row(index)..current.row(current.ordinals.end)))
    }

    fn first_touching(&mut self, time: i64) -> u32 {
        self.partition_point(time, false, |slice| slice.end <= time && slice.start < time)
    }

    fn first_from(&mut self, time: i64) -> u32 {
        self.partition_point(time, true, |slice| slice.start < time)
    }
}

/// A segment of a paged lane.
struct PagedSegment<'s, 'a> {
    first_ordinal: u64,
    n_slices: usize,
    levels: [Nodes<'a>; LEVELS],
    cursor: &'s mut PagedCursor<'a>,
}

impl SliceSource for PagedSegment<'_, '_> {
    fn n_slices(&self) -> usize {
        self.n_slices
    }

    #[inline]
    fn nodes(&self, level: usize) -> Nodes<'_> {
        self.levels[level]
    }

    fn visit_columns(&mut self, range: Range<usize>, visit: impl FnOnce(Columns<'_>)) -> bool {
        let ordinals = self.first_ordinal + range.start as u64..self.first_ordinal + range.end as u64;
        self.cursor.columns(&ordinals).map(visit).is_some()
    }

    fn visit_leaf(&mut self, range: Range<usize>, visit: impl FnOnce(Columns<'_>)) -> bool {
        let ordinals = self.first_ordinal + range.start as u64..self.first_ordinal + range.end as u64;
        if let Some(columns) = self.cursor.columns(&ordinals) {
            visit(columns);
            return true;
        }
        let Some(leaf) = Leaf::from_slices(ordinals.map(|ordinal| self.cursor.header(ordinal))) else { return false };
        visit(leaf.columns());
        true
    }
}
