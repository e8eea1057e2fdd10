//! Geometry: where rows and slices are on the screen. Pure functions without egui; colours come later.
//!
//! Points are egui's logical pixels. A lane asks its level of detail for the spans of the view at the width in physical
//! pixels, so a lane gives at most about two bars per physical pixel, however many slices it holds.

use super::{
    buffer::LaneSpans,
    find::Matches,
    model::{Row, Rows},
    viewport::{Scale, Viewport},
};
use profiler::{Category, SliceRef, Span, Store, TrackId};

/// Sizes of rows; the theme gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Height of a lane.
    pub lane_h: f32,
    /// Height of a process's heading.
    pub heading_h: f32,
    /// Height of a counter's chart.
    pub counter_h: f32,
    /// Below each row.
    pub gap: f32,
    /// Least width of a slice that carries a label.
    pub label_min_w: f32,
}

/// Where a row is: relative to the top of all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Its top.
    pub top: f32,
    /// Its height without the gap.
    pub height: f32,
    /// Height of each of its lanes.
    pub lane_h: f32,
}

impl Place {
    /// The y after it.
    pub fn bottom(&self) -> f32 {
        self.top + self.height
    }
}

/// Where each row is; the last one's bottom is the height of all.
pub fn places(rows: &Rows, sizes: &Sizes) -> Vec<Place> {
    let mut top = 0.0;
    let place = |row: &Row| {
        let (height, lane_h) = match row {
            Row::Pins | Row::Host { .. } | Row::Process { .. } => (sizes.heading_h, sizes.heading_h),
            Row::Track { lanes, tenths, .. } => {
                let lane_h = (sizes.lane_h * f32::from(*tenths) / 10.0).round();
                (lanes.len() as f32 * lane_h, lane_h)
            }
            Row::Counter { .. } => (sizes.counter_h, sizes.counter_h),
        };
        let place = Place { top, height, lane_h };
        top += height + sizes.gap;
        place
    };
    rows.rows.iter().map(place).collect()
}

/// Height of all rows.
pub fn total_height(places: &[Place]) -> f32 {
    places.last().map_or(0.0, Place::bottom)
}

/// The rows that touch the visible heights `from..to`.
pub fn visible(places: &[Place], from: f32, to: f32) -> std::ops::Range<usize> {
    let first = places.partition_point(|p| p.bottom() <= from);
    let last = places.partition_point(|p| p.top < to);
    first..last.max(first)
}

/// One rectangle of a lane: a slice, or several that share a pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Left edge, clipped to the view.
    pub x0: f32,
    /// Right edge, clipped to the view; at least a physical pixel after the left one.
    pub x1: f32,
    /// Top, relative to the top of all rows.
    pub y: f32,
    /// Height of its lane.
    pub h: f32,
    /// What it stands for.
    pub slices: Slices,
}

/// Slices that are drawn as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slices {
    /// Row of the sites of the slice that stands for all: the longest that works, or where none works the longest.
    pub site: u32,
    /// Row of its node, or `u32::MAX`.
    pub node: u32,
    /// Which track.
    pub track: u32,
    /// Which lane of it.
    pub lane: u32,
    /// Index in the lane of that slice.
    pub top: u32,
    /// How many slices.
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

/// What the bars of a picture depend on beside the store and its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// What is shown.
    pub view: Viewport,
    /// Where.
    pub scale: Scale,
    /// Physical pixels per point.
    pub pixels_per_point: f32,
    /// Row sizes.
    pub sizes: Sizes,
}

impl Frame {
    /// How many physical pixels the view has.
    pub fn width_px(&self) -> usize {
        (self.scale.width() * self.pixels_per_point).ceil().max(1.0) as usize
    }

    /// Left and right edge of a time range; at least a physical pixel wide, clipped to the view.
    pub fn edges(&self, start: i64, end: i64) -> (f32, f32) {
        let (left, right) = (self.scale.left(), self.scale.right());
        let least = 1.0 / self.pixels_per_point;
        let x0 = self.scale.x_from_time(start).clamp(left, right - least);
        let x1 = self.scale.x_from_time(end).clamp(left, right);
        (x0, x1.max(x0 + least))
    }
}

/// The bars of lanes, one after the other, from left to right.
pub fn bars<'a>(
    lanes: impl Iterator<Item = LaneSpans<'a>>,
    places: &[Place],
    frame: &Frame,
) -> impl Iterator<Item = Bar> {
    let pixel_ns = frame.scale.ns_per_px() / f64::from(frame.pixels_per_point);
    lanes.flat_map(move |LaneSpans { row, nth, track, lane, spans }| {
        let (Place { top, lane_h, .. }, frame) = (places[row], *frame);
        let y = top + nth as f32 * lane_h;
        spans.iter().map(move |span| {
            let (x0, x1) = frame.edges(span.start, span.end);
            Bar { x0, x1, y, h: lane_h, slices: slices(span, track, lane, pixel_ns) }
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

/// Fills `out` with the bars of the slices that match a query, merged below a pixel.
pub fn match_bars(
    store: &Store,
    matches: &Matches,
    rows: &Rows,
    places: &[Place],
    range: std::ops::Range<usize>,
    frame: &Frame,
    out: &mut Vec<Bar>,
) {
    for (row, place) in rows.rows[range.clone()].iter().zip(&places[range]) {
        let Row::Track { track, lanes, .. } = row else { continue };
        for (nth, lane) in lanes.iter().enumerate() {
            let at = (place.top + nth as f32 * place.lane_h, place.lane_h);
            lane_match_bars(store, matches.of_lane(track.0, *lane), *track, at, frame, out);
        }
    }
}

fn lane_match_bars(
    store: &Store,
    slices: &[SliceRef],
    track: TrackId,
    (y, h): (f32, f32),
    frame: &Frame,
    out: &mut Vec<Bar>,
) {
    let pixel_ns = frame.scale.ns_of_px(1.0 / frame.pixels_per_point);
    let lane = slices.first().and_then(|s| store.track(track)?.lanes.get(s.id.lane as usize));
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
            track: track.0,
            lane: first.id.lane,
            top: lane.and_then(|lane| lane.index_of(first.id)).unwrap_or(u32::MAX),
            count: n as u32,
            density: 1.0,
            waiting: 0.0,
        };
        out.push(Bar { x0, x1, y, h, slices });
        i += n;
    }
}

/// What is under a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// A lane of a track.
    Lane {
        /// Which track.
        track: TrackId,
        /// Which lane.
        lane: u32,
    },
    /// A counter's chart.
    Counter(usize),
}

/// What is at height `y` relative to the top of all rows.
pub fn hit(rows: &Rows, places: &[Place], y: f32) -> Option<Hit> {
    let i = places.partition_point(|p| p.bottom() <= y);
    let place = places.get(i).filter(|p| p.top <= y)?;
    Some(match rows.rows.get(i)? {
        Row::Track { track, lanes, .. } => {
            let nth = ((y - place.top) / place.lane_h) as usize;
            Hit::Lane { track: *track, lane: *lanes.get(nth)? }
        }
        Row::Counter { counter, .. } => Hit::Counter(*counter),
        Row::Pins | Row::Host { .. } | Row::Process { .. } => return None,
    })
}

/// Top of a lane relative to the top of all rows, and its height: the lane itself, or its track's outermost one while it is
/// folded.
pub fn lane_at(rows: &Rows, places: &[Place], track: u32, lane: u32) -> Option<(f32, f32)> {
    rows.rows.iter().zip(places).find_map(|(row, place)| match row {
        Row::Track { track: t, lanes, .. } if t.0 == track => {
            let nth = lanes.iter().position(|l| *l == lane).unwrap_or(0);
            Some((place.top + nth as f32 * place.lane_h, place.lane_h))
        }
        _ => None,
    })
}

/// A counter's values in pixel columns, each its least and greatest value: steps are drawn true, spikes survive.
pub fn counter_columns(time: &[&[i64]], value: &[&[f64]], frame: &Frame) -> Vec<(f32, f64, f64)> {
    let mut out: Vec<(f32, f64, f64)> = Vec::new();
    let mut held: Option<f64> = None;
    for (times, values) in time.iter().zip(value) {
        let from = times.partition_point(|t| *t < frame.view.start);
        let to = times.partition_point(|t| *t < frame.view.end);
        held = from.checked_sub(1).and_then(|i| values.get(i)).copied().or(held);
        if let (Some(v), true) = (held, out.is_empty()) {
            out.push((frame.scale.left(), v, v));
        }
        for (t, v) in times[from..to].iter().zip(&values[from..to]) {
            let x = (frame.scale.x_from_time(*t) * frame.pixels_per_point).floor() / frame.pixels_per_point;
            match out.last_mut() {
                Some(last) if x - last.0 < 0.5 / frame.pixels_per_point => {
                    (last.1, last.2) = (last.1.min(*v), last.2.max(*v));
                }
                _ => out.push((x, *v, *v)),
            }
            held = Some(*v);
        }
    }
    // The last column's value is the newest one, not the greatest of its pixel.
    if let (Some(v), Some(last)) = (held, out.last().copied())
        && last.0 < frame.scale.right()
    {
        out.push((frame.scale.right(), v, v));
    }
    out
}

/// Whether a slice is drawn quietly: nothing ran.
pub fn is_quiet(category: Category) -> bool {
    category == Category::Wait
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
