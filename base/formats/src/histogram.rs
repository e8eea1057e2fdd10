//! TensorFlow's histogram buckets: what `HistogramSummary` counts into, and what TensorBoard expects.
//!
//! The limits are `-DBL_MAX, …, -1.1e-12, -1e-12, 0, 1e-12, 1.1e-12, …, DBL_MAX`, each magnitude 1.1 times the one
//! before, below 1e20 (tensorflow/core/lib/histogram/histogram.cc). Bucket `i` counts values in `[limit[i-1], limit[i])`.

use std::sync::LazyLock;

use crate::proto::HistogramProto;

/// Positive limits, ascending, the last one `f64::MAX`; the negative ones are their mirror image.
static MAGNITUDES: LazyLock<Vec<f64>> = LazyLock::new(|| {
    // By repeated multiplication, as TensorFlow does: powers would differ in the last bits.
    let mut limits: Vec<f64> =
        std::iter::successors(Some(1e-12), |v| Some(v * 1.1)).take_while(|v| *v < 1e20).collect();
    limits.push(f64::MAX);
    limits
});

/// Bits of a magnitude that index [`CELLS`]: the exponent and the top two bits of the mantissa.
const CELL_SHIFT: u32 = 50;

/// For each cell of magnitudes, how many limits lie at or below its lower end. A cell spans a factor of at most 1.25, so
/// it holds at most three limits and a value is placed in a few comparisons instead of a binary search.
static CELLS: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let n_cells = (f64::INFINITY.to_bits() >> CELL_SHIFT) as usize + 1;
    (0..n_cells as u64)
        .map(|cell| {
            let low = f64::from_bits(cell << CELL_SHIFT);
            MAGNITUDES.partition_point(|limit| *limit <= low) as u16
        })
        .collect()
});

/// Number of buckets: both signs, and the one that ends at zero.
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

/// The bucket of a finite value: the first whose limit is above it.
fn bucket_of(value: f64) -> usize {
    let limits = &*MAGNITUDES;
    let magnitude = value.abs();
    let mut n_below = usize::from(CELLS[(magnitude.to_bits() >> CELL_SHIFT) as usize]);
    while n_below < limits.len() && limits[n_below] <= magnitude {
        n_below += 1;
    }
    if value >= 0.0 {
        return (limits.len() + 1 + n_below).min(n_buckets() - 1);
    }
    // Mirrored, a limit equal to the magnitude is no longer above the value.
    if n_below > 0 && limits[n_below - 1] == magnitude {
        n_below -= 1;
    }
    limits.len() - n_below
}

/// Counts values into TensorFlow's buckets.
///
/// ```
/// let mut h = stepscope_formats::histogram::HistogramBuilder::new();
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

    /// Counts one value. NaN and infinities have no bucket; they are counted in [`n_nonfinite`](Self::n_nonfinite) only.
    pub fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.n_nonfinite += 1;
            return;
        }
        self.counts[bucket_of(value)] += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.num += 1;
        self.sum += value;
        self.sum_squares += value * value;
    }

    /// How many NaN and infinities were given.
    pub fn n_nonfinite(&self) -> u64 {
        self.n_nonfinite
    }

    /// The message. A run of empty buckets becomes one, which keeps the limit below the next full bucket: that is how
    /// TensorFlow writes it.
    pub fn to_proto(&self) -> HistogramProto {
        let mut proto = HistogramProto {
            min: self.min,
            max: self.max,
            num: self.num as f64,
            sum: self.sum,
            sum_squares: self.sum_squares,
            ..HistogramProto::default()
        };
        for (idx, &count) in self.counts.iter().enumerate() {
            let next_is_empty = self.counts.get(idx + 1) == Some(&0);
            if count > 0 || !next_is_empty {
                proto.bucket_limit.push(limit(idx));
                proto.bucket.push(count as f64);
            }
        }
        proto
    }
}

impl<T: Into<f64>> Extend<T> for HistogramBuilder {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.add(value.into());
        }
    }
}

#[cfg(test)]
mod tests;
