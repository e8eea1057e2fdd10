//! A convolution as a library of the device takes it, and a node's convolution as one of those.

use engine::DType;
use engine::window::{Axis, WindowGeometry};

use crate::matrix_type::MatrixType;

/// Which of the three is computed from the other two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The result, from image and filter.
    Forward,
    /// The image's gradient, from the filter and the result's gradient.
    ToImage,
    /// The filter's gradient, from the image and the result's gradient.
    ToFilter,
}

/// A convolution of images with two spatial dimensions (a cross-correlation: filters are not flipped). All three values lie packed
/// in memory: images `[batch, channels, rows, columns]`, filters `[to, channels / groups, rows, columns]`, results
/// `[batch, to, rows, columns]`; with `channels_last` the channels come last in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// The elements. Sums are of 32 bits.
    pub of: MatrixType,
    /// Whether channels lie last.
    pub channels_last: bool,
    /// Images.
    pub batch: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Channels of a result.
    pub to: usize,
    /// Parts that the channels are in: each part of the result sees one part of the image.
    pub groups: usize,
    /// Rows and columns of an image.
    pub image: [usize; 2],
    /// Rows and columns of a filter.
    pub window: [usize; 2],
    /// Rows and columns of zeros before and, as many, behind the image.
    pub padding: [usize; 2],
    /// The step between windows.
    pub stride: [usize; 2],
    /// The step between a window's elements.
    pub dilation: [usize; 2],
}

impl Convolution {
    /// Rows and columns of a result: every window that lies in the padded image. `None`: there is none.
    pub fn result(&self) -> Option<[usize; 2]> {
        let along = |i: usize| {
            let reach = (self.window[i].checked_sub(1)?).checked_mul(self.dilation[i])?.checked_add(1)?;
            let room = (self.image[i].checked_add(2 * self.padding[i])?).checked_sub(reach)?;
            Some(room / self.stride[i] + 1)
        };
        Some([along(0)?, along(1)?])
    }

    /// Elements of image, filter and result; `None` where one is empty, or has more than libraries count.
    pub fn lengths(&self) -> Option<[usize; 3]> {
        let [rows, columns] = self.result()?;
        let count = |sizes: [usize; 4]| {
            let n = sizes.into_iter().try_fold(1usize, usize::checked_mul)?;
            (1..=i32::MAX as usize).contains(&n).then_some(n)
        };
        let image = count([self.batch, self.channels, self.image[0], self.image[1]])?;
        let filter = count([self.to, self.channels.checked_div(self.groups)?, self.window[0], self.window[1]])?;
        Some([image, filter, count([self.batch, self.to, rows, columns])?])
    }
}

/// A node's convolution for a library, whose zeros are as many before as behind the image: where a node's are not, the image is
/// copied into a larger (or smaller) one that has them in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaddedConvolution {
    /// What the library computes.
    pub convolution: Convolution,
    /// Where the node's image begins in the library's; `None`: they are the same.
    pub begin: Option<[usize; 2]>,
}

/// One spatial dimension for a library: the image's length, zeros on either side, and, in a copy, where the node's image begins.
fn along(axis: &Axis) -> Option<(usize, usize, Option<usize>)> {
    let reach = axis.window.checked_sub(1)?.checked_mul(axis.dilation)?.checked_add(1)?;
    let windows = axis.input.checked_add(2 * axis.before)?.checked_sub(reach).map(|room| room / axis.stride + 1);
    if windows == Some(axis.output) {
        return Some((axis.input, axis.before, None));
    }
    let whole = axis.output.checked_sub(1)?.checked_mul(axis.stride)?.checked_add(reach)?;
    Some((whole, 0, Some(axis.before)))
}

/// A convolution for a library. `None`: it has no such elements, something is empty, or too large.
///
/// Channels lie last where tensor cores compute (16 bits, or 10 bits of mantissa), first for f32: this is what cuDNN is quick at,
/// and what TensorFlow does.
pub fn describe(dtype: DType, allows_tf32: bool, g: &WindowGeometry) -> Option<PaddedConvolution> {
    let of = match dtype {
        DType::F32 if allows_tf32 => MatrixType::Tf32,
        DType::F32 => MatrixType::F32,
        DType::F16 => MatrixType::F16,
        DType::BF16 => MatrixType::Bf16,
        _ => return None,
    };
    let axes = [g.axes[1], g.axes[2]];
    let [y, x] = axes.each_ref().map(along);
    let (y, x) = (y?, x?);
    let convolution = Convolution {
        of,
        channels_last: of != MatrixType::F32,
        batch: g.batch,
        channels: g.channels,
        to: g.out_channels,
        groups: g.groups(),
        image: [y.0, x.0],
        window: axes.map(|a| a.window),
        padding: [y.1, x.1],
        stride: axes.map(|a| a.stride),
        dilation: axes.map(|a| a.dilation),
    };
    convolution.lengths()?;
    let begin = (y.2.is_some() || x.2.is_some()).then(|| [y.2.unwrap_or(0), x.2.unwrap_or(0)]);
    Some(PaddedConvolution { convolution, begin })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(input: usize, window: usize, stride: usize, before: usize, output: usize) -> Option<PaddedConvolution> {
        let y = Axis { input, window, stride, dilation: 1, before, output };
        let x = Axis { input: 5, window: 1, output: 5, ..Axis::single() };
        describe(DType::F32, false, &geometry((2, 6, 3, 4), [y, x]))
    }

    fn geometry(
        (batch, channels, filter_channels, out_channels): (usize, usize, usize, usize),
        [y, x]: [Axis; 2],
    ) -> WindowGeometry {
        WindowGeometry { batch, axes: [Axis::single(), y, x], n_spatial: 2, channels, filter_channels, out_channels }
    }

    #[test]
    fn equal_zeros_are_described_others_are_written() {
        // SAME with an odd window: one on either side.
        let same = given(8, 3, 1, 1, 8).unwrap();
        assert_eq!((same.convolution.image, same.convolution.padding, same.begin), ([8, 5], [1, 0], None));
        assert_eq!((same.convolution.groups, same.convolution.result()), (2, Some([8, 5])));
        // SAME with a step of two over an even length: one zero, behind.
        let behind = given(8, 3, 2, 0, 4).unwrap();
        assert_eq!(
            (behind.convolution.image, behind.convolution.padding, behind.begin),
            ([9, 5], [0, 0], Some([0, 0]))
        );
        assert_eq!(behind.convolution.result(), Some([4, 5]));
        // Two zeros before, none behind.
        let before = given(8, 3, 1, 2, 8).unwrap();
        assert_eq!((before.convolution.image, before.begin), ([10, 5], Some([2, 0])));
        // VALID that leaves the last row: nothing to be written.
        assert_eq!(given(8, 3, 2, 0, 3).unwrap().begin, None);
    }

    #[test]
    fn what_a_library_cannot_have_is_not_described() {
        assert_eq!(given(8, 3, 1, 1, 0), None);
        assert_eq!(given(1 << 40, 1, 1, 0, 1 << 40), None);
        let single = |sizes| geometry(sizes, [Axis::single(); 2]);
        assert_eq!(describe(DType::F64, false, &single((1, 1, 1, 1))), None);
        assert_eq!(describe(DType::F16, false, &single((0, 1, 1, 1))), None);
        assert_eq!(describe(DType::F16, false, &single((1, 0, 0, 1))), None);
        let of = |dtype, allows| {
            let c = describe(dtype, allows, &single((1, 1, 1, 1))).unwrap().convolution;
            (c.of, c.channels_last)
        };
        assert_eq!(of(DType::F32, true), (MatrixType::Tf32, true));
        assert_eq!(of(DType::F32, false), (MatrixType::F32, false));
        assert_eq!(of(DType::BF16, false), (MatrixType::Bf16, true));
    }
}
