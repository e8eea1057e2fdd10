//! Groups of runs, and the bands that their series span.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::align::{interpolate, values_by_step};
use crate::{run::Run, series::ScalarSeries};

/// The criterion by which runs are grouped.
#[derive(Debug, Clone)]
pub enum GroupBy {
    /// The first capture of the pattern in the run's name, or the entire match where the pattern captures nothing.
    Name(Regex),
    /// The value of a hyperparameter.
    HParam(String),
}

/// Groups runs, in the order of `runs`; leaves out runs that do not match the pattern or lack the hyperparameter.
pub fn groups<'a>(runs: impl IntoIterator<Item = &'a Run>, by: &GroupBy) -> BTreeMap<String, Vec<&'a Run>> {
    let mut groups: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        let name = match by {
            GroupBy::Name(pattern) => pattern.captures(&run.name).map(|found| {
                let entire_match = found.get(0).map_or("", |m| m.as_str());
                found.get(1).map_or(entire_match, |m| m.as_str()).to_owned()
            }),
            GroupBy::HParam(hparam) => run.hparams().get(hparam).map(ToString::to_string),
        };
        if let Some(name) = name {
            groups.entry(name).or_default().push(run);
        }
    }
    groups
}

/// The steps at which the series of a band are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Each step of any series, with the series that have it.
    Exact,
    /// Each step of any series, with all series whose range includes it, interpolated linearly.
    Interpolated,
}

/// The range of several series at one step; values that are not finite are ignored.
#[derive(Debug, Clone, PartialEq)]
pub struct BandPoint {
    /// The step.
    pub step: i64,
    /// The number of series with a finite value at this step, at least one.
    pub n: usize,
    /// The mean of these values.
    pub mean: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The requested quantiles, in their order.
    pub quantiles: Vec<f64>,
}

/// Computes the band that `series` span, with these quantiles (0 to 1). After a restart the newest values of a series
/// count.
pub fn band(series: &[&ScalarSeries], align: Align, quantiles: &[f64]) -> Vec<BandPoint> {
    let series: Vec<BTreeMap<i64, f64>> = series.iter().map(|series| values_by_step(series)).collect();
    let steps: BTreeSet<i64> = series.iter().flat_map(BTreeMap::keys).copied().collect();
    let value_at = |points: &BTreeMap<i64, f64>, step: i64| match align {
        Align::Exact => points.get(&step).copied(),
        Align::Interpolated => interpolate(points, step),
    };
    let point = |step: i64| {
        let mut values: Vec<f64> =
            series.iter().filter_map(|points| value_at(points, step)).filter(|v| v.is_finite()).collect();
        (!values.is_empty()).then(|| BandPoint {
            step,
            n: values.len(),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            quantiles: quantiles.iter().map(|q| quantile(&mut values, *q)).collect(),
        })
    };
    steps.into_iter().filter_map(point).collect()
}

/// Computes the `q`-quantile (0 to 1) of numbers, interpolated linearly between adjacent numbers; NaN for no numbers.
/// Reorders `values`.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let position = q.clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let (_, &mut lower, above) = values.select_nth_unstable_by(position as usize, f64::total_cmp);
    let upper = above.iter().copied().min_by(f64::total_cmp).unwrap_or(lower);
    if position.fract() == 0.0 { lower } else { lower + (upper - lower) * position.fract() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::series::Point;

    fn series(points: &[(i64, f64)]) -> ScalarSeries {
        points.iter().map(|&(step, value)| Point { step, wall: 0.0, value }).collect()
    }

    #[test]
    fn runs_by_a_part_of_their_name() {
        let run = |name: &str| Run { name: name.into(), ..Run::default() };
        let runs = ["mlp/seed1", "mlp/seed2", "lstm/seed1", "other"].map(run);
        let names = |pattern: &str| -> Vec<(String, usize)> {
            let by = GroupBy::Name(Regex::new(pattern).unwrap());
            groups(&runs, &by).into_iter().map(|(name, runs)| (name, runs.len())).collect()
        };
        assert_eq!(names(r"^(\w+)/"), [("lstm".to_owned(), 1), ("mlp".to_owned(), 2)]);
        assert_eq!(names(r"seed\d"), [("seed1".to_owned(), 2), ("seed2".to_owned(), 1)]);
        assert_eq!(groups(&runs, &GroupBy::HParam("rate".into())).len(), 0);
    }

    #[test]
    fn bands_by_hand() {
        let (a, b) = (series(&[(0, 1.0), (2, 3.0)]), series(&[(0, 3.0), (1, f64::NAN), (2, 7.0), (4, 9.0)]));
        let got = band(&[&a, &b], Align::Exact, &[0.5]);
        let rows: Vec<_> = got.iter().map(|p| (p.step, p.n, p.mean, p.min, p.max, p.quantiles[0])).collect();
        assert_eq!(rows, [(0, 2, 2.0, 1.0, 3.0, 2.0), (2, 2, 5.0, 3.0, 7.0, 5.0), (4, 1, 9.0, 9.0, 9.0, 9.0)]);
        let got = band(&[&a, &series(&[(0, 0.0), (1, 4.0), (2, 4.0)])], Align::Interpolated, &[]);
        assert_eq!(
            got.iter().map(|p| (p.step, p.n, p.mean)).collect::<Vec<_>>(),
            [(0, 2, 0.5), (1, 2, 3.0), (2, 2, 3.5)]
        );
    }

    #[test]
    fn quantiles_by_hand() {
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0, 4.0], 0.25), 1.75);
        assert!(quantile(&mut [], 0.5).is_nan());
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted(mut values in prop::collection::vec(-9.0..9.0f64, 1..40), q in 0.0..=1.0f64) {
            let got = quantile(&mut values.clone(), q);
            values.sort_by(f64::total_cmp);
            let position = q * (values.len() - 1) as f64;
            let (low, high) = (values[position.floor() as usize], values[position.ceil() as usize]);
            prop_assert!((got - (low + (high - low) * position.fract())).abs() < 1e-12);
        }
    }
}
