//! A series against another tag of its run: the points at steps that both have, in the order of the other tag's values.
//!
//! Both tags are smoothed along their steps before they are paired. So a tag against itself is the diagonal at any
//! weight, and noise that both have in common stays on one line.

use super::{
    points::{Points, SmoothedPoints, TagX},
    smooth::Smoother,
};
use std::collections::BTreeMap;
use summaries::ScalarSeries;

/// Least time between two updates of a growing pair, seconds.
const REFRESH_S: f64 = 0.5;

/// A series with another tag's values as x.
#[derive(Debug, Default)]
pub struct PairedSeries {
    series: ScalarSeries,
    tag_x: TagX,
    /// The smoothers of the series and of the other tag.
    smoothers: [Smoother; 2],
    /// The numbers of points of both, and the weight, of the last update.
    key: Option<([usize; 2], f64)>,
    /// The time of the last update, seconds.
    updated_s: f64,
    generation: u64,
}

impl PairedSeries {
    /// Updates the points at `now`, seconds. Everything is recomputed, for growing series at most twice a second.
    pub fn update(&mut self, series: &ScalarSeries, other: &ScalarSeries, weight: f64, now: f64) {
        let key = ([series.len(), other.len()], weight);
        let is_early =
            self.key.is_some_and(|(_, last_weight)| last_weight == weight) && now - self.updated_s < REFRESH_S;
        if self.key == Some(key) || is_early {
            return;
        }
        // Of several rows with one step, as after a restart, the newest counts.
        let rows: BTreeMap<i64, usize> = (0..other.len()).map(|row| (other.step(row), row)).collect();
        let x = |row: usize| other.values().get(row);
        let pair = |row: usize| Some((row, *rows.get(&series.step(row))?));
        let mut pairs: Vec<(usize, usize)> =
            (0..series.len()).filter_map(pair).filter(|(_, row)| x(*row).is_finite()).collect();
        pairs.sort_by(|a, b| x(a.1).total_cmp(&x(b.1)));
        let raw_x: Vec<f64> = pairs.iter().map(|(_, row)| x(*row)).collect();
        self.tag_x = if weight > 0.0 {
            let raw = pairs.iter().map(|(row, _)| series.values().get(*row)).collect();
            let [smooth, smooth_x] = &mut self.smoothers;
            let (smooth, smooth_x) = (smooth.update(series.values(), weight), smooth_x.update(other.values(), weight));
            pairs.sort_by(|a, b| smooth_x.get(a.1).total_cmp(&smooth_x.get(b.1)));
            let values = pairs.iter().map(|(row, _)| smooth.get(*row)).collect();
            let x = pairs.iter().map(|(_, row)| smooth_x.get(*row)).collect();
            TagX { x, smoothed: Some(SmoothedPoints { values, raw_x, raw }) }
        } else {
            TagX { x: raw_x, smoothed: None }
        };
        self.series = pairs.into_iter().map(|(row, _)| series.point(row)).collect();
        (self.key, self.updated_s) = (Some(key), now);
        self.generation += 1;
    }

    /// The paired points.
    pub fn points(&self) -> Points<'_> {
        Points::at(&self.series, &self.tag_x)
    }

    /// Incremented with every change.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cards::XAxis;
    use crate::scalars::{curve::Curve, model::testing::series, settings::Settings};
    use ui::chart::XWindow;

    #[test]
    fn common_steps_in_the_order_of_the_other() {
        let loss = series(&[(0, 3.0), (1, 2.0), (2, 1.0), (3, 0.5), (4, 0.1)]);
        let rate = series(&[(0, 0.3), (1, 0.1), (2, 0.2), (4, f64::NAN)]);
        let mut paired = PairedSeries::default();
        paired.update(&loss, &rate, 0.0, 0.0);
        let points = paired.points();
        let got: Vec<(f64, f64)> =
            (0..points.len()).map(|i| (points.x(XAxis::Step, i), points.values().get(i))).collect();
        assert_eq!(got, [(0.1, 2.0), (0.2, 1.0), (0.3, 3.0)]);
        let generation = paired.generation();
        paired.update(&series(&[(0, 3.0)]), &rate, 0.0, 0.1);
        assert_eq!(paired.generation(), generation, "too early");
        paired.update(&series(&[(0, 3.0)]), &rate, 0.0, 1.0);
        assert_eq!(paired.points().len(), 1);
    }

    /// The moving average of TensorBoard, by its published formula.
    fn smoothed(values: &[f64], weight: f64) -> Vec<f64> {
        let (mut last, mut debias) = (0.0, 0.0);
        let one = |y: &f64| {
            last = weight * last + (1.0 - weight) * y;
            debias = weight * debias + (1.0 - weight);
            last / debias
        };
        values.iter().map(one).collect()
    }

    #[test]
    fn smoothing_goes_along_the_steps_of_both() {
        let noisy = |seed: usize| -> Vec<f64> {
            (0..60).map(|i: usize| 60.0 - i as f64 + ((i * 37 + seed * 11) % 23) as f64).collect()
        };
        let of = |values: &[f64]| series(&(0..).zip(values).map(|(step, v)| (step, *v)).collect::<Vec<_>>());
        let (loss, error) = (noisy(0), noisy(5));
        let settings = Settings::default().curve;
        let settings = super::super::curve::CurveSettings { smoothing: 0.8, by_tag: true, ..settings };
        let drawn = |y: &[f64], x: &[f64]| {
            let mut paired = PairedSeries::default();
            paired.update(&of(y), &of(x), settings.smoothing, 0.0);
            let (points, mut curve) = (paired.points(), Curve::default());
            curve.update(points, paired.generation(), settings);
            let [lo, hi] = curve.x_extent(points);
            let (raw, smooth) = curve.lines_in_window(points, settings, XWindow { lo, hi, n_columns: 1000 });
            let all = |lines: &ui::chart::Polylines| lines.lines().flatten().copied().collect::<Vec<[f64; 2]>>();
            (all(&raw), all(&smooth), (lo, hi))
        };
        let (raw, smooth, ends) = drawn(&loss, &loss);
        assert!(raw.iter().chain(&smooth).all(|[x, y]| (x - y).abs() < 1e-9), "against itself it is the diagonal");
        let mut sorted = loss.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(ends, (sorted[0], sorted[59]), "what was written has its place too");
        let (raw, smooth, _) = drawn(&loss, &error);
        let mut expected: Vec<[f64; 2]> =
            smoothed(&error, 0.8).into_iter().zip(smoothed(&loss, 0.8)).map(|(x, y)| [x, y]).collect();
        expected.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(smooth.len(), expected.len());
        let is_near = |(a, b): (&[f64; 2], &[f64; 2])| (a[0] - b[0]).abs() < 1e-9 && (a[1] - b[1]).abs() < 1e-9;
        assert!(smooth.iter().zip(&expected).all(is_near), "{smooth:?} {expected:?}");
        assert_eq!(raw.len(), 60);
    }
}
