//! Spans of more than the view, kept while it moves: a view that stays within them asks no lane again.
//!
//! How slices merge depends on what a pixel stands for and not on where the view begins. So what was asked for holds as long
//! as the zoom does; asked for is a quarter of the view more on either side.

use super::{
    layout::Frame,
    model::{Row, Rows},
};
use profiler::{Span, Store, TrackId};
use std::ops::Range;

/// Of the view's width, what is asked for beyond each of its ends.
const MARGIN: i64 = 4;

/// What the spans belong to: the trace, the store's version, and the revision of what is folded.
pub type Source = (usize, u64, u64);

/// A lane's spans.
struct Lane {
    /// Its row, and which of the row's lanes it is.
    row: usize,
    nth: usize,
    track: TrackId,
    lane: u32,
    spans: Range<usize>,
}

/// See the module's notes.
#[derive(Default)]
pub struct SpanBuffer {
    /// Source, rows, ns and pixels of the view.
    of: Option<(Source, Range<usize>, i64, usize)>,
    window: Range<i64>,
    spans: Vec<Span>,
    lanes: Vec<Lane>,
}

/// A lane's spans that touch the view.
pub struct LaneSpans<'a> {
    /// Its row.
    pub row: usize,
    /// Which of the row's lanes.
    pub nth: usize,
    /// Its track.
    pub track: TrackId,
    /// Which of the track's lanes.
    pub lane: u32,
    /// From left to right.
    pub spans: &'a [Span],
}

impl SpanBuffer {
    /// The spans of the rows in `range`, lane by lane.
    pub fn of(
        &mut self,
        source: Source,
        store: &Store,
        rows: &Rows,
        range: Range<usize>,
        frame: &Frame,
    ) -> impl Iterator<Item = LaneSpans<'_>> {
        let view = frame.view.range();
        let of = Some((source, range.clone(), frame.view.ns(), frame.width_px()));
        if self.of != of || view.start < self.window.start || self.window.end < view.end {
            self.ask(store, rows, range, frame);
            self.of = of;
        }
        let all = &self.spans;
        self.lanes.iter().map(move |lane| {
            let spans = &all[lane.spans.clone()];
            let first = spans.partition_point(|s| s.end <= view.start && s.start < view.start);
            let last = spans.partition_point(|s| s.start < view.end);
            let spans = &spans[first..last.max(first)];
            LaneSpans { row: lane.row, nth: lane.nth, track: lane.track, lane: lane.lane, spans }
        })
    }

    fn ask(&mut self, store: &Store, rows: &Rows, range: Range<usize>, frame: &Frame) {
        let (view, px) = (frame.view.range(), frame.width_px());
        let margin = frame.view.ns() / MARGIN;
        self.window = view.start.saturating_sub(margin)..view.end.saturating_add(margin);
        let px = px + 2 * (px as i64 / MARGIN) as usize;
        self.spans.clear();
        self.lanes.clear();
        for row in range {
            let Row::Track { track, lanes, .. } = &rows.rows[row] else { continue };
            let Some(t) = store.track(*track) else { continue };
            for (nth, &lane_idx) in lanes.iter().enumerate() {
                let Some(lane) = t.lanes.get(lane_idx as usize) else { continue };
                let first = self.spans.len();
                lane.spans(self.window.clone(), px, &mut self.spans);
                let spans = first..self.spans.len();
                self.lanes.push(Lane { row, nth, track: *track, lane: lane_idx, spans });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{
        layout::Sizes,
        model::{Folding, rows},
        testing::demo,
        viewport::{Scale, Viewport},
    };

    #[test]
    fn a_view_that_moves_sees_every_slice_whether_asked_or_kept() {
        let store = demo(40);
        let rows = rows(&store, &Folding::default());
        let sizes = Sizes { lane_h: 18.0, heading_h: 20.0, counter_h: 30.0, gap: 2.0, label_min_w: 30.0 };
        let (mut kept, mut n_asked) = (SpanBuffer::default(), 0);
        for start in (0..2_000_000).step_by(30_011) {
            let view = Viewport { start, end: start + 700_000 };
            let frame = Frame { view, scale: Scale::new(view, 0.0, 50.0), pixels_per_point: 1.0, sizes };
            let before = kept.window.clone();
            for lane in kept.of((0, store.version(), 0), &store, &rows, 0..rows.rows.len(), &frame) {
                let of_store = &store.track(lane.track).unwrap().lanes[lane.lane as usize];
                let touching = of_store.touching(&view.range());
                let first = lane.spans.first().map_or(touching.start, |s| s.first);
                let end = lane.spans.last().map_or(touching.end, |s| s.first + s.count);
                assert!(first <= touching.start && touching.end <= end, "{touching:?} in {first}..{end}");
                assert!(lane.spans.windows(2).all(|w| w[0].first + w[0].count == w[1].first), "none left out");
                let pixel = view.ns() / 50 + 1;
                assert!(lane.spans.iter().all(|s| s.count == 1 || s.end - s.start <= pixel));
            }
            n_asked += usize::from(kept.window != before);
        }
        assert!((5..=20).contains(&n_asked), "asked {n_asked} times for 67 views");
    }
}
