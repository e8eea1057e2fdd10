//! Tests of the cache against a cache that draws everything anew.

use super::*;
use crate::timeline::{
    layout::RowLayout,
    model::{Folding, rows::rows},
    testing::{frame, one_track, slice},
};
use proptest::prelude::*;
use ui::theme::Palette;

const WIDTH: usize = 100;

/// Each slice has its own colour.
fn style(slices: &Slices) -> BarStyle {
    BarStyle { full: Some(Palette::for_theme(true).fill(slices.top as usize)), middle: None }
}

struct Fixture {
    cache: RasterCache,
    store: trace_store::Store,
}

impl Fixture {
    fn new(slices: &[(i64, i64)]) -> Self {
        let events = slices.iter().map(|(start, end)| slice(*start, *end, 1, u32::MAX, 0)).collect();
        Self { cache: RasterCache::default(), store: one_track(events) }
    }

    /// Shows a view; returns its pixels, and the edges of its wide slices.
    fn view(&mut self, start: i64, ns: i64, max_side: usize) -> (Vec<Color32>, Vec<(f32, f32)>) {
        let rows = rows(&self.store, &Folding::default());
        let frame = frame(start, start + ns, WIDTH as f32);
        let rows = RowLayout::new(rows, &frame.sizes);
        let palette = Palette::for_theme(true);
        let scene = Scene { store: &self.store, layout: &rows, matches: None, palette };
        let key = RasterKey { rows: 0..rows.positions.len(), view_ns: ns, view_px: WIDTH, ..RasterKey::default() };
        assert!(self.cache.show(&Context::default(), max_side, key, &scene, &frame, style));
        let (view, capacity) = (self.cache.view.clone(), self.cache.capacity);
        let pixels = view.map(|column| self.cache.pixels[slot(column, capacity)]).collect();
        let wide = self.cache.wide_bars(&rows.positions, &frame).map(|bar| (bar.x0, bar.x1)).collect();
        (pixels, wide)
    }
}

#[test]
fn a_ring_holds_columns_in_one_piece_or_two() {
    let parts_of = |columns| ring_parts(&columns, 10).map(|part| (part.start, part.end)).collect::<Vec<_>>();
    assert_eq!(parts_of(3..7), [(3, 7)]);
    assert_eq!(parts_of(8..12), [(8, 10), (0, 2)]);
    assert_eq!(parts_of(-2..8), [(8, 10), (0, 8)]);
    assert_eq!(parts_of(5..5), []);
}

#[test]
fn what_a_texture_cannot_hold_is_not_shown() {
    let mut shown = Fixture::new(&[(0, 10)]);
    let rows = rows(&shown.store, &Folding::default());
    let frame = frame(0, 1_000, WIDTH as f32);
    let rows = RowLayout::new(rows, &frame.sizes);
    let scene = Scene { store: &shown.store, layout: &rows, matches: None, palette: Palette::for_theme(true) };
    let key = RasterKey { rows: 0..rows.positions.len(), view_ns: 1_000, view_px: WIDTH, ..RasterKey::default() };
    for max_side in [0, WIDTH - 1] {
        assert!(!shown.cache.show(&Context::default(), max_side, key.clone(), &scene, &frame, style));
        assert_eq!(shown.cache.wide_bars(&rows.positions, &frame).count(), 0);
    }
}

#[test]
fn what_moves_is_coarse_and_exact_again_in_the_next_frame() {
    let store = one_track((0..1_000).map(|i| slice(i * 100, i * 100 + i % 60, 1, u32::MAX, 0)).collect());
    let rows = rows(&store, &Folding::default());
    let px = 2 * MAX_COLUMNS_IN_MOTION;
    let frame = frame(0, 100_000, px as f32);
    let rows = RowLayout::new(rows, &frame.sizes);
    let scene = Scene { store: &store, layout: &rows, matches: None, palette: Palette::for_theme(true) };
    let (mut cache, ctx) = (RasterCache::default(), Context::default());
    ctx.input_mut(|i| i.max_texture_side = 2 * px);
    let mut show = |in_motion| {
        let rows_key = RasterKey { rows: 0..rows.positions.len(), ..RasterKey::default() };
        let key = RasterKey { view_ns: 100_000, view_px: px, in_motion, ..rows_key };
        assert!(cache.show(&ctx, 2 * px, key, &scene, &frame, style));
        let wide: Vec<Bar> = cache.wide_bars(&rows.positions, &frame).collect();
        (cache.is_coarse(), cache.pixels[..cache.view.end as usize].to_vec(), wide)
    };
    let ((is_coarse, coarse, wide), (stays_coarse, fine, still_wide)) = (show(true), show(false));
    assert!(is_coarse && !stays_coarse);
    assert_eq!((coarse.len(), fine.len()), (px / 2, px));
    assert_eq!(wide, still_wide, "wide ones are exact in motion too");
    let drawn = |column: &Color32| *column != Color32::TRANSPARENT;
    for (two, one) in fine.chunks_exact(2).zip(&coarse) {
        assert!(drawn(one) || !two.iter().all(drawn), "what fills a column is in it");
    }
    assert!(coarse.iter().any(drawn));
}

#[test]
fn a_view_at_the_other_end_of_time_is_drawn_anew() {
    let far = 1 << 60;
    let mut shown = Fixture::new(&[(100, 102), (far, far + 2)]);
    let drawn = |(pixels, _): (Vec<Color32>, Vec<_>)| pixels.iter().filter(|p| **p != Color32::TRANSPARENT).count();
    for start in [50, far - 50, 50] {
        assert_eq!(drawn(shown.view(start, 100, 150)), 2, "a pixel is a ns");
    }
}

proptest! {
    /// Slices further apart than a pixel do not merge: however the view came there, it shows the same.
    #[test]
    fn a_view_looks_the_same_however_it_came_there(
        gaps in proptest::collection::vec((11_i64..300, 1_i64..80), 1..200),
        moves in proptest::collection::vec(-1_500_i64..1_500, 1..40),
        max_side in 100_usize..200,
    ) {
        let mut at = 0;
        let slices: Vec<(i64, i64)> = gaps.iter().map(|(gap, dur)| {
            let start = at + gap;
            at = start + dur;
            (start, at)
        }).collect();
        let (mut moved, mut start) = (Fixture::new(&slices), 0);
        moved.view(start, 1_000, max_side);
        for step in moves {
            // A column is 10 ns: by whole ones, so that both grids are the same.
            start += step / 10 * 10;
            let mut fresh = Fixture::new(&slices);
            prop_assert_eq!(moved.view(start, 1_000, max_side), fresh.view(start, 1_000, max_side));
        }
    }
}
