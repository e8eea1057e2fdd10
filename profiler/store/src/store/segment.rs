//! A segment: neighbouring slices of a lane in columns, with their pyramid.

use std::ops::Range;
use trace_model::lod::{Columns, LEAF, Nodes, Pyramid, SliceSource};
use trace_model::{SliceColumns, SliceDetails, SliceHeader};

/// Consecutive slices of a lane, at most [`SEGMENT`](trace_model::layout::SEGMENT).
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) slices: SliceColumns,
    pub(super) pyramid: Pyramid,
}

impl Segment {
    pub(super) fn with_capacity(n: usize) -> Segment {
        Segment { slices: SliceColumns::with_capacity(n), pyramid: Pyramid::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.slices.len()
    }

    pub(super) fn push(&mut self, header: SliceHeader, details: SliceDetails) {
        self.slices.push(header, details);
        let n = self.len();
        if n.is_multiple_of(LEAF)
            && let Some(leaf) = self.slices.columns(n - LEAF..n)
        {
            self.pyramid.push(&leaf);
        }
    }

    /// Removes all slices, but keeps the capacity.
    pub(super) fn clear(&mut self) {
        self.slices.clear();
        self.pyramid = Pyramid::default();
    }
}

impl SliceSource for &Segment {
    fn n_slices(&self) -> usize {
        self.len()
    }

    #[inline]
    fn nodes(&self, level: usize) -> Nodes<'_> {
        Nodes::Wide(self.pyramid.level(level))
    }

    fn visit_leaf(&mut self, range: Range<usize>, visit: impl FnOnce(Columns<'_>)) -> bool {
        self.visit_columns(range, visit)
    }

    fn visit_columns(&mut self, range: Range<usize>, visit: impl FnOnce(Columns<'_>)) -> bool {
        self.slices.columns(range).map(visit).is_some()
    }
}
