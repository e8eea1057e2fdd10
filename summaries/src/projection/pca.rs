//! Principal components, by orthogonal iteration on the covariance with Rayleigh-Ritz steps (Golub and Van Loan 2013,
//! 8.3): the few components that a picture needs cost little whatever the number of dimensions.

use super::vectors::{Position, Progress, Random, Vectors, in_parallel};

/// The most dimensions for which the covariance matrix is computed; above, the covariance is applied vector by vector.
const MAX_MATRIX_DIMS: usize = 1024;
/// Directions that are iterated in addition to the requested ones, to make these converge faster.
const OVERSAMPLING: usize = 8;
/// The most iteration steps; with a clear gap between eigenvalues a dozen suffice.
const MAX_STEPS: usize = 500;
/// Eigenvalues that change by less than this share of the greatest in a step have converged.
const TOLERANCE: f64 = 1e-13;
/// A vector that orthogonalisation shortens to less than this share of its length lies in the span of the others.
const MIN_INDEPENDENT: f64 = 1e-12;
/// The most sweeps of Jacobi's method, which converges quadratically: about ten suffice.
const MAX_SWEEPS: usize = 60;
/// Jacobi's method ends when the squares off the diagonal are less than this share of those on it: double precision,
/// squared.
const JACOBI_TOLERANCE: f64 = 1e-32;
/// The dimensions to which t-SNE and UMAP reduce vectors before they search neighbours.
const REDUCED_DIMS: usize = 50;
/// The number of vectors above which t-SNE and UMAP reduce dimensions.
const REDUCE_ABOVE: usize = 4_000;
/// The random part of an initial layout, as a share of its standard deviation: equal vectors get different places.
const JITTER: f32 = 1e-2;

/// The coordinates of the vectors along the directions in which they vary most.
#[derive(Debug, Clone, PartialEq)]
pub struct Pca {
    /// The number of directions: the requested number, at most the number of dimensions.
    pub n_components: usize,
    /// The projections of each vector on the directions, row by row. The sign of a direction is such that its largest
    /// component is positive.
    pub coordinates: Vec<f32>,
    /// The share of the total variance that each direction explains.
    pub explained: Vec<f64>,
}

/// Computes the first `n_components` principal components; `None` when cancelled.
pub fn pca(vectors: &Vectors, n_components: usize, progress: &Progress) -> Option<Pca> {
    let (n_vectors, n_dims) = (vectors.len(), vectors.n_dims());
    let n_kept = n_components.min(n_dims);
    let mean = mean(vectors);
    let centred = Centred { vectors, mean: &mean };
    let covariance_matrix = if n_dims <= MAX_MATRIX_DIMS { Some(centred.covariance(progress)?) } else { None };
    let apply = |directions: &[Vec<f64>]| match &covariance_matrix {
        Some(covariance) => directions.iter().map(|direction| product(covariance, direction)).collect(),
        None => centred.apply(directions),
    };
    let mut random = Random::new(1);
    let n_directions = (n_kept + OVERSAMPLING).min(n_dims);
    let mut basis: Vec<Vec<f64>> =
        (0..n_directions).map(|_| (0..n_dims).map(|_| f64::from(random.unit()) - 0.5).collect()).collect();
    orthonormalize(&mut basis);
    let mut values = vec![0.0; n_directions];
    for step in 0..MAX_STEPS {
        if progress.is_cancelled() {
            return None;
        }
        progress.set(step as f32 / MAX_STEPS as f32);
        let mut next_basis: Vec<Vec<f64>> = apply(&basis);
        // Rayleigh-Ritz: the covariance within the span of the directions, and its eigenvectors.
        let projected: Vec<Vec<f64>> = basis.iter().map(|a| next_basis.iter().map(|b| dot(a, b)).collect()).collect();
        let (eigenvalues, eigenvectors) = symmetric_eigen(projected);
        next_basis = eigenvectors.iter().map(|weights| weighted_sum(&next_basis, weights)).collect();
        orthonormalize(&mut next_basis);
        basis = next_basis;
        let changes = eigenvalues.iter().zip(&values).take(n_kept).map(|(a, b): (&f64, &f64)| (a - b).abs());
        let change = changes.fold(0.0, f64::max);
        let scale = eigenvalues.first().copied().unwrap_or(0.0).abs().max(f64::MIN_POSITIVE);
        values = eigenvalues;
        if change <= TOLERANCE * scale {
            break;
        }
    }
    let total_variance = centred.variance();
    basis.truncate(n_kept);
    basis.iter_mut().for_each(|direction| make_positive(direction));
    let coordinates = (0..n_vectors).flat_map(|i| basis.iter().map(move |direction| (i, direction)));
    let coordinates = coordinates.map(|(i, direction)| centred.project(i, direction) as f32).collect();
    let explained =
        values.iter().take(n_kept).map(|v| if total_variance > 0.0 { v / total_variance } else { 0.0 }).collect();
    Some(Pca { n_components: n_kept, coordinates, explained })
}

fn mean(vectors: &Vectors) -> Vec<f64> {
    let mut sums = vec![0.0; vectors.n_dims()];
    for row in vectors.rows() {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let n = vectors.len().max(1) as f64;
    sums.into_iter().map(|sum| sum / n).collect()
}

/// Vectors with their mean subtracted.
struct Centred<'a> {
    vectors: &'a Vectors,
    mean: &'a [f64],
}

impl Centred<'_> {
    fn row(&self, i: usize) -> impl Iterator<Item = f64> + '_ {
        self.vectors.row(i).iter().zip(self.mean).map(|(x, mean)| f64::from(*x) - mean)
    }

    /// The length of vector `i` along a direction of length 1.
    fn project(&self, i: usize, direction: &[f64]) -> f64 {
        self.row(i).zip(direction).map(|(x, q)| x * q).sum()
    }

    /// The sum of the variances of all dimensions.
    fn variance(&self) -> f64 {
        let sum: f64 = (0..self.vectors.len()).map(|i| self.row(i).map(|x| x * x).sum::<f64>()).sum();
        sum / self.degrees_of_freedom()
    }

    /// The divisor of variances, n - 1.
    fn degrees_of_freedom(&self) -> f64 {
        self.vectors.len().saturating_sub(1).max(1) as f64
    }

    /// The covariance matrix, row by row.
    fn covariance(&self, progress: &Progress) -> Option<Vec<f64>> {
        let d = self.vectors.n_dims();
        let parts = in_parallel(self.vectors.len(), |rows| {
            let mut sums = vec![0.0; d * d];
            let mut row = Vec::with_capacity(d);
            for i in rows.take_while(|_| !progress.is_cancelled()) {
                row.clear();
                row.extend(self.row(i));
                for (a, sums) in row.iter().zip(sums.chunks_exact_mut(d)) {
                    sums.iter_mut().zip(&row).for_each(|(sum, b)| *sum += a * b);
                }
            }
            sums
        });
        if progress.is_cancelled() {
            return None;
        }
        let mut out = vec![0.0; d * d];
        for part in parts {
            out.iter_mut().zip(part).for_each(|(sum, x)| *sum += x / self.degrees_of_freedom());
        }
        Some(out)
    }

    /// The covariance applied to directions, without the matrix.
    fn apply(&self, directions: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let d = self.vectors.n_dims();
        let parts = in_parallel(self.vectors.len(), |rows| {
            let mut sums = vec![vec![0.0; d]; directions.len()];
            for i in rows {
                for (direction, sums) in directions.iter().zip(&mut sums) {
                    let projection = self.project(i, direction);
                    sums.iter_mut().zip(self.row(i)).for_each(|(sum, x)| *sum += projection * x);
                }
            }
            sums
        });
        let mut out = vec![vec![0.0; d]; directions.len()];
        for part in parts {
            for (sums, part) in out.iter_mut().zip(part) {
                sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x / self.degrees_of_freedom());
            }
        }
        out
    }
}

fn product(matrix: &[f64], q: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(q.len()).map(|row| dot(row, q)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn weighted_sum(vectors: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; vectors.first().map_or(0, Vec::len)];
    for (vector, weight) in vectors.iter().zip(weights) {
        out.iter_mut().zip(vector).for_each(|(sum, x)| *sum += weight * x);
    }
    out
}

/// Orthonormalises by Gram-Schmidt, twice, because rounding leaves the first result slightly oblique. A vector in the
/// span of those before it becomes zero.
fn orthonormalize(vectors: &mut [Vec<f64>]) {
    for i in 0..vectors.len() {
        let (before, rest) = vectors.split_at_mut(i);
        let vector = &mut rest[0];
        let initial_length = dot(vector, vector).sqrt();
        for _ in 0..2 {
            for other in before.iter() {
                let projection = dot(vector, other);
                vector.iter_mut().zip(other).for_each(|(x, y)| *x -= projection * y);
            }
        }
        let length = dot(vector, vector).sqrt();
        let scale = if length > MIN_INDEPENDENT * initial_length { 1.0 / length } else { 0.0 };
        vector.iter_mut().for_each(|x| *x *= scale);
    }
}

/// Flips a direction whose largest component is negative.
fn make_positive(direction: &mut [f64]) {
    let largest = direction.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
    if largest < 0.0 {
        direction.iter_mut().for_each(|x| *x = -*x);
    }
}

/// Computes eigenvalues, the greatest first, and eigenvectors of a small symmetric matrix by Jacobi's rotations.
fn symmetric_eigen(mut a: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = a.len();
    let mut v: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..MAX_SWEEPS {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j] * a[i][j]).sum();
        let diagonal: f64 = (0..n).map(|i| a[i][i] * a[i][i]).sum();
        if off <= JACOBI_TOLERANCE * diagonal {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut v, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| a[*j][*j].total_cmp(&a[*i][*i]));
    let vectors = order.iter().map(|&i| (0..n).map(|row| v[row][i]).collect()).collect();
    (order.iter().map(|&i| a[i][i]).collect(), vectors)
}

/// Makes `a[p][q]` zero by a rotation in the plane of `p` and `q`, which the eigenvectors `v` follow.
fn rotate(a: &mut [Vec<f64>], v: &mut [Vec<f64>], p: usize, q: usize) {
    if a[p][q] == 0.0 {
        return;
    }
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for row in a.iter_mut().chain(v.iter_mut()) {
        (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
    }
    let (above, below) = a.split_at_mut(q);
    for (x, y) in above[p].iter_mut().zip(below[0].iter_mut()) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}

/// Reduces many vectors of many dimensions to their principal components, before t-SNE and UMAP search neighbours,
/// which would cost too much otherwise. `None` when cancelled.
pub(super) fn reduce_dims(vectors: &Vectors, progress: &Progress) -> Option<Vectors> {
    if vectors.len() <= REDUCE_ABOVE || vectors.n_dims() <= REDUCED_DIMS {
        return Some(vectors.clone());
    }
    let pca = pca(vectors, REDUCED_DIMS, progress)?;
    Some(Vectors::new(REDUCED_DIMS, pca.coordinates))
}

/// Returns the initial layout of t-SNE and UMAP: the first principal components, scaled so that the first has this
/// standard deviation. `None` when cancelled.
pub(super) fn initial_layout(
    vectors: &Vectors,
    n_dims: usize,
    deviation: f32,
    progress: &Progress,
) -> Option<Vec<Position>> {
    let pca = pca(vectors, n_dims, progress)?;
    let k = pca.n_components;
    let sum_squares = (0..vectors.len()).map(|i| pca.coordinates[i * k].powi(2)).sum::<f32>();
    let variance = sum_squares / vectors.len().max(1) as f32;
    let scale = if variance > 0.0 { deviation / variance.sqrt() } else { 0.0 };
    let mut random = Random::new(7);
    let place = |i: usize| {
        let mut place = [0.0; 3];
        for (d, x) in place.iter_mut().enumerate().take(n_dims) {
            let component = if d < k { pca.coordinates[i * k + d] * scale } else { 0.0 };
            // Without jitter equal vectors would never part, nor would the layout use dimensions that the vectors do
            // not have.
            *x = component + (random.unit() - 0.5) * deviation * JITTER;
        }
        place
    };
    Some((0..vectors.len()).map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Along (3, 4) / 5 with variance 2.5, and nothing across.
        let along = [-2.0, -1.0, 0.0, 1.0, 2.0_f32];
        let values = along.iter().flat_map(|t| [0.6 * t + 7.0, 0.8 * t - 1.0]).collect();
        let found = pca(&Vectors::new(2, values), 3, &Progress::default()).unwrap();
        assert_eq!(found.n_components, 2, "no more than there are dimensions");
        for (i, t) in along.iter().enumerate() {
            assert!((found.coordinates[2 * i] - t).abs() < 1e-5 && found.coordinates[2 * i + 1].abs() < 1e-5);
        }
        assert!((found.explained[0] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn many_dimensions_need_no_matrix() {
        let mut random = Random::new(5);
        let d = MAX_MATRIX_DIMS + 1;
        let direction: Vec<f32> = (0..d).map(|_| random.unit()).collect();
        let values = (0..40).flat_map(|i| direction.iter().map(move |x| x * i as f32)).collect();
        let found = pca(&Vectors::new(d, values), 2, &Progress::default()).unwrap();
        assert!((found.explained[0] - 1.0).abs() < 1e-9 && found.explained[1].abs() < 1e-9);
    }

    #[test]
    fn of_nothing_and_stopped() {
        assert_eq!(pca(&Vectors::new(3, vec![]), 2, &Progress::default()).unwrap().coordinates, [] as [f32; 0]);
        let progress = Progress::default();
        progress.cancel();
        assert_eq!(pca(&Vectors::new(1, vec![1.0, 2.0]), 1, &progress), None);
    }
}
