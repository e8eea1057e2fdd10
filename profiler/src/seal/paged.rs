//! A lane whose slices are on disk: the pyramid is mapped, the columns come by row group.

use super::group::Group;
use super::pager::Pager;
use super::sidecar::{LaneEntry, Piece, SegmentEntry};
use crate::lod::{Brief, Columns, LEAF, LEVELS, Leaf, Node, Nodes, Slices};
use crate::store::{Row, SEGMENT};
use std::ops::Range;
use std::sync::Arc;

/// The level whose nodes have as many slices as a block of [`far`](crate::far).
const BLOCK_LEVEL: usize = 4;
const _: () = assert!((LEAF << (2 * BLOCK_LEVEL)) as u64 == crate::far::BLOCK);

/// See the module's notes.
#[derive(Clone, Debug)]
pub(crate) struct PagedLane {
    pager: Arc<Pager>,
    entry: LaneEntry,
}

impl PagedLane {
    /// A lane by its row in the sidecar.
    pub(super) fn new(pager: &Arc<Pager>, entry: LaneEntry) -> PagedLane {
        PagedLane { pager: Arc::clone(pager), entry }
    }

    /// Number of slices.
    pub(crate) fn len(&self) -> usize {
        self.entry.n as usize
    }

    pub(crate) fn longest(&self) -> i64 {
        self.entry.longest
    }

    pub(crate) fn range(&self) -> Range<i64> {
        self.entry.start..self.entry.end
    }

    /// A look at the slices that reads from the disk what it needs.
    pub(crate) fn slices(&self) -> PagedSlices<'_> {
        self.look(Missing::Read)
    }

    /// A look at the slices that touch a view, which does not wait: what is missing is wished for, if all that the view
    /// shows fits into memory.
    pub(crate) fn slices_now(&self, view: &Range<i64>) -> PagedSlices<'_> {
        self.look(if self.pager.has_room_for(view) { Missing::Wish } else { Missing::Ignore })
    }

    /// A look at the slices that are in memory.
    pub(crate) fn slices_in_memory(&self) -> PagedSlices<'_> {
        self.look(Missing::Ignore)
    }

    fn look(&self, missing: Missing) -> PagedSlices<'_> {
        let sidecar = self.pager.sidecar();
        PagedSlices {
            lane: self,
            segments: sidecar.segments(&self.entry),
            pieces: sidecar.pieces(&self.entry),
            briefs: sidecar.briefs(&self.entry),
            missing,
            held: None,
        }
    }
}

/// What a look does about a row group that is on disk.
#[derive(Clone, Copy, Debug)]
enum Missing {
    Read,
    Wish,
    Ignore,
}

/// Slices of a paged lane; holds the row group that was used last.
pub(crate) struct PagedSlices<'a> {
    lane: &'a PagedLane,
    segments: &'a [SegmentEntry],
    pieces: &'a [Piece],
    /// All slices, of a sparse lane.
    briefs: Option<&'a [Brief]>,
    missing: Missing,
    held: Option<Held>,
}

/// The ordinals that a row group has of the lane, and the group where it is in memory.
struct Held {
    ordinals: Range<u64>,
    offset: u32,
    group: Option<Arc<Group>>,
}

impl<'a> PagedSlices<'a> {
    /// A slice; `None` past the end, where it is damaged, or is on disk and this look does not read.
    pub(crate) fn row(&mut self, ordinal: u64) -> Option<Row> {
        if self.held.as_ref().is_none_or(|held| !held.ordinals.contains(&ordinal)) {
            self.hold(ordinal)?;
        }
        let held = self.held.as_ref()?;
        held.group.as_ref()?.row((ordinal - held.ordinals.start) as usize + held.offset as usize)
    }

    fn hold(&mut self, ordinal: u64) -> Option<()> {
        let n = self.lane.entry.n;
        let i = self.pieces.partition_point(|piece| piece.first <= ordinal).checked_sub(1)?;
        let piece = self.pieces[i];
        let until = self.pieces.get(i + 1).map_or(n, |next| next.first);
        let ordinals = piece.first..until;
        if !ordinals.contains(&ordinal) {
            return None;
        }
        let pager = &self.lane.pager;
        let group = match self.missing {
            Missing::Read => pager.load(piece.group),
            Missing::Wish => pager.peek(piece.group, true),
            Missing::Ignore => pager.peek(piece.group, false),
        };
        self.held = Some(Held { ordinals, offset: piece.offset, group });
        Some(())
    }

    /// Slices that are in memory side by side.
    fn columns(&mut self, ordinals: &Range<u64>) -> Option<Columns<'_>> {
        if self.briefs.is_some() {
            return None;
        }
        if self.held.as_ref().is_none_or(|held| !held.ordinals.contains(&ordinals.start)) {
            self.hold(ordinals.start)?;
        }
        let held = self.held.as_ref().filter(|held| ordinals.end <= held.ordinals.end)?;
        let at = |ordinal: u64| (ordinal - held.ordinals.start) as usize + held.offset as usize;
        held.group.as_ref()?.columns(at(ordinals.start)..at(ordinals.end))
    }

    /// Start of the slice at `index`; from the pyramid where it is the first of a node with as many slices as a block has.
    pub(crate) fn block_start(&mut self, index: usize) -> Option<i64> {
        if self.briefs.is_none() && (index as u64).is_multiple_of(crate::far::BLOCK) {
            let segment = self.segments.get(index / SEGMENT)?;
            return Some(
                self.levels(index / SEGMENT, segment)[BLOCK_LEVEL]
                    .get(index % SEGMENT / crate::far::BLOCK as usize)?
                    .start,
            );
        }
        self.brief(index as u64).map(|slice| slice.start)
    }

    fn brief(&mut self, ordinal: u64) -> Option<Brief> {
        match self.briefs {
            Some(briefs) => briefs.get(ordinal as usize).copied(),
            None => self.row(ordinal).map(|row| row.brief()),
        }
    }

    /// The first slice that does not end before `time`, or end at it after having begun before it.
    pub(crate) fn first_touching(&mut self, time: i64) -> u32 {
        self.first(time, false, |slice| slice.end <= time && slice.start < time)
    }

    /// The first slice that starts at or after `time`.
    pub(crate) fn first_from(&mut self, time: i64) -> u32 {
        self.first(time, true, |slice| slice.start < time)
    }

    /// The first slice for which `before` does not hold: it must hold for a prefix, for all that end before `time`, and
    /// for none that starts at it or later. Where the slices that decide are on disk only: the end of a leaf, so that
    /// all that are asked for are inside.
    fn first(&mut self, time: i64, rounds_up: bool, before: impl Fn(&Brief) -> bool) -> u32 {
        let n = self.lane.entry.n;
        if let Some(briefs) = self.briefs {
            return briefs.partition_point(before) as u32;
        }
        let (from, to) = (self.leaf_by_end(time).min(n), self.leaf_by_start(time).min(n));
        for ordinal in from..to {
            match self.brief(ordinal) {
                Some(slice) if before(&slice) => {}
                Some(_) => return ordinal as u32,
                None => return if rounds_up { to } else { ordinal / LEAF as u64 * LEAF as u64 } as u32,
            }
        }
        to as u32
    }

    /// Ordinal of the first slice of the first leaf that does not end before `time`.
    fn leaf_by_end(&self, time: i64) -> u64 {
        let idx = self.segments.partition_point(|s| s.end < time);
        let Some(segment) = self.segments.get(idx) else { return self.lane.entry.n };
        let leaves = self.levels(idx, segment)[0];
        (idx * SEGMENT + leaves.partition_point(|leaf| leaf.end < time) * LEAF) as u64
    }

    /// Ordinal of the first slice of the first leaf that starts at `time` or later.
    fn leaf_by_start(&self, time: i64) -> u64 {
        let next = self.segments.partition_point(|s| s.start < time);
        let Some(idx) = next.checked_sub(1) else { return 0 };
        let leaves = self.levels(idx, &self.segments[idx])[0];
        (idx * SEGMENT + leaves.partition_point(|leaf| leaf.start < time) * LEAF) as u64
    }

    fn n_in(&self, segment: usize) -> usize {
        (self.lane.entry.n as usize - segment * SEGMENT).min(SEGMENT)
    }

    fn levels(&self, idx: usize, segment: &SegmentEntry) -> [Nodes<'a>; LEVELS] {
        self.lane.pager.sidecar().levels(segment, self.n_in(idx))
    }

    /// A segment, to walk through.
    pub(crate) fn segment(&mut self, idx: usize) -> Option<PagedSegment<'_, 'a>> {
        let levels = self.levels(idx, self.segments.get(idx)?);
        Some(PagedSegment { first: (idx * SEGMENT) as u64, n: self.n_in(idx), levels, slices: self })
    }
}

/// A segment of a paged lane.
pub(crate) struct PagedSegment<'s, 'a> {
    first: u64,
    n: usize,
    levels: [Nodes<'a>; LEVELS],
    slices: &'s mut PagedSlices<'a>,
}

impl Slices for PagedSegment<'_, '_> {
    fn len(&self) -> usize {
        self.n
    }

    #[inline]
    fn node(&self, level: usize, i: usize) -> Option<Node> {
        self.levels[level].get(i)
    }

    fn side_by_side(&mut self, range: Range<usize>, see: impl FnOnce(Columns<'_>)) -> bool {
        let ordinals = self.first + range.start as u64..self.first + range.end as u64;
        self.slices.columns(&ordinals).map(see).is_some()
    }

    fn leaf(&mut self, range: Range<usize>, see: impl FnOnce(Columns<'_>)) -> bool {
        let ordinals = self.first + range.start as u64..self.first + range.end as u64;
        if let Some(columns) = self.slices.columns(&ordinals) {
            see(columns);
            return true;
        }
        let Some(leaf) = Leaf::of(ordinals.map(|ordinal| self.slices.brief(ordinal))) else { return false };
        see(leaf.columns());
        true
    }
}
