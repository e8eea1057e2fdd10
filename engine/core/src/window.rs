//! Sliding windows: the geometry of convolutions and pools, the same for shape inference and for the kernels of all
//! devices.
//!
//! Attributes list one number for each dimension of the data in the order of its format; here they are those of the
//! spatial dimensions only. Sizes follow TensorFlow's rules for `SAME`, `VALID` and `EXPLICIT` padding.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::ops::{Attr, ShapeError};
use crate::shape::Shape;

/// What a node's attributes say of its windows.
#[derive(Debug, Clone)]
pub struct Windows {
    /// Whether channels come before the spatial dimensions (`NCHW`, `NCDHW`).
    pub channels_first: bool,
    /// The window's size in each spatial dimension, for pools; empty for convolutions.
    pub sizes: Vec<usize>,
    /// The step between windows.
    pub strides: Vec<usize>,
    /// The step between a window's elements.
    pub dilations: Vec<usize>,
    padding: Padding,
}

/// What lies around the data.
#[derive(Debug, Clone)]
enum Padding {
    Same,
    Valid,
    Explicit(Vec<[usize; 2]>),
}

/// One spatial dimension of a window over data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Length of the data.
    pub input: usize,
    /// Elements of the window.
    pub window: usize,
    /// The step between windows.
    pub stride: usize,
    /// The step between a window's elements.
    pub dilation: usize,
    /// What is added before the data.
    pub before: usize,
    /// The number of windows.
    pub output: usize,
}

impl Axis {
    /// Of an axis that windows do not slide along.
    pub fn single() -> Axis {
        Axis { input: 1, window: 1, stride: 1, dilation: 1, before: 0, output: 1 }
    }

    /// The part of window `i` that lies in the data, as positions there, for windows without dilation.
    pub fn range(&self, i: usize) -> std::ops::Range<usize> {
        let begin = i * self.stride;
        let end = (begin + self.window).saturating_sub(self.before).min(self.input);
        begin.saturating_sub(self.before).min(end)..end
    }

    /// Where element `tap` of window `i` lies in the data; `None`: in the padding.
    #[inline]
    pub fn position(&self, i: usize, tap: usize) -> Option<usize> {
        (i * self.stride + tap * self.dilation).checked_sub(self.before).filter(|at| *at < self.input)
    }
}

/// The sizes of windows that slide over a batch of data whose channels lie last: of a convolution or a pool, and of the
/// gradients that lead back through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowGeometry {
    /// Images.
    pub batch: usize,
    /// Depth, height and width; those that the data does not have are [`Axis::single`].
    pub axes: [Axis; 3],
    /// How many of the axes the data has: the last ones.
    pub n_spatial: usize,
    /// Channels of the data.
    pub channels: usize,
    /// Channels of the data that one channel of the output is computed from.
    pub filter_channels: usize,
    /// Channels of the output.
    pub out_channels: usize,
}

impl WindowGeometry {
    /// Calls `f` with the input pixels of an output pixel's window, in order; pixels are counted over all images.
    #[inline(always)]
    pub fn each(&self, pixel: usize, mut f: impl FnMut(usize)) {
        let [z, y, x] = &self.axes;
        let (rest, ox) = (pixel / x.output, pixel % x.output);
        let (rest, oy) = (rest / y.output, rest % y.output);
        let (image, oz) = (rest / z.output, rest % z.output);
        for iz in z.range(oz) {
            for iy in y.range(oy) {
                let line = ((image * z.input + iz) * y.input + iy) * x.input;
                for ix in x.range(ox) {
                    f(line + ix);
                }
            }
        }
    }

    /// Elements of an output pixel's window that lie in the data.
    pub fn count(&self, pixel: usize) -> usize {
        let mut n = 0;
        self.each(pixel, |_| n += 1);
        n
    }

    /// The shape of the output, channels last.
    pub fn output(&self) -> Shape {
        let spatial = self.axes[3 - self.n_spatial..].iter().map(|a| a.output);
        Shape::new(&std::iter::once(self.batch).chain(spatial).chain([self.out_channels]).collect::<Vec<_>>())
    }

    /// That the value called `name` has the shape of the output.
    ///
    /// # Errors
    /// It has another one.
    pub fn check_output(&self, name: &str, shape: &Shape) -> Result<(), ShapeError> {
        let output = self.output();
        if *shape == output {
            return Ok(());
        }
        Err(ShapeError(format!("{name} has shape {shape}, the output {output}")))
    }

    /// The parts that the channels are in: each part of the output sees one part of the data.
    pub fn groups(&self) -> usize {
        self.channels.checked_div(self.filter_channels).unwrap_or(0).max(1)
    }

    /// Channels of the output that each channel of the data has to itself, where channels are kept apart.
    pub fn multiplier(&self) -> usize {
        self.out_channels.checked_div(self.channels).unwrap_or(0)
    }

    /// Pixels of one image.
    pub fn in_pixels(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }

    /// Pixels of the output of one image.
    pub fn out_pixels(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    /// Pixels of a window.
    pub fn window_pixels(&self) -> usize {
        self.axes.iter().map(|a| a.window).product()
    }
}

impl Windows {
    /// Reads the attributes `strides`, `padding` and, where the op has them, `ksize`, `dilations`, `rates`,
    /// `explicit_paddings`, `data_format`, of data with `n` spatial dimensions.
    ///
    /// # Errors
    /// They do not fit each other.
    pub fn new<'a>(attr: impl Fn(&str) -> Option<&'a Attr>, n: usize) -> Result<Windows, ShapeError> {
        let format = match attr("data_format") {
            Some(Attr::Str(s)) => s.as_slice(),
            _ => b"NHWC",
        };
        let channels_first = match format {
            b"NHWC" | b"NDHWC" => false,
            b"NCHW" | b"NCDHW" => true,
            other => return Err(ShapeError(format!("data_format {:?} is unknown", String::from_utf8_lossy(other)))),
        };
        let of = |name: &str| spatial(&attr, name, n, channels_first);
        let ones = || vec![1; n];
        let dilations = of("dilations")?.or(of("rates")?).unwrap_or_else(ones);
        let padding = padding(&attr, n, channels_first)?;
        let strides = of("strides")?.unwrap_or_else(ones);
        let sizes = of("ksize")?.unwrap_or_default();
        Ok(Windows { channels_first, sizes, strides, dilations, padding })
    }

    /// Those that a node's attributes describe.
    ///
    /// # Errors
    /// They do not fit each other.
    pub fn of(attrs: &BTreeMap<String, Attr>, n: usize) -> Result<Windows, ShapeError> {
        Windows::new(|name| attrs.get(name), n)
    }

    /// As [`Windows::new`] with sizes and strides from inputs, as the pools of the second version take them.
    ///
    /// # Errors
    /// They do not fit the data.
    pub fn with_sizes(mut self, sizes: &[i64], strides: &[i64]) -> Result<Windows, ShapeError> {
        let n = self.strides.len();
        self.sizes = inner("ksize", sizes, n, self.channels_first)?;
        self.strides = inner("strides", strides, n, self.channels_first)?;
        Ok(self)
    }

    /// The number of spatial dimensions.
    pub fn n_spatial(&self) -> usize {
        self.strides.len()
    }

    /// Where the channels lie in the shape of the data.
    pub fn channel_axis(&self) -> usize {
        if self.channels_first { 1 } else { 1 + self.n_spatial() }
    }

    /// Where spatial dimension `i` lies in the shape of the data.
    pub fn spatial_axis(&self, i: usize) -> usize {
        if self.channels_first { 2 + i } else { 1 + i }
    }

    /// The shape of data with its channels last, from its dimensions in the format of the attributes.
    ///
    /// # Errors
    /// The data has another rank.
    pub fn channels_last(&self, dims: &[usize]) -> Result<Shape, ShapeError> {
        self.check_rank(dims)?;
        let mut dims = dims.to_vec();
        if self.channels_first {
            dims[1..].rotate_left(1);
        }
        Ok(Shape::new(&dims))
    }

    /// As [`Windows::channels_last`], of dimensions that a node lists as numbers.
    ///
    /// # Errors
    /// They are no dimensions, or of data of another rank.
    pub fn listed(&self, numbers: &[i64]) -> Result<Shape, ShapeError> {
        let dims: Result<Vec<usize>, _> = numbers.iter().map(|d| usize::try_from(*d)).collect();
        self.channels_last(&dims.map_err(|_| ShapeError(format!("{numbers:?} is not a shape")))?)
    }

    fn check_rank(&self, dims: &[usize]) -> Result<(), ShapeError> {
        let rank = self.n_spatial() + 2;
        if dims.len() == rank {
            return Ok(());
        }
        Err(ShapeError(format!("the data must have rank {rank}, got shape {}", Shape::new(dims))))
    }

    /// A convolution of data `[batch, spatial.., channels]` with a filter `[spatial.., channels of a group, out
    /// channels]`.
    ///
    /// # Errors
    /// They do not fit each other.
    pub fn convolution(&self, data: &Shape, filter: &Shape) -> Result<WindowGeometry, ShapeError> {
        let (channels, [each, to]) = self.channels(data, filter)?;
        n_groups(channels, each, Some(to)).ok_or_else(|| misfit(data, filter))?;
        self.slide(data, filter.dims(), each, to)
    }

    /// A convolution that keeps channels apart: the filter is `[spatial.., channels, filters of each channel]`.
    ///
    /// # Errors
    /// Data and filter do not fit each other.
    pub fn depthwise(&self, data: &Shape, filter: &Shape) -> Result<WindowGeometry, ShapeError> {
        let (channels, [own, each]) = self.channels(data, filter)?;
        let to = channels.checked_mul(each).filter(|_| own == channels).ok_or_else(|| misfit(data, filter))?;
        self.slide(data, filter.dims(), 1, to)
    }

    /// A dilation, whose filter `[spatial.., channels]` has one element for each of a window.
    ///
    /// # Errors
    /// Data and filter do not fit each other.
    pub fn dilation(&self, data: &Shape, filter: &Shape) -> Result<WindowGeometry, ShapeError> {
        self.check_rank(data.dims())?;
        let channels = data.dims()[self.n_spatial() + 1];
        if filter.rank() != self.n_spatial() + 1 || filter.dims().last() != Some(&channels) {
            return Err(misfit(data, filter));
        }
        self.slide(data, filter.dims(), 1, channels)
    }

    /// A pool of data `[batch, spatial.., channels]`.
    ///
    /// # Errors
    /// The data has another rank, or is smaller than a window; there is no size of windows.
    pub fn pool(&self, data: &Shape) -> Result<WindowGeometry, ShapeError> {
        self.check_rank(data.dims())?;
        if self.sizes.len() != self.n_spatial() {
            return Err(ShapeError::new("ksize is missing"));
        }
        self.slide(data, &self.sizes, 1, data.dims()[self.n_spatial() + 1])
    }

    /// The channels of the data, and the last two dimensions of a filter as deep.
    fn channels(&self, data: &Shape, filter: &Shape) -> Result<(usize, [usize; 2]), ShapeError> {
        let n = self.n_spatial();
        if data.rank() != n + 2 || filter.rank() != n + 2 {
            return Err(ShapeError(format!("the input {data} and the filter {filter} must have rank {}", n + 2)));
        }
        Ok((data.dims()[n + 1], [filter.dims()[n], filter.dims()[n + 1]]))
    }

    /// Windows of `sizes` over data of the right rank.
    fn slide(
        &self,
        data: &Shape,
        sizes: &[usize],
        filter_channels: usize,
        out_channels: usize,
    ) -> Result<WindowGeometry, ShapeError> {
        let n = self.n_spatial();
        let mut axes = [Axis::single(); 3];
        for i in 0..n {
            axes[3 - n + i] = self.axis(i, data.dims()[1 + i], sizes[i])?;
        }
        let (batch, channels) = (data.dims()[0], data.dims()[n + 1]);
        Ok(WindowGeometry { batch, axes, n_spatial: n, channels, filter_channels, out_channels })
    }

    /// Spatial dimension `i` of data of length `input` under a window of `window` elements.
    ///
    /// # Errors
    /// The window is empty or larger than the padded data.
    pub fn axis(&self, i: usize, input: usize, window: usize) -> Result<Axis, ShapeError> {
        let (stride, dilation) = (self.strides[i], self.dilations[i]);
        let reach = window.checked_sub(1).and_then(|w| w.checked_mul(dilation)).and_then(|w| w.checked_add(1));
        let reach = reach.ok_or_else(|| ShapeError(format!("a window of {window} elements is not possible")))?;
        let (before, whole) = match &self.padding {
            Padding::Valid => (0, input),
            Padding::Explicit(pads) => {
                let [before, after] = pads[i];
                (before, input.saturating_add(before).saturating_add(after))
            }
            Padding::Same => {
                let output = input.div_ceil(stride);
                let whole = (output.saturating_sub(1) * stride).saturating_add(reach).max(input);
                return Ok(Axis { input, window, stride, dilation, before: (whole - input) / 2, output });
            }
        };
        match whole.saturating_add(stride).checked_sub(reach) {
            Some(room) => Ok(Axis { input, window, stride, dilation, before, output: room / stride }),
            None => Err(ShapeError(format!("a window that reaches over {reach} elements does not fit in {whole}"))),
        }
    }
}

/// The groups that filters of `each` channels see `channels` in, where these and the channels of the output fit.
pub fn n_groups(channels: usize, each: usize, to: Option<usize>) -> Option<usize> {
    let groups = channels.checked_div(each).filter(|groups| groups * each == channels)?.max(1);
    to.is_none_or(|to| to.is_multiple_of(groups)).then_some(groups)
}

/// The error for a filter whose channels are not the data's.
pub fn misfit(data: &impl Display, filter: &impl Display) -> ShapeError {
    ShapeError(format!("channels of the input {data} do not fit the filter {filter}"))
}

/// The spatial numbers of a list attribute, where the op has it.
fn spatial<'a>(
    attr: &impl Fn(&str) -> Option<&'a Attr>,
    name: &str,
    n: usize,
    channels_first: bool,
) -> Result<Option<Vec<usize>>, ShapeError> {
    match attr(name) {
        // A default that lists fewer dimensions than the data has is all ones.
        Some(Attr::ListInt(list)) if list.iter().all(|v| *v == 1) => Ok(Some(vec![1; n])),
        Some(Attr::ListInt(list)) => inner(name, list, n, channels_first).map(Some),
        _ => Ok(None),
    }
}

/// The spatial numbers of a list for all dimensions, whose first and channel's must be 1.
fn inner(name: &str, list: &[i64], n: usize, channels_first: bool) -> Result<Vec<usize>, ShapeError> {
    let wrong = |why: &str| ShapeError(format!("{name} {list:?} {why}"));
    if list.len() != n + 2 {
        return Err(wrong(&format!("must list {} numbers", n + 2)));
    }
    let (channel, first) = if channels_first { (1, 2) } else { (n + 1, 1) };
    if list[0] != 1 || list[channel] != 1 {
        return Err(wrong("must be 1 for the batch and the channels"));
    }
    let positive = |v: &i64| usize::try_from(*v).ok().filter(|v| (1..=i32::MAX as usize).contains(v));
    list[first..first + n].iter().map(|v| positive(v).ok_or_else(|| wrong("must be positive"))).collect()
}

fn padding<'a>(
    attr: &impl Fn(&str) -> Option<&'a Attr>,
    n: usize,
    channels_first: bool,
) -> Result<Padding, ShapeError> {
    let name = match attr("padding") {
        Some(Attr::Str(s)) => s.as_slice(),
        _ => b"",
    };
    match name {
        b"SAME" => Ok(Padding::Same),
        b"VALID" => Ok(Padding::Valid),
        b"EXPLICIT" => {
            let list = match attr("explicit_paddings") {
                Some(Attr::ListInt(list)) => list.as_slice(),
                _ => &[],
            };
            let wrong = || ShapeError(format!("explicit_paddings {list:?} do not fit {} dimensions", n + 2));
            let pads: Option<Vec<usize>> = list.iter().map(|p| usize::try_from(*p).ok()).collect();
            let pads = pads.filter(|p| p.len() == 2 * (n + 2)).ok_or_else(wrong)?;
            let first = if channels_first { 2 } else { 1 };
            let inside = 2 * first..2 * (first + n);
            if pads.iter().enumerate().any(|(i, p)| !inside.contains(&i) && *p != 0) {
                return Err(wrong());
            }
            Ok(Padding::Explicit(pads[inside].chunks_exact(2).map(|p| [p[0], p[1]]).collect()))
        }
        other => {
            let name = String::from_utf8_lossy(other);
            Err(ShapeError(format!("padding must be SAME, VALID or EXPLICIT, not {name:?}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(padding: &str, stride: i64, dilation: i64, explicit: &[i64]) -> Windows {
        let attrs = [
            ("padding", Attr::from(padding)),
            ("strides", Attr::ListInt(vec![1, stride, stride, 1])),
            ("dilations", Attr::ListInt(vec![1, dilation, dilation, 1])),
            ("explicit_paddings", Attr::ListInt(explicit.to_vec())),
        ];
        Windows::new(|name| attrs.iter().find(|a| a.0 == name).map(|a| &a.1), 2).unwrap()
    }

    #[test]
    fn sizes_are_those_of_tensorflow() {
        let of = |w: &Windows, input, window| w.axis(0, input, window).map(|a| (a.before, a.output));
        assert_eq!(of(&windows("SAME", 2, 1, &[]), 7, 3).unwrap(), (1, 4));
        assert_eq!(of(&windows("SAME", 2, 1, &[]), 8, 3).unwrap(), (0, 4));
        assert_eq!(of(&windows("SAME", 3, 1, &[]), 7, 1).unwrap(), (0, 3));
        assert_eq!(of(&windows("VALID", 2, 2, &[]), 7, 3).unwrap(), (0, 2));
        assert_eq!(of(&windows("EXPLICIT", 1, 1, &[0, 0, 2, 1, 0, 0, 0, 0]), 4, 3).unwrap(), (2, 5));
        assert!(of(&windows("VALID", 1, 1, &[]), 2, 5).is_err());
        assert!(of(&windows("VALID", 1, 1, &[]), 2, 0).is_err());
    }

    #[test]
    fn channels_of_data_and_filter_fit() {
        let w = windows("SAME", 2, 1, &[]);
        let of = |data: &[usize], filter: &[usize]| w.convolution(&Shape::new(data), &Shape::new(filter));
        let g = of(&[5, 7, 8, 6], &[3, 1, 2, 9]).unwrap();
        assert_eq!((g.batch, g.channels, g.filter_channels, g.groups()), (5, 6, 2, 3));
        assert_eq!((g.output(), g.in_pixels(), g.out_pixels()), (Shape::new(&[5, 4, 4, 9]), 56, 16));
        assert!(g.check_output("y", &Shape::new(&[5, 4, 4, 9])).is_ok());
        assert!(g.check_output("y", &Shape::new(&[5, 4, 4, 8])).is_err());
        assert_eq!(of(&[5, 7, 8, 0], &[3, 1, 2, 9]).unwrap().groups(), 1);
        for filter in [[3, 1, 4, 9], [3, 1, 2, 8], [3, 1, 0, 9]] {
            assert!(of(&[5, 7, 8, 6], &filter).is_err());
        }
        let depthwise = w.depthwise(&Shape::new(&[5, 7, 8, 6]), &Shape::new(&[3, 1, 6, 2])).unwrap();
        assert_eq!((depthwise.out_channels, depthwise.multiplier()), (12, 2));
        assert!(w.depthwise(&Shape::new(&[5, 7, 8, 6]), &Shape::new(&[3, 1, 5, 2])).is_err());
        assert!(w.pool(&Shape::new(&[5, 7, 8, 6])).is_err());
    }

    #[test]
    fn the_part_of_a_window_in_the_data() {
        let axis = windows("SAME", 2, 1, &[]).axis(0, 7, 3).unwrap();
        assert_eq!((0..4).map(|i| axis.range(i)).collect::<Vec<_>>(), [0..2, 1..4, 3..6, 5..7]);
    }
}
