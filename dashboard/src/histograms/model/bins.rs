//! Comparable histograms: re-binned to equal bins over their common range, and thinned to a card's height. No egui.
//!
//! As TensorBoard does it (plugins/histogram/tf_histogram_dashboard, `vz_histogram_timeseries`): 30 bins over the union
//! of all ranges; a bucket gives each bin the share of its count that overlaps it.

use crate::cards::XAxis;
use summaries::{Bucket, Histogram, HistogramSeries};
use ui::chart::{Bounds, extent};

/// The number of a ridge's bins.
pub const N_BINS: usize = 30;
/// Ridges that a card shows, at most: with more they would be a pixel or two apart.
const MAX_RIDGES: usize = 60;

/// The counts of equal bins.
pub type Bins = [f64; N_BINS];

/// Distributes `buckets` over equal bins from `lo` to `hi`, `lo < hi`; parts outside are left out. A bucket without a
/// width counts in the bin around it; buckets with edges or counts that are not finite do not count.
fn rebin(buckets: &[Bucket], lo: f64, hi: f64) -> Bins {
    let mut bins = [0.0; N_BINS];
    let bin_w = (hi - lo) / N_BINS as f64;
    for bucket in buckets {
        let (left, right) = (bucket.left.min(bucket.right), bucket.left.max(bucket.right));
        let is_finite = [bucket.left, bucket.right, bucket.count].iter().all(|v| v.is_finite());
        if !is_finite || right < lo || left > hi {
            continue;
        }
        let bin_idx = |x: f64| (((x - lo) / bin_w).floor().max(0.0) as usize).min(N_BINS - 1);
        let (first, last) = (bin_idx(left), bin_idx(right));
        if first == last {
            bins[first] += bucket.count * overlap(left, right, lo, hi);
            continue;
        }
        for (i, bin) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
            let start = lo + i as f64 * bin_w;
            *bin += bucket.count * overlap(left, right, start, start + bin_w);
        }
    }
    bins
}

/// Returns the share of `left..right` that lies in `start..end`; 1 for an interval without a width.
fn overlap(left: f64, right: f64, start: f64, end: f64) -> f64 {
    let width = right - left;
    if width <= 0.0 { 1.0 } else { ((right.min(end) - left.max(start)) / width).clamp(0.0, 1.0) }
}

/// A histogram in equal bins.
#[derive(Clone, Debug)]
pub struct Ridge {
    /// The histogram's row in the series.
    pub row: usize,
    pub step: i64,
    /// Position on the chosen axis.
    pub x: f64,
    pub bins: Bins,
}

/// The ridges of a series, recomputed when the series grew or the axis changed.
#[derive(Clone, Debug, Default)]
pub struct Ridges {
    /// The ridges, the oldest first.
    pub rows: Vec<Ridge>,
    /// The least value of the first bin.
    pub lo: f64,
    /// The greatest value of the last bin.
    pub hi: f64,
    /// The greatest count of any bin.
    pub greatest: f64,
    /// Least and greatest value of the newest histogram.
    pub newest: Option<[f64; 2]>,
    /// The number of rows and the axis for which the ridges were computed.
    stamp: Option<(usize, XAxis)>,
}

impl Ridges {
    /// Updates the ridges. A series of many rows is thinned; its newest row always stays. Rows that cannot be read are
    /// left out.
    pub fn update(&mut self, series: &HistogramSeries, axis: XAxis) {
        let stamp = Some((series.len(), axis));
        if self.stamp == stamp {
            return;
        }
        self.stamp = stamp;
        let read = |row: usize| Some((row, series.histogram(row).ok()?));
        let chosen: Vec<(usize, Histogram)> = thinned(series.len(), MAX_RIDGES).into_iter().filter_map(read).collect();
        self.newest = chosen.last().map(|(_, newest)| [newest.min, newest.max]);
        let finite = chosen.iter().filter(|(_, value)| value.min.is_finite() && value.max.is_finite());
        let range = extent(finite.flat_map(|(_, value)| [value.min, value.max]));
        [self.lo, self.hi] = Bounds::around(range, range).x;
        let ridge = |(row, value): &(usize, Histogram)| Ridge {
            row: *row,
            step: series.step[*row],
            x: position(series, *row, axis),
            bins: rebin(&value.buckets, self.lo, self.hi),
        };
        self.rows = chosen.iter().map(ridge).collect();
        self.greatest = self.rows.iter().flat_map(|ridge| ridge.bins).fold(0.0, f64::max);
    }

    /// The range of values of a bin.
    pub fn bin_range(&self, bin: usize) -> [f64; 2] {
        let width = (self.hi - self.lo) / N_BINS as f64;
        [self.lo + bin as f64 * width, self.lo + (bin + 1) as f64 * width]
    }
}

/// Returns the position of a row on an axis.
pub fn position(series: &HistogramSeries, row: usize, axis: XAxis) -> f64 {
    match axis {
        XAxis::Step => series.step[row] as f64,
        XAxis::Relative => series.wall[row] - series.wall[0],
        XAxis::Wall => series.wall[row],
    }
}

/// Returns at most `max` indices below `n`, evenly spaced and including the last one.
pub fn thinned(n: usize, max: usize) -> Vec<usize> {
    let stride = n.div_ceil(max).max(1);
    let mut rows: Vec<usize> = (0..n).rev().step_by(stride).collect();
    rows.reverse();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_is_shared_by_the_bins_it_overlaps() {
        let bins = rebin(&[Bucket { left: 0.5, right: 2.0, count: 3.0 }], 0.0, 30.0);
        assert_eq!(&bins[..3], [1.0, 2.0, 0.0]);
        let point = rebin(&[Bucket { left: 29.9, right: 29.9, count: 5.0 }], 0.0, 30.0);
        assert_eq!(point[29], 5.0);
        let foreign = rebin(&[Bucket { left: f64::NAN, right: 2.0, count: 3.0 }], 0.0, 30.0);
        assert_eq!(foreign, [0.0; N_BINS]);
    }

    #[test]
    fn thinning_keeps_the_newest() {
        assert_eq!(thinned(0, MAX_RIDGES), Vec::<usize>::new());
        assert_eq!(thinned(3, MAX_RIDGES), [0, 1, 2]);
        let many = thinned(10_000, MAX_RIDGES);
        assert!(many.len() <= MAX_RIDGES && many.last() == Some(&9_999) && many.is_sorted());
    }

    proptest! {
        #[test]
        fn counts_are_conserved(
            edges in prop::collection::vec(-100.0..100.0f64, 2..40),
            counts in prop::collection::vec(0.0..1000.0f64, 40),
        ) {
            let mut edges = edges;
            edges.sort_by(f64::total_cmp);
            let (lo, hi) = (edges[0], edges[edges.len() - 1]);
            prop_assume!(hi - lo > 1e-6);
            let buckets: Vec<Bucket> = edges
                .windows(2)
                .zip(&counts)
                .map(|(e, count)| Bucket { left: e[0], right: e[1], count: *count })
                .collect();
            let total: f64 = buckets.iter().map(|b| b.count).sum();
            let bins = rebin(&buckets, lo, hi);
            prop_assert!(bins.iter().all(|count| *count >= 0.0));
            prop_assert!((bins.iter().sum::<f64>() - total).abs() <= 1e-6 * total.max(1.0));
        }
    }
}
