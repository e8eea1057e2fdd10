//! Triangular factors and what they solve: LU with partial pivoting, Cholesky, substitution.

use num_traits::{Float, ToPrimitive, Zero};

use super::field::{Field, Mat, norm_sqr, number, real};

/// `P A = L U`: L below the diagonal (its own is ones), U on it and above.
pub(crate) struct Lu<T> {
    pub factors: Mat<T>,
    /// Row `i` of the product is row `perm[i]` of the matrix.
    pub perm: Vec<usize>,
    /// Whether the rows were swapped an odd number of times.
    pub is_odd: bool,
}

impl<T: Field> Lu<T> {
    /// Factors a square matrix, the largest element of each column as its pivot.
    pub fn of(mut a: Mat<T>) -> Lu<T> {
        let n = a.rows;
        let mut perm: Vec<usize> = (0..n).collect();
        let mut is_odd = false;
        for k in 0..n {
            let mut pivot = k;
            for i in k + 1..n {
                if norm_sqr(a.at(i, k)) > norm_sqr(a.at(pivot, k)) {
                    pivot = i;
                }
            }
            if pivot != k {
                a.swap_rows(k, pivot);
                perm.swap(k, pivot);
                is_odd = !is_odd;
            }
            let diagonal = a.at(k, k);
            if diagonal.is_zero() {
                continue;
            }
            for i in k + 1..n {
                let factor = a.at(i, k) / diagonal;
                a.set(i, k, factor);
                if !factor.is_zero() {
                    a.eliminate(i, k, factor, k + 1);
                }
            }
        }
        Lu { factors: a, perm, is_odd }
    }

    pub fn is_singular(&self) -> bool {
        (0..self.factors.rows).any(|i| self.factors.at(i, i).is_zero())
    }

    /// The determinant's sign (a complex number of absolute value 1; 0 where it is 0) and the logarithm of its
    /// absolute value.
    pub fn log_determinant(&self) -> (T, T::Real) {
        let mut sign = if self.is_odd { -T::one() } else { T::one() };
        let mut log = T::Real::zero();
        for i in 0..self.factors.rows {
            let d = self.factors.at(i, i);
            if d.is_zero() {
                return (T::zero(), -T::Real::infinity());
            }
            sign = sign * (d / real::<T>(d.abs()));
            log = log + d.abs().ln();
        }
        (sign, log)
    }

    /// The determinant.
    pub fn determinant(&self) -> T {
        let start = if self.is_odd { -T::one() } else { T::one() };
        (0..self.factors.rows).fold(start, |product, i| product * self.factors.at(i, i))
    }

    /// `A^-1 b`; A must not be singular.
    pub fn solve(&self, b: &Mat<T>) -> Mat<T> {
        let mut x = Mat::zeros(b.rows, b.cols);
        for (i, from) in self.perm.iter().enumerate() {
            x.data[i * b.cols..(i + 1) * b.cols].copy_from_slice(b.row(*from));
        }
        forward(&self.factors, &mut x, true);
        backward(&self.factors, &mut x);
        x
    }
}

/// `x = L^-1 x`, L being the lower triangle of `a`, with ones on the diagonal if `unit`.
pub fn forward<T: Field>(a: &Mat<T>, x: &mut Mat<T>, unit: bool) {
    for i in 0..a.rows {
        for k in 0..i {
            let factor = a.at(i, k);
            if !factor.is_zero() {
                x.eliminate(i, k, factor, 0);
            }
        }
        if !unit {
            divide_row(x, i, a.at(i, i));
        }
    }
}

/// `x = U^-1 x`, U being the upper triangle of `a`.
pub fn backward<T: Field>(a: &Mat<T>, x: &mut Mat<T>) {
    for i in (0..a.rows).rev() {
        for k in i + 1..a.rows {
            let factor = a.at(i, k);
            if !factor.is_zero() {
                x.eliminate(i, k, factor, 0);
            }
        }
        divide_row(x, i, a.at(i, i));
    }
}

fn divide_row<T: Field>(x: &mut Mat<T>, i: usize, by: T) {
    let n = x.cols;
    x.data[i * n..(i + 1) * n].iter_mut().for_each(|v| *v = *v / by);
}

/// The lower factor L of `A = L L*`, of which only the lower triangle is read; `None` where A is not positive definite.
pub(crate) fn cholesky<T: Field>(a: &Mat<T>) -> Option<Mat<T>> {
    let n = a.rows;
    let mut l: Mat<T> = Mat::zeros(n, n);
    for i in 0..n {
        for j in 0..=i {
            let (of_i, of_j) = (&l.row(i)[..j], &l.row(j)[..j]);
            let dot = of_i.iter().zip(of_j).fold(T::zero(), |sum, (x, y)| sum + *x * y.conj());
            let rest = a.at(i, j) - dot;
            let value = if i == j {
                if !(rest.re() > T::Real::zero()) || !rest.re().is_finite() {
                    return None;
                }
                real(rest.re().sqrt())
            } else {
                rest / l.at(j, j)
            };
            l.set(i, j, value);
        }
    }
    Some(l)
}

/// The gradient of the factor `l` back to the matrix (Murray, "Differentiation of the Cholesky decomposition", 2016):
/// the lower triangle, halved on the diagonal, of `L* G`, carried through both inverses and made symmetric.
pub(crate) fn cholesky_grad<T: Field>(l: &Mat<T>, grad: &Mat<T>) -> Mat<T> {
    let half = number::<T>(0.5);
    let mut inner = l.adjoint().times(grad);
    for i in 0..inner.rows {
        for j in i..inner.cols {
            let value = if i == j { inner.at(i, j) * half } else { T::zero() };
            inner.set(i, j, value);
        }
    }
    let upper = l.adjoint();
    // L^-* inner L^-1, the right factor by way of the adjoint.
    backward(&upper, &mut inner);
    let mut right = inner.adjoint();
    backward(&upper, &mut right);
    let of_a = right.adjoint();
    let sum = of_a.plus(T::one(), &of_a.adjoint());
    Mat { data: sum.data.iter().map(|v| *v * half).collect(), ..sum }
}

/// `e^A`: Pade's approximant of degree 13 of a scaled matrix, squared back (Higham, "The scaling and squaring method
/// for the matrix exponential revisited", 2005).
pub(crate) fn exponential<T: Field>(a: &Mat<T>) -> Mat<T> {
    const B: [f64; 14] = [
        64_764_752_532_480_000.0,
        32_382_376_266_240_000.0,
        7_771_770_303_897_600.0,
        1_187_353_796_428_800.0,
        129_060_195_264_000.0,
        10_559_470_521_600.0,
        670_442_572_800.0,
        33_522_128_640.0,
        1_323_241_920.0,
        40_840_800.0,
        960_960.0,
        16_380.0,
        182.0,
        1.0,
    ];
    const THETA: f64 = 5.371_920_351_148_152;
    let n = a.rows;
    let column = |j: usize| (0..n).fold(0.0, |sum, i| sum + a.at(i, j).abs().to_f64().unwrap_or(f64::NAN));
    let norm = (0..n).map(column).fold(0.0, f64::max);
    if !norm.is_finite() {
        return Mat { data: vec![number(f64::NAN); n * n], ..a.clone() };
    }
    let n_squarings = if norm > THETA { (norm / THETA).log2().ceil() as i32 } else { 0 };
    let scale = number::<T>(0.5f64.powi(n_squarings));
    let a = Mat { data: a.data.iter().map(|v| *v * scale).collect(), ..a.clone() };
    let (a2, eye) = (a.times(&a), Mat::identity(n));
    let (a4, b) = (a2.times(&a2), |i: usize| number::<T>(B[i]));
    let a6 = a4.times(&a2);
    let poly = |i6: usize, i4: usize, i2: usize| Mat::zeros(n, n).plus(b(i6), &a6).plus(b(i4), &a4).plus(b(i2), &a2);
    let u = a.times(&a6.times(&poly(13, 11, 9)).plus(T::one(), &poly(7, 5, 3)).plus(b(1), &eye));
    let v = a6.times(&poly(12, 10, 8)).plus(T::one(), &poly(6, 4, 2)).plus(b(0), &eye);
    let mut x = Lu::of(v.plus(-T::one(), &u)).solve(&v.plus(T::one(), &u));
    for _ in 0..n_squarings {
        x = x.times(&x);
    }
    x
}
