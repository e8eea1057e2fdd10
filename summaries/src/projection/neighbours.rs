//! Nearest neighbours by comparing all pairs: exact, on all threads, and fast enough for the tens of thousands of
//! vectors of a layout.

use super::vectors::{Progress, Vectors, in_parallel};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The measure of distance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Metric {
    /// The length of the difference.
    #[default]
    Euclidean,
    /// One minus the cosine of the angle between the vectors, 0 to 2.
    Cosine,
}

/// The nearest neighbours of each vector, without the vector itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    /// The number of neighbours of each vector.
    pub k: usize,
    /// The neighbours of each vector, row by row, the nearest first.
    pub indices: Vec<u32>,
    /// The distances of the neighbours, row by row.
    pub distances: Vec<f32>,
}

/// Computes the square of the Euclidean distance.
fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0_f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(x, y)| (x - y) * (x - y)).sum::<f32>();
    for (a, b) in a_chunks.zip(b_chunks) {
        for i in 0..LANES {
            let difference = a[i] - b[i];
            sums[i] += difference * difference;
        }
    }
    rest + sums.iter().sum::<f32>()
}

/// Converts the squared Euclidean distance of vectors that [`prepare`] returned to the distance by the metric.
fn distance(metric: Metric, squared_distance: f32) -> f32 {
    match metric {
        Metric::Euclidean => squared_distance.sqrt(),
        // For unit vectors |a - b|^2 = 2 - 2 cos.
        Metric::Cosine => squared_distance / 2.0,
    }
}

/// Returns vectors from whose Euclidean distances [`distance`] computes the distances by the metric.
fn prepare(vectors: &Vectors, metric: Metric) -> Vectors {
    if metric == Metric::Cosine { vectors.normalized() } else { vectors.clone() }
}

/// Finds the `k` nearest neighbours of each vector, or all others if there are fewer; `None` when cancelled.
pub fn nearest(vectors: &Vectors, k: usize, metric: Metric, progress: &Progress) -> Option<Neighbours> {
    let vectors = prepare(vectors, metric);
    let n = vectors.len();
    let k = k.min(n.saturating_sub(1));
    let n_done = AtomicUsize::new(0);
    let parts = in_parallel(n, |rows| {
        let mut best: Vec<(f32, u32)> = Vec::with_capacity(k + 1);
        let mut found = Vec::with_capacity(rows.len() * k);
        for i in rows {
            if progress.is_cancelled() {
                return found;
            }
            fill_nearest(&vectors, i, k, &mut best);
            found.extend_from_slice(&best);
            let done = n_done.fetch_add(1, Ordering::Relaxed);
            if done.is_multiple_of(64) {
                progress.set(done as f32 / n as f32);
            }
        }
        found
    });
    if progress.is_cancelled() {
        return None;
    }
    let pairs = || parts.iter().flatten();
    Some(Neighbours {
        k,
        indices: pairs().map(|(_, j)| *j).collect(),
        distances: pairs().map(|(squared_distance, _)| distance(metric, *squared_distance)).collect(),
    })
}

/// Finds the `k` nearest neighbours of vector `i` with their distances, the nearest first.
///
/// # Panics
/// When there is no such vector.
pub fn nearest_of(vectors: &Vectors, i: usize, k: usize, metric: Metric) -> Vec<(usize, f32)> {
    let vectors = prepare(vectors, metric);
    let mut best = Vec::new();
    fill_nearest(&vectors, i, k.min(vectors.len().saturating_sub(1)), &mut best);
    best.into_iter().map(|(squared_distance, j)| (j as usize, distance(metric, squared_distance))).collect()
}

/// Fills `best` with the squared distances and indices of the nearest neighbours of vector `i`.
fn fill_nearest(vectors: &Vectors, i: usize, k: usize, best: &mut Vec<(f32, u32)>) {
    best.clear();
    if k == 0 {
        return;
    }
    let row = vectors.row(i);
    for (j, other) in vectors.rows().enumerate().filter(|(j, _)| *j != i) {
        let squared_distance = squared_distance(row, other);
        if best.len() == k && squared_distance >= best[k - 1].0 {
            continue;
        }
        if best.len() == k {
            best.pop();
        }
        let at = best.partition_point(|(known, _)| *known <= squared_distance);
        best.insert(at, (squared_distance, j as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let vectors = Vectors::new(2, vec![1.0, 0.0, 2.0, 0.0, 0.0, 1.5]);
        assert_eq!(nearest_of(&vectors, 0, 2, Metric::Euclidean), [(1, 1.0), (2, 3.25_f32.sqrt())]);
        let cosine = nearest_of(&vectors, 0, 9, Metric::Cosine);
        assert_eq!(cosine.iter().map(|(j, _)| *j).collect::<Vec<_>>(), [1, 2]);
        assert!(cosine[0].1.abs() < 1e-6 && (cosine[1].1 - 1.0).abs() < 1e-6);
        assert_eq!(nearest(&Vectors::new(2, vec![]), 5, Metric::Euclidean, &Progress::default()).unwrap().k, 0);
    }

    proptest! {
        #[test]
        fn equals_sorting_all(values in prop::collection::vec(-9.0..9.0f32, 30..300), k in 1usize..8) {
            let vectors = Vectors::new(10, values);
            let found = nearest(&vectors, k, Metric::Euclidean, &Progress::default()).unwrap();
            for i in 0..vectors.len() {
                let distance = |j: usize| {
                    let pairs = vectors.row(i).iter().zip(vectors.row(j));
                    pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
                };
                let mut all: Vec<f64> = (0..vectors.len()).filter(|j| *j != i).map(distance).collect();
                all.sort_by(f64::total_cmp);
                let mine = &found.distances[i * found.k..(i + 1) * found.k];
                prop_assert!(mine.iter().zip(&all).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-3), "{:?} {:?}", mine, all);
            }
        }
    }
}
