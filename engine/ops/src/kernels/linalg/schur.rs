//! Schur's form and what triangular matrices make easy: square roots, logarithms, Sylvester's equation.
//!
//! Everything is computed in complex128, where every matrix has an upper triangular form.

use num_complex::Complex64;
use num_traits::Zero;

use super::field::{Mat, number};
use super::solve::Lu;

type Complex = Mat<Complex64>;

/// Steps without one more eigenvalue after which there is no form: NaN or infinities.
const MAX_STEPS: usize = 300;

/// `A = Q T Q*`, Q unitary, T upper triangular.
pub(crate) struct Schur {
    pub q: Complex,
    pub t: Complex,
}

impl Schur {
    /// By shifted QR steps on Hessenberg's form; `None` where they find no end (NaN, infinities).
    pub fn of(a: &Complex) -> Option<Schur> {
        let mut s = hessenberg(a);
        // Rows from here on are done.
        let (mut end, mut n_steps) = (a.rows, 0);
        while end > 1 {
            let last = end - 1;
            let first = (1..=last).rev().find(|i| s.is_split(*i)).unwrap_or(0);
            if first > 0 {
                s.t.set(first, first - 1, Complex64::zero());
            }
            if first == last {
                (end, n_steps) = (last, 0);
                continue;
            }
            n_steps += 1;
            if n_steps > MAX_STEPS {
                return None;
            }
            let shift = s.shift(last, n_steps);
            s.step(first, end, shift);
        }
        Some(s)
    }

    /// Whether what is left of the diagonal in row `i` is negligible compared with its neighbours.
    fn is_split(&self, i: usize) -> bool {
        let neighbours = self.t.at(i - 1, i - 1).l1_norm() + self.t.at(i, i).l1_norm();
        self.t.at(i, i - 1).l1_norm() <= f64::EPSILON * neighbours
    }

    /// The eigenvalue of the last two rows that is nearer to the corner (Wilkinson's); now and then another one, which
    /// breaks circles.
    fn shift(&self, last: usize, n_steps: usize) -> Complex64 {
        let at = |i: usize, j: usize| self.t.at(last - 1 + i, last - 1 + j);
        let corner = at(1, 1);
        if n_steps.is_multiple_of(10) {
            return corner + at(1, 0).norm();
        }
        let half = (at(0, 0) - corner) * 0.5;
        let root = (half * half + at(0, 1) * at(1, 0)).sqrt();
        let mean = corner + half;
        let (a, b) = (mean + root, mean - root);
        if (a - corner).norm() < (b - corner).norm() { a } else { b }
    }

    /// A QR step on rows `first..end`.
    fn step(&mut self, first: usize, end: usize, shift: Complex64) {
        let (mut x, mut y) = (self.t.at(first, first) - shift, self.t.at(first + 1, first));
        for k in first..end - 1 {
            let length = x.norm().hypot(y.norm());
            if length > 0.0 {
                let turn = [x / length, y / length];
                turn_rows(&mut self.t, k, turn, if k > first { k - 1 } else { k });
                turn_cols(&mut self.t, k, turn, end.min(k + 3));
                let n = self.q.rows;
                turn_cols(&mut self.q, k, turn, n);
            }
            if k + 2 < end {
                (x, y) = (self.t.at(k + 1, k), self.t.at(k + 2, k));
                // It is what the turn made zero in exact arithmetic.
                if k > first {
                    self.t.set(k + 1, k - 1, Complex64::zero());
                }
            }
        }
    }

    /// `Q of(T) Q*`.
    pub fn back(&self, of_t: &Complex) -> Complex {
        self.q.times(of_t).times(&self.q.adjoint())
    }
}

/// Rows `k` and `k + 1` from column `from` on: the first gets what lies along the turn.
fn turn_rows(a: &mut Complex, k: usize, [x, y]: [Complex64; 2], from: usize) {
    for j in from..a.cols {
        let (p, q) = (a.at(k, j), a.at(k + 1, j));
        a.set(k, j, x.conj() * p + y.conj() * q);
        a.set(k + 1, j, x * q - y * p);
    }
}

/// The same from the right, on the first `n_rows` rows.
fn turn_cols(a: &mut Complex, k: usize, [x, y]: [Complex64; 2], n_rows: usize) {
    for i in 0..n_rows {
        let (p, q) = (a.at(i, k), a.at(i, k + 1));
        a.set(i, k, p * x + q * y);
        a.set(i, k + 1, q * x.conj() - p * y.conj());
    }
}

/// Zeros below the first subdiagonal, by Householder's reflections.
fn hessenberg(a: &Complex) -> Schur {
    let n = a.rows;
    let (mut t, mut q) = (a.clone(), Mat::identity(n));
    for k in 0..n.saturating_sub(2) {
        let mut v: Vec<Complex64> = (k + 1..n).map(|i| t.at(i, k)).collect();
        if v[1..].iter().all(Zero::is_zero) {
            continue;
        }
        let length = v.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
        let size = v[0].norm();
        let phase = if size == 0.0 { Complex64::new(1.0, 0.0) } else { v[0] / size };
        v[0] += phase * length;
        let square = v.iter().map(Complex64::norm_sqr).sum::<f64>();
        if !(square > 0.0 && square.is_finite()) {
            continue;
        }
        for j in 0..n {
            let dot: Complex64 = v.iter().enumerate().map(|(i, v)| v.conj() * t.at(k + 1 + i, j)).sum();
            let factor = dot * (2.0 / square);
            v.iter().enumerate().for_each(|(i, v)| t.set(k + 1 + i, j, t.at(k + 1 + i, j) - factor * v));
        }
        for m in [&mut t, &mut q] {
            for i in 0..n {
                let dot: Complex64 = v.iter().enumerate().map(|(j, v)| m.at(i, k + 1 + j) * v).sum();
                let factor = dot * (2.0 / square);
                v.iter().enumerate().for_each(|(j, v)| m.set(i, k + 1 + j, m.at(i, k + 1 + j) - factor * v.conj()));
            }
        }
        (k + 2..n).for_each(|i| t.set(i, k, Complex64::zero()));
    }
    Schur { q, t }
}

fn nans(n: usize) -> Complex {
    Mat { rows: n, cols: n, data: vec![number(f64::NAN); n * n] }
}

/// The principal square root of an upper triangular matrix (Bjorck and Hammarling, "A Schur method for the square root
/// of a matrix", 1983). Where there is none some elements are NaN or infinite.
fn root_of_triangle(t: &Complex) -> Complex {
    let n = t.rows;
    let mut r: Complex = Mat::zeros(n, n);
    for j in 0..n {
        r.set(j, j, t.at(j, j).sqrt());
        for i in (0..j).rev() {
            let sum: Complex64 = (i + 1..j).map(|k| r.at(i, k) * r.at(k, j)).sum();
            let (rest, both) = (t.at(i, j) - sum, r.at(i, i) + r.at(j, j));
            r.set(i, j, if rest.is_zero() { rest } else { rest / both });
        }
    }
    r
}

/// The principal square root; NaN where there is none.
pub(crate) fn square_root(a: &Complex) -> Complex {
    match Schur::of(a) {
        Some(s) => s.back(&root_of_triangle(&s.t)),
        None => nans(a.rows),
    }
}

/// Whether a real matrix has a real principal square root: no eigenvalue lies on the negative axis.
pub(crate) fn has_real_root(a: &Complex) -> bool {
    let Some(s) = Schur::of(a) else { return false };
    let size = s.t.data.iter().map(|v| v.norm()).fold(0.0, f64::max);
    (0..a.rows).all(|i| s.t.at(i, i).re >= 0.0 || s.t.at(i, i).im.abs() > 1e-14 * size)
}

/// The principal logarithm: square roots until the matrix is near to one, a sum of fractions there (Gauss's quadrature of
/// the integral of `X / (I + s X)`), and back (Al-Mohy and Higham, "Improved inverse scaling and squaring algorithms
/// for the matrix logarithm", 2012). NaN where the matrix is singular.
pub(crate) fn logarithm(a: &Complex) -> Complex {
    /// Nodes and weights on (0, 1), the other half mirrored.
    const HALF: [(f64, f64); 4] = [
        (0.591_717_321_247_825, 0.181_341_891_689_181),
        (0.762_766_204_958_164_5, 0.156_853_322_938_943_6),
        (0.898_333_238_706_813_3, 0.111_190_517_226_687_2),
        (0.980_144_928_248_768_2, 0.050_614_268_145_188_1),
    ];
    const NEAR: f64 = 0.25;
    /// Numbers are near to one after so many roots.
    const MAX_ROOTS: u32 = 64;
    let n = a.rows;
    let Some(s) = Schur::of(a) else { return nans(n) };
    if (0..n).any(|i| s.t.at(i, i).is_zero()) {
        return nans(n);
    }
    let one: Complex = Mat::identity(n);
    let distance = |t: &Complex| {
        let column = |j: usize| (0..n).map(|i| (t.at(i, j) - one.at(i, j)).norm()).sum::<f64>();
        (0..n).map(column).fold(0.0, f64::max)
    };
    let (mut t, mut n_roots) = (s.t.clone(), 0);
    while distance(&t) > NEAR && n_roots < MAX_ROOTS {
        t = root_of_triangle(&t);
        n_roots += 1;
    }
    let x = t.plus(number(-1.0), &one);
    let mut log: Complex = Mat::zeros(n, n);
    for (node, weight) in HALF.iter().flat_map(|(s, w)| [(*s, *w), (1.0 - s, *w)]) {
        let fraction = Lu::of(one.plus(number(node), &x)).solve(&x);
        log = log.plus(number(weight), &fraction);
    }
    let scale = 2f64.powi(n_roots as i32);
    log.data.iter_mut().for_each(|v| *v *= scale);
    (0..n).for_each(|i| log.set(i, i, s.t.at(i, i).ln()));
    s.back(&log)
}

/// The X of `A X + X B = C`; infinities or NaN where an eigenvalue of A is one of -B.
pub(crate) fn sylvester(a: &Complex, b: &Complex, c: &Complex) -> Complex {
    let (Some(left), Some(right)) = (Schur::of(a), Schur::of(b)) else {
        return Mat { data: vec![number(f64::NAN); c.data.len()], ..c.clone() };
    };
    let f = left.q.adjoint().times(c).times(&right.q);
    let mut y: Complex = Mat::zeros(c.rows, c.cols);
    for k in 0..c.cols {
        for i in (0..c.rows).rev() {
            let below: Complex64 = (i + 1..c.rows).map(|l| left.t.at(i, l) * y.at(l, k)).sum();
            let before: Complex64 = (0..k).map(|j| y.at(i, j) * right.t.at(j, k)).sum();
            y.set(i, k, (f.at(i, k) - below - before) / (left.t.at(i, i) + right.t.at(k, k)));
        }
    }
    left.q.times(&y).times(&right.q.adjoint())
}
