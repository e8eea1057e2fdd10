//! TensorFlow's histogram buckets, into which `HistogramSummary` counts and which TensorBoard expects.
//!
//! The limits are `-DBL_MAX, …, -1.1e-12, -1e-12, 0, 1e-12, 1.1e-12, …, DBL_MAX`, each magnitude 1.1 times the one
//! before, below 1e20 (tensorflow/core/lib/histogram/histogram.cc). Bucket `i` counts values in `[limit[i-1],
//! limit[i])`.

use std::sync::LazyLock;

use crate::proto::HistogramProto;

/// Positive limits, ascending, the last one `f64::MAX`; the negative ones are their mirror image.
static MAGNITUDES: LazyLock<Vec<f64>> = LazyLock::new(|| {
    // Repeated multiplication, as in TensorFlow: powers would differ in the last bits.
    let mut limits: Vec<f64> =
        std::iter::successors(Some(1e-12), |v| Some(v * 1.1)).take_while(|v| *v < 1e20).collect();
    limits.push(f64::MAX);
    limits
});

/// The number of buckets: those of both signs, and the one that ends at zero.
fn n_buckets() -> usize {
    2 * MAGNITUDES.len() + 1
}

/// The upper limit of bucket `idx`.
fn limit(idx: usize) -> f64 {
    let n = MAGNITUDES.len();
    match idx {
        _ if idx < n => -MAGNITUDES[n - 1 - idx],
        _ if idx == n => 0.0,
        _ => MAGNITUDES[idx - n - 1],
    }
}

/// Maps a value to an integer in the same order; -0.0 is directly below 0.0.
#[inline]
fn sort_key(value: f64) -> u64 {
    let bits = value.to_bits();
    // All bits of a negative value are flipped, of a positive one only the sign.
    bits ^ ((bits as i64 >> 63) as u64 | 1 << 63)
}

/// The number of low bits of a key that do not choose the cell: the sign, the exponent and the top five bits of the
/// mantissa do.
const CELL_SHIFT: u32 = 47;

/// An index from values to buckets. A cell of keys spans less than a factor of 1.04, so it holds at most one limit, and
/// a value's bucket is found by one comparison, without a branch.
struct BucketIndex {
    /// The limits' keys. The key of the limit 0 is that of -0.0, which belongs to the same bucket as 0.0. The last key
    /// is above all others, so that every value has a bucket.
    limits: Vec<u64>,
    /// For each cell, the number of limits below its lower end.
    cells: Vec<u16>,
}

static BUCKET_INDEX: LazyLock<BucketIndex> = LazyLock::new(|| {
    let mut limits: Vec<u64> = (0..n_buckets()).map(|idx| sort_key(limit(idx))).collect();
    limits[MAGNITUDES.len()] = sort_key(-0.0);
    limits[n_buckets() - 1] = u64::MAX;
    let mut n_below = 0;
    let cells = (0..1 << (64 - CELL_SHIFT)).map(|cell: u64| {
        n_below += limits[n_below..].iter().take_while(|limit| **limit < cell << CELL_SHIFT).count();
        n_below as u16
    });
    BucketIndex { cells: cells.collect(), limits }
});

impl BucketIndex {
    /// The bucket of a finite value: the first whose limit is above it.
    #[inline]
    fn bucket_of(&self, value: f64) -> usize {
        let key = sort_key(value);
        let n_below = usize::from(self.cells[(key >> CELL_SHIFT) as usize]);
        n_below + usize::from(self.limits[n_below] <= key)
    }
}

/// Counts values into TensorFlow's buckets.
///
/// ```
/// let mut h = formats::histogram::HistogramBuilder::new();
/// h.extend([0.5_f32, -0.25, 0.5]);
/// let proto = h.to_proto();
/// assert_eq!((proto.num, proto.min, proto.max), (3.0, -0.25, 0.5));
/// ```
#[derive(Debug, Clone)]
pub struct HistogramBuilder {
    counts: Vec<u64>,
    min: f64,
    max: f64,
    num: u64,
    sum: f64,
    sum_squares: f64,
    n_nonfinite: u64,
}

impl Default for HistogramBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl HistogramBuilder {
    /// An empty histogram.
    pub fn new() -> Self {
        Self {
            counts: vec![0; n_buckets()],
            min: f64::MAX,
            max: f64::MIN,
            num: 0,
            sum: 0.0,
            sum_squares: 0.0,
            n_nonfinite: 0,
        }
    }

    /// Counts one value. NaN and infinities have no bucket; they are counted in [`n_nonfinite`](Self::n_nonfinite)
    /// only.
    pub fn add(&mut self, value: f64) {
        self.extend([value]);
    }

    /// The number of NaN and infinities among the values.
    pub fn n_nonfinite(&self) -> u64 {
        self.n_nonfinite
    }

    /// The histogram in TensorFlow's form: a run of empty buckets becomes one bucket, with the limit of the run's last
    /// bucket.
    pub fn to_proto(&self) -> HistogramProto {
        let next_is_empty = |idx: usize| self.counts.get(idx + 1) == Some(&0);
        self.proto_of((0..self.counts.len()).filter(|idx| self.counts[*idx] > 0 || !next_is_empty(*idx)))
    }

    /// The histogram in PyTorch's form: all buckets from the first to the last that have a value, the empty ones between
    /// them too, and an empty one before them.
    pub fn to_dense_proto(&self) -> HistogramProto {
        let is_filled = |count: &u64| *count > 0;
        let first = self.counts.iter().position(is_filled).unwrap_or(0).saturating_sub(1);
        let end = self.counts.iter().rposition(is_filled).map_or(0, |last| last + 1);
        self.proto_of(first..end)
    }

    fn proto_of(&self, buckets: impl Iterator<Item = usize>) -> HistogramProto {
        let (bucket_limit, bucket) = buckets.map(|idx| (limit(idx), self.counts[idx] as f64)).unzip();
        HistogramProto {
            min: self.min,
            max: self.max,
            num: self.num as f64,
            sum: self.sum,
            sum_squares: self.sum_squares,
            bucket_limit,
            bucket,
        }
    }
}

impl<T: Into<f64>> Extend<T> for HistogramBuilder {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        let index = &*BUCKET_INDEX;
        let (mut min, mut max, mut num) = (self.min, self.max, 0);
        // Summed in the values' order, as TensorFlow does: the last bits depend on it.
        let (mut sum, mut sum_squares) = (self.sum, self.sum_squares);
        for value in values {
            let value: f64 = value.into();
            if !value.is_finite() {
                self.n_nonfinite += 1;
                continue;
            }
            self.counts[index.bucket_of(value)] += 1;
            min = if value < min { value } else { min };
            max = if value > max { value } else { max };
            num += 1;
            sum += value;
            sum_squares += value * value;
        }
        (self.min, self.max, self.sum, self.sum_squares) = (min, max, sum, sum_squares);
        self.num += num;
    }
}

#[cfg(test)]
mod tests;
