//! A lane: slices of one track that do not overlap, in columns.
//!
//! Slices are kept in segments of [`SEGMENT`] slices, each with its own columns and its own level-of-detail
//! pyramid. So an append never moves what is there, and the oldest can be given up a segment at a time.
//!
//! Invariants, which the level of detail and the analyses build on:
//! * `start[i] <= end[i] <= start[i + 1]`: in order, never overlapping;
//! * all segments but the last are full;
//! * an *index* counts from the oldest retained slice and moves when slices are given up; an *ordinal* counts
//!   from the first slice ever and is for keeping ([`SliceId`]).

use super::SliceId;
use crate::lod::Pyramid;
use std::collections::VecDeque;
use std::ops::Range;

/// Slices per segment; the unit of giving up old ones.
pub const SEGMENT: usize = 1 << 14;

/// A slice, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRef {
    /// Its identity.
    pub id: SliceId,
    /// Begin, ns from the trace's origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// Row of [`Store::sites`](super::Store::sites).
    pub site: u32,
    /// Row of [`Store::nodes`](super::Store::nodes), or `u32::MAX`.
    pub node: u32,
    /// Meaning by category; for `op`: row of the node whose end made it ready, or `u32::MAX`.
    pub correlation: u32,
    /// Meaning by category; for `op`: step id << 32 | queue wait in ns.
    pub arg: u64,
    /// Row of [`Store::args`](super::Store::args), or `u32::MAX`.
    pub args: u32,
}

impl SliceRef {
    /// How long it lasted.
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}

/// What a lane stores of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub start: i64,
    pub end: i64,
    pub site: u32,
    pub node: u32,
    pub correlation: u32,
    pub arg: u64,
    pub args: u32,
}

/// Up to [`SEGMENT`] slices, a structure of arrays.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    pub(crate) start: Vec<i64>,
    pub(crate) end: Vec<i64>,
    site: Vec<u32>,
    node: Vec<u32>,
    correlation: Vec<u32>,
    arg: Vec<u64>,
    args: Vec<u32>,
    pub(crate) pyramid: Pyramid,
}

impl Segment {
    pub(crate) fn len(&self) -> usize {
        self.start.len()
    }

    fn with_capacity(n: usize) -> Segment {
        Segment {
            start: Vec::with_capacity(n),
            end: Vec::with_capacity(n),
            site: Vec::with_capacity(n),
            node: Vec::with_capacity(n),
            correlation: Vec::with_capacity(n),
            arg: Vec::with_capacity(n),
            args: Vec::with_capacity(n),
            pyramid: Pyramid::default(),
        }
    }

    fn push(&mut self, row: Row) {
        self.start.push(row.start);
        self.end.push(row.end);
        self.site.push(row.site);
        self.node.push(row.node);
        self.correlation.push(row.correlation);
        self.arg.push(row.arg);
        self.args.push(row.args);
        self.pyramid.appended(&self.start, &self.end);
    }

    fn bytes(&self) -> usize {
        self.start.capacity() * 8
            + self.end.capacity() * 8
            + self.site.capacity() * 4
            + self.node.capacity() * 4
            + self.correlation.capacity() * 4
            + self.arg.capacity() * 8
            + self.args.capacity() * 4
            + self.pyramid.bytes()
    }
}

/// Slices that do not overlap, in order of time.
#[derive(Debug, Default)]
pub struct Lane {
    track: u32,
    lane: u32,
    segments: VecDeque<Segment>,
    /// Ordinal of the slice at index 0.
    evicted: u64,
    /// Longest slice ever appended, ns.
    longest: i64,
}

impl Lane {
    pub(crate) fn new(track: u32, lane: u32) -> Lane {
        Lane { track, lane, ..Lane::default() }
    }

    /// Number of retained slices.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.segments.back() {
            Some(last) => (self.segments.len() - 1) * SEGMENT + last.len(),
            None => 0,
        }
    }

    /// Whether it has no slice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Number of slices that were given up to stay in the memory budget.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The longest slice that the lane ever had, ns.
    #[must_use]
    pub fn longest_ns(&self) -> i64 {
        self.longest
    }

    /// From the first slice's start to the last one's end; `None` without slices.
    #[must_use]
    pub fn range(&self) -> Option<Range<i64>> {
        Some(*self.segments.front()?.start.first()?..*self.segments.back()?.end.last()?)
    }

    /// The slice at `index`; `None` past the end.
    #[must_use]
    pub fn slice(&self, index: u32) -> Option<SliceRef> {
        let segment = self.segments.get(index as usize / SEGMENT)?;
        let i = index as usize % SEGMENT;
        Some(SliceRef {
            id: SliceId { track: self.track, lane: self.lane, ordinal: self.evicted + u64::from(index) },
            start: *segment.start.get(i)?,
            end: segment.end[i],
            site: segment.site[i],
            node: segment.node[i],
            correlation: segment.correlation[i],
            arg: segment.arg[i],
            args: segment.args[i],
        })
    }

    /// The present index of a slice; `None` when it was given up or is of another lane.
    #[must_use]
    pub fn index_of(&self, id: SliceId) -> Option<u32> {
        if (id.track, id.lane) != (self.track, self.lane) {
            return None;
        }
        let index = id.ordinal.checked_sub(self.evicted)?;
        (index < self.len() as u64).then_some(index as u32)
    }

    /// Indices of the slices that touch the half-open `view`: `start < view.end` and (`end > view.start` or
    /// `start == view.start`). An empty view touches nothing.
    #[must_use]
    pub fn touching(&self, view: &Range<i64>) -> Range<u32> {
        if view.start >= view.end {
            return 0..0;
        }
        let first = self.partition(|segment, i| segment.end[i] <= view.start && segment.start[i] < view.start);
        let last = self.partition(|segment, i| segment.start[i] < view.end);
        first..last.max(first)
    }

    /// Index of the first slice for which `before` does not hold; `before` must hold for a prefix.
    fn partition(&self, before: impl Fn(&Segment, usize) -> bool) -> u32 {
        let segment_idx = self.segments.partition_point(|s| s.len() > 0 && before(s, s.len() - 1));
        let Some(segment) = self.segments.get(segment_idx) else {
            return self.len() as u32;
        };
        let (mut lo, mut hi) = (0, segment.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            if before(segment, mid) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        (segment_idx * SEGMENT + lo) as u32
    }

    /// The slices that touch the half-open `view`, in order.
    pub fn slices(&self, view: &Range<i64>) -> impl DoubleEndedIterator<Item = SliceRef> + '_ {
        self.touching(view).filter_map(|i| self.slice(i))
    }

    /// The last slice that starts before `time`.
    #[must_use]
    pub fn last_before(&self, time: i64) -> Option<SliceRef> {
        let index = self.partition(|segment, i| segment.start[i] < time);
        self.slice(index.checked_sub(1)?)
    }

    /// The spans to draw for the half-open `view` on `px` pixels: see [`crate::lod`].
    pub fn spans(&self, view: Range<i64>, px: usize, out: &mut Vec<crate::Span>) {
        crate::lod::spans(self, &view, px, out);
    }

    pub(crate) fn segments(&self) -> &VecDeque<Segment> {
        &self.segments
    }

    /// End of the last slice; where the next one may start.
    pub(crate) fn free_from(&self) -> i64 {
        self.segments.back().and_then(|s| s.end.last().copied()).unwrap_or(i64::MIN)
    }

    /// Appends a slice that starts at or after [`Lane::free_from`]; gives back its identity.
    pub(crate) fn push(&mut self, row: Row) -> SliceId {
        debug_assert!(row.start >= self.free_from() && row.end >= row.start);
        if self.segments.back().is_none_or(|s| s.len() == SEGMENT) {
            // A lane that filled a segment will fill the next: no growing by doubling there.
            let capacity = if self.segments.is_empty() { 0 } else { SEGMENT };
            self.segments.push_back(Segment::with_capacity(capacity));
        }
        let ordinal = self.evicted + self.len() as u64;
        self.longest = self.longest.max(row.end - row.start);
        if let Some(segment) = self.segments.back_mut() {
            segment.push(row);
        }
        SliceId { track: self.track, lane: self.lane, ordinal }
    }

    /// Gives up whole segments while at least `keep` slices stay; gives back how many slices went.
    pub(crate) fn keep_last(&mut self, keep: usize) -> u64 {
        let before = self.evicted;
        while self.segments.len() > 1 && self.len() - SEGMENT >= keep {
            self.segments.pop_front();
            self.evicted += SEGMENT as u64;
        }
        self.evicted - before
    }

    pub(crate) fn bytes(&self) -> usize {
        self.segments.iter().map(Segment::bytes).sum()
    }

    pub(crate) fn lod_bytes(&self) -> usize {
        self.segments.iter().map(|s| s.pyramid.bytes()).sum()
    }
}
