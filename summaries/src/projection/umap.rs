//! UMAP (McInnes, Healy and Melville 2018): a weighted graph of neighbours, laid out so that strongly connected vectors
//! are close and others are not.

use super::{
    neighbours::{Metric, Neighbours, nearest},
    pca::{initial_layout, reduce_dims},
    vectors::{Position, Progress, Random, Vectors},
};
use std::collections::BTreeMap;

/// The options of UMAP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UmapOptions {
    /// The number of dimensions of the layout, 2 or 3.
    pub n_dims: usize,
    /// The number of neighbours of each vector: few show detail, many the global structure.
    pub n_neighbours: usize,
    /// The number of passes over the edges; `None` for 500, or 200 for more than 10,000 vectors.
    pub n_epochs: Option<usize>,
    /// The measure of distance.
    pub metric: Metric,
}

impl Default for UmapOptions {
    fn default() -> Self {
        Self { n_dims: 2, n_neighbours: 15, n_epochs: None, metric: Metric::Euclidean }
    }
}

/// The curve `1 / (1 + a d^2b)` of the similarity of two places, fitted to a minimum distance of 0.1 and a spread of 1.
const A: f32 = 1.576_943;
const B: f32 = 0.895_061;
/// Random vectors that repel for each neighbour that attracts.
const NEGATIVE_SAMPLES: usize = 5;
/// The largest move of a coordinate in one step.
const MAX_MOVE: f32 = 4.0;
/// The number of vectors above which fewer epochs suffice.
const FEW_EPOCHS_ABOVE: usize = 10_000;
/// The standard deviation of the initial layout: wide enough for points to pass each other.
const INITIAL_DEVIATION: f32 = 4.0;
/// Epochs between two layouts that `show` receives.
const SHOWN_EVERY: usize = 5;

/// Lays vectors out by UMAP; `show` receives intermediate layouts. `None` when cancelled.
pub fn umap(
    vectors: &Vectors,
    options: UmapOptions,
    progress: &Progress,
    mut show: impl FnMut(&[Position]),
) -> Option<Vec<Position>> {
    let n = vectors.len();
    let vectors = reduce_dims(vectors, progress)?;
    let neighbours = nearest(&vectors, options.n_neighbours.max(2) - 1, options.metric, progress)?;
    let mut places = initial_layout(&vectors, options.n_dims, INITIAL_DEVIATION, progress)?;
    let n_epochs = options.n_epochs.unwrap_or(if n > FEW_EPOCHS_ABOVE { 200 } else { 500 });
    let mut edges = schedule_edges(&membership_graph(&neighbours), n_epochs);
    let mut random = Random::new(11);
    for epoch in 0..n_epochs {
        if progress.is_cancelled() {
            return None;
        }
        let rate = 1.0 - epoch as f32 / n_epochs as f32;
        for edge in edges.iter_mut().filter(|edge| edge.next_epoch <= epoch as f32) {
            edge.next_epoch += edge.period;
            pull(&mut places, edge.i as usize, edge.j as usize, rate);
            for _ in 0..NEGATIVE_SAMPLES {
                let other = random.below(n);
                if other != edge.i as usize {
                    push(&mut places, edge.i as usize, other, rate);
                }
            }
        }
        progress.set(epoch as f32 / n_epochs as f32);
        if epoch % SHOWN_EVERY == 0 {
            show(&places);
        }
    }
    Some(places)
}

/// Computes the weight of each pair, the smaller index first: the probabilistic union of both directed memberships.
fn membership_graph(neighbours: &Neighbours) -> BTreeMap<(u32, u32), f32> {
    let mut directed: BTreeMap<(u32, u32), f32> = BTreeMap::new();
    let k = neighbours.k.max(1);
    for (i, (distances, indices)) in neighbours.distances.chunks(k).zip(neighbours.indices.chunks(k)).enumerate() {
        for (weight, j) in memberships(distances).into_iter().zip(indices) {
            directed.insert((i as u32, *j), weight);
        }
    }
    let mut out = BTreeMap::new();
    for (&(i, j), &a) in &directed {
        let b = directed.get(&(j, i)).copied().unwrap_or(0.0);
        out.insert((i.min(j), i.max(j)), a + b - a * b);
    }
    out
}

/// Computes the membership of each neighbour: 1 for the nearest, falling with distance so that the sum is log2 of the
/// number of neighbours and the vector itself.
fn memberships(distances: &[f32]) -> Vec<f32> {
    let goal = ((distances.len() + 1) as f64).log2();
    let nearest = f64::from(distances.iter().copied().find(|d| *d > 0.0).unwrap_or(0.0));
    let beyond: Vec<f64> = distances.iter().map(|d| (f64::from(*d) - nearest).max(0.0)).collect();
    let weight = |d: f64, sigma: f64| if d > 0.0 { (-d / sigma).exp() } else { 1.0 };
    let (mut lo, mut hi, mut sigma) = (0.0_f64, f64::INFINITY, 1.0_f64);
    for _ in 0..64 {
        let sum: f64 = beyond.iter().map(|d| weight(*d, sigma)).sum();
        if (sum - goal).abs() < 1e-5 {
            break;
        }
        if sum > goal {
            hi = sigma;
            sigma = (lo + hi) / 2.0;
        } else {
            lo = sigma;
            sigma = if hi.is_finite() { (lo + hi) / 2.0 } else { sigma * 2.0 };
        }
    }
    // For equal distances the search drives sigma to 0.
    let mean = distances.iter().map(|d| f64::from(*d)).sum::<f64>() / distances.len().max(1) as f64;
    let sigma = sigma.max(1e-3 * mean).max(f64::MIN_POSITIVE);
    beyond.into_iter().map(|d| weight(d, sigma) as f32).collect()
}

/// A directed edge, and the epochs in which it attracts.
struct Edge {
    i: u32,
    j: u32,
    /// Epochs between two turns of the edge: fewer for heavier edges.
    period: f32,
    /// The epoch of the edge's next turn.
    next_epoch: f32,
}

/// Returns the edges of each pair in both directions; leaves out edges that are too light to have a turn.
fn schedule_edges(membership_graph: &BTreeMap<(u32, u32), f32>, n_epochs: usize) -> Vec<Edge> {
    let greatest = membership_graph.values().copied().fold(0.0, f32::max);
    let with_turns = membership_graph.iter().filter(|(_, weight)| **weight * n_epochs as f32 >= greatest);
    let mut edges: Vec<Edge> = with_turns
        .flat_map(|(&(i, j), weight)| {
            let period = greatest / weight;
            [(i, j), (j, i)].map(|(i, j)| Edge { i, j, period, next_epoch: period })
        })
        .collect();
    edges.sort_by_key(|edge| (edge.i, edge.j));
    edges
}

fn difference(places: &[Position], i: usize, j: usize) -> ([f32; 3], f32) {
    let (a, b) = (places[i], places[j]);
    let d = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    (d, d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
}

/// Moves two neighbours together.
fn pull(places: &mut [Position], i: usize, j: usize, rate: f32) {
    let (d, distance2) = difference(places, i, j);
    if distance2 <= 0.0 {
        return;
    }
    let power = distance2.powf(B);
    let factor = -2.0 * A * B * power / distance2 / (1.0 + A * power);
    for k in 0..3 {
        let by = (factor * d[k]).clamp(-MAX_MOVE, MAX_MOVE) * rate;
        places[i][k] += by;
        places[j][k] -= by;
    }
}

/// Moves vector `i` away from another.
fn push(places: &mut [Position], i: usize, other: usize, rate: f32) {
    let (d, distance2) = difference(places, i, other);
    if distance2 <= 0.0 {
        return;
    }
    let factor = 2.0 * B / ((0.001 + distance2) * (1.0 + A * distance2.powf(B)));
    (0..3).for_each(|k| places[i][k] += (factor * d[k]).clamp(-MAX_MOVE, MAX_MOVE) * rate);
}

#[cfg(test)]
mod tests {
    use super::super::vectors::tests::{clusters, kept_together};
    use super::*;

    #[test]
    fn the_nearest_is_a_member_and_all_sum_up() {
        let got = memberships(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(got[0], 1.0);
        assert!((got.iter().sum::<f32>() - 3.0).abs() < 1e-4, "{got:?}");
        assert!(got.windows(2).all(|w| w[0] > w[1]));
        assert_eq!(memberships(&[0.0, 0.0]), [1.0, 1.0]);
    }

    #[test]
    fn clusters_stay_together_in_two_and_three_dimensions() {
        for n_dims in [2, 3] {
            let options = UmapOptions { n_dims, n_epochs: Some(100), ..UmapOptions::default() };
            let places = umap(&clusters(40), options, &Progress::default(), |_| {}).unwrap();
            assert_eq!(kept_together(&places), 1.0);
            assert!(places.iter().flatten().all(|x| x.is_finite()));
            assert_eq!(places.iter().any(|p| p[2] != 0.0), n_dims == 3);
        }
    }

    #[test]
    fn few_equal_and_stopped() {
        for n in 0..6 {
            let vectors = Vectors::new(3, vec![1.0; 3 * n]);
            assert_eq!(umap(&vectors, UmapOptions::default(), &Progress::default(), |_| {}).unwrap().len(), n);
        }
        let progress = Progress::default();
        progress.cancel();
        assert_eq!(umap(&clusters(10), UmapOptions::default(), &progress, |_| {}), None);
    }
}
