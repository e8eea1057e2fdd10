//! The slices of a lane one after the other, as fast as a loop over its columns.

use super::Lane;
use std::ops::Range;
use trace_model::layout::SEGMENT;
use trace_model::{SliceColumns, SliceCursor, SliceRef};

/// An iterator over slices of a lane. Damaged and missing ones are left out.
pub(super) struct LaneSlices<'a> {
    lane: &'a Lane,
    cursor: Option<Box<dyn SliceCursor + 'a>>,
    /// The cold slices to come.
    cold: Range<u32>,
    /// The resident slices to come; their indices count from the first resident one.
    resident: Range<usize>,
    n_cold: usize,
    /// The columns that the next resident slice is in.
    columns: Option<&'a SliceColumns>,
}

impl<'a> LaneSlices<'a> {
    /// The slices with these indices.
    pub fn new(lane: &'a Lane, indices: Range<u32>, cursor: Option<Box<dyn SliceCursor + 'a>>) -> LaneSlices<'a> {
        let (cold, resident) = lane.split(indices);
        LaneSlices { lane, cursor, cold, columns: lane.columns_at(resident.start), resident, n_cold: lane.n_cold() }
    }

    #[inline]
    fn next_cold(&mut self) -> Option<SliceRef> {
        let cursor = self.cursor.as_mut()?;
        let lane = self.lane;
        self.cold.find_map(|index| Some(lane.slice_ref(index, cursor.slice(u64::from(index))?)))
    }
}

impl Iterator for LaneSlices<'_> {
    type Item = SliceRef;

    #[inline]
    fn next(&mut self) -> Option<SliceRef> {
        if !self.cold.is_empty()
            && let Some(slice) = self.next_cold()
        {
            return Some(slice);
        }
        let i = self.resident.next()?;
        if i.is_multiple_of(SEGMENT) {
            self.columns = self.lane.columns_at(i);
        }
        Some(self.lane.slice_ref((self.n_cold + i) as u32, self.columns?.slice(i % SEGMENT)?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.resident.len(), Some(self.resident.len() + self.cold.len()))
    }
}
