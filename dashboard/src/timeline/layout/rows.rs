//! The positions of rows and their lanes, and the lane or counter at a height.

use super::frame::Sizes;
use crate::timeline::model::{Row, Rows};
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::TrackId;

/// The position of a row below the top of all rows, points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowPosition {
    pub top: f32,
    /// The row's height without the gap below it.
    pub height: f32,
    /// The height of each of the row's lanes.
    pub lane_h: f32,
}

impl RowPosition {
    /// The row's lower edge, where the gap begins.
    pub fn bottom(&self) -> f32 {
        self.top + self.height
    }

    /// The band of the row's lane with index `lane_idx` among its visible lanes.
    pub fn lane(&self, lane_idx: usize) -> LaneBand {
        LaneBand { top: self.top + lane_idx as f32 * self.lane_h, height: self.lane_h }
    }
}

/// Top and height of a lane, points below the top of all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneBand {
    pub top: f32,
    pub height: f32,
}

/// The lane or counter under a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    Lane {
        track: TrackId,
        lane: u32,
    },
    /// A counter's chart, by the counter's row of the store.
    Counter(usize),
}

/// The rows with their positions.
#[derive(Clone, Debug, Default)]
pub struct RowLayout {
    pub rows: Rows,
    /// The position of each row of `rows.list`.
    pub positions: Vec<RowPosition>,
    /// The index of each track's row.
    row_of_track: FxHashMap<TrackId, usize>,
}

impl RowLayout {
    /// Stacks the rows with a gap below each.
    pub fn new(rows: Rows, sizes: &Sizes) -> Self {
        let (mut top, mut row_of_track) = (0.0, FxHashMap::default());
        let position = |(row_idx, row): (usize, &Row)| {
            let (height, lane_h) = match row {
                Row::Pins | Row::Host { .. } | Row::Process { .. } => (sizes.heading_h, sizes.heading_h),
                Row::Track { track, lanes, height_tenths, .. } => {
                    row_of_track.insert(*track, row_idx);
                    let lane_h = (sizes.lane_h * f32::from(*height_tenths) / 10.0).round();
                    (lanes.len() as f32 * lane_h, lane_h)
                }
                Row::Counter { .. } => (sizes.counter_h, sizes.counter_h),
            };
            let position = RowPosition { top, height, lane_h };
            top += height + sizes.gap;
            position
        };
        let positions = rows.list.iter().enumerate().map(position).collect();
        Self { rows, positions, row_of_track }
    }

    /// The height of all rows.
    pub fn height(&self) -> f32 {
        self.positions.last().map_or(0.0, RowPosition::bottom)
    }

    /// Indices of the rows that touch the heights `from..to` below the top of all rows.
    pub fn visible_rows(&self, from: f32, to: f32) -> Range<usize> {
        let first = self.positions.partition_point(|p| p.bottom() <= from);
        let last = self.positions.partition_point(|p| p.top < to);
        first..last.max(first)
    }

    /// The rows in `range` with their positions.
    pub fn iter(&self, range: Range<usize>) -> impl Iterator<Item = (&Row, &RowPosition)> {
        self.rows.list[range.clone()].iter().zip(&self.positions[range])
    }

    /// The lane or counter at height `y` below the top of all rows.
    pub fn hit(&self, y: f32) -> Option<Hit> {
        let row_idx = self.positions.partition_point(|p| p.bottom() <= y);
        let position = self.positions.get(row_idx).filter(|p| p.top <= y)?;
        Some(match self.rows.list.get(row_idx)? {
            Row::Track { track, lanes, .. } => {
                let lane_idx = ((y - position.top) / position.lane_h) as usize;
                Hit::Lane { track: *track, lane: *lanes.get(lane_idx)? }
            }
            Row::Counter { counter, .. } => Hit::Counter(*counter),
            Row::Pins | Row::Host { .. } | Row::Process { .. } => return None,
        })
    }

    /// The row of a track and its position; `None` where the track has no row.
    pub fn track_row(&self, track: TrackId) -> Option<(&Row, &RowPosition)> {
        let row_idx = *self.row_of_track.get(&track)?;
        Some((self.rows.list.get(row_idx)?, self.positions.get(row_idx)?))
    }

    /// The band of a lane, or of its track's outermost lane where the track is folded.
    pub fn lane_band(&self, track: TrackId, lane: u32) -> Option<LaneBand> {
        let (Row::Track { lanes, .. }, position) = self.track_row(track)? else { return None };
        Some(position.lane(lanes.iter().position(|shown| *shown == lane).unwrap_or(0)))
    }
}
