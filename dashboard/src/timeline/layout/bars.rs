//! The bars that stand for slices.

use super::{
    frame::Frame,
    rows::{LaneBand, RowLayout, RowPosition},
};
use crate::timeline::model::{Matches, Row};
use std::ops::Range;
use trace_model::lod::Span;
use trace_model::{SliceRef, TrackId};
use trace_store::{Lane, Store};

/// A rectangle of a lane: one slice, or several that share a pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Left edge, clipped to the view.
    pub x0: f32,
    /// Right edge, clipped to the view; at least a physical pixel after the left one.
    pub x1: f32,
    /// The lane's band, below the top of all rows.
    pub band: LaneBand,
    pub slices: Slices,
}

/// The slices of one bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slices {
    /// Row of the store's sites, of the top slice: the longest one that works, or the longest of all where none works.
    pub site: u32,
    /// Row of the store's nodes, of the top slice; `u32::MAX` for none.
    pub node: u32,
    pub track: u32,
    pub lane: u32,
    /// Index of the top slice in the lane.
    pub top: u32,
    /// The number of slices.
    pub count: u32,
    /// Share of the bar's width in which slices worked, or waited where none works; 0..=1.
    pub density: f32,
    /// Share of the bar's width in which slices waited while others worked, 0..=1.
    pub wait_share: f32,
}

impl Slices {
    /// The step of the top slice, if the slice is in memory.
    pub fn step(&self, store: &Store) -> Option<u32> {
        let lane = store.track(TrackId(self.track))?.lanes.get(self.lane as usize)?;
        store.step_id_of(&lane.slice_in_memory(self.top)?)
    }
}

/// A lane's spans that touch the view.
pub struct LaneSpans<'a> {
    pub row: usize,
    /// Index among the row's visible lanes.
    pub row_lane: usize,
    pub track: TrackId,
    pub lane: u32,
    pub spans: &'a [Span],
}

/// The bars of lanes: lane after lane, each from left to right.
pub fn bars<'a>(
    lanes: impl Iterator<Item = LaneSpans<'a>>,
    positions: &[RowPosition],
    frame: &Frame,
) -> impl Iterator<Item = Bar> {
    let pixel_ns = frame.scale.ns_per_px() / f64::from(frame.pixels_per_point);
    lanes.flat_map(move |LaneSpans { row, row_lane, track, lane, spans }| {
        let (band, frame) = (positions[row].lane(row_lane), *frame);
        spans.iter().map(move |span| {
            let (x0, x1) = frame.edges(span.start, span.end);
            Bar { x0, x1, band, slices: bar_slices(span, track, lane, pixel_ns) }
        })
    })
}

/// The slices of a span on a screen whose physical pixels are `pixel_ns` long.
pub fn bar_slices(span: &Span, track: TrackId, lane: u32, pixel_ns: f64) -> Slices {
    // Shares are of the bar's length, which is a pixel at least.
    let per_drawn_ns = 1.0 / ((span.end - span.start) as f64).max(pixel_ns);
    let share = |ns: i64| (ns as f64 * per_drawn_ns).clamp(0.0, 1.0) as f32;
    let (density, wait_share) = match span.waits {
        // A slice without length is drawn in full colour, not as an invisible share of a pixel.
        _ if span.start == span.end => (1.0, 0.0),
        true => (share(span.wait_ns), 0.0),
        false => (share(span.busy_ns), share(span.wait_ns)),
    };
    let Span { site, node, top, count, .. } = *span;
    Slices { site, node, track: track.0, lane, top, count, density, wait_share }
}

/// Fills `out` with the bars of the slices of the rows in `range` that match a query, merged below a pixel.
pub fn match_bars(
    store: &Store,
    matches: &Matches,
    layout: &RowLayout,
    range: Range<usize>,
    frame: &Frame,
    out: &mut Vec<Bar>,
) {
    for (row, position) in layout.iter(range) {
        let Row::Track { track, lanes, .. } = row else { continue };
        let track_lanes = store.track(*track).map_or(&[][..], |t| &t.lanes);
        for (row_lane, lane) in lanes.iter().enumerate() {
            let slices = matches.of_lane(track.0, *lane);
            lane_match_bars(track_lanes.get(*lane as usize), slices, position.lane(row_lane), frame, out);
        }
    }
}

/// Adds the bars of a lane's matches.
fn lane_match_bars(lane: Option<&Lane>, slices: &[SliceRef], band: LaneBand, frame: &Frame, out: &mut Vec<Bar>) {
    let pixel_ns = frame.scale.ns_of_px(1.0 / frame.pixels_per_point);
    let mut i = slices.partition_point(|s| s.end <= frame.view.start);
    while let Some(first) = slices.get(i).filter(|s| s.start < frame.view.end) {
        // Slices that end within a pixel from the first one's start share a bar.
        let remaining = &slices[i..];
        let pixel_end = first.start.saturating_add(pixel_ns);
        let n = if first.dur() >= pixel_ns { 1 } else { remaining.partition_point(|s| s.end <= pixel_end).max(1) };
        let (x0, x1) = frame.edges(first.start, remaining[n - 1].end);
        let slices = Slices {
            site: first.site,
            node: first.node,
            track: first.id.track,
            lane: first.id.lane,
            top: lane.and_then(|lane| lane.index_of(first.id)).unwrap_or(u32::MAX),
            count: n as u32,
            density: 1.0,
            wait_share: 0.0,
        };
        out.push(Bar { x0, x1, band, slices });
        i += n;
    }
}
