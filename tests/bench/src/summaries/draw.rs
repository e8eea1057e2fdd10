//! What a chart of ten million points costs to make ready, at any zoom.

use std::hint::black_box;

use ::events::clock;
use ::summaries::{Extent, Point, ScalarSeries};
use ui::chart::{Polylines, XWindow};

use crate::report::Report;

const N_POINTS: i64 = 10_000_000;
const N_COLUMNS: u32 = 1_600;
/// How many zooms are looked at, from everything to a few points.
const N_ZOOMS: i32 = 40;

/// The slowest zoom, each measured as its fastest of five.
pub fn run(report: &mut Report) {
    let value = |step: i64| (step as f64 * 1e-5).sin() + (step as f64 * 0.37).sin() * 0.1;
    let point = |step| Point { step, wall: step as f64 * 1e-3, value: f64::from(value(step) as f32) };
    let series: ScalarSeries = (0..N_POINTS).map(point).collect();
    let mut lines = Polylines::default();
    let mut slowest_ns = 0;
    for zoom in 0..N_ZOOMS {
        let width = N_POINTS as f64 * 0.7_f64.powi(zoom);
        let lo = (N_POINTS as f64 - width) * 0.618;
        let window = XWindow { lo, hi: lo + width, n_columns: N_COLUMNS };
        let mut best_ns = i64::MAX;
        for _ in 0..5 {
            let begin_ns = clock::mono_now();
            lines.clear();
            let values = series.values();
            let extent =
                |rows| Some(values.extent(rows)).filter(Extent::is_finite).map(|extent| [extent.min, extent.max]);
            lines.add_numbers(
                0..series.len(),
                window,
                |row| series.step(row) as f64,
                |row| values.get(row),
                extent,
                |y| y,
            );
            black_box(lines.n_points());
            best_ns = best_ns.min(clock::mono_now() - begin_ns);
        }
        slowest_ns = slowest_ns.max(best_ns);
    }
    report.add("10 million points in 1,600 columns, slowest zoom", slowest_ns as f64 / 1e6, "ms");
}
