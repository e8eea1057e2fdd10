//! A tree over points in two or three dimensions (Barnes and Hut 1986): a cell of points that are far away counts as
//! one.
//!
//! Points are sorted along a Z-order curve, so that each cell is a range of them. The cells are in an array in
//! depth-first order, each with the index after its descendants, so that a walk needs no stack.

use super::Position;

/// The most points of a leaf.
const MAX_LEAF_POINTS: usize = 8;
/// Bits per coordinate on the curve.
const BITS_PER_COORDINATE: u32 = 20;

/// A cell of the tree, a square or cube, with the points in it.
struct Cell {
    /// The mean of the cell's points.
    mean: Position,
    /// The number of the cell's points.
    n_points: f32,
    /// The square of the cell's width.
    squared_width: f32,
    /// The index of the cell after this one and its descendants.
    next: u32,
    /// The range of its points, if the cell is a leaf.
    points: Option<(u32, u32)>,
}

/// A Barnes-Hut tree.
pub struct Tree {
    cells: Vec<Cell>,
    points: Vec<(u64, u32)>,
    sorted: Vec<Position>,
}

/// Spreads the bits of `x`, with `gap` zeros between them.
fn spread(x: u32, gap: u32) -> u64 {
    (0..BITS_PER_COORDINATE).map(|bit| u64::from(x >> bit & 1) << (bit * (gap + 1))).sum()
}

impl Tree {
    /// Builds the tree of points with `n_dims` coordinates.
    pub fn new(places: &[Position], n_dims: usize) -> Self {
        let (mut lo, mut hi) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        for place in places {
            for d in 0..n_dims {
                (lo[d], hi[d]) = (lo[d].min(place[d]), hi[d].max(place[d]));
            }
        }
        let width = (0..n_dims).map(|d| hi[d] - lo[d]).fold(f32::MIN_POSITIVE, f32::max);
        let scale = ((1_u32 << BITS_PER_COORDINATE) - 1) as f32 / width;
        let code = |place: &Position| {
            let bits = |d: usize| spread(((place[d] - lo[d]) * scale) as u32, n_dims as u32 - 1) << d;
            (0..n_dims).map(bits).sum::<u64>()
        };
        let mut points: Vec<(u64, u32)> = places.iter().zip(0..).map(|(place, i)| (code(place), i)).collect();
        points.sort_unstable();
        let sorted = points.iter().map(|(_, i)| places[*i as usize]).collect();
        let mut tree = Self { cells: Vec::with_capacity(places.len()), points, sorted };
        if !places.is_empty() {
            tree.add(0, places.len(), width, BITS_PER_COORDINATE * n_dims as u32, n_dims as u32);
        }
        tree
    }

    /// Adds the cell of a range of points that agree in all but the lowest `bits` bits.
    fn add(&mut self, start: usize, end: usize, width: f32, bits: u32, n_dims: u32) {
        let cell_idx = self.cells.len();
        let n_points = (end - start) as f32;
        let mut mean = [0.0_f32; 3];
        for place in &self.sorted[start..end] {
            (0..3).for_each(|d| mean[d] += place[d]);
        }
        let mean = mean.map(|sum| sum / n_points);
        let is_leaf = end - start <= MAX_LEAF_POINTS || bits == 0;
        let points = is_leaf.then_some((start as u32, end as u32));
        self.cells.push(Cell { mean, n_points, squared_width: width * width, next: 0, points });
        if !is_leaf {
            let bits = bits - n_dims;
            let mut from = start;
            while from < end {
                let part = self.points[from].0 >> bits;
                let to = from + self.points[from..end].partition_point(|(code, _)| code >> bits == part);
                self.add(from, to, width / 2.0, bits, n_dims);
                from = to;
            }
        }
        self.cells[cell_idx].next = self.cells.len() as u32;
    }

    /// Iterates over the points' indices in the order of the curve, in which neighbours are near each other.
    pub fn order(&self) -> impl ExactSizeIterator<Item = usize> {
        self.points.iter().map(|(_, i)| *i as usize)
    }

    /// t-SNE's repulsion of the point `at`: the sum of `q^2 (at - other)` over all others and that of `q`, with
    /// `q = 1 / (1 + distance^2)`. Cells that look smaller than `theta` count as one.
    pub fn repulsion(&self, at: Position, theta: f32) -> ([f32; 3], f32) {
        let (mut force, mut sum) = ([0.0_f32; 3], 0.0_f32);
        let squared_theta = theta * theta;
        let mut i = 0;
        while let Some(cell) = self.cells.get(i) {
            let d = [at[0] - cell.mean[0], at[1] - cell.mean[1], at[2] - cell.mean[2]];
            let squared_distance = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            if let Some((start, end)) = cell.points {
                for other in &self.sorted[start as usize..end as usize] {
                    let d = [at[0] - other[0], at[1] - other[1], at[2] - other[2]];
                    let q = 1.0 / (1.0 + d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                    sum += q;
                    (0..3).for_each(|k| force[k] += q * q * d[k]);
                }
                i = cell.next as usize;
            } else if cell.squared_width < squared_theta * squared_distance {
                let q = 1.0 / (1.0 + squared_distance);
                sum += cell.n_points * q;
                (0..3).for_each(|k| force[k] += cell.n_points * q * q * d[k]);
                i = cell.next as usize;
            } else {
                i += 1;
            }
        }
        // The sum excludes the point itself, which adds no force but q = 1.
        (force, sum - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::vectors::Random;
    use super::*;
    use proptest::prelude::*;

    fn exact(places: &[Position], i: usize) -> ([f32; 3], f32) {
        let (mut force, mut sum) = ([0.0; 3], 0.0);
        for (_, other) in places.iter().enumerate().filter(|(j, _)| *j != i) {
            let d = [0, 1, 2].map(|k| places[i][k] - other[k]);
            let q = 1.0 / (1.0 + d.iter().map(|x| x * x).sum::<f32>());
            sum += q;
            (0..3).for_each(|k| force[k] += q * q * d[k]);
        }
        (force, sum)
    }

    proptest! {
        #[test]
        fn without_an_angle_it_is_exact_and_with_one_it_is_near(n in 1usize..300, seed in any::<u64>(), n_dims in 2usize..=3) {
            let mut random = Random::new(seed);
            let mut place = || {
                let mut place = [0.0; 3];
                // A few of them at one place.
                (0..n_dims).for_each(|d| place[d] = (random.unit() * 8.0).floor() * if d == 0 { 1.0 } else { 0.7 });
                place
            };
            let places: Vec<Position> = (0..n).map(|_| place()).collect();
            let tree = Tree::new(&places, n_dims);
            prop_assert_eq!(tree.order().len(), n);
            for i in 0..n {
                let (force, sum) = exact(&places, i);
                let (f, s) = tree.repulsion(places[i], 0.0);
                let (g, t) = tree.repulsion(places[i], 0.5);
                prop_assert!((sum - s).abs() <= 1e-3 * (1.0 + sum) && (sum - t).abs() <= 0.05 * (1.0 + sum), "{} {} {}", sum, s, t);
                for k in 0..3 {
                    prop_assert!((force[k] - f[k]).abs() < 1e-3 * (1.0 + sum), "{:?} {:?}", force, f);
                    prop_assert!((force[k] - g[k]).abs() < 0.1 * (1.0 + sum), "{:?} {:?}", force, g);
                }
            }
        }
    }
}
