//! The slices of a lane one after the other, as fast as a loop over its columns.

use super::segment::Segment;
use std::collections::VecDeque;
use std::ops::Range;
use trace_model::layout::SEGMENT;
use trace_model::{Event, SliceColumns, SliceCursor, SliceId, SliceRef};

/// Indices of slices of a lane: of its cold slices, and of its resident ones, counted from the first resident one.
#[derive(Clone)]
pub(super) struct Indices {
    pub cold: Range<u32>,
    pub resident: Range<usize>,
}

impl Indices {
    /// Indices of a lane that has `n_cold` cold slices.
    pub fn new(indices: Range<u32>, n_cold: u32) -> Indices {
        let resident = |index: u32| index.saturating_sub(n_cold) as usize;
        let cold = indices.start.min(n_cold)..indices.end.min(n_cold);
        Indices { cold, resident: resident(indices.start)..resident(indices.end) }
    }
}

/// An iterator over slices of a lane. Damaged and missing ones are left out.
pub(super) struct LaneSlices<'a> {
    /// The lane's first slice, cold or resident.
    pub first: SliceId,
    /// The resident slices.
    pub segments: &'a VecDeque<Segment>,
    pub n_cold: usize,
    /// Reads the cold slices.
    pub cursor: Option<Box<dyn SliceCursor + 'a>>,
    /// The slices to come.
    pub indices: Indices,
}

impl LaneSlices<'_> {
    #[inline]
    fn next_cold(&mut self) -> Option<SliceRef> {
        let (first, cursor) = (self.first, self.cursor.as_mut()?);
        self.indices.cold.find_map(|index| Some(slice_ref(first, index, cursor.slice(u64::from(index))?)))
    }
}

impl Iterator for LaneSlices<'_> {
    type Item = SliceRef;

    #[inline]
    fn next(&mut self) -> Option<SliceRef> {
        if !self.indices.cold.is_empty()
            && let Some(slice) = self.next_cold()
        {
            return Some(slice);
        }
        let i = self.indices.resident.next()?;
        let slice = columns_at(self.segments, i)?.slice(i % SEGMENT)?;
        Some(slice_ref(self.first, (self.n_cold + i) as u32, slice))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let Indices { cold, resident } = &self.indices;
        (resident.len(), Some(resident.len() + cold.len()))
    }
}

/// The columns of the `i`-th resident slice.
#[inline]
pub(super) fn columns_at(segments: &VecDeque<Segment>, i: usize) -> Option<&SliceColumns> {
    segments.get(i / SEGMENT).map(|segment| &segment.slices)
}

/// The slice at `index` of the lane whose first slice is `first`.
#[inline]
pub(super) fn slice_ref(first: SliceId, index: u32, slice: Event) -> SliceRef {
    let id = SliceId { ordinal: first.ordinal + u64::from(index), ..first };
    SliceRef { id, event: Event { depth: id.lane as u8, ..slice } }
}
