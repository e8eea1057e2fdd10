//! Vectors, positions, and the tools of all computations: progress, threads, random numbers.

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use rayon::prelude::*;

/// Rows of numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vectors {
    n_dims: usize,
    values: Vec<f32>,
}

impl Vectors {
    /// Vectors from consecutive rows of `n_dims` numbers. An incomplete last row is left out; numbers that are not
    /// finite count as 0.
    pub fn new(n_dims: usize, mut values: Vec<f32>) -> Self {
        let n_dims = n_dims.max(1);
        values.truncate(values.len() / n_dims * n_dims);
        values.iter_mut().filter(|x| !x.is_finite()).for_each(|x| *x = 0.0);
        Self { n_dims, values }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.n_dims.max(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number of numbers in a row.
    pub fn n_dims(&self) -> usize {
        self.n_dims
    }

    /// The numbers of a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.n_dims..(i + 1) * self.n_dims]
    }

    /// The rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.n_dims.max(1))
    }

    /// Each row divided by its length; rows of zeros stay.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let mut out = self.clone();
        for row in out.values.chunks_exact_mut(self.n_dims.max(1)) {
            let length = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
            if length > 0.0 {
                row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
            }
        }
        out
    }
}

/// The progress of a computation, and the request to cancel it.
#[derive(Debug, Default)]
pub struct Progress {
    is_cancelled: AtomicBool,
    per_mille: AtomicU32,
}

impl Progress {
    /// Requests the computation to end, which then soon returns `None`.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the computation was requested to end.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// The share of the work that is done, 0 to 1.
    pub fn share(&self) -> f32 {
        self.per_mille.load(Ordering::Relaxed) as f32 / 1000.0
    }

    pub(super) fn set(&self, share: f32) {
        self.per_mille.store((share.clamp(0.0, 1.0) * 1000.0) as u32, Ordering::Relaxed);
    }
}

/// A point of a layout; in two dimensions the third number is 0.
pub type Position = [f32; 3];

/// Splits `0..n` evenly over the machine's threads and calls `work` with each range; returns the results in order.
pub(super) fn in_parallel<T: Send>(n: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let n_parts = rayon::current_num_threads().min(n.div_ceil(256)).max(1);
    let part = |i: usize| work(i * n / n_parts..(i + 1) * n / n_parts);
    (0..n_parts).into_par_iter().map(part).collect()
}

/// Pseudo-random numbers, the same on every run (`SplitMix64`; Steele, Lea and Flood 2014).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `[0, 1)`.
    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Returns a number in `0..n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `n` points about each of three far-off places in 10 dimensions.
    pub fn clusters(n: usize) -> Vectors {
        let mut random = Random::new(3);
        let mut values = Vec::new();
        for i in 0..3 * n {
            values.extend((0..10).map(|d| random.unit() + if d == i % 3 { 20.0 } else { 0.0 }));
        }
        Vectors::new(10, values)
    }

    /// Share of points whose nearest neighbour in the layout is of their cluster.
    pub fn kept_together(places: &[Position]) -> f64 {
        let distance = |a: &Position, b: &Position| (0..3).map(|d| (a[d] - b[d]).powi(2)).sum::<f32>();
        let is_kept = |i: &usize| {
            let others = (0..places.len()).filter(|j| j != i);
            let near =
                others.min_by(|a, b| distance(&places[*a], &places[*i]).total_cmp(&distance(&places[*b], &places[*i])));
            near.is_some_and(|j| j % 3 == i % 3)
        };
        (0..places.len()).filter(is_kept).count() as f64 / places.len() as f64
    }

    #[test]
    fn rows_and_what_is_not_finite() {
        let vectors = Vectors::new(2, vec![3.0, 4.0, f32::NAN, 0.0, 9.0]);
        assert_eq!((vectors.len(), vectors.row(1)), (2, &[0.0, 0.0][..]));
        let normalized = vectors.normalized();
        assert_eq!((normalized.row(0), normalized.row(1)), (&[0.6, 0.8][..], &[0.0, 0.0][..]));
    }
}
