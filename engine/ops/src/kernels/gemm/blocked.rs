//! Products block by block, for machines with AVX-512: sums of products of pairs of matrices, as if the left ones stood
//! side by side and the right ones one upon the other.
//!
//! ```text
//! for each block of DEPTH steps          (they may lie in several pairs)
//!   for each block of COLUMNS columns    packed into strips, or packed before ([`pack_right`])
//!     for each tile of rows              packed; stays in the first-level cache
//!       for each strip of columns        tile
//! ```
//!
//! An element's sum takes its steps in order, in blocks of [`DEPTH`], whatever the cut into tiles, shards and pairs: so
//! it does not depend on them.

use std::cell::RefCell;

use super::matrix::{Epilogue, Matrix};
use super::pack::{self, Lines, Strip};
use super::tile::{self, MAX_ROWS, Tile, WIDTH};
use crate::kernels::lanes::Exchange;
use engine_core::dtype::Element;

/// Steps of a block.
const DEPTH: usize = 256;
/// Columns of a block: with [`DEPTH`] half of a second-level cache.
const COLUMNS: usize = 1024;
/// Elements that packing may write behind its end.
const SLACK: usize = 16;

/// A type whose products are computed here, where the machine can.
pub(in crate::kernels) trait Blocked: Element + Default + std::ops::AddAssign {
    /// Numbers of a strip.
    const STRIP: usize;

    /// Computes `product` over some rows and columns.
    ///
    /// # Safety
    /// [`is_available`], and `out` has the rows and columns, which nobody else uses meanwhile.
    unsafe fn compute(product: &Product<'_, Self>, part: Part, out: *mut Self);

    /// Packs strips of the right matrix for any number of products with it.
    ///
    /// # Safety
    /// [`is_available`], and `room` has [`packed_len`] elements, of which those of the strips are nobody else's
    /// meanwhile.
    unsafe fn pack_right(b: &Matrix<'_, Self>, strips: std::ops::Range<usize>, room: *mut Self);

    /// Calls `f` with a scratch buffer of this thread.
    fn with_scratch(f: impl FnOnce(&mut Vec<Self>));
}

/// Whether the machine has what the tiles are compiled for.
pub(crate) fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The sum of the products of pairs of matrices.
pub(in crate::kernels) struct Product<'a, T> {
    /// The left matrices, of as many rows.
    pub a: &'a [Matrix<'a, T>],
    /// The right matrices, of as many columns; each as many rows as the left one has columns.
    pub b: &'a [Matrix<'a, T>],
    /// The only right matrix, packed.
    pub packed: Option<&'a [T]>,
    /// Whether it is added to what is there.
    pub adds: bool,
    /// What is done to finished parts of rows.
    pub then: Option<Epilogue<'a, T>>,
}

/// Rows and columns of a product.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Part {
    pub rows: (usize, usize),
    pub columns: (usize, usize),
    /// From row to row of the whole output.
    pub stride: usize,
}

/// Elements of a packed right matrix of `rows` x `columns`: blocks of [`DEPTH`] rows, strip by strip.
pub(in crate::kernels) fn packed_len<T: Blocked>(rows: usize, columns: usize) -> usize {
    columns.next_multiple_of(T::STRIP) * rows
}

/// Where strip `j` of the block that begins at step `k` lies in a packed matrix of `columns`.
fn packed_at<T: Blocked>(columns: usize, k: usize, depth: usize, j: usize) -> usize {
    k * columns.next_multiple_of(T::STRIP) + j * depth * T::STRIP
}

/// The work of [`Blocked::pack_right`]: strips `strips` of all blocks.
///
/// # Safety
/// As there, with `L`'s vectors.
#[inline(always)]
unsafe fn pack_right<L: Exchange>(b: &Matrix<'_, L::T>, strips: std::ops::Range<usize>, room: *mut L::T)
where
    L::T: Blocked,
{
    let width = WIDTH * L::N;
    let lines = Lines::columns(b);
    for begin in (0..b.rows).step_by(DEPTH) {
        let depth = (b.rows - begin).min(DEPTH);
        for j in strips.clone() {
            let at = packed_at::<L::T>(b.cols, begin, depth, j);
            let strip = Strip { first: j * width, n: (b.cols - j * width).min(width), begin, depth };
            // SAFETY: the caller's word; the strip lies within the matrix, and is whole vectors wide, so that it ends
            // where the next one begins.
            unsafe {
                let room = std::slice::from_raw_parts_mut(room.add(at), depth * width);
                pack::pack::<L>(lines, strip, width, room);
            }
        }
    }
}

/// Cuts steps that continue from matrix to matrix: calls `f` with a matrix, its part of the steps, and how many came before.
#[inline(always)]
fn segments<'a, T>(
    of: &[Matrix<'a, T>],
    steps: impl Fn(&Matrix<'a, T>) -> usize,
    strip: Strip,
    mut f: impl FnMut(&Matrix<'a, T>, Strip, usize),
) {
    let (mut before, mut done) = (0, 0);
    for matrix in of {
        let n = steps(matrix);
        let begin = (strip.begin + done).saturating_sub(before);
        if done < strip.depth && begin < n {
            let depth = (n - begin).min(strip.depth - done);
            f(matrix, Strip { begin, depth, ..strip }, done);
            done += depth;
        }
        before += n;
    }
}

/// The work of [`Blocked::compute`].
///
/// # Safety
/// As there, with `L`'s vectors.
#[inline(always)]
unsafe fn compute<L: Exchange>(product: &Product<'_, L::T>, part: Part, out: *mut L::T, scratch: &mut Vec<L::T>)
where
    L::T: Blocked,
{
    let total: usize = product.a.iter().map(|a| a.cols).sum();
    let width = WIDTH * L::N;
    let room_a = MAX_ROWS * DEPTH + SLACK;
    scratch.resize(room_a + COLUMNS * DEPTH + 2 * SLACK, L::T::default());
    // Vectors that cross cache lines would be read twice.
    let aligned = scratch.as_ptr().align_offset(64).min(SLACK);
    let (room_a, room_b) = scratch[aligned..].split_at_mut(room_a);
    for k in (0..total).step_by(DEPTH) {
        let depth = (total - k).min(DEPTH);
        let is_last = k + depth == total;
        for j0 in (part.columns.0..part.columns.1).step_by(COLUMNS) {
            let block =
                Block { k, depth, columns: (j0, (j0 + COLUMNS).min(part.columns.1)), adds: product.adds || k > 0 };
            // SAFETY: the caller's word.
            let right = unsafe { right::<L>(product, &block, part, room_b) };
            for (i, rows) in tiles(part.rows) {
                let strip = Strip { first: i, n: rows, begin: k, depth };
                segments(
                    product.a,
                    |a| a.cols,
                    strip,
                    |a, part, before| {
                        // SAFETY: the caller's word.
                        unsafe { pack::pack::<L>(Lines::rows(a), part, rows, &mut room_a[before * rows..]) };
                    },
                );
                for (s, j) in (block.columns.0..block.columns.1).step_by(width).enumerate() {
                    let tile = Tile {
                        depth,
                        a: room_a.as_ptr(),
                        b: right.at.wrapping_add(s * right.strip),
                        b_step: right.step,
                        out: out.wrapping_add(i * part.stride + j),
                        stride: part.stride,
                        n: (block.columns.1 - j).min(width),
                        adds: block.adds,
                    };
                    // SAFETY: the caller's word; the rows and strips were packed.
                    unsafe { tile::compute::<L>(rows, tile) };
                }
                if let (true, Some(then)) = (is_last, product.then) {
                    for i in i..i + rows {
                        let (begin, end) = block.columns;
                        let row = out.wrapping_add(i * part.stride + begin);
                        // SAFETY: the caller's word: this part of a row is within `out`, and nobody else's.
                        then(begin, unsafe { std::slice::from_raw_parts_mut(row, end - begin) });
                    }
                }
            }
        }
    }
}

/// Steps and columns that are computed at once.
struct Block {
    k: usize,
    depth: usize,
    columns: (usize, usize),
    adds: bool,
}

/// A block of the right matrix as tiles read it.
struct Right<T> {
    at: *const T,
    /// From strip to strip.
    strip: usize,
    /// From step to step.
    step: usize,
}

/// Where the block's strips of the right matrix lie; packs them where they were not.
///
/// # Safety
/// `L`'s vectors may be used.
#[inline(always)]
unsafe fn right<L: Exchange>(product: &Product<'_, L::T>, block: &Block, part: Part, room: &mut [L::T]) -> Right<L::T>
where
    L::T: Blocked,
{
    let width = WIDTH * L::N;
    let (begin, end) = block.columns;
    if let Some(packed) = product.packed {
        let at = packed_at::<L::T>(product.b[0].cols, block.k, block.depth, begin / width);
        return Right { at: packed[at..].as_ptr(), strip: block.depth * width, step: width };
    }
    if let ([b], true) = (product.b, part.rows.1 - part.rows.0 <= MAX_ROWS && (end - begin).is_multiple_of(width))
        && b.col_stride == 1
    {
        // Read once: packing would not pay.
        return Right { at: b.data[block.k * b.row_stride + begin..].as_ptr(), strip: width, step: b.row_stride };
    }
    let strips = Strip { first: begin, n: end - begin, begin: block.k, depth: block.depth };
    segments(
        product.b,
        |b| b.rows,
        strips,
        |b, part, before| {
            let room = &mut room[before * width..];
            // SAFETY: the caller's word.
            unsafe { pack::pack_strips::<L>(Lines::columns(b), part, (width, block.depth * width), room) };
        },
    );
    Right { at: room.as_ptr(), strip: block.depth * width, step: width }
}

/// Cuts rows into tiles as few and as equal as possible: first row and number of each.
fn tiles((begin, end): (usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    let n = end - begin;
    let n_tiles = n.div_ceil(MAX_ROWS);
    let at = move |t: usize| begin + n * t / n_tiles.max(1);
    (0..n_tiles).map(move |t| (at(t), at(t + 1) - at(t)))
}

macro_rules! blocked {
    ($t:ty, $wide:ident) => {
        impl Blocked for $t {
            const STRIP: usize = WIDTH * 64 / size_of::<$t>();

            unsafe fn compute(product: &Product<'_, $t>, part: Part, out: *mut $t) {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
                    unsafe fn wide(product: &Product<'_, $t>, part: Part, out: *mut $t, scratch: &mut Vec<$t>) {
                        // SAFETY: the caller's word.
                        unsafe { compute::<crate::kernels::lanes::avx512::$wide>(product, part, out, scratch) }
                    }
                    // SAFETY: the caller's word.
                    <$t>::with_scratch(|scratch| unsafe { wide(product, part, out, scratch) });
                }
                #[cfg(not(target_arch = "x86_64"))]
                let _ = (product, part, out);
            }

            unsafe fn pack_right(b: &Matrix<'_, $t>, strips: std::ops::Range<usize>, room: *mut $t) {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
                    unsafe fn wide(b: &Matrix<'_, $t>, strips: std::ops::Range<usize>, room: *mut $t) {
                        // SAFETY: the caller's word.
                        unsafe { pack_right::<crate::kernels::lanes::avx512::$wide>(b, strips, room) }
                    }
                    // SAFETY: the caller's word.
                    unsafe { wide(b, strips, room) };
                }
                #[cfg(not(target_arch = "x86_64"))]
                let _ = (b, strips, room);
            }

            fn with_scratch(f: impl FnOnce(&mut Vec<$t>)) {
                thread_local! {
                    static SCRATCH: RefCell<Vec<$t>> = const { RefCell::new(Vec::new()) };
                }
                // Products within an epilogue would find it taken; there are none, but they would only pay for memory.
                SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
                    Ok(mut scratch) => f(&mut scratch),
                    Err(_) => f(&mut Vec::new()),
                });
            }
        }
    };
}
blocked!(f32, F32x16);
blocked!(f64, F64x8);
