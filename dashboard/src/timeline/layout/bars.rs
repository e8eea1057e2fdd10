//! Slices as bars.

use super::{
    frame::Frame,
    rows::{LaneBand, RowLayout, RowPosition},
};
use crate::timeline::model::{Matches, Row};
use std::ops::Range;
use trace_model::lod::Span;
use trace_model::{SliceRef, TrackId};
use trace_store::{Lane, Store};

/// One rectangle of a lane: a slice, or several that share a pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Left edge, clipped to the view.
    pub x0: f32,
    /// Right edge, clipped to the view; at least a physical pixel after the left one.
    pub x1: f32,
    /// Its lane, relative to the top of all rows.
    pub band: LaneBand,
    pub slices: Slices,
}

/// Slices that are drawn as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slices {
    /// Row of the sites of the slice that stands for all: the longest that works, or where none works the longest.
    pub site: u32,
    /// Row of its node, or `u32::MAX`.
    pub node: u32,
    pub track: u32,
    pub lane: u32,
    /// Index in the lane of that slice.
    pub top: u32,
    pub count: u32,
    /// Share of its width in which slices ran; where none works, in which they waited; 0..=1.
    pub density: f32,
    /// Of a bar with slices that work, share of its width in which others waited, 0..=1.
    pub waiting: f32,
}

impl Slices {
    /// The step of the slice that stands for all, as far as it is in memory.
    pub fn step(&self, store: &Store) -> Option<u32> {
        let lane = store.track(TrackId(self.track))?.lanes.get(self.lane as usize)?;
        store.step_id_of(&lane.slice_now(self.top)?)
    }
}

/// A lane's spans that touch the view.
pub struct LaneSpans<'a> {
    pub row: usize,
    pub nth: usize,
    pub track: TrackId,
    pub lane: u32,
    pub spans: &'a [Span],
}

/// The bars of lanes, one after the other, from left to right.
pub fn bars<'a>(
    lanes: impl Iterator<Item = LaneSpans<'a>>,
    positions: &[RowPosition],
    frame: &Frame,
) -> impl Iterator<Item = Bar> {
    let pixel_ns = frame.scale.ns_per_px() / f64::from(frame.pixels_per_point);
    lanes.flat_map(move |LaneSpans { row, nth, track, lane, spans }| {
        let (band, frame) = (positions[row].lane(nth), *frame);
        spans.iter().map(move |span| {
            let (x0, x1) = frame.edges(span.start, span.end);
            Bar { x0, x1, band, slices: slices(span, track, lane, pixel_ns) }
        })
    })
}

/// What a span stands for, drawn where a physical pixel is `pixel_ns`.
pub fn slices(span: &Span, track: TrackId, lane: u32, pixel_ns: f64) -> Slices {
    // Over the time that it covers on the screen, which for a short slice is a whole pixel.
    let of_drawn = 1.0 / ((span.end - span.start) as f64).max(pixel_ns);
    let share = |ns: i64| (ns as f64 * of_drawn).clamp(0.0, 1.0) as f32;
    let (density, waiting) = match span.waits {
        // What has no length at all is a mark, not a faint part of a pixel.
        _ if span.start == span.end => (1.0, 0.0),
        true => (share(span.wait_ns), 0.0),
        false => (share(span.busy_ns), share(span.wait_ns)),
    };
    let Span { site, node, top, count, .. } = *span;
    Slices { site, node, track: track.0, lane, top, count, density, waiting }
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
        let of_track = store.track(*track).map_or(&[][..], |t| &t.lanes);
        for (nth, lane) in lanes.iter().enumerate() {
            let slices = matches.of_lane(track.0, *lane);
            lane_match_bars(of_track.get(*lane as usize), slices, position.lane(nth), frame, out);
        }
    }
}

fn lane_match_bars(lane: Option<&Lane>, slices: &[SliceRef], band: LaneBand, frame: &Frame, out: &mut Vec<Bar>) {
    let pixel_ns = frame.scale.ns_of_px(1.0 / frame.pixels_per_point);
    let mut i = slices.partition_point(|s| s.end <= frame.view.start);
    while let Some(first) = slices.get(i).filter(|s| s.start < frame.view.end) {
        // What starts within this pixel is one bar.
        let rest = &slices[i..];
        let pixel_end = first.start.saturating_add(pixel_ns);
        let n = if first.dur() >= pixel_ns { 1 } else { rest.partition_point(|s| s.end <= pixel_end).max(1) };
        let (x0, x1) = frame.edges(first.start, rest[n - 1].end);
        let slices = Slices {
            site: first.site,
            node: first.node,
            track: first.id.track,
            lane: first.id.lane,
            top: lane.and_then(|lane| lane.index_of(first.id)).unwrap_or(u32::MAX),
            count: n as u32,
            density: 1.0,
            waiting: 0.0,
        };
        out.push(Bar { x0, x1, band, slices });
        i += n;
    }
}
