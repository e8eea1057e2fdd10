//! Tests of the geometry against what the store holds.

use super::{
    bars::{Bar, bars, match_bars},
    counters::counter_columns,
    frame::Frame,
    rows::{Hit, LaneBand, RowLayout},
};
use crate::timeline::{
    model::{Folding, Query, find::matches, rows::rows},
    raster::{SourceVersion, span_buffer::SpanBuffer},
    testing::{SIZES, demo, frame, one_track, slice},
};
use proptest::prelude::*;
use trace_model::{NO_NODE, TrackId};
use trace_store::Store;

fn row_layout(store: &Store) -> RowLayout {
    RowLayout::new(rows(store, &Folding::default()), &SIZES)
}

fn all_bars(store: &Store, frame: &Frame) -> Vec<Bar> {
    let rows = row_layout(store);
    let (mut buffer, all) = (SpanBuffer::default(), 0..rows.positions.len());
    bars(buffer.spans(SourceVersion::default(), store, &rows, all, frame), &rows.positions, frame).collect()
}

#[test]
fn rows_stack_without_overlap_and_cull_exactly() {
    let store = demo(1);
    let rows = row_layout(&store);
    let positions = &rows.positions;
    assert!(positions.windows(2).all(|w| w[1].top == w[0].bottom() + SIZES.gap));
    assert_eq!(rows.height(), 20.0 + 18.0 + 36.0 + 36.0 + 36.0 + 4.0 * 4.0);
    for from in 0..180 {
        let (from, to) = (from as f32, from as f32 + 25.0);
        let brute: Vec<usize> =
            (0..positions.len()).filter(|i| positions[*i].bottom() > from && positions[*i].top < to).collect();
        assert_eq!(rows.visible_rows(from, to).collect::<Vec<_>>(), brute);
    }
    assert_eq!(rows.hit(25.0), Some(Hit::Lane { track: TrackId(0), lane: 0 }));
    assert_eq!(rows.hit(21.0), None, "the gap");
    assert_eq!(rows.hit(46.0 + 19.0), Some(Hit::Lane { track: TrackId(2), lane: 1 }));
    assert_eq!(rows.hit(1e6), None);
    assert_eq!(rows.lane_band(TrackId(2), 1), Some(LaneBand { top: 46.0 + 18.0, height: 18.0 }));
}

#[test]
fn bars_have_exact_edges_when_zoomed_in() {
    let store = demo(1);
    let bars = all_bars(&store, &frame(0, 100_000, 1000.0));
    let bars_at = |track: u32, y: f32| {
        let bars = bars.iter().filter(move |b| b.slices.track == track && b.band.top == y);
        bars.map(|b| (b.x0, b.x1, b.slices.count)).collect::<Vec<_>>()
    };
    assert_eq!(bars_at(0, 24.0), [(100.0, 980.0, 1)]);
    assert_eq!(bars_at(2, 46.0), [(200.0, 720.0, 1), (720.0, 800.0, 1), (820.0, 950.0, 1)]);
    assert_eq!(bars_at(2, 64.0), [(850.0, 900.0, 1)]);
    assert!(bars.iter().all(|b| b.slices.density == 1.0));
}

#[test]
fn merged_bars_say_how_many_and_how_busy() {
    // 1,000 slices of 10 ns every 40 ns: a quarter busy.
    let store = one_track((0..1000).map(|i| slice(i * 40, i * 40 + 10, 1, 0, 0)).collect());
    let bars = all_bars(&store, &frame(0, 40_000, 50.0));
    assert_eq!(bars.iter().map(|b| b.slices.count).sum::<u32>(), 1000);
    assert!(bars.len() <= 102);
    let (full, _) = bars.split_at(bars.len() - 1);
    assert!(full.iter().all(|b| (0.2..0.3).contains(&b.slices.density)), "{bars:?}");
}

#[test]
fn one_short_event_in_a_huge_gap_is_a_visible_pixel() {
    let store = one_track(vec![slice(0, 1, 1, 0, 0), slice(3_600_000_000_000, 3_600_000_000_001, 1, 0, 0)]);
    let bars = all_bars(&store, &frame(-10, 3_600_000_000_100, 800.0));
    assert_eq!(bars.len(), 2);
    for bar in &bars {
        assert!(bar.x1 - bar.x0 >= 0.99 && bar.x0 >= 0.0 && bar.x1 <= 800.0, "{bar:?}");
        assert!(bar.slices.density > 0.0 && bar.slices.density < 1e-6);
    }
    assert!(all_bars(&Store::new(), &frame(0, 10, 800.0)).is_empty());
}

proptest! {
    #[test]
    fn no_slice_in_view_is_lost_and_every_bar_is_on_the_screen(
        gaps in proptest::collection::vec((0_i64..2000, 0_i64..2000), 1..300), start in -1000_i64..200_000, len in 10_i64..400_000,
    ) {
        let mut at = 0;
        let events: Vec<_> = gaps.iter().map(|(gap, dur)| {
            let begin = at + gap;
            at = begin + dur;
            slice(begin, at, 1, NO_NODE, 0)
        }).collect();
        let store = one_track(events);
        let frame = frame(start, start + len, 700.0);
        let bars = all_bars(&store, &frame);
        let lane = &store.tracks()[0].lanes[0];
        let within = |range: &std::ops::Range<i64>| lane.touching(range).len() as u32;
        // Slices that share a pixel stay one bar where that pixel is at the edge: some of them may lie before or after
        // it.
        let (view, pixel) = (frame.view.range(), frame.view.ns() / 700 + 1);
        let counted = bars.iter().map(|b| b.slices.count).sum::<u32>();
        prop_assert!(counted >= within(&view), "{} of {}", counted, within(&view));
        prop_assert!(counted <= within(&(view.start - pixel..view.end + pixel)), "{counted}");
        prop_assert!(bars.iter().all(|b| b.x0 >= 0.0 && b.x1 <= 700.0 && b.x1 - b.x0 > 0.98));
    }
}

#[test]
fn a_bar_at_the_edge_keeps_what_shares_its_pixel() {
    // A pixel is 200 ns: both are one bar, though the first ends where the view begins.
    let store = one_track(vec![slice(35_544, 35_619, 1, NO_NODE, 0), slice(35_622, 35_745, 1, NO_NODE, 0)]);
    let bars = all_bars(&store, &frame(35_619, 175_620, 700.0));
    assert_eq!(bars.iter().map(|b| (b.x0, b.slices.count)).collect::<Vec<_>>(), [(0.0, 2)]);
}

#[test]
fn matches_merge_below_a_pixel_and_keep_their_count() {
    let store = demo(200);
    let found = matches(&store, &Query { text: "add".into(), ..Query::default() });
    let rows = row_layout(&store);
    for (width, least) in [(50.0, 40), (4000.0, 200)] {
        let mut out = Vec::new();
        match_bars(&store, &found, &rows, 0..rows.positions.len(), &frame(0, 20_000_000, width), &mut out);
        assert!(out.len() >= least && out.len() <= 200, "{}", out.len());
        assert_eq!(out.iter().map(|b| b.slices.count).sum::<u32>(), 200);
    }
}

#[test]
fn counters_hold_their_value_and_keep_spikes() {
    let frame = frame(100, 200, 100.0);
    let columns = |t: &[i64], v: &[f64]| {
        counter_columns(&[t], &[v], &frame).iter().map(|c| (c.x, c.min, c.max)).collect::<Vec<_>>()
    };
    assert_eq!(columns(&[], &[]), []);
    assert_eq!(columns(&[50], &[3.0]), [(0.0, 3.0, 3.0), (100.0, 3.0, 3.0)], "held from before the view");
    assert_eq!(columns(&[300], &[3.0]), [], "nothing known yet");
    let spike = columns(&[120, 120, 120, 150], &[1.0, 9.0, 2.0, 4.0]);
    assert_eq!(spike, [(20.0, 1.0, 9.0), (50.0, 4.0, 4.0), (100.0, 4.0, 4.0)]);
}
