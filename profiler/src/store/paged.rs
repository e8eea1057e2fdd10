//! The slices of a lane that are not in memory: on disk, or far away.

use super::lane::Row;
use crate::far::{FarLane, FarSlices};
use crate::seal::{PagedLane, PagedSlices};
use std::ops::Range;

/// Where they are.
#[derive(Debug)]
pub(super) enum Paged {
    /// In the files of a sealed trace.
    Disk(PagedLane),
    /// In another process.
    Far(FarLane),
}

/// A look at them, which holds what it used last.
pub(super) enum Look<'a> {
    Disk(PagedSlices<'a>),
    Far(FarSlices<'a>),
}

impl Paged {
    pub(super) fn len(&self) -> usize {
        match self {
            Paged::Disk(lane) => lane.len(),
            Paged::Far(lane) => lane.len(),
        }
    }

    pub(super) fn longest(&self) -> i64 {
        match self {
            Paged::Disk(lane) => lane.longest(),
            Paged::Far(lane) => lane.longest(),
        }
    }

    pub(super) fn range(&self) -> Range<i64> {
        match self {
            Paged::Disk(lane) => lane.range(),
            Paged::Far(lane) => lane.range(),
        }
    }

    /// A look that reads what it needs from the disk, and wishes for what is far.
    pub(super) fn slices(&self) -> Look<'_> {
        match self {
            Paged::Disk(lane) => Look::Disk(lane.slices()),
            Paged::Far(lane) => Look::Far(lane.slices()),
        }
    }

    /// A look at what is in memory now.
    pub(super) fn slices_in_memory(&self) -> Look<'_> {
        match self {
            Paged::Disk(lane) => Look::Disk(lane.slices_in_memory()),
            Paged::Far(lane) => Look::Far(lane.slices_in_memory()),
        }
    }
}

impl Look<'_> {
    /// A slice; `None` past the end, where it is damaged, and where it is not to be had now.
    pub(super) fn row(&mut self, index: u64) -> Option<Row> {
        match self {
            Look::Disk(slices) => slices.row(index),
            Look::Far(slices) => slices.row(index),
        }
    }

    /// The first slice that does not end before `time`, or end at it after having begun before it.
    pub(super) fn first_touching(&mut self, time: i64) -> u32 {
        match self {
            Look::Disk(slices) => slices.first_touching(time),
            Look::Far(slices) => slices.first_touching(time),
        }
    }

    /// The first slice that starts at or after `time`.
    pub(super) fn first_from(&mut self, time: i64) -> u32 {
        match self {
            Look::Disk(slices) => slices.first_from(time),
            Look::Far(slices) => slices.first_from(time),
        }
    }
}
