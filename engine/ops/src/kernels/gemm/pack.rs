//! Packing: parts of matrices written down in the order in which tiles read them.
//!
//! A strip is `width` lines of a matrix (rows of the left one, columns of the right one), and holds for each step the
//! lines' numbers side by side. Where those lie side by side in memory too they are copied, otherwise transposed vector
//! by vector.

use super::matrix::Matrix;
use crate::kernels::lanes::{Exchange, Lanes};

/// What a strip takes: lines of a matrix, numbered `first..first + n`, at steps from `begin` on.
#[derive(Clone, Copy)]
pub(super) struct Strip {
    pub first: usize,
    pub n: usize,
    pub begin: usize,
    pub depth: usize,
}

/// Lines of a matrix in memory: line `i` at step `k` is `data[i * line + k * step]`.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a, T> {
    data: &'a [T],
    line: usize,
    step: usize,
}

impl<'a, T> Lines<'a, T> {
    /// The rows of a left matrix, its columns as steps.
    pub fn rows(m: &Matrix<'a, T>) -> Lines<'a, T> {
        Lines { data: m.data, line: m.row_stride, step: m.col_stride }
    }

    /// The columns of a right matrix, its rows as steps.
    pub fn columns(m: &Matrix<'a, T>) -> Lines<'a, T> {
        Lines { data: m.data, line: m.col_stride, step: m.row_stride }
    }
}

/// Packs a strip into `room`: the lines' numbers of step `k` from `k * width` on, zeros for lines beyond `n`. Where the
/// width is not one of whole vectors, up to a vector more is overwritten behind the strip.
///
/// # Safety
/// `L`'s vectors may be used, and the matrix has the strip's lines and steps.
///
/// # Panics
/// `room` is shorter than the strip and a vector.
#[inline(always)]
pub(super) unsafe fn pack<L: Exchange>(lines: Lines<'_, L::T>, strip: Strip, width: usize, room: &mut [L::T]) {
    assert!(room.len() >= (strip.depth.max(1) - 1) * width + width.next_multiple_of(L::N), "a strip fits its room");
    assert!(strip.n <= width, "a strip has no more lines than it is wide");
    let from = strip.first * lines.line + strip.begin * lines.step;
    let data = &lines.data[from..];
    if lines.line == 1 {
        copy::<L>(data, lines.step, strip, width, room);
    } else if lines.step == 1 {
        // From the last vector to the first: what the last one writes too far, into the next step, is written again.
        for first in (0..width).step_by(L::N).rev() {
            // SAFETY: the caller's word.
            unsafe { transpose::<L>(data, lines.line, strip, (first, width), room) };
        }
    } else {
        for (k, to) in room.chunks_exact_mut(width).take(strip.depth).enumerate() {
            for (i, v) in to.iter_mut().enumerate() {
                *v = if i < strip.n { data[i * lines.line + k * lines.step] } else { L::T::default() };
            }
        }
    }
}

/// Packs strips of `width` lines each, as [`pack`] does one after the other; step by step where the lines lie side by side
/// in memory, which is read in order then.
///
/// # Safety
/// As for [`pack`].
///
/// # Panics
/// `room` is shorter than the strips, `stride` apart.
#[inline(always)]
pub(super) unsafe fn pack_strips<L: Exchange>(
    lines: Lines<'_, L::T>,
    strip: Strip,
    (width, stride): (usize, usize),
    room: &mut [L::T],
) {
    let n_whole = if lines.line == 1 { strip.n / width } else { 0 };
    if n_whole > 0 {
        let data = &lines.data[strip.first + strip.begin * lines.step..];
        for k in 0..strip.depth {
            let from = data[k * lines.step..][..n_whole * width].chunks_exact(width);
            for (s, from) in from.enumerate() {
                let to = &mut room[s * stride + k * width..][..width];
                for (to, from) in to.chunks_exact_mut(L::N).zip(from.chunks_exact(L::N)) {
                    // SAFETY: both have a whole vector.
                    unsafe { L::load(from.as_ptr()).store(to.as_mut_ptr()) };
                }
            }
        }
    }
    for (s, i) in (n_whole * width..strip.n).step_by(width).enumerate() {
        let part = Strip { first: strip.first + i, n: (strip.n - i).min(width), ..strip };
        // SAFETY: the caller's word.
        unsafe { pack::<L>(lines, part, width, &mut room[(n_whole + s) * stride..]) };
    }
}

/// Lines that lie side by side.
#[inline(always)]
fn copy<L: Lanes>(data: &[L::T], step: usize, strip: Strip, width: usize, room: &mut [L::T]) {
    for k in 0..strip.depth {
        let from = &data[k * step..];
        if strip.n == width && width <= L::N && from.len() >= L::N && room.len() >= k * width + L::N {
            // SAFETY: both have a whole vector. What is too much is overwritten by the next step, or lies behind the strip.
            unsafe { L::load(from.as_ptr()).store(room[k * width..].as_mut_ptr()) };
            continue;
        }
        let (to, zeros) = room[k * width..][..width].split_at_mut(strip.n);
        let from = &from[..strip.n];
        for (to, from) in to.chunks_mut(L::N).zip(from.chunks(L::N)) {
            match to.len() == L::N {
                // SAFETY: both have a whole vector.
                true => unsafe { L::load(from.as_ptr()).store(to.as_mut_ptr()) },
                false => to.copy_from_slice(from),
            }
        }
        zeros.fill(L::T::default());
    }
}

/// Lines whose steps lie side by side: a vector of lines at a time, from the line at `first` within the strip.
///
/// # Safety
/// As for [`pack`].
#[inline(always)]
unsafe fn transpose<L: Exchange>(
    data: &[L::T],
    line: usize,
    strip: Strip,
    (first, width): (usize, usize),
    room: &mut [L::T],
) {
    let n = strip.n.saturating_sub(first).min(L::N);
    let mut begin = 0;
    while begin < strip.depth {
        let depth = (strip.depth - begin).min(L::N);
        let mut square = [L::zero(); 16];
        for (i, row) in square.iter_mut().enumerate().take(n) {
            let from = &data[(first + i) * line + begin..][..depth];
            *row = match depth == L::N {
                // SAFETY: the slice has a whole vector.
                true => unsafe { L::load(from.as_ptr()) },
                false => {
                    let mut whole = [L::T::default(); 16];
                    whole[..depth].copy_from_slice(from);
                    // SAFETY: vectors have at most 16 numbers.
                    unsafe { L::load(whole.as_ptr()) }
                }
            };
        }
        turn(&mut square);
        for (k, row) in square.into_iter().enumerate().take(depth) {
            let to = room[(begin + k) * width + first..].as_mut_ptr();
            // SAFETY: `pack` asserts that the room has whole vectors for the last step. What is written behind a step's
            // last line is overwritten by the next step, or lies behind the strip.
            unsafe { row.store(to) };
        }
        begin += depth;
    }
}

/// Transposes the square of the first `L::N` vectors, by exchanging ever smaller blocks.
#[inline(always)]
fn turn<L: Exchange>(square: &mut [L; 16]) {
    if L::N == 16 {
        stage::<L, 8>(square);
    }
    stage::<L, 4>(square);
    stage::<L, 2>(square);
    stage::<L, 1>(square);
}

#[inline(always)]
fn stage<L: Exchange, const D: usize>(square: &mut [L; 16]) {
    for i in (0..L::N).filter(|i| i & D == 0) {
        (square[i], square[i + D]) = square[i].exchange::<D>(square[i + D]);
    }
}
