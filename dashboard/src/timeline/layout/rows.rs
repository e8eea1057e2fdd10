//! Where rows and their lanes are, and what is at a height.

use super::frame::Sizes;
use crate::timeline::model::{Row, Rows};
use std::ops::Range;
use trace_model::TrackId;

/// The position of a row, relative to the top of all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowPosition {
    pub top: f32,
    /// Its height without the gap.
    pub height: f32,
    pub lane_h: f32,
}

impl RowPosition {
    /// The y after it.
    pub fn bottom(&self) -> f32 {
        self.top + self.height
    }

    /// The lane with index `nth` of those that show.
    pub fn lane(&self, nth: usize) -> LaneBand {
        LaneBand { top: self.top + nth as f32 * self.lane_h, height: self.lane_h }
    }
}

/// Top and height of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneBand {
    pub top: f32,
    pub height: f32,
}

/// What is under a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    Lane {
        track: TrackId,
        lane: u32,
    },
    /// A counter's chart.
    Counter(usize),
}

#[derive(Clone, Debug, Default)]
pub struct RowLayout {
    pub rows: Rows,
    pub positions: Vec<RowPosition>,
}

impl RowLayout {
    pub fn new(rows: Rows, sizes: &Sizes) -> Self {
        let mut top = 0.0;
        let position = |row: &Row| {
            let (height, lane_h) = match row {
                Row::Pins | Row::Host { .. } | Row::Process { .. } => (sizes.heading_h, sizes.heading_h),
                Row::Track { lanes, tenths, .. } => {
                    let lane_h = (sizes.lane_h * f32::from(*tenths) / 10.0).round();
                    (lanes.len() as f32 * lane_h, lane_h)
                }
                Row::Counter { .. } => (sizes.counter_h, sizes.counter_h),
            };
            let position = RowPosition { top, height, lane_h };
            top += height + sizes.gap;
            position
        };
        let positions = rows.rows.iter().map(position).collect();
        Self { rows, positions }
    }

    pub fn height(&self) -> f32 {
        self.positions.last().map_or(0.0, RowPosition::bottom)
    }

    /// The rows that touch the visible heights `from..to`.
    pub fn visible(&self, from: f32, to: f32) -> Range<usize> {
        let first = self.positions.partition_point(|p| p.bottom() <= from);
        let last = self.positions.partition_point(|p| p.top < to);
        first..last.max(first)
    }

    pub fn iter(&self, range: Range<usize>) -> impl Iterator<Item = (&Row, &RowPosition)> {
        self.rows.rows[range.clone()].iter().zip(&self.positions[range])
    }

    /// What is at height `y` relative to the top of all rows.
    pub fn hit(&self, y: f32) -> Option<Hit> {
        let i = self.positions.partition_point(|p| p.bottom() <= y);
        let position = self.positions.get(i).filter(|p| p.top <= y)?;
        Some(match self.rows.rows.get(i)? {
            Row::Track { track, lanes, .. } => {
                let nth = ((y - position.top) / position.lane_h) as usize;
                Hit::Lane { track: *track, lane: *lanes.get(nth)? }
            }
            Row::Counter { counter, .. } => Hit::Counter(*counter),
            Row::Pins | Row::Host { .. } | Row::Process { .. } => return None,
        })
    }

    /// A lane relative to the top of all rows: the lane itself, or its track's outermost one while it is folded.
    pub fn lane(&self, track: u32, lane: u32) -> Option<LaneBand> {
        self.rows.rows.iter().zip(&self.positions).find_map(|(row, position)| match row {
            Row::Track { track: t, lanes, .. } if t.0 == track => {
                Some(position.lane(lanes.iter().position(|l| *l == lane).unwrap_or(0)))
            }
            _ => None,
        })
    }
}
