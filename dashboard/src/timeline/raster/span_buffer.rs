//! Spans of the view and of some time around it, cached while the view moves: no lane is read again until the view
//! leaves that time.
//!
//! The merging of slices depends on the length of a pixel and not on the start of the view, so that spans stay valid
//! while the zoom is the same.

use crate::timeline::{
    layout::{Frame, LaneSpans, RowLayout},
    model::Row,
};
use std::ops::Range;
use trace_model::TrackId;
use trace_model::lod::Span;
use trace_store::Store;

/// The view's length divided by the margin that is read on either side.
const MARGIN_DIVISOR: i64 = 4;

/// The version of a picture's source; a change makes everything cached stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceVersion {
    pub trace_idx: usize,
    pub store: u64,
    /// The revision of the folding.
    pub folding: u64,
}

/// The inputs of the cached spans, except the start of the view.
#[derive(PartialEq, Eq)]
struct BufferKey {
    source: SourceVersion,
    rows: Range<usize>,
    view_ns: i64,
    view_px: usize,
}

/// A lane with its cached spans.
struct BufferedLane {
    row: usize,
    /// Index among the row's visible lanes.
    row_lane: usize,
    track: TrackId,
    lane: u32,
    /// Indices in the buffer's spans.
    spans: Range<usize>,
}

/// The cached spans of a picture.
#[derive(Default)]
pub struct SpanBuffer {
    key: Option<BufferKey>,
    /// The range of time of the spans, ns.
    window: Range<i64>,
    spans: Vec<Span>,
    lanes: Vec<BufferedLane>,
}

impl SpanBuffer {
    /// The spans of the rows in `range`, lane by lane.
    pub fn spans(
        &mut self,
        source: SourceVersion,
        store: &Store,
        layout: &RowLayout,
        range: Range<usize>,
        frame: &Frame,
    ) -> impl Iterator<Item = LaneSpans<'_>> {
        let view = frame.view.range();
        let key = BufferKey { source, rows: range.clone(), view_ns: frame.view.ns(), view_px: frame.width_px() };
        if self.key.as_ref() != Some(&key) || view.start < self.window.start || self.window.end < view.end {
            self.read_spans(store, layout, range, frame);
            self.key = Some(key);
        }
        let all_spans = &self.spans;
        self.lanes.iter().map(move |lane| {
            let spans = &all_spans[lane.spans.clone()];
            let first = spans.partition_point(|s| s.end <= view.start && s.start < view.start);
            let last = spans.partition_point(|s| s.start < view.end);
            let spans = &spans[first..last.max(first)];
            LaneSpans { row: lane.row, row_lane: lane.row_lane, track: lane.track, lane: lane.lane, spans }
        })
    }

    /// Reads the spans of the rows in `range`, with a margin on either side of the view.
    fn read_spans(&mut self, store: &Store, layout: &RowLayout, range: Range<usize>, frame: &Frame) {
        let (view, view_px) = (frame.view.range(), frame.width_px());
        let margin = frame.view.ns() / MARGIN_DIVISOR;
        self.window = view.start.saturating_sub(margin)..view.end.saturating_add(margin);
        let px = view_px + 2 * (view_px as i64 / MARGIN_DIVISOR) as usize;
        self.spans.clear();
        self.lanes.clear();
        for row in range {
            let Row::Track { track, lanes, .. } = &layout.rows.list[row] else { continue };
            let Some(track_data) = store.track(*track) else { continue };
            for (row_lane, &lane_idx) in lanes.iter().enumerate() {
                let Some(lane) = track_data.lanes.get(lane_idx as usize) else { continue };
                let first = self.spans.len();
                lane.spans(self.window.clone(), px, &mut self.spans);
                let spans = first..self.spans.len();
                self.lanes.push(BufferedLane { row, row_lane, track: *track, lane: lane_idx, spans });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{
        model::{Folding, rows::rows},
        testing::{SIZES, demo, frame},
    };

    #[test]
    fn a_view_that_moves_sees_every_slice_whether_read_or_cached() {
        let store = demo(40);
        let rows = RowLayout::new(rows(&store, &Folding::default()), &SIZES);
        let (mut cached, mut n_read) = (SpanBuffer::default(), 0);
        for start in (0..2_000_000).step_by(30_011) {
            let frame = frame(start, start + 700_000, 50.0);
            let view = frame.view;
            let before = cached.window.clone();
            for lane in cached.spans(SourceVersion::default(), &store, &rows, 0..rows.positions.len(), &frame) {
                let of_store = &store.track(lane.track).unwrap().lanes[lane.lane as usize];
                let touching = of_store.touching(&view.range());
                let first = lane.spans.first().map_or(touching.start, |s| s.first);
                let end = lane.spans.last().map_or(touching.end, |s| s.first + s.count);
                assert!(first <= touching.start && touching.end <= end, "{touching:?} in {first}..{end}");
                assert!(lane.spans.windows(2).all(|w| w[0].first + w[0].count == w[1].first), "none left out");
                let pixel = view.ns() / 50 + 1;
                assert!(lane.spans.iter().all(|s| s.count == 1 || s.end - s.start <= pixel));
            }
            n_read += usize::from(cached.window != before);
        }
        assert!((5..=20).contains(&n_read), "read {n_read} times for 67 views");
    }
}
