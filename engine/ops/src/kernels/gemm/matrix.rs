//! Matrices in memory, and what is done to the rows of their product.

use crate::kernels::KernelError;
use crate::kernels::matmul::check_inner;
use engine_core::dtype::Element;
use engine_core::tensor::Tensor;

/// A matrix in memory: rows, columns, and how far apart neighbours are.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Matrix<'a, T> {
    pub data: &'a [T],
    pub rows: usize,
    pub cols: usize,
    pub row_stride: usize,
    pub col_stride: usize,
    /// Whether each element stands for its complex conjugate.
    pub conjugate: bool,
}

impl<'a, T: Element> Matrix<'a, T> {
    pub fn new(t: &'a Tensor, transposed: bool, which: &str) -> Result<Matrix<'a, T>, KernelError> {
        let &[m, n] = t.dims() else {
            return Err(KernelError::invalid(format!("{which} must be a matrix, got shape {}", t.shape())));
        };
        let data = t.slice::<T>()?;
        Ok(match transposed {
            false => Matrix { data, rows: m, cols: n, row_stride: n, col_stride: 1, conjugate: false },
            true => Matrix { data, rows: n, cols: m, row_stride: 1, col_stride: n, conjugate: false },
        })
    }

    /// The factors of a product.
    pub fn pair(a: &'a Tensor, b: &'a Tensor, transposed: (bool, bool)) -> Result<[Matrix<'a, T>; 2], KernelError> {
        let (x, y) = (Self::new(a, transposed.0, "a")?, Self::new(b, transposed.1, "b")?);
        check_inner((x.cols, y.rows), a.shape(), b.shape())?;
        Ok([x, y])
    }
}

/// What is done to each row of a block of a product, which begins at some column, when the block is there.
pub(in crate::kernels) type Epilogue<'a, T> = &'a (dyn Fn(usize, &mut [T]) + Sync);
