//! A histogram for display, read from either form of event file.

use formats::proto::HistogramProto;

/// Values counted between two edges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Lower edge, included.
    pub left: f64,
    /// Upper edge, excluded but in the last bucket.
    pub right: f64,
    /// The number of values, which may be fractional in files.
    pub count: f64,
}

/// The distribution of one step's values.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The smallest value; of a TensorFlow 2 histogram the first full bucket's left edge. NaN when empty.
    pub min: f64,
    /// The largest value; of a TensorFlow 2 histogram the last full bucket's right edge. NaN when empty.
    pub max: f64,
    /// The number of values.
    pub num: f64,
    /// The sum of the values; NaN when the file does not say (TensorFlow 2).
    pub sum: f64,
    /// The sum of the values' squares; NaN when the file does not say (TensorFlow 2).
    pub sum_squares: f64,
    /// Ascending buckets, as TensorBoard shows them: of TensorFlow 1 without empty ones at either end.
    pub buckets: Vec<Bucket>,
}

impl Default for Histogram {
    /// A histogram of no value.
    fn default() -> Self {
        Self::from_buckets(Vec::new())
    }
}

impl Histogram {
    /// Becomes the histogram of TensorFlow 1's form: totals, and the upper limit and count of each bucket. Its outer
    /// limits are ±DBL_MAX; as in TensorBoard (tensorboard/data_compat.py) empty buckets at both ends are dropped, and
    /// the outer edges become the smallest and the largest value.
    pub(crate) fn set_limits(&mut self, totals: &HistogramProto, limits: impl Iterator<Item = (f64, f64)>) {
        let HistogramProto { min, max, num, sum, sum_squares, .. } = *totals;
        let mut left = f64::MIN;
        self.buckets.clear();
        self.buckets.extend(limits.map(|(right, count)| {
            let bucket = Bucket { left, right, count };
            left = right;
            bucket
        }));
        drop_empty_ends(&mut self.buckets);
        if let Some(first) = self.buckets.first_mut() {
            first.left = min;
        }
        if let Some(last) = self.buckets.last_mut() {
            last.right = max;
        }
        (self.min, self.max) = if self.buckets.is_empty() { (f64::NAN, f64::NAN) } else { (min, max) };
        (self.num, self.sum, self.sum_squares) = (num, sum, sum_squares);
    }

    /// The bits of all numbers, so that NaN equals itself.
    #[cfg(test)]
    pub(crate) fn bits(&self) -> Vec<u64> {
        let Histogram { min, max, num, sum, sum_squares, buckets } = self;
        let cells = buckets.iter().flat_map(|b| [b.left, b.right, b.count]);
        [*min, *max, *num, *sum, *sum_squares].into_iter().chain(cells).map(f64::to_bits).collect()
    }

    /// Becomes the histogram of TensorFlow 2's form: rows of left edge, right edge, count.
    pub(crate) fn set_rows(&mut self, rows: impl Iterator<Item = [f64; 3]>) {
        self.buckets.clear();
        self.buckets.extend(rows.map(|[left, right, count]| Bucket { left, right, count }));
        [self.min, self.max, self.num] = totals_of(&self.buckets);
        (self.sum, self.sum_squares) = (f64::NAN, f64::NAN);
    }

    /// The smallest value, the largest value, and the number of values.
    pub(crate) fn totals(&self) -> [f64; 3] {
        [self.min, self.max, self.num]
    }

    /// The quantiles by which a distribution is drawn, as in TensorBoard: those of a normal distribution half a
    /// standard deviation apart, from -1.5 to 1.5, and both ends.
    pub const QUANTILES: [f64; 9] = [0.0, 0.0668, 0.1587, 0.3085, 0.5, 0.6915, 0.8413, 0.9332, 1.0];

    /// The histogram of ascending buckets.
    pub fn from_buckets(buckets: Vec<Bucket>) -> Self {
        let [min, max, num] = totals_of(&buckets);
        Self { min, max, num, sum: f64::NAN, sum_squares: f64::NAN, buckets }
    }

    /// Returns the value below which the share `q` (0 to 1) of the values lies, interpolated linearly within a bucket;
    /// NaN when there is no value. A quantile between two full buckets is the beginning of the upper one. The order of
    /// operations is TensorBoard's (tensorboard/plugins/distribution/compressor.py), so that both compute the same
    /// bits.
    pub fn quantile(&self, q: f64) -> f64 {
        // TensorBoard counts in basis points.
        const BASIS_POINTS: f64 = 1e4;
        let (target, n) = (q.clamp(0.0, 1.0) * BASIS_POINTS, self.buckets.iter().map(|b| b.count).sum::<f64>());
        let mut below = 0.0;
        for bucket in self.buckets.iter().filter(is_full) {
            let end = below + bucket.count * BASIS_POINTS / n;
            if end > target {
                return bucket.left + (target - below) * (bucket.right - bucket.left) / (end - below);
            }
            below = end;
        }
        self.max
    }
}

/// The totals that follow from the buckets: the left edge of the first full bucket, the right edge of the last, the sum
/// of the counts.
pub(crate) fn totals_of(buckets: &[Bucket]) -> [f64; 3] {
    [
        buckets.iter().find(is_full).map_or(f64::NAN, |b| b.left),
        buckets.iter().rfind(is_full).map_or(f64::NAN, |b| b.right),
        buckets.iter().map(|b| b.count).sum(),
    ]
}

fn drop_empty_ends(buckets: &mut Vec<Bucket>) {
    buckets.truncate(buckets.iter().rposition(|b| is_full(&b)).map_or(0, |last| last + 1));
    buckets.drain(..buckets.iter().position(|b| is_full(&b)).unwrap_or(0));
}

fn is_full(bucket: &&Bucket) -> bool {
    bucket.count > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_on_the_line_through_their_bucket() {
        let bucket = |left, right, count| Bucket { left, right, count };
        let h = Histogram::from_buckets(vec![bucket(-9.0, 0.0, 0.0), bucket(0.0, 1.0, 3.0), bucket(1.0, 5.0, 1.0)]);
        assert_eq!([0.0, 0.25, 0.75, 0.875, 1.0].map(|q| h.quantile(q)), [0.0, 1.0 / 3.0, 1.0, 3.0, 5.0]);
        // Half of the values lie below a gap, half above it.
        let h = Histogram::from_buckets(vec![bucket(0.0, 1.0, 2.0), bucket(1.0, 3.0, 0.0), bucket(3.0, 4.0, 2.0)]);
        assert_eq!([0.25, 0.5, 0.75].map(|q| h.quantile(q)), [0.5, 3.0, 3.5]);
        assert!(Histogram::from_buckets(Vec::new()).quantile(0.5).is_nan());
    }
}
