//! Matrix products: the `gemm` crate's kernels (AVX-512 where the machine has it), split over workers by us.
//!
//! A product is worth splitting only when each part takes longer than handing it over: `gemm`'s own threading is
//! 4-7 times slower than one thread at 64 x 64, so parts have at least [`FLOPS_PER_SHARD`] floating-point operations.

use super::support::{Computed, cpu, kernel};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, Sharder};
use crate::dtype::{Complex32, Complex64, DType, Element};
use crate::graph::Node;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// About 17 microseconds on one core with AVX-512.
const FLOPS_PER_SHARD: usize = 4 << 20;
/// Operations per nanosecond that the cost estimate assumes.
const FLOPS_PER_NS: usize = 200;
/// Parts begin at multiples of this many rows or columns, so that micro-kernels stay full.
const ALIGN: usize = 16;

/// A matrix in memory: rows, columns, and how far apart neighbours are.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
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
}

/// A type that the `gemm` crate multiplies.
pub(super) trait Gemm: Element {
    const ONE: Self;
    const ZERO: Self;
}
impl Gemm for f32 {
    const ONE: f32 = 1.0;
    const ZERO: f32 = 0.0;
}
impl Gemm for f64 {
    const ONE: f64 = 1.0;
    const ZERO: f64 = 0.0;
}
impl Gemm for Complex64 {
    const ONE: Complex64 = Complex64::new(1.0, 0.0);
    const ZERO: Complex64 = Complex64::new(0.0, 0.0);
}
impl Gemm for Complex32 {
    const ONE: Complex32 = Complex32::new(1.0, 0.0);
    const ZERO: Complex32 = Complex32::new(0.0, 0.0);
}

struct Dst<T>(*mut T);
// SAFETY: shards write disjoint blocks of the destination.
unsafe impl<T: Send> Sync for Dst<T> {}
impl<T> Dst<T> {
    fn at(&self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

/// `out = a * b`, `out` row-major.
pub(super) fn multiply<T: Gemm>(sharder: &dyn Sharder, a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T]) {
    multiply_then(sharder, a, b, out, None);
}

/// What is done to each row of a block of a product, which begins at some column, when the block is there.
pub(super) type Epilogue<'a, T> = &'a (dyn Fn(usize, &mut [T]) + Sync);

/// `out = a * b`, `out` row-major, each block finished by `then`.
pub(super) fn multiply_then<T: Gemm>(
    sharder: &dyn Sharder,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: &mut [T],
    then: Option<Epilogue<'_, T>>,
) {
    let (m, k, n) = (a.rows, a.cols, b.cols);
    assert_eq!(out.len(), m * n, "the output has one element for each row and column");
    if k == 0 {
        out.fill(T::ZERO);
        if let Some(then) = then {
            out.chunks_exact_mut(n.max(1)).for_each(|row| then(0, row));
        }
        return;
    }
    let flops = m.saturating_mul(n).saturating_mul(k).saturating_mul(2);
    let by_rows = m >= n;
    let long = if by_rows { m } else { n };
    let n_shards = sharder.n_workers().min(flops / FLOPS_PER_SHARD).min(long / ALIGN).max(1);
    let per_shard = long.div_ceil(n_shards).next_multiple_of(if n_shards == 1 { 1 } else { ALIGN });
    let dst = Dst(out.as_mut_ptr());
    let block = |begin: usize, end: usize| {
        let (i0, i1, j0, j1) = if by_rows { (begin, end, 0, n) } else { (0, m, begin, end) };
        // SAFETY: `a`, `b` and `out` cover their m * k, k * n and m * n elements with these strides (a `Matrix` is
        // made of a whole tensor); blocks of different shards are disjoint in `out`, which is borrowed for writing.
        unsafe {
            gemm::gemm(
                i1 - i0,
                j1 - j0,
                k,
                dst.at(i0 * n + j0),
                1,
                n as isize,
                false,
                a.data.as_ptr().wrapping_add(i0 * a.row_stride),
                a.col_stride as isize,
                a.row_stride as isize,
                b.data.as_ptr().wrapping_add(j0 * b.col_stride),
                b.col_stride as isize,
                b.row_stride as isize,
                T::ZERO,
                T::ONE,
                false,
                a.conjugate,
                b.conjugate,
                gemm::Parallelism::None,
            );
        }
        if let Some(then) = then {
            for i in i0..i1 {
                // SAFETY: as above: this part of a row is within `out`, and no other shard's.
                then(j0, unsafe { std::slice::from_raw_parts_mut(dst.at(i * n + j0), j1 - j0) });
            }
        }
    };
    if n_shards == 1 {
        return block(0, long);
    }
    let cost = (flops / n_shards / FLOPS_PER_NS) as u64;
    sharder.parallel_for(long.div_ceil(per_shard), cost, &|shards| {
        let (begin, end) = (shards.start * per_shard, (shards.end * per_shard).min(long));
        block(begin, end);
    });
}

/// Products of integers, wrapping, for small matrices.
pub(super) fn multiply_int<T: Element>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: &mut [T],
    zero: T,
    fma: fn(T, T, T) -> T,
) {
    for (i, row) in out.chunks_exact_mut(b.cols.max(1)).enumerate() {
        for (j, v) in row.iter_mut().enumerate() {
            let at =
                |k: usize| (a.data[i * a.row_stride + k * a.col_stride], b.data[k * b.row_stride + j * b.col_stride]);
            *v = (0..a.cols).map(at).fold(zero, |sum, (x, y)| fma(sum, x, y));
        }
    }
}

fn matmul<T: Element>(
    ctx: &mut KernelContext<'_>,
    transposed: (bool, bool),
    product: impl Fn(&dyn Sharder, Matrix<'_, T>, Matrix<'_, T>, &mut [T]),
) -> Computed {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    let (shape_a, shape_b) = (a.shape(), b.shape());
    let (a, b) = (Matrix::<T>::new(a, transposed.0, "a")?, Matrix::<T>::new(b, transposed.1, "b")?);
    if a.cols != b.rows {
        let text = format!("inner dimensions differ: {} and {} (inputs {shape_a}, {shape_b})", a.cols, b.rows);
        return Err(KernelError::invalid(text));
    }
    let out = ctx.filled::<T>(Shape::new(&[a.rows, b.cols]), |out| {
        if !out.is_empty() {
            product(ctx.sharder, a, b, out);
        }
        Ok(())
    })?;
    ctx.set(0, out);
    Ok(())
}

fn transposed(node: &Node) -> Result<(bool, bool), KernelError> {
    Ok((*node.flag("transpose_a")?, *node.flag("transpose_b")?))
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static MATMUL: &[KernelDef] = &[
    cpu("MatMul", ("T", &[DType::F32]), |n| {
        let t = transposed(n)?;
        kernel(move |c| matmul::<f32>(c, t, multiply))
    }),
    cpu("MatMul", ("T", &[DType::F64]), |n| {
        let t = transposed(n)?;
        kernel(move |c| matmul::<f64>(c, t, multiply))
    }),
    cpu("MatMul", ("T", &[DType::C64]), |n| {
        let t = transposed(n)?;
        kernel(move |c| matmul::<Complex32>(c, t, multiply))
    }),
    cpu("MatMul", ("T", &[DType::C128]), |n| {
        let t = transposed(n)?;
        kernel(move |c| matmul::<Complex64>(c, t, multiply))
    }),
    cpu("MatMul", ("T", &[DType::U64]), |n| {
        let t = transposed(n)?;
        let fma = |s: u64, x: u64, y: u64| s.wrapping_add(x.wrapping_mul(y));
        kernel(move |c| matmul::<u64>(c, t, |_, a, b, out| multiply_int(a, b, out, 0, fma)))
    }),
    widened("MatMul", ("T", DType::NARROW_REAL)),
    cpu("MatMul", ("T", &[DType::I32]), |n| {
        let t = transposed(n)?;
        let fma = |s: i32, x: i32, y: i32| s.wrapping_add(x.wrapping_mul(y));
        kernel(move |c| matmul::<i32>(c, t, |_, a, b, out| multiply_int(a, b, out, 0, fma)))
    }),
    cpu("MatMul", ("T", &[DType::I64]), |n| {
        let t = transposed(n)?;
        let fma = |s: i64, x: i64, y: i64| s.wrapping_add(x.wrapping_mul(y));
        kernel(move |c| matmul::<i64>(c, t, |_, a, b, out| multiply_int(a, b, out, 0, fma)))
    }),
];
