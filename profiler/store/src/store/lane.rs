//! A lane: slices of one track that do not overlap, in columns.
//!
//! Slices are stored in segments of [`SEGMENT`] slices, each with its own columns and its own level-of-detail pyramid.
//! So an append never moves existing slices, and the oldest can be evicted a segment at a time. The slices of a sealed
//! or remote trace are [*cold*](ColdLane): they are loaded on demand. A lane has first its cold slices, then its
//! resident ones.
//!
//! Invariants, on which the level of detail and the analyses rely:
//! * `start[i] <= end[i] <= start[i + 1]`: in order, never overlapping;
//! * all resident segments but the last are full;
//! * an *index* counts from the oldest retained slice and moves when slices are evicted; an *ordinal* counts
//!   from the first slice ever and is stable ([`SliceId`]).

use super::lane_slices::{Indices, LaneSlices, columns_at, slice_ref};
use super::segment::Segment;
use std::collections::VecDeque;
use std::ops::Range;
use trace_model::layout::{BLOCK, SEGMENT};
use trace_model::lod::{Span, SpanMerger, collect_spans, feed_spans, pixel_ns};
use trace_model::{ColdLane, Event, SiteInfo, SliceColumns, SliceCursor, SliceDetails, SliceHeader, SliceId, SliceRef};

/// Slices that do not overlap, in order of time.
#[derive(Debug, Default)]
pub struct Lane {
    track: u32,
    lane: u32,
    /// Slices that are loaded on demand.
    cold: Option<Box<dyn ColdLane>>,
    segments: VecDeque<Segment>,
    /// Number of evicted slices, which is the ordinal of the slice at index 0.
    evicted: u64,
    /// Duration of the longest slice ever appended.
    longest_ns: i64,
    /// End of the last slice ever appended.
    last_end: Option<i64>,
}

impl Lane {
    pub(crate) fn new(track: u32, lane: u32) -> Lane {
        Lane { track, lane, ..Lane::default() }
    }

    /// A lane of a sealed or remote trace.
    pub(crate) fn from_cold(track: u32, lane: u32, cold: Box<dyn ColdLane>) -> Lane {
        let (longest_ns, last_end, evicted) = (cold.longest_ns(), Some(cold.range().end), cold.evicted());
        Lane { track, lane, longest_ns, last_end, evicted, cold: Some(cold), ..Lane::default() }
    }

    /// Number of retained slices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n_cold() + self.segments.back().map_or(0, |last| (self.segments.len() - 1) * SEGMENT + last.len())
    }

    fn n_cold(&self) -> usize {
        self.cold.as_ref().map_or(0, |cold| cold.n_slices())
    }

    /// The cold slices.
    pub(super) fn cold(&self) -> Option<&dyn ColdLane> {
        self.cold.as_deref()
    }

    fn cursor(&self) -> Option<Box<dyn SliceCursor + '_>> {
        self.cold.as_ref().map(|cold| cold.cursor())
    }

    /// Whether the lane has no slices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of slices that were evicted to stay within the budget.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Duration of the longest slice that the lane ever had, ns; an upper bound for a remote lane.
    #[must_use]
    pub fn longest_ns(&self) -> i64 {
        self.longest_ns
    }

    /// The range from the first slice's start to the last slice's end; `None` without slices.
    #[must_use]
    pub fn range(&self) -> Option<Range<i64>> {
        let cold = self.cold.as_ref().map(|cold| cold.range());
        let first = self.segments.front().and_then(|s| s.slices.start.first().copied());
        let last = self.segments.back().and_then(|s| s.slices.end.last().copied());
        Some(cold.as_ref().map(|c| c.start).or(first)?..last.or(cold.map(|c| c.end))?)
    }

    /// The slice at `index`; `None` past the end. A slice on disk is read with its row group (about 10 ms), unless that
    /// is cached; `None` if it is damaged, or in another process and not fetched yet.
    #[must_use]
    pub fn slice(&self, index: u32) -> Option<SliceRef> {
        let slice = match index.checked_sub(self.n_cold() as u32) {
            Some(i) => self.resident(i as usize)?,
            None => self.cold.as_ref()?.cursor().slice(u64::from(index))?,
        };
        Some(self.slice_ref(index, slice))
    }

    /// As [`Lane::slice`], but `None` for a slice that is not in memory.
    #[must_use]
    pub fn slice_in_memory(&self, index: u32) -> Option<SliceRef> {
        match &self.cold {
            Some(cold) if (index as usize) < cold.n_slices() => {
                Some(self.slice_ref(index, cold.cursor_in_memory().slice(u64::from(index))?))
            }
            _ => self.slice(index),
        }
    }

    fn slice_ref(&self, index: u32, slice: Event) -> SliceRef {
        slice_ref(self.first_id(), index, slice)
    }

    /// The identity of the slice at index 0.
    fn first_id(&self) -> SliceId {
        SliceId { track: self.track, lane: self.lane, ordinal: self.evicted }
    }

    /// The index of a slice; `None` if it was evicted or is in another lane.
    #[must_use]
    pub fn index_of(&self, id: SliceId) -> Option<u32> {
        if (id.track, id.lane) != (self.track, self.lane) {
            return None;
        }
        let index = id.ordinal.checked_sub(self.evicted)?;
        (index < self.len() as u64).then_some(index as u32)
    }

    /// Indices of the slices that touch the half-open `view`: `start < view.end` and (`end > view.start` or
    /// `start == view.start`). An empty view touches nothing. May read from disk, as [`Lane::slice`].
    #[must_use]
    pub fn touching(&self, view: &Range<i64>) -> Range<u32> {
        self.touching_with(view, self.cursor().as_deref_mut())
    }

    fn touching_with(&self, view: &Range<i64>, cursor: Option<&mut (dyn SliceCursor + '_)>) -> Range<u32> {
        if view.start >= view.end {
            return 0..0;
        }
        let n_cold = self.n_cold() as u32;
        let resident = self.resident_touching(view);
        let (first, last) = cursor.map_or((0, 0), |c| (c.first_touching(view.start), c.first_from(view.end)));
        let first = if first < n_cold { first } else { n_cold + resident.start };
        let last = if last < n_cold { last } else { n_cold + resident.end };
        first..last.max(first)
    }

    /// As [`Lane::touching`] for the resident slices; indices count from the first resident one.
    fn resident_touching(&self, view: &Range<i64>) -> Range<u32> {
        let first = self.partition_point(|slices, i| slices.end[i] <= view.start && slices.start[i] < view.start);
        let last = self.partition_point(|slices, i| slices.start[i] < view.end);
        first..last.max(first)
    }

    /// Index among the resident slices of the first for which `is_before` is false. `is_before` must hold for a prefix.
    fn partition_point(&self, is_before: impl Fn(&SliceColumns, usize) -> bool) -> u32 {
        let segment_idx = self.segments.partition_point(|s| s.len() > 0 && is_before(&s.slices, s.len() - 1));
        let Some(segment) = self.segments.get(segment_idx) else {
            return (self.len() - self.n_cold()) as u32;
        };
        let (mut lo, mut hi) = (0, segment.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            if is_before(&segment.slices, mid) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        (segment_idx * SEGMENT + lo) as u32
    }

    /// The slices that touch the half-open `view`, in order. Slices on disk are read a row group at a time, and evicted
    /// from memory again; a caller that iterates over several lanes of a long range splits it with
    /// [`Store::parts`](super::Store::parts), so that each row group is read once. Missing slices of a remote trace are
    /// left out and requested: check [`Store::residency`](super::Store::residency) first.
    pub fn slices(&self, view: &Range<i64>) -> impl Iterator<Item = SliceRef> + '_ {
        let mut cursor = self.cursor();
        let touching = self.touching_with(view, cursor.as_deref_mut());
        self.iter(touching, cursor)
    }

    /// Passes the slices that touch the half-open `view` to `take`: as [`Lane::slices`], but in half the time, as none
    /// is copied.
    pub fn visit(&self, view: &Range<i64>, mut take: impl FnMut(&SliceRef)) {
        let mut cursor = self.cursor();
        let touching = self.touching_with(view, cursor.as_deref_mut());
        let Indices { cold, resident } = Indices::new(touching, self.n_cold() as u32);
        let first = self.first_id();
        let mut visit = |columns: &SliceColumns, rows: Range<usize>, index: usize| {
            for (slice, index) in rows.filter_map(|row| columns.slice(row)).zip(index as u32..) {
                take(&slice_ref(first, index, slice));
            }
        };
        let mut index = cold.start as usize;
        while let Some(cursor) = cursor.as_mut().filter(|_| index < cold.end as usize) {
            let Some((columns, rows)) = cursor.rows(index as u64) else {
                index += 1;
                continue;
            };
            let n = rows.len().min(cold.end as usize - index);
            visit(columns, rows.start..rows.start + n, index);
            index += n.max(1);
        }
        for part in segment_parts(resident) {
            if let Some(columns) = columns_at(&self.segments, part.start) {
                let first = part.start % SEGMENT;
                visit(columns, first..first + part.len(), self.n_cold() + part.start);
            }
        }
    }

    /// The slices with these indices.
    pub(crate) fn slices_at(&self, indices: Range<u32>) -> impl Iterator<Item = SliceRef> + '_ {
        self.iter(indices, self.cursor())
    }

    fn iter<'a>(&'a self, indices: Range<u32>, cursor: Option<Box<dyn SliceCursor + 'a>>) -> LaneSlices<'a> {
        let (first, n_cold) = (self.first_id(), self.n_cold());
        LaneSlices { first, segments: &self.segments, n_cold, cursor, indices: Indices::new(indices, n_cold as u32) }
    }

    fn resident(&self, i: usize) -> Option<Event> {
        columns_at(&self.segments, i)?.slice(i % SEGMENT)
    }

    /// The last slice that starts before `time`.
    #[must_use]
    pub fn last_before(&self, time: i64) -> Option<SliceRef> {
        self.slice(self.touching(&(i64::MIN..time)).end.checked_sub(1)?)
    }

    /// Appends the spans to draw for the half-open `view` on `px` pixels: see [`lod`](trace_model::lod).
    pub fn spans(&self, view: Range<i64>, px: usize, out: &mut Vec<Span>) {
        collect_spans(pixel_ns(&view, px), out, |merger| {
            if view.start < view.end {
                if let Some(cold) = &self.cold {
                    cold.feed_spans(&view, merger);
                }
                self.feed_resident_spans(self.resident_touching(&view), merger);
            }
        });
    }

    /// Appends the slices that begin in a range of time, as spans of at most `pixel_ns`. Returns the index of the first
    /// one, and the slice before it if that slice reaches into the range. Waits for the disk; appends nothing for a
    /// remote lane.
    pub(crate) fn spans_beginning_in(
        &self,
        range: &Range<i64>,
        pixel_ns: i64,
        out: &mut Vec<Span>,
    ) -> (u32, Option<SliceRef>) {
        if self.cold.as_ref().is_some_and(|cold| cold.is_remote()) {
            return (0, None);
        }
        let touching = self.touching(range);
        let previous = self.slices_at(touching.clone()).take_while(|slice| slice.start < range.start).last();
        let first = previous.and_then(|slice| self.index_of(slice.id)).map_or(touching.start, |index| index + 1);
        collect_spans(pixel_ns, out, |merger| {
            let n_cold = self.n_cold() as u32;
            if let Some(cold) = &self.cold {
                cold.feed_spans_blocking(first.min(n_cold)..touching.end.min(n_cold), merger);
            }
            self.feed_resident_spans(first.max(n_cold) - n_cold..touching.end.max(n_cold) - n_cold, merger);
        });
        (first, previous)
    }

    /// Feeds resident slices to `merger`; indices count from the first resident one.
    fn feed_resident_spans(&self, indices: Range<u32>, merger: &mut SpanMerger<'_>) {
        let n_cold = self.n_cold();
        for part in segment_parts(indices.start as usize..indices.end as usize) {
            let base = part.start / SEGMENT * SEGMENT;
            let mut segment = &self.segments[base / SEGMENT];
            feed_spans(&mut segment, (n_cold + base) as u32, part.start - base..part.end - base, merger);
        }
    }

    /// Start of the first retained slice of each block of [`BLOCK`] ordinals, from block `from` on.
    pub(crate) fn block_starts(&self, from: u64) -> impl Iterator<Item = i64> + '_ {
        let end = self.evicted + self.len() as u64;
        let firsts = (from..end.div_ceil(BLOCK)).map(|block| (block * BLOCK).max(self.evicted) - self.evicted);
        firsts.filter_map(|index| self.start_of(index as usize))
    }

    fn start_of(&self, index: usize) -> Option<i64> {
        match index.checked_sub(self.n_cold()) {
            Some(i) => self.segments.get(i / SEGMENT)?.slices.start.get(i % SEGMENT).copied(),
            None => self.cold.as_ref()?.start_of(index),
        }
    }

    /// End of the last slice: the earliest time at which the next one may start.
    pub(super) fn free_from(&self) -> i64 {
        self.last_end.unwrap_or(i64::MIN)
    }

    /// Appends a slice that starts at or after [`Lane::free_from`]; returns its identity.
    pub(crate) fn push(&mut self, slice: &Event, sites: &[SiteInfo]) -> SliceId {
        debug_assert!(slice.start >= self.free_from() && slice.end >= slice.start);
        if self.segments.back().is_none_or(|s| s.len() == SEGMENT) {
            // A lane that filled a segment is likely to fill the next, which is allocated in full at once.
            let capacity = if self.segments.is_empty() { 0 } else { SEGMENT };
            if self.segments.is_empty() {
                self.segments.reserve_exact(1);
            }
            self.segments.push_back(Segment::with_capacity(capacity));
        }
        let ordinal = self.evicted + self.len() as u64;
        self.longest_ns = self.longest_ns.max(slice.dur());
        self.last_end = Some(slice.end);
        if let Some(segment) = self.segments.back_mut() {
            segment.push(SliceHeader::from_event(slice, sites), SliceDetails::from_event(slice));
        }
        SliceId { track: self.track, lane: self.lane, ordinal }
    }

    /// Evicts the cold slices, then full segments, while at least `keep` slices stay in memory. Returns the number of
    /// evicted slices.
    pub(crate) fn keep_last(&mut self, keep: usize) -> u64 {
        let evicted_before = self.evicted;
        while self.segments.len() > 1 && self.len() - self.n_cold() - SEGMENT >= keep {
            self.evicted += self.cold.take().map_or(0, |cold| cold.n_slices() as u64);
            self.segments.pop_front();
            self.evicted += SEGMENT as u64;
        }
        self.evicted - evicted_before
    }

    /// Passes all resident slices to `take`, and evicts them.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(SliceRef)) {
        let n_cold = self.n_cold() as u32;
        let n = self.len() as u32 - n_cold;
        (0..n).filter_map(|i| Some(self.slice_ref(n_cold + i, self.resident(i as usize)?))).for_each(&mut take);
        self.evicted += u64::from(n);
        // One segment keeps its capacity for the slices that follow.
        self.segments.truncate(1);
        self.segments.iter_mut().for_each(Segment::clear);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.segments.iter().map(|s| s.slices.bytes() + s.pyramid.bytes()).sum()
    }

    pub(crate) fn lod_bytes(&self) -> usize {
        self.segments.iter().map(|s| s.pyramid.bytes()).sum()
    }
}

/// Splits a range of indices at the boundaries of segments.
pub(crate) fn segment_parts(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut from = range.start;
    std::iter::from_fn(move || {
        let to = ((from / SEGMENT + 1) * SEGMENT).min(range.end);
        let part = (from < range.end).then_some(from..to);
        from = to;
        part
    })
}
