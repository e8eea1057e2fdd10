//! A lane: slices of one track that do not overlap, in columns.
//!
//! Slices are kept in segments of [`SEGMENT`] slices, each with its own columns and its own level-of-detail
//! pyramid. So an append never moves what is there, and the oldest can be given up a segment at a time.
//! Of a sealed trace the slices are *paged*: the pyramid is mapped, the columns are on disk and come when somebody
//! asks ([`PagedLane`]); of a distant trace both come then ([`FarLane`]). A lane is its paged slices, then its resident ones.
//!
//! Invariants, which the level of detail and the analyses build on:
//! * `start[i] <= end[i] <= start[i + 1]`: in order, never overlapping;
//! * all resident segments but the last are full;
//! * an *index* counts from the oldest retained slice and moves when slices are given up; an *ordinal* counts
//!   from the first slice ever and is for keeping ([`SliceId`]).

use super::paged::{Look, Paged};
use super::site::Site;
use super::{SliceId, Store};
use crate::far::{BLOCK, FarLane};
use crate::lod::{Brief, Columns, LEAF, Merge, Node, Pyramid, Slices, Span};
use crate::seal::PagedLane;
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
    /// As its store keeps it.
    pub(crate) fn row(&self, store: &Store) -> Row {
        let SliceRef { start, end, site, node, correlation, arg, args, .. } = *self;
        Row { start, end, site: Site::of(store.sites(), site), node, correlation, arg, args }
    }

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
    pub site: Site,
    pub node: u32,
    pub correlation: u32,
    pub arg: u64,
    pub args: u32,
}

impl Row {
    /// What drawing needs of it.
    pub(crate) fn brief(&self) -> Brief {
        Brief { start: self.start, end: self.end, site: self.site, node: self.node }
    }
}

/// Up to [`SEGMENT`] slices, a structure of arrays.
#[derive(Debug, Default)]
struct Segment {
    start: Vec<i64>,
    end: Vec<i64>,
    site: Vec<Site>,
    node: Vec<u32>,
    correlation: Vec<u32>,
    arg: Vec<u64>,
    args: Vec<u32>,
    pyramid: Pyramid,
}

impl Segment {
    fn len(&self) -> usize {
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
        let n = self.len();
        if n.is_multiple_of(LEAF) {
            let leaf = n - LEAF..n;
            let (start, end) = (&self.start[leaf.clone()], &self.end[leaf.clone()]);
            self.pyramid.push(&Columns { start, end, site: &self.site[leaf.clone()], node: &self.node[leaf] });
        }
    }

    /// Forgets its slices, but not the room.
    fn clear(&mut self) {
        let Segment { start, end, site, node, correlation, arg, args, pyramid } = self;
        [start, end].into_iter().for_each(Vec::clear);
        [node, correlation, args].into_iter().for_each(Vec::clear);
        site.clear();
        arg.clear();
        *pyramid = Pyramid::default();
    }

    fn row(&self, i: usize) -> Option<Row> {
        Some(Row {
            start: *self.start.get(i)?,
            end: self.end[i],
            site: self.site[i],
            node: self.node[i],
            correlation: self.correlation[i],
            arg: self.arg[i],
            args: self.args[i],
        })
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

impl Slices for &Segment {
    fn len(&self) -> usize {
        self.start.len()
    }

    #[inline]
    fn node(&self, level: usize, i: usize) -> Option<Node> {
        self.pyramid.level(level).get(i).copied()
    }

    fn leaf(&mut self, range: Range<usize>, see: impl FnOnce(Columns<'_>)) -> bool {
        self.side_by_side(range, see)
    }

    fn side_by_side(&mut self, range: Range<usize>, see: impl FnOnce(Columns<'_>)) -> bool {
        let (start, end) = (&self.start[range.clone()], &self.end[range.clone()]);
        see(Columns { start, end, site: &self.site[range.clone()], node: &self.node[range] });
        true
    }
}

/// Slices that do not overlap, in order of time.
#[derive(Debug, Default)]
pub struct Lane {
    track: u32,
    lane: u32,
    /// The first slices, where they are not in memory.
    paged: Option<Paged>,
    segments: VecDeque<Segment>,
    /// Ordinal of the slice at index 0.
    evicted: u64,
    /// Longest slice ever appended, ns.
    longest: i64,
    /// End of the last slice ever appended.
    until: Option<i64>,
}

impl Lane {
    pub(crate) fn new(track: u32, lane: u32) -> Lane {
        Lane { track, lane, ..Lane::default() }
    }

    /// The lane of a sealed trace.
    pub(crate) fn of_paged(track: u32, lane: u32, paged: PagedLane) -> Lane {
        Lane { track, lane, ..Lane::default() }.with(Paged::Disk(paged))
    }

    /// The lane of a distant trace.
    pub(crate) fn of_far(track: u32, lane: u32, far: FarLane) -> Lane {
        Lane { track, lane, evicted: far.evicted(), ..Lane::default() }.with(Paged::Far(far))
    }

    fn with(self, paged: Paged) -> Lane {
        Lane { longest: paged.longest(), until: Some(paged.range().end), paged: Some(paged), ..self }
    }

    /// Number of retained slices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n_paged() + self.segments.back().map_or(0, |last| (self.segments.len() - 1) * SEGMENT + last.len())
    }

    fn n_paged(&self) -> usize {
        self.paged.as_ref().map_or(0, Paged::len)
    }

    /// Whether it has no slice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of slices that were given up to stay in the memory budget.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The longest slice that the lane ever had, ns; of a distant trace no slice is longer.
    #[must_use]
    pub fn longest_ns(&self) -> i64 {
        self.longest
    }

    /// From the first slice's start to the last one's end; `None` without slices.
    #[must_use]
    pub fn range(&self) -> Option<Range<i64>> {
        let paged = self.paged.as_ref().map(Paged::range);
        let first = self.segments.front().and_then(|s| s.start.first().copied());
        let last = self.segments.back().and_then(|s| s.end.last().copied());
        Some(paged.as_ref().map(|p| p.start).or(first)?..last.or(paged.map(|p| p.end))?)
    }

    /// The slice at `index`; `None` past the end. One that is on disk is read with its neighbours (about 10 ms), unless
    /// it was lately; `None` too where it is damaged there.
    #[must_use]
    pub fn slice(&self, index: u32) -> Option<SliceRef> {
        let row = match index.checked_sub(self.n_paged() as u32) {
            Some(i) => self.segments.get(i as usize / SEGMENT)?.row(i as usize % SEGMENT)?,
            None => self.paged.as_ref()?.slices().row(u64::from(index))?,
        };
        Some(self.slice_ref(index, row))
    }

    /// As [`Lane::slice`], but `None` for one that is not in memory.
    #[must_use]
    pub fn slice_now(&self, index: u32) -> Option<SliceRef> {
        match &self.paged {
            Some(paged) if (index as usize) < paged.len() => {
                Some(self.slice_ref(index, paged.slices_in_memory().row(u64::from(index))?))
            }
            _ => self.slice(index),
        }
    }

    fn slice_ref(&self, index: u32, row: Row) -> SliceRef {
        let Row { start, end, site, node, correlation, arg, args } = row;
        let site = site.row();
        let id = SliceId { track: self.track, lane: self.lane, ordinal: self.evicted + u64::from(index) };
        SliceRef { id, start, end, site, node, correlation, arg, args }
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
    /// `start == view.start`). An empty view touches nothing. May read from disk, as [`Lane::slice`].
    #[must_use]
    pub fn touching(&self, view: &Range<i64>) -> Range<u32> {
        self.touching_with(view, &mut self.paged.as_ref().map(|p| p.slices()))
    }

    fn touching_with(&self, view: &Range<i64>, paged: &mut Option<Look<'_>>) -> Range<u32> {
        if view.start >= view.end {
            return 0..0;
        }
        let n_paged = self.n_paged() as u32;
        let first = paged.as_mut().map_or(0, |p| p.first_touching(view.start));
        let first = if first < n_paged {
            first
        } else {
            n_paged + self.partition(|segment, i| segment.end[i] <= view.start && segment.start[i] < view.start)
        };
        let last = paged.as_mut().map_or(0, |p| p.first_from(view.end));
        let last =
            if last < n_paged { last } else { n_paged + self.partition(|segment, i| segment.start[i] < view.end) };
        first..last.max(first)
    }

    /// Index among the resident slices of the first for which `before` does not hold; it must hold for a prefix.
    fn partition(&self, before: impl Fn(&Segment, usize) -> bool) -> u32 {
        let segment_idx = self.segments.partition_point(|s| s.len() > 0 && before(s, s.len() - 1));
        let Some(segment) = self.segments.get(segment_idx) else {
            return (self.len() - self.n_paged()) as u32;
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

    /// The slices that touch the half-open `view`, in order. Slices on disk are read a row group at a time and forgotten
    /// again; who goes through several lanes of a long range does so in the parts that
    /// [`Store::parts`](super::Store::parts) gives, so that each row group is read once. Slices that are far and not here are
    /// left out, and wished for: ask [`Store::at_hand`](super::Store::at_hand) first.
    pub fn slices(&self, view: &Range<i64>) -> impl DoubleEndedIterator<Item = SliceRef> + '_ {
        let mut paged = self.paged.as_ref().map(Paged::slices);
        let touching = self.touching_with(view, &mut paged);
        self.rows_of(touching, paged).map(|(index, row)| self.slice_ref(index, row))
    }

    /// The slices with these indices.
    pub(crate) fn slices_at(&self, indices: Range<u32>) -> impl DoubleEndedIterator<Item = SliceRef> + '_ {
        let rows = self.rows_of(indices, self.paged.as_ref().map(Paged::slices));
        rows.map(|(index, row)| self.slice_ref(index, row))
    }

    fn rows_of<'a>(
        &'a self,
        indices: Range<u32>,
        mut paged: Option<Look<'a>>,
    ) -> impl DoubleEndedIterator<Item = (u32, Row)> + 'a {
        let n_paged = self.n_paged() as u32;
        indices.filter_map(move |index| {
            let row = match (&mut paged, index.checked_sub(n_paged)) {
                (_, Some(i)) => self.segments.get(i as usize / SEGMENT)?.row(i as usize % SEGMENT),
                (Some(paged), None) => paged.row(u64::from(index)),
                (None, None) => None,
            };
            Some((index, row?))
        })
    }

    /// The last slice that starts before `time`.
    #[must_use]
    pub fn last_before(&self, time: i64) -> Option<SliceRef> {
        self.slice(self.touching(&(i64::MIN..time)).end.checked_sub(1)?)
    }

    /// The spans to draw for the half-open `view` on `px` pixels: see [`crate::lod`].
    pub fn spans(&self, view: Range<i64>, px: usize, out: &mut Vec<Span>) {
        crate::lod::spans(self, &view, px, out);
    }

    /// Feeds what touches the view to `merge`, without waiting for the disk.
    pub(crate) fn walk(&self, view: &Range<i64>, merge: &mut Merge<'_>) {
        let mut look = match &self.paged {
            Some(Paged::Far(far)) => return far.walk(view, merge),
            Some(Paged::Disk(disk)) => Some(Look::Disk(disk.slices_now(view))),
            None => None,
        };
        let touching = self.touching_with(view, &mut look);
        self.walk_in(touching, look, merge);
    }

    /// Appends the slices that begin in a range of time, as spans of at most `pixel` ns. Gives the index of the first of them, and the
    /// slice before it where that reaches into the range. Waits for the disk; knows nothing of far slices.
    pub(crate) fn begun_in(&self, range: &Range<i64>, pixel: i64, out: &mut Vec<Span>) -> (u32, Option<Brief>) {
        let mut look = match &self.paged {
            Some(Paged::Far(_)) => return (0, None),
            Some(Paged::Disk(disk)) => Some(Look::Disk(disk.slices())),
            None => None,
        };
        let touching = self.touching_with(range, &mut look);
        let rows = self.rows_of(touching.clone(), self.paged.as_ref().map(Paged::slices));
        let before = rows.take_while(|(_, row)| row.start < range.start).last();
        let first = before.map_or(touching.start, |(index, _)| index + 1);
        crate::lod::merged(pixel, out, |merge| self.walk_in(first..touching.end, look, merge));
        (first, before.map(|(_, row)| row.brief()))
    }

    fn walk_in(&self, touching: Range<u32>, look: Option<Look<'_>>, merge: &mut Merge<'_>) {
        let (from, to, n_paged) = (touching.start as usize, touching.end as usize, self.n_paged());
        if let Some(Look::Disk(mut paged)) = look {
            for part in parts(from.min(n_paged)..to.min(n_paged)) {
                let base = part.start / SEGMENT * SEGMENT;
                if let Some(mut segment) = paged.segment(base / SEGMENT) {
                    crate::lod::walk(&mut segment, base as u32, part.start - base..part.end - base, merge);
                }
            }
        }
        for part in parts(from.max(n_paged) - n_paged..to.max(n_paged) - n_paged) {
            let base = part.start / SEGMENT * SEGMENT;
            let mut segment = &self.segments[base / SEGMENT];
            crate::lod::walk(&mut segment, (n_paged + base) as u32, part.start - base..part.end - base, merge);
        }
    }

    /// Starts of the first slice that is kept of each block of [`far::BLOCK`](crate::far::BLOCK) ordinals, from a block on.
    pub(crate) fn block_starts(&self, from: u64) -> impl Iterator<Item = i64> + '_ {
        let end = self.evicted + self.len() as u64;
        let firsts = (from..end.div_ceil(BLOCK)).map(|block| (block * BLOCK).max(self.evicted) - self.evicted);
        firsts.filter_map(|index| self.start_of(index as usize))
    }

    /// Start of the slice at `index`, without reading from the disk where it is the first of a block.
    fn start_of(&self, index: usize) -> Option<i64> {
        match (index.checked_sub(self.n_paged()), &self.paged) {
            (Some(i), _) => self.segments.get(i / SEGMENT)?.start.get(i % SEGMENT).copied(),
            (None, Some(Paged::Disk(disk))) => disk.slices().block_start(index),
            (None, _) => None,
        }
    }

    /// Of a distant trace: what brings the slices.
    pub(crate) fn far(&self) -> Option<&FarLane> {
        match &self.paged {
            Some(Paged::Far(far)) => Some(far),
            _ => None,
        }
    }

    /// End of the last slice; where the next one may start.
    pub(crate) fn free_from(&self) -> i64 {
        self.until.unwrap_or(i64::MIN)
    }

    /// Appends a slice that starts at or after [`Lane::free_from`]; gives back its identity.
    pub(crate) fn push(&mut self, row: Row) -> SliceId {
        debug_assert!(row.start >= self.free_from() && row.end >= row.start);
        if self.segments.back().is_none_or(|s| s.len() == SEGMENT) {
            // A lane that filled a segment will fill the next: no growing by doubling there.
            let capacity = if self.segments.is_empty() { 0 } else { SEGMENT };
            if self.segments.is_empty() {
                self.segments.reserve_exact(1);
            }
            self.segments.push_back(Segment::with_capacity(capacity));
        }
        let ordinal = self.evicted + self.len() as u64;
        self.longest = self.longest.max(row.end - row.start);
        self.until = Some(row.end);
        if let Some(segment) = self.segments.back_mut() {
            segment.push(row);
        }
        SliceId { track: self.track, lane: self.lane, ordinal }
    }

    /// Gives up what is on disk, then whole segments, while at least `keep` slices stay in memory; gives back how many
    /// slices went.
    pub(crate) fn keep_last(&mut self, keep: usize) -> u64 {
        let before = self.evicted;
        while self.segments.len() > 1 && self.len() - self.n_paged() - SEGMENT >= keep {
            self.evicted += self.paged.take().map_or(0, |paged| paged.len() as u64);
            self.segments.pop_front();
            self.evicted += SEGMENT as u64;
        }
        self.evicted - before
    }

    /// Gives up all resident slices, each to `take`.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(Row)) {
        for segment in &self.segments {
            (0..segment.len()).filter_map(|i| segment.row(i)).for_each(&mut take);
            self.evicted += segment.len() as u64;
        }
        // More will come: the room stays.
        self.segments.truncate(1);
        self.segments.iter_mut().for_each(Segment::clear);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.segments.iter().map(Segment::bytes).sum()
    }

    pub(crate) fn lod_bytes(&self) -> usize {
        self.segments.iter().map(|s| s.pyramid.bytes()).sum()
    }
}

/// The parts of a range of indices that lie in one segment each.
fn parts(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut from = range.start;
    std::iter::from_fn(move || {
        let to = ((from / SEGMENT + 1) * SEGMENT).min(range.end);
        let part = (from < range.end).then_some(from..to);
        from = to;
        part
    })
}
