//! The innermost loops of convolutions: tiles of sums that stay in registers.
//!
//! A tile is some sums long and a few vectors wide. Forward, its rows are output pixels and its columns output
//! channels: for each element of a window the vectors of the filter are multiplied by that element of each pixel's
//! window; so many rows that the sums fill the registers. For the filter's gradient its rows, [`ROWS`] of them, are elements
//! of a window and its columns output channels, and the sum goes over pixels. Windows are read where they lie: a pixel is an offset into the data, a run of a window's elements
//! that lie side by side another.

use crate::kernels::lanes::Lanes;

/// Rows of a tile of the filter's gradient.
pub(super) const ROWS: usize = 8;

/// Where tiles read windows: `data[pixel + run + i]` for `i` in `0..depth`.
#[derive(Clone, Copy)]
pub(super) struct Taps<'a, T> {
    /// The data's begin.
    pub data: *const T,
    /// Offsets of the runs, in the order of the filter's elements.
    pub runs: &'a [usize],
    /// Elements of each run.
    pub depth: usize,
}

/// Columns of a packed filter that a tile computes: `[element of the window][width * N]`, zeros where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    /// The first column.
    pub first: usize,
    /// Columns.
    pub n: usize,
    /// Vectors.
    pub width: usize,
    /// Where it begins in the packed filter.
    pub at: usize,
}

/// Cuts `n` columns into panels of a window with `depth` elements: as few and as equal as possible.
pub(super) fn panels(n: usize, depth: usize, lanes: usize, max_width: usize) -> Vec<Panel> {
    let n_vectors = n.div_ceil(lanes);
    let n_panels = n_vectors.div_ceil(max_width);
    let (mut first, mut at) = (0, 0);
    let mut all = Vec::with_capacity(n_panels);
    for i in 0..n_panels {
        let width = n_vectors * (i + 1) / n_panels - n_vectors * i / n_panels;
        let columns = (n - first).min(width * lanes);
        all.push(Panel { first, n: columns, width, at });
        first += columns;
        at += depth * width * lanes;
    }
    all
}

/// The sums of one tile of pixels.
///
/// # Safety
/// The data has all elements of the pixels' windows; `b` has `runs * depth` rows of `W` vectors.
#[inline(always)]
unsafe fn forward_tile<L: Lanes, const R: usize, const W: usize>(
    taps: Taps<'_, L::T>,
    pixels: &[usize; R],
    b: *const L::T,
) -> [[L; W]; R] {
    let mut sums = [[L::zero(); W]; R];
    let mut b = b;
    for run in taps.runs {
        let rows = pixels.map(|pixel| taps.data.wrapping_add(pixel + run));
        for k in 0..taps.depth {
            let mut columns = [L::zero(); W];
            for (j, column) in columns.iter_mut().enumerate() {
                // SAFETY: the caller's word.
                *column = unsafe { L::load(b.add(j * L::N)) };
            }
            for (row, sums) in rows.iter().zip(&mut sums) {
                // SAFETY: the caller's word.
                let element = L::splat(unsafe { *row.add(k) });
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = sum.add_product(element, column);
                }
            }
            b = b.wrapping_add(W * L::N);
        }
    }
    sums
}

/// Writes the first `n` columns of a row.
///
/// # Safety
/// `n` numbers can be written at `to`, and `n` is at most `W` vectors.
#[inline(always)]
unsafe fn put<L: Lanes, const W: usize>(row: [L; W], to: *mut L::T, n: usize) {
    let mut left = n;
    for (j, v) in row.into_iter().enumerate() {
        if left >= L::N {
            // SAFETY: the caller's word.
            unsafe { v.store(to.add(j * L::N)) };
            left -= L::N;
            continue;
        }
        let mut rest = [L::T::default(); 16];
        // SAFETY: vectors have at most 16 numbers, of which `left` are copied to where the caller says.
        unsafe {
            v.store(rest.as_mut_ptr());
            to.add(j * L::N).copy_from_nonoverlapping(rest.as_ptr(), left);
        }
        return;
    }
}

/// Computes a panel's columns of all pixels: `out[places[p]..][..n]`.
///
/// # Safety
/// As for [`forward_tile`]; at each place `panel.n` numbers can be written.
#[inline(always)]
unsafe fn forward_panel<L: Lanes, const R: usize, const W: usize>(
    taps: Taps<'_, L::T>,
    pixels: &[usize],
    b: *const L::T,
    out: *mut L::T,
    places: &[usize],
    n: usize,
) {
    for (pixels, places) in pixels.chunks(R).zip(places.chunks(R)) {
        let mut tile = [pixels[0]; R];
        tile[..pixels.len()].copy_from_slice(pixels);
        // SAFETY: the caller's word; pixels beyond the last are the tile's first.
        let sums = unsafe { forward_tile::<L, R, W>(taps, &tile, b) };
        for (row, place) in sums.into_iter().zip(places) {
            // SAFETY: the caller's word.
            unsafe { put(row, out.add(*place), n) };
        }
    }
}

/// The work of `forward`, for one kind of vectors.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn forward_of<L: Lanes>(
    taps: Taps<'_, L::T>,
    pixels: &[usize],
    packed: *const L::T,
    panel: Panel,
    out: *mut L::T,
    places: &[usize],
) {
    let (b, out) = (packed.wrapping_add(panel.at), out.wrapping_add(panel.first));
    // SAFETY: the caller's word.
    unsafe {
        match (L::MAX_WIDTH, panel.width) {
            (1, _) => forward_panel::<L, 8, 1>(taps, pixels, b, out, places, panel.n),
            (_, 1) => forward_panel::<L, 14, 1>(taps, pixels, b, out, places, panel.n),
            (_, 2) => forward_panel::<L, 14, 2>(taps, pixels, b, out, places, panel.n),
            _ => forward_panel::<L, 9, 3>(taps, pixels, b, out, places, panel.n),
        }
    }
}

/// Adds the products of windows' elements and output gradients over pixels to a tile of the filter's gradient.
///
/// # Safety
/// `a[pixel..pixel + ROWS]` can be read for each pixel, and `W` vectors at `b + i * stride` for pixel `i`; at
/// `out + i * out_stride` are `n` sums for each of the first `rows` rows.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "two matrices, their steps and the sums")]
unsafe fn filter_tile<L: Lanes, const W: usize>(
    a: *const L::T,
    pixels: &[usize],
    b: *const L::T,
    stride: usize,
    out: *mut L::T,
    out_stride: usize,
    rows: usize,
    n: usize,
) {
    let mut sums = [[L::zero(); W]; ROWS];
    let mut b = b;
    for pixel in pixels {
        let element = a.wrapping_add(*pixel);
        let mut columns = [L::zero(); W];
        for (j, column) in columns.iter_mut().enumerate() {
            // SAFETY: the caller's word.
            *column = unsafe { L::load(b.add(j * L::N)) };
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the caller's word.
            let element = L::splat(unsafe { *element.add(i) });
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = sum.add_product(element, column);
            }
        }
        b = b.wrapping_add(stride);
    }
    if n == W * L::N {
        for (i, sums) in sums.into_iter().enumerate().take(rows) {
            for (j, v) in sums.into_iter().enumerate() {
                let to = out.wrapping_add(i * out_stride + j * L::N);
                // SAFETY: the caller's word.
                unsafe { L::load(to).plus(v).store(to) };
            }
        }
        return;
    }
    let mut row = [L::T::default(); 48];
    for (i, sums) in sums.into_iter().enumerate().take(rows) {
        for (j, v) in sums.into_iter().enumerate() {
            // SAFETY: at most three vectors of at most 16 numbers.
            unsafe { v.store(row.as_mut_ptr().add(j * L::N)) };
        }
        // SAFETY: the caller's word.
        let to = unsafe { std::slice::from_raw_parts_mut(out.add(i * out_stride), n) };
        to.iter_mut().zip(row).for_each(|(to, v)| *to += v);
    }
}

/// The pixels' share of some rows of the filter's gradient.
pub(super) struct FilterRows<'a, T> {
    /// The windows' elements of the rows: those of pixel `p` at `a + pixels[p]`, where [`ROWS`] can be read.
    pub a: *const T,
    /// Offsets of the pixels.
    pub pixels: &'a [usize],
    /// Output gradients: `width` vectors of pixel `p` at `b + p * stride`.
    pub b: *const T,
    /// From pixel to pixel in `b`.
    pub stride: usize,
    /// The sums: row `i` at `out + i * out_stride`.
    pub out: *mut T,
    /// From row to row in `out`.
    pub out_stride: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
    /// Vectors.
    pub width: usize,
}

/// The work of [`TileType::filter`], for one kind of vectors.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn filter_of<L: Lanes>(f: &FilterRows<'_, L::T>) {
    // SAFETY: the caller's word.
    unsafe {
        match f.width {
            1 => filter_tile::<L, 1>(f.a, f.pixels, f.b, f.stride, f.out, f.out_stride, f.rows, f.n),
            2 => filter_tile::<L, 2>(f.a, f.pixels, f.b, f.stride, f.out, f.out_stride, f.rows, f.n),
            _ => filter_tile::<L, 3>(f.a, f.pixels, f.b, f.stride, f.out, f.out_stride, f.rows, f.n),
        }
    }
}

/// A type with tiles, compiled for the vector units that the machine turns out to have.
pub(super) trait TileType: engine_core::dtype::Element + Default + std::ops::AddAssign {
    /// Numbers of a vector, and vectors of a tile at most.
    fn lanes() -> (usize, usize);

    /// Computes a panel's columns of all pixels: `out[places[p] + panel.first..][..panel.n]`.
    ///
    /// # Safety
    /// The data has all elements of the pixels' windows, `packed` all panels, `out` all places.
    unsafe fn forward(
        taps: Taps<'_, Self>,
        pixels: &[usize],
        packed: *const Self,
        panel: Panel,
        out: *mut Self,
        places: &[usize],
    );

    /// Adds to rows of the filter's gradient.
    ///
    /// # Safety
    /// All that the fields of `rows` say can be read and written.
    unsafe fn filter(rows: &FilterRows<'_, Self>);
}

/// Whether the machine has AVX-512, as far as tiles need it.
#[cfg(target_arch = "x86_64")]
fn wide() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("fma")
}

macro_rules! tile_type {
    ($t:ty, $wide:ident) => {
        impl TileType for $t {
            fn lanes() -> (usize, usize) {
                #[cfg(target_arch = "x86_64")]
                if wide() {
                    use crate::kernels::lanes::avx512::$wide;
                    return (<$wide as Lanes>::N, <$wide as Lanes>::MAX_WIDTH);
                }
                (<[$t; 8]>::N, <[$t; 8]>::MAX_WIDTH)
            }

            unsafe fn forward(
                taps: Taps<'_, $t>,
                pixels: &[usize],
                packed: *const $t,
                panel: Panel,
                out: *mut $t,
                places: &[usize],
            ) {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
                    unsafe fn avx512(
                        taps: Taps<'_, $t>,
                        pixels: &[usize],
                        packed: *const $t,
                        panel: Panel,
                        out: *mut $t,
                        places: &[usize],
                    ) {
                        // SAFETY: the caller's word.
                        unsafe {
                            forward_of::<crate::kernels::lanes::avx512::$wide>(taps, pixels, packed, panel, out, places)
                        }
                    }
                    if wide() {
                        // SAFETY: the features were just found; the rest is the caller's word.
                        return unsafe { avx512(taps, pixels, packed, panel, out, places) };
                    }
                }
                // SAFETY: the caller's word.
                unsafe { forward_of::<[$t; 8]>(taps, pixels, packed, panel, out, places) }
            }

            unsafe fn filter(rows: &FilterRows<'_, $t>) {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
                    unsafe fn avx512(rows: &FilterRows<'_, $t>) {
                        // SAFETY: the caller's word.
                        unsafe { filter_of::<crate::kernels::lanes::avx512::$wide>(rows) }
                    }
                    if wide() {
                        // SAFETY: the features were just found; the rest is the caller's word.
                        return unsafe { avx512(rows) };
                    }
                }
                // SAFETY: the caller's word.
                unsafe { filter_of::<[$t; 8]>(rows) }
            }
        }
    };
}
tile_type!(f32, F32x16);
tile_type!(f64, F64x8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_cover_the_columns() {
        for n in 1..200 {
            let all = panels(n, 7, 16, 3);
            assert_eq!(all.iter().map(|p| p.n).sum::<usize>(), n);
            let mut next = (0, 0);
            for p in &all {
                assert_eq!((p.first, p.at), next);
                assert!(p.n <= p.width * 16 && (1..=3).contains(&p.width));
                next = (p.first + p.n, p.at + 7 * 16 * p.width);
            }
        }
        assert_eq!(panels(64, 1, 16, 3).iter().map(|p| p.width).collect::<Vec<_>>(), [2, 2]);
    }
}
