//! Matrix products, split over workers: by our own tiles where the machine has AVX-512 ([`blocked`]), by the `gemm`
//! crate's kernels otherwise, for complex numbers, and where a product is small or narrow.
//!
//! A product is worth splitting only when each part takes longer than handing it over, so parts have at least
//! [`FLOPS_PER_SHARD`] floating-point operations.

mod blocked;
mod matrix;
mod pack;
mod tile;

pub(super) use blocked::Product;
use blocked::{Blocked, Part, is_available};
pub(super) use matrix::{Epilogue, Matrix};

use super::Sharder;
use super::support::DisjointMut;
use engine_core::dtype::{Complex32, Complex64, DType, Element};

/// About 17 microseconds on one core with AVX-512.
const FLOPS_PER_SHARD: usize = 4 << 20;
/// Operations per nanosecond that the cost estimate assumes.
const FLOPS_PER_NS: usize = 200;
/// Parts begin at multiples of this many rows or columns: that of a packed strip.
const ALIGN: usize = 32;

/// A type that is multiplied here.
pub(super) trait Gemm: Element {
    const ONE: Self;
    const ZERO: Self;

    /// Whether products of these sizes are computed by tiles. It depends on nothing else, so that neither do results.
    fn is_tiled(_m: usize, _k: usize, _n: usize) -> bool {
        false
    }

    /// Computes a part of a product by tiles.
    ///
    /// # Safety
    /// [`Gemm::is_tiled`], and `out` has the part's rows and columns, which nobody else uses meanwhile.
    unsafe fn by_tiles(_product: &Product<'_, Self>, _part: Part, _out: *mut Self) {}

    /// Elements of a right matrix of `rows` x `columns` when it is packed; 0 where there are no tiles.
    fn packed_len(_rows: usize, _columns: usize) -> usize {
        0
    }

    /// Columns of a strip.
    const STRIP: usize = 1;

    /// Packs strips of a right matrix.
    ///
    /// # Safety
    /// There are tiles, and the strips of `room`, which has [`Gemm::packed_len`] elements, are nobody else's meanwhile.
    unsafe fn pack(_b: &Matrix<'_, Self>, _strips: std::ops::Range<usize>, _room: *mut Self) {}
}

/// Elements of a right matrix of these sizes when it is packed; `None` where nothing packs.
pub fn packed_elements(dtype: DType, rows: usize, columns: usize) -> Option<usize> {
    let n = match dtype {
        DType::F32 => f32::packed_len(rows, columns),
        DType::F64 => f64::packed_len(rows, columns),
        _ => 0,
    };
    (n > 0).then_some(n)
}

/// Elements of a right matrix when it is packed.
pub(super) fn packed_len<T: Gemm>(b: &Matrix<'_, T>) -> usize {
    T::packed_len(b.rows, b.cols)
}

/// Packs a right matrix into `room`, of [`packed_len`] elements.
pub(super) fn pack_right<T: Gemm>(sharder: &dyn Sharder, b: &Matrix<'_, T>, room: &mut [T]) {
    assert_eq!(room.len(), packed_len(b), "a packed matrix fits its room");
    if room.is_empty() {
        return;
    }
    let ns = (b.rows * T::STRIP).div_ceil(4) as u64;
    let dst = DisjointMut::new(room);
    sharder.parallel_for(b.cols.div_ceil(T::STRIP), ns, &|strips| {
        // SAFETY: a length above 0 says that there are tiles; ranges of strips are disjoint, and `room` is borrowed for
        // writing until all are done.
        unsafe { T::pack(b, strips, dst.at(0)) };
    });
}

/// Whether packing pays, and strips are not mostly empty.
fn is_worth_tiles<T: Blocked>(m: usize, k: usize, n: usize) -> bool {
    n >= T::STRIP / 2 && m >= 4 && m.saturating_mul(k).saturating_mul(n) >= 1 << 15 && is_available()
}

macro_rules! tiled {
    ($t:ty) => {
        impl Gemm for $t {
            const ONE: $t = 1.0;
            const ZERO: $t = 0.0;

            fn is_tiled(m: usize, k: usize, n: usize) -> bool {
                is_worth_tiles::<$t>(m, k, n)
            }

            unsafe fn by_tiles(product: &Product<'_, $t>, part: Part, out: *mut $t) {
                // SAFETY: the caller's word; tiles were chosen, so the machine has what they need.
                unsafe { <$t as Blocked>::compute(product, part, out) }
            }

            fn packed_len(rows: usize, columns: usize) -> usize {
                if is_available() { blocked::packed_len::<$t>(rows, columns) } else { 0 }
            }

            const STRIP: usize = <$t as Blocked>::STRIP;

            unsafe fn pack(b: &Matrix<'_, $t>, strips: std::ops::Range<usize>, room: *mut $t) {
                // SAFETY: the caller's word.
                unsafe { <$t as Blocked>::pack_right(b, strips, room) }
            }
        }
    };
}
tiled!(f32);
tiled!(f64);
impl Gemm for Complex64 {
    const ONE: Complex64 = Complex64::new(1.0, 0.0);
    const ZERO: Complex64 = Complex64::new(0.0, 0.0);
}
impl Gemm for Complex32 {
    const ONE: Complex32 = Complex32::new(1.0, 0.0);
    const ZERO: Complex32 = Complex32::new(0.0, 0.0);
}

/// `out = a * b`, `out` row-major.
pub(super) fn multiply<T: Gemm>(sharder: &dyn Sharder, a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T]) {
    multiply_all(sharder, &Product { a: &[a], b: &[b], packed: None, adds: false, then: None }, out);
}

/// Computes a product into `out`, row-major.
///
/// # Panics
/// There is no pair of matrices, or they or `out` do not fit each other.
pub(super) fn multiply_all<T: Gemm>(sharder: &dyn Sharder, product: &Product<'_, T>, out: &mut [T]) {
    let (m, n) = (product.a[0].rows, product.b[0].cols);
    assert_eq!(out.len(), m * n, "the output has one element for each row and column");
    assert_eq!(product.a.len(), product.b.len(), "left and right matrices are pairs");
    let fits = |(a, b): (&Matrix<'_, T>, &Matrix<'_, T>)| (a.rows, b.cols, a.cols) == (m, n, b.rows);
    assert!(product.a.iter().zip(product.b).all(fits), "the matrices of all pairs fit");
    let k: usize = product.a.iter().map(|a| a.cols).sum();
    if k == 0 || out.is_empty() {
        if !product.adds {
            out.fill(T::ZERO);
        }
        if let Some(then) = product.then {
            out.chunks_exact_mut(n.max(1)).for_each(|row| then(0, row));
        }
        return;
    }
    let flops = m.saturating_mul(n).saturating_mul(k).saturating_mul(2);
    let by_rows = m >= n;
    let long = if by_rows { m } else { n };
    // More shards than threads: one that is held up by other programs leaves its next one to the others.
    let n_wanted = if sharder.n_workers() == 1 { 1 } else { 2 * sharder.n_workers() };
    let n_shards = n_wanted.min(flops / FLOPS_PER_SHARD).min(long / ALIGN).max(1);
    let per_shard = long.div_ceil(n_shards).next_multiple_of(if n_shards == 1 { 1 } else { ALIGN });
    let dst = DisjointMut::new(out);
    let is_tiled = T::is_tiled(m, k, n);
    let block = |begin: usize, end: usize| {
        let (rows, columns) = if by_rows { ((begin, end), (0, n)) } else { ((0, m), (begin, end)) };
        let part = Part { rows, columns, stride: n };
        // SAFETY: blocks of different shards are disjoint in `out`, which is borrowed for writing, and has all rows and
        // columns.
        unsafe { if is_tiled { T::by_tiles(product, part, dst.at(0)) } else { by_crate(product, part, &dst) } }
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

/// Computes a part of a product with the `gemm` crate.
///
/// # Safety
/// `out` has the part's rows and columns, which nobody else uses meanwhile.
unsafe fn by_crate<T: Gemm>(product: &Product<'_, T>, part: Part, out: &DisjointMut<'_, T>) {
    let Part { rows: (i0, i1), columns: (j0, j1), stride } = part;
    for (i, (a, b)) in product.a.iter().zip(product.b).enumerate() {
        // SAFETY: `a`, `b` and `out` cover their elements with these strides (a `Matrix` is made of a whole tensor); the
        // rest is the caller's word.
        unsafe {
            gemm::gemm(
                i1 - i0,
                j1 - j0,
                a.cols,
                out.at(i0 * stride + j0),
                1,
                stride as isize,
                product.adds || i > 0,
                a.data.as_ptr().wrapping_add(i0 * a.row_stride),
                a.col_stride as isize,
                a.row_stride as isize,
                b.data.as_ptr().wrapping_add(j0 * b.col_stride),
                b.col_stride as isize,
                b.row_stride as isize,
                T::ONE,
                T::ONE,
                false,
                a.conjugate,
                b.conjugate,
                gemm::Parallelism::None,
            );
        }
    }
    if let Some(then) = product.then {
        for i in i0..i1 {
            // SAFETY: the caller's word: this part of a row is within `out`, and nobody else's.
            then(j0, unsafe { out.part(i * stride + j0..i * stride + j1) });
        }
    }
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

#[cfg(test)]
mod tests;
