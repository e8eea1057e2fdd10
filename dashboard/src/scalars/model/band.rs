//! Groups of runs as bands: least, mean and greatest value at each x. No egui here.
//!
//! The values of a band are looked up at a fixed number of places, by binary search in each run and interpolated
//! between adjacent points, so that the time does not depend on the number of points. A run counts between its first
//! and its last point; after a restart the newest start counts.

use super::points::Points;
use crate::cards::XAxis;
use regex::Regex;
use std::{collections::BTreeMap, sync::Arc};
use ui::{
    chart::{decimate::lower_bound, extent},
    natural::Natural,
};

/// Places at which the values of a band are looked up.
const N_PLACES: usize = 300;

/// The band of a group of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// The common part of the runs' names.
    pub name: Arc<str>,
    pub n_runs: usize,
    /// Places with at least one run, ascending, each with least, mean and greatest value.
    pub places: Vec<(f64, [f64; 3])>,
}

/// Groups of lines (indices of `labels`) by the part of the label that `pattern` captures, or matches where it captures
/// nothing. Lines that do not match are in no group.
pub fn groups<'a>(pattern: &Regex, labels: impl Iterator<Item = &'a str>) -> BTreeMap<Natural<Arc<str>>, Vec<usize>> {
    let mut groups: BTreeMap<Natural<Arc<str>>, Vec<usize>> = BTreeMap::new();
    for (i, label) in labels.enumerate() {
        if let Some(captures) = pattern.captures(label) {
            let part = captures.iter().flatten().nth(1).or(captures.get(0)).map_or("", |m| m.as_str());
            groups.entry(Natural(part.into())).or_default().push(i);
        }
    }
    groups
}

/// The band of `lines` over all their x. `value` returns the value of a line's point, smoothed or not; values that are
/// not finite do not count.
pub fn band(name: Arc<str>, lines: &[Points<'_>], axis: XAxis, value: impl Fn(usize, usize) -> f64) -> Band {
    let ends = lines.iter().filter(|p| !p.is_empty()).flat_map(|p| {
        let pieces = p.series().pieces();
        pieces.flat_map(move |piece| [p.x(axis, piece.start), p.x(axis, piece.end - 1)])
    });
    let [lo, hi] = extent(ends);
    let mut out = Band { name, n_runs: lines.len(), places: Vec::new() };
    if !(lo.is_finite() && hi.is_finite()) {
        return out;
    }
    let n_places = if hi > lo { N_PLACES } else { 1 };
    for place in 0..n_places {
        let x = lo + (hi - lo) * place as f64 / (N_PLACES - 1) as f64;
        let values = (0..lines.len()).filter_map(|i| value_at(lines[i], axis, x, |row| value(i, row)));
        let mut n = 0.0;
        let mut sums = [f64::INFINITY, 0.0, f64::NEG_INFINITY];
        for v in values.filter(|v| v.is_finite()) {
            n += 1.0;
            sums = [sums[0].min(v), sums[1] + v, sums[2].max(v)];
        }
        if n > 0.0 {
            out.places.push((x, [sums[0], sums[1] / n, sums[2]]));
        }
    }
    out
}

/// The value at `x`, interpolated between two points; `None` without a point on either side.
fn value_at(points: Points<'_>, axis: XAxis, x: f64, value: impl Fn(usize) -> f64) -> Option<f64> {
    let mut pieces: Vec<_> = points.series().pieces().collect();
    pieces.reverse();
    // With another tag's values as x, the points are sorted by x whatever their steps.
    if points.has_tag_x() {
        pieces.clear();
        pieces.push(0..points.len());
    }
    // Rounding moves the last place slightly beyond the last point.
    let slack = 1e-9 * x.abs().max(1.0);
    for piece in pieces {
        let after = piece.start + lower_bound(piece.len(), |i| points.x(axis, piece.start + i) < x - slack);
        if after >= piece.end {
            continue;
        }
        let (x1, y1) = (points.x(axis, after), value(after));
        if x1 <= x + slack {
            return Some(y1);
        }
        if after > piece.start {
            let (x0, y0) = (points.x(axis, after - 1), value(after - 1));
            return Some(y0 + (y1 - y0) * ((x - x0) / (x1 - x0)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::model::testing::series;
    use summaries::derive::group;

    #[test]
    fn groups_by_what_is_captured() {
        let labels = ["mlp/seed1", "mlp/seed2", "lstm/seed1", "other"];
        let names = |pattern: &str| -> Vec<(String, Vec<usize>)> {
            let all = groups(&Regex::new(pattern).unwrap(), labels.into_iter());
            all.into_iter().map(|(name, rows)| (name.0.to_string(), rows)).collect()
        };
        assert_eq!(names(r"^(\w+)/"), [("lstm".to_owned(), vec![2]), ("mlp".to_owned(), vec![0, 1])]);
        assert_eq!(names(r"seed\d"), [("seed1".to_owned(), vec![0, 2]), ("seed2".to_owned(), vec![1])]);
    }

    /// At the places looked up, the same as the exact band of `summaries::derive`.
    #[test]
    fn equals_the_exact_band() {
        let (a, b) = (series(&[(0, 1.0), (598, 3.0)]), series(&[(0, 3.0), (100, f64::NAN), (299, 7.0), (598, 9.0)]));
        let b_finite = series(&[(0, 3.0), (299, 7.0), (598, 9.0)]);
        let lines = [Points::new(&a), Points::new(&b_finite)];
        let got = band("x".into(), &lines, XAxis::Step, |i, row| lines[i].values().get(row));
        let exact = group::band(&[&a, &b], group::Align::Interpolated, &[]);
        assert_eq!((got.places.len(), got.n_runs), (N_PLACES, 2));
        for point in exact.iter().filter(|p| p.step % 598 == 0) {
            let place = got.places.iter().find(|(x, _)| (*x - point.step as f64).abs() < 0.5).unwrap();
            assert_eq!(place.1, [point.min, point.mean, point.max]);
        }
        // Half way: 2 and 7 by hand.
        let (_, [lo, mean, hi]) =
            got.places.iter().min_by(|a, b| (a.0 - 299.0).abs().total_cmp(&(b.0 - 299.0).abs())).unwrap();
        assert!((lo - 2.0).abs() < 0.01 && (mean - 4.5).abs() < 0.02 && (hi - 7.0).abs() < 0.02, "{lo} {mean} {hi}");
    }

    #[test]
    fn a_restart_counts_with_its_newest_start_and_nothing_gives_nothing() {
        let restarted = series(&[(0, 1.0), (2, 1.0), (1, 5.0), (2, 5.0)]);
        let got = band("".into(), &[Points::new(&restarted)], XAxis::Step, |_, row| restarted.values().get(row));
        assert_eq!(got.places.first().map(|p| p.1[1]), Some(1.0));
        assert_eq!(got.places.last().map(|p| p.1[1]), Some(5.0));
        assert_eq!(band("".into(), &[], XAxis::Step, |_, _| 0.0).places, []);
    }
}
