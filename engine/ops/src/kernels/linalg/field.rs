//! The numbers that matrices are made of: f32, f64 or complex128, and matrices of them.

use num_complex::{Complex64, ComplexFloat};
use num_traits::{Float, NumCast};

use engine_core::dtype::Element;

/// A real or complex number.
pub(crate) trait Field: Element + ComplexFloat<Real: Float + Element> {
    /// The number, or its real part.
    fn from_complex(x: Complex64) -> Self;

    /// The number as the widest.
    fn to_complex(self) -> Complex64;
}
impl Field for f32 {
    fn from_complex(x: Complex64) -> f32 {
        x.re as f32
    }

    fn to_complex(self) -> Complex64 {
        Complex64::new(self.into(), 0.0)
    }
}
impl Field for f64 {
    fn from_complex(x: Complex64) -> f64 {
        x.re
    }

    fn to_complex(self) -> Complex64 {
        Complex64::new(self, 0.0)
    }
}
impl Field for Complex64 {
    fn from_complex(x: Complex64) -> Complex64 {
        x
    }

    fn to_complex(self) -> Complex64 {
        self
    }
}

/// A real number as one of the field.
pub(crate) fn real<T: Field>(x: T::Real) -> T {
    <T as NumCast>::from(x).unwrap_or_else(T::zero)
}

/// A number of the field from one that every field has.
pub fn number<T: Field>(x: f64) -> T {
    <T as NumCast>::from(x).unwrap_or_else(T::zero)
}

/// The square of the absolute value.
pub(crate) fn norm_sqr<T: Field>(x: T) -> T::Real {
    x.re() * x.re() + x.im() * x.im()
}

/// The least relative difference of two numbers.
pub fn epsilon<T: Field>() -> T::Real {
    T::Real::epsilon()
}

/// A dense matrix, row-major.
#[derive(Clone)]
pub(crate) struct Mat<T> {
    pub rows: usize,
    pub cols: usize,
    pub data: Vec<T>,
}

impl<T: Field> Mat<T> {
    /// The same numbers in another field; complex ones lose what a real field has not.
    pub fn cast<U: Field>(&self) -> Mat<U> {
        let data = self.data.iter().map(|v| U::from_complex(v.to_complex())).collect();
        Mat { rows: self.rows, cols: self.cols, data }
    }

    /// A copy of `data`, which has `rows * cols` elements.
    pub fn new(rows: usize, cols: usize, data: &[T]) -> Mat<T> {
        Mat { rows, cols, data: data.to_vec() }
    }

    pub fn zeros(rows: usize, cols: usize) -> Mat<T> {
        Mat { rows, cols, data: vec![T::zero(); rows * cols] }
    }

    pub fn identity(n: usize) -> Mat<T> {
        let mut eye = Mat::zeros(n, n);
        (0..n).for_each(|i| eye.data[i * n + i] = T::one());
        eye
    }

    pub fn at(&self, i: usize, j: usize) -> T {
        self.data[i * self.cols + j]
    }

    pub fn set(&mut self, i: usize, j: usize, value: T) {
        self.data[i * self.cols + j] = value;
    }

    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Two different rows, the first for writing.
    pub fn row_and(&mut self, i: usize, other: usize) -> (&mut [T], &[T]) {
        let n = self.cols;
        if i < other {
            let (a, b) = self.data.split_at_mut(other * n);
            (&mut a[i * n..(i + 1) * n], &b[..n])
        } else {
            let (a, b) = self.data.split_at_mut(i * n);
            (&mut b[..n], &a[other * n..(other + 1) * n])
        }
    }

    /// `row[i] -= factor * row[other]`, from column `first` on.
    pub fn eliminate(&mut self, i: usize, other: usize, factor: T, first: usize) {
        let (to, from) = self.row_and(i, other);
        to[first..].iter_mut().zip(&from[first..]).for_each(|(t, f)| *t = *t - factor * *f);
    }

    pub fn swap_rows(&mut self, i: usize, j: usize) {
        if i != j {
            let n = self.cols;
            let (a, b) = self.data.split_at_mut(i.max(j) * n);
            a[i.min(j) * n..][..n].swap_with_slice(&mut b[..n]);
        }
    }

    /// The conjugate transpose.
    pub fn adjoint(&self) -> Mat<T> {
        let mut out = Mat::zeros(self.cols, self.rows);
        for i in 0..self.rows {
            for j in 0..self.cols {
                out.data[j * self.rows + i] = self.at(i, j).conj();
            }
        }
        out
    }

    /// The matrix product.
    pub fn times(&self, other: &Mat<T>) -> Mat<T> {
        let mut out = Mat::zeros(self.rows, other.cols);
        for i in 0..self.rows {
            let to = &mut out.data[i * other.cols..(i + 1) * other.cols];
            for (k, a) in self.row(i).iter().enumerate() {
                to.iter_mut().zip(other.row(k)).for_each(|(t, b)| *t = *t + *a * *b);
            }
        }
        out
    }

    /// `self + factor * other`.
    pub fn plus(&self, factor: T, other: &Mat<T>) -> Mat<T> {
        let data = self.data.iter().zip(&other.data).map(|(a, b)| *a + factor * *b).collect();
        Mat { rows: self.rows, cols: self.cols, data }
    }

    /// The first `n` columns.
    pub fn first_cols(&self, n: usize) -> Mat<T> {
        let data = (0..self.rows).flat_map(|i| self.row(i)[..n].iter().copied()).collect();
        Mat { rows: self.rows, cols: n, data }
    }
}
