//! The innermost loop of matrix products: a tile of sums that stays in registers.
//!
//! A tile is up to [`MAX_ROWS`] rows high and two vectors wide. Its rows of the left matrix are packed column by column,
//! its columns of the right one row by row ([`super::pack`]): each step loads two vectors and multiplies them by one
//! number of each row.

use crate::kernels::lanes::Lanes;

/// Rows of a tile at most: with two vectors each they fill the registers but for those of the operands.
pub(super) const MAX_ROWS: usize = 14;
/// Vectors that a tile is wide.
pub(super) const WIDTH: usize = 2;
/// Steps that the right matrix is fetched ahead.
const AHEAD: usize = 16;

/// What a tile is computed from and to.
#[derive(Clone, Copy)]
pub(super) struct Tile<T> {
    /// Steps: columns of the left matrix, rows of the right one.
    pub depth: usize,
    /// The rows' numbers of step `k` at `a + k * rows`.
    pub a: *const T,
    /// Two vectors of step `k` at `b + k * b_step`.
    pub b: *const T,
    /// From step to step in `b`.
    pub b_step: usize,
    /// Row `i` of the sums at `out + i * stride`.
    pub out: *mut T,
    /// From row to row in `out`.
    pub stride: usize,
    /// Columns that are written; fewer than two vectors at the right end.
    pub n: usize,
    /// Whether the sums are added to what is there.
    pub adds: bool,
}

/// Computes a tile of `rows` rows.
///
/// # Safety
/// The packed rows and columns can be read and the tile of `out` written; `rows` is at most [`MAX_ROWS`].
#[inline(always)]
pub(super) unsafe fn compute<L: Lanes>(rows: usize, tile: Tile<L::T>) {
    macro_rules! of {
        ($($rows:literal)+) => { match rows {
            // SAFETY: the caller's word.
            $($rows => unsafe { compute_rows::<L, $rows>(tile) },)+
            _ => {}
        } };
    }
    of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// # Safety
/// As for [`compute`].
#[inline(always)]
unsafe fn compute_rows<L: Lanes, const ROWS: usize>(tile: Tile<L::T>) {
    let mut sums = [[L::zero(); WIDTH]; ROWS];
    let (mut a, mut b) = (tile.a, tile.b);
    for _ in 0..tile.depth {
        let mut columns = [L::zero(); WIDTH];
        for (j, column) in columns.iter_mut().enumerate() {
            L::fetch(b.wrapping_add(AHEAD * tile.b_step + j * L::N));
            // SAFETY: the caller's word.
            *column = unsafe { L::load(b.add(j * L::N)) };
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the caller's word.
            let element = L::splat(unsafe { *a.add(i) });
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = sum.add_product(element, column);
            }
        }
        a = a.wrapping_add(ROWS);
        b = b.wrapping_add(tile.b_step);
    }
    for (i, row) in sums.into_iter().enumerate() {
        // SAFETY: the caller's word.
        unsafe { put::<L>(row, tile.out.add(i * tile.stride), tile.n, tile.adds) };
    }
}

/// Writes the first `n` numbers of a row of sums, or adds them.
///
/// # Safety
/// `n` numbers can be read and written at `to`.
#[inline(always)]
unsafe fn put<L: Lanes>(row: [L; WIDTH], to: *mut L::T, n: usize, adds: bool) {
    if n == WIDTH * L::N {
        for (j, v) in row.into_iter().enumerate() {
            let to = to.wrapping_add(j * L::N);
            // SAFETY: the caller's word.
            unsafe { if adds { L::load(to).plus(v) } else { v }.store(to) };
        }
        return;
    }
    let mut whole = [L::T::default(); WIDTH * 16];
    for (j, v) in row.into_iter().enumerate() {
        // SAFETY: vectors have at most 16 numbers.
        unsafe { v.store(whole.as_mut_ptr().add(j * L::N)) };
    }
    // SAFETY: the caller's word.
    let to = unsafe { std::slice::from_raw_parts_mut(to, n) };
    for (to, v) in to.iter_mut().zip(whole) {
        if adds { *to += v } else { *to = v }
    }
}
