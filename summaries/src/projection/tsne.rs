//! t-SNE (van der Maaten and Hinton 2008) with a Barnes-Hut tree for points far away (van der Maaten 2014) and the step
//! size of Belkina and others (2019), as in scikit-learn.

use super::{
    neighbours::{Metric, Neighbours, nearest},
    pca::{initial_layout, reduce_dims},
    tree::Tree,
    vectors::{Position, Progress, Vectors, in_parallel},
};

/// The options of t-SNE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TsneOptions {
    /// The number of dimensions of the layout, 2 or 3.
    pub n_dims: usize,
    /// The effective number of neighbours of each vector, usually 5 to 50.
    pub perplexity: f32,
    /// The number of steps of the gradient descent.
    pub n_steps: usize,
    /// Cells that look smaller than this count as one: 0 is exact, 1 coarse.
    pub theta: f32,
    /// The measure of distance.
    pub metric: Metric,
}

impl Default for TsneOptions {
    fn default() -> Self {
        Self { n_dims: 2, perplexity: 30.0, n_steps: 750, theta: 0.7, metric: Metric::Euclidean }
    }
}

/// The factor by which neighbours attract more strongly in the first steps, so that groups form.
const EXAGGERATION: f32 = 12.0;
/// The share of the steps with exaggeration.
const EXAGGERATED_SHARE: f32 = 0.25;
/// The standard deviation of the initial layout, as in scikit-learn.
const INITIAL_DEVIATION: f32 = 1e-4;
/// Steps between two layouts that `show` receives.
const SHOWN_EVERY: usize = 10;

/// Lays vectors out by t-SNE; `show` receives intermediate layouts. `None` when cancelled.
pub fn tsne(
    vectors: &Vectors,
    options: TsneOptions,
    progress: &Progress,
    mut show: impl FnMut(&[Position]),
) -> Option<Vec<Position>> {
    let n = vectors.len();
    if n < 3 {
        return initial_layout(vectors, options.n_dims, 1.0, progress);
    }
    let vectors = reduce_dims(vectors, progress)?;
    let perplexity = options.perplexity.clamp(1.0, (n - 1) as f32 / 3.0 + 0.5);
    let neighbours = nearest(&vectors, (3.0 * perplexity).ceil() as usize, options.metric, progress)?;
    let edges = symmetrize_edges(n, &neighbours, &affinities(&neighbours, perplexity));
    let mut places = initial_layout(&vectors, options.n_dims, INITIAL_DEVIATION, progress)?;
    let mut descent = Descent::new(n);
    for step in 0..options.n_steps {
        if progress.is_cancelled() {
            return None;
        }
        let is_early = (step as f32) < EXAGGERATED_SHARE * options.n_steps as f32;
        let exaggeration = if is_early { EXAGGERATION } else { 1.0 };
        let gradient = gradient(&places, &edges, exaggeration, options);
        descent.step(&mut places, &gradient, if is_early { 0.5 } else { 0.8 });
        progress.set(step as f32 / options.n_steps as f32);
        if step % SHOWN_EVERY == 0 {
            show(&places);
        }
    }
    Some(places)
}

/// Computes the probabilities of each vector's neighbours: those of a Gaussian whose width gives the perplexity.
fn affinities(neighbours: &Neighbours, perplexity: f32) -> Vec<f32> {
    let goal = f64::from(perplexity).ln();
    let row = |distances: &[f32]| {
        let squares: Vec<f64> = distances.iter().map(|d| f64::from(*d).powi(2)).collect();
        let least = squares.first().copied().unwrap_or(0.0);
        let (mut lo, mut hi, mut beta) = (0.0_f64, f64::INFINITY, 1.0_f64);
        let mut weights = vec![0.0; squares.len()];
        for _ in 0..100 {
            weights.iter_mut().zip(&squares).for_each(|(w, d)| *w = (-beta * (d - least)).exp());
            let sum: f64 = weights.iter().sum();
            let mean: f64 = weights.iter().zip(&squares).map(|(w, d)| w * (d - least)).sum::<f64>() / sum;
            let entropy = sum.ln() + beta * mean;
            if (entropy - goal).abs() < 1e-5 {
                break;
            }
            if entropy > goal {
                lo = beta;
                beta = if hi.is_finite() { (beta + hi) / 2.0 } else { beta * 2.0 };
            } else {
                hi = beta;
                beta = (beta + lo) / 2.0;
            }
        }
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(move |w| (w / sum) as f32)
    };
    neighbours.distances.chunks(neighbours.k.max(1)).flat_map(row).collect()
}

/// The weighted edges between neighbours, in both directions, by point.
struct Edges {
    starts: Vec<usize>,
    /// Point and weight; all weights sum up to 1.
    ends: Vec<(u32, f32)>,
}

fn symmetrize_edges(n: usize, neighbours: &Neighbours, weights: &[f32]) -> Edges {
    let mut pairs: Vec<(u32, u32, f32)> = Vec::with_capacity(2 * weights.len());
    for (at, (j, w)) in neighbours.indices.iter().zip(weights).enumerate() {
        let (i, w) = ((at / neighbours.k) as u32, w / (2.0 * n as f32));
        pairs.extend([(i, *j, w), (*j, i, w)]);
    }
    pairs.sort_unstable_by_key(|(i, j, _)| (*i, *j));
    let mut edges = Edges { starts: vec![0; n + 1], ends: Vec::with_capacity(pairs.len()) };
    let mut last = None;
    for (i, j, w) in pairs {
        if last == Some((i, j)) {
            if let Some((_, known)) = edges.ends.last_mut() {
                *known += w;
            }
            continue;
        }
        last = Some((i, j));
        edges.ends.push((j, w));
        edges.starts[i as usize + 1] = edges.ends.len();
    }
    // A point without edges begins where the one before it ended.
    for i in 1..=n {
        edges.starts[i] = edges.starts[i].max(edges.starts[i - 1]);
    }
    edges
}

/// The gradient of the Kullback-Leibler divergence by each coordinate.
fn gradient(places: &[Position], edges: &Edges, exaggeration: f32, options: TsneOptions) -> Vec<Position> {
    let tree = Tree::new(places, options.n_dims);
    let order: Vec<usize> = tree.order().collect();
    let parts = in_parallel(places.len(), |rows| {
        let mut sum = 0.0_f64;
        let forces: Vec<(Position, Position)> = order[rows]
            .iter()
            .map(|&i| {
                let at = places[i];
                let mut pull = [0.0_f32; 3];
                for (j, w) in &edges.ends[edges.starts[i]..edges.starts[i + 1]] {
                    let other = places[*j as usize];
                    let d = [at[0] - other[0], at[1] - other[1], at[2] - other[2]];
                    let q = w / (1.0 + d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                    (0..3).for_each(|k| pull[k] += q * d[k]);
                }
                let (push, q) = tree.repulsion(at, options.theta);
                sum += f64::from(q);
                (pull, push)
            })
            .collect();
        (forces, sum)
    });
    let total = parts.iter().map(|(_, sum)| sum).sum::<f64>().max(f64::MIN_POSITIVE) as f32;
    let mut out = vec![[0.0; 3]; places.len()];
    for (i, (pull, push)) in order.iter().zip(parts.iter().flat_map(|(forces, _)| forces)) {
        out[*i] = [0, 1, 2].map(|k| 4.0 * (exaggeration * pull[k] - push[k] / total));
    }
    out
}

/// Gradient descent with momentum. Each coordinate has a gain, which grows while the gradient keeps its sign.
struct Descent {
    rate: f32,
    velocity: Vec<Position>,
    gains: Vec<Position>,
}

impl Descent {
    fn new(n: usize) -> Self {
        let rate = (n as f32 / EXAGGERATION / 4.0).max(50.0);
        Self { rate, velocity: vec![[0.0; 3]; n], gains: vec![[1.0; 3]; n] }
    }

    fn step(&mut self, places: &mut [Position], gradient: &[Position], momentum: f32) {
        let mut mean = [0.0_f64; 3];
        for (i, place) in places.iter_mut().enumerate() {
            for k in 0..3 {
                let (velocity, gain) = (&mut self.velocity[i][k], &mut self.gains[i][k]);
                let is_opposed = *velocity * gradient[i][k] < 0.0;
                *gain = if is_opposed { *gain + 0.2 } else { *gain * 0.8 }.max(0.01);
                *velocity = momentum * *velocity - self.rate * *gain * gradient[i][k];
                place[k] += *velocity;
                mean[k] += f64::from(place[k]);
            }
        }
        let mean = mean.map(|sum| (sum / places.len() as f64) as f32);
        places.iter_mut().for_each(|place| (0..3).for_each(|k| place[k] -= mean[k]));
    }
}

#[cfg(test)]
mod tests {
    use super::super::vectors::tests::{clusters, kept_together};
    use super::*;

    #[test]
    fn picks_have_the_perplexity() {
        let neighbours = nearest(&clusters(30), 30, Metric::Euclidean, &Progress::default()).unwrap();
        for row in affinities(&neighbours, 10.0).chunks(30) {
            let entropy: f32 = row.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
            assert!((entropy.exp() - 10.0).abs() < 0.01, "{}", entropy.exp());
        }
    }

    #[test]
    fn clusters_stay_together_in_two_and_three_dimensions() {
        for n_dims in [2, 3] {
            let mut n_shown = 0;
            let options = TsneOptions { n_dims, perplexity: 10.0, n_steps: 250, ..TsneOptions::default() };
            let places = tsne(&clusters(40), options, &Progress::default(), |_| n_shown += 1).unwrap();
            assert_eq!(n_shown, 25);
            assert_eq!(kept_together(&places), 1.0);
            assert!(places.iter().flatten().all(|x| x.is_finite()));
            assert_eq!(places.iter().any(|p| p[2] != 0.0), n_dims == 3);
        }
    }

    #[test]
    fn few_equal_and_stopped() {
        let run = |vectors: Vectors| {
            tsne(&vectors, TsneOptions { n_steps: 20, ..TsneOptions::default() }, &Progress::default(), |_| {})
        };
        for n in 0..6 {
            assert_eq!(run(Vectors::new(3, vec![1.0; 3 * n])).unwrap().len(), n);
        }
        let progress = Progress::default();
        progress.cancel();
        assert_eq!(tsne(&clusters(10), TsneOptions::default(), &progress, |_| {}), None);
    }
}
