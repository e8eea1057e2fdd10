//! Convolutions of two and three spatial dimensions, and what leads back through them.

use super::shapes::{Inferred, from_value};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;
use engine_core::window::{Windows, misfit, n_groups};

const CONV2D: &str = "T: {floats}; strides: list(int); use_cudnn_on_gpu: bool = true; padding: string; \
                      explicit_paddings: list(int) = []; data_format: string = 'NHWC'; \
                      dilations: list(int) = [1, 1, 1, 1]";
const DEPTHWISE: &str = "T: {floats}; strides: list(int); padding: string; explicit_paddings: list(int) = []; \
                         data_format: string = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]";
const CONV3D: &str = "T: {floats}; strides: list(int); padding: string; data_format: string = 'NDHWC'; \
                      dilations: list(int) = [1, 1, 1, 1, 1]";
const CONV3D_INPUT: &str = "T: {floats}; strides: list(int); padding: string; \
                            data_format: string = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]; \
                            Tshape: {int32, int64} = int32";
const FORWARD: &str = "input: T, filter: T -> output: T";
const TO_INPUT: &str = "input_sizes: int32, filter: T, out_backprop: T -> output: T";
const TO_FILTER: &str = "input: T, filter_sizes: int32, out_backprop: T -> output: T";
const DILATION: &str = "T: {floats}; strides: list(int); rates: list(int); padding: string";

#[linkme::distributed_slice(OP_TABLES)]
static CONV: &[OpSpec] = &[
    op("Conv2D", FORWARD, CONV2D, |c| forward(c, 2, false)),
    op("Conv2DBackpropInput", TO_INPUT, CONV2D, |c| sized(c, 0, 4)),
    op("Conv2DBackpropFilter", TO_FILTER, CONV2D, |c| sized(c, 1, 4)),
    op("DepthwiseConv2dNative", FORWARD, DEPTHWISE, |c| forward(c, 2, true)),
    op("DepthwiseConv2dNativeBackpropInput", TO_INPUT, DEPTHWISE, |c| sized(c, 0, 4)),
    op("DepthwiseConv2dNativeBackpropFilter", TO_FILTER, DEPTHWISE, |c| sized(c, 1, 4)),
    op("Conv3D", FORWARD, CONV3D, |c| forward(c, 3, false)),
    op("Conv3DBackpropInputV2", "input_sizes: Tshape, filter: T, out_backprop: T -> output: T", CONV3D_INPUT, |c| {
        sized(c, 0, 5)
    }),
    op("Conv3DBackpropFilterV2", TO_FILTER, CONV3D, |c| sized(c, 1, 5)),
    op("Dilation2D", FORWARD, DILATION, dilation),
    op("Dilation2DBackpropInput", "input: T, filter: T, out_backprop: T -> in_backprop: T", DILATION, |c| like(c, 0)),
    op("Dilation2DBackpropFilter", "input: T, filter: T, out_backprop: T -> filter_backprop: T", DILATION, |c| {
        like(c, 1)
    }),
];

/// The output has the shape of input `i`.
pub(super) fn like(c: &mut InferContext<'_>, i: usize) -> Inferred {
    let shape = c.input(i);
    c.set(0, shape);
    Ok(())
}

/// The output has the shape that input `i` lists.
pub(super) fn sized(c: &mut InferContext<'_>, i: usize, rank: usize) -> Inferred {
    Windows::new(|name| c.attr(name), rank - 2)?;
    let shape = from_value(c, i)?;
    let shape = c.merge(&shape, &PartialShape::of_rank(rank))?;
    c.set(0, shape);
    Ok(())
}

/// Windows over `data`, of the sizes in the first dimensions of `filter`; the output's channels are given.
pub(super) fn slide(
    windows: &Windows,
    data: &[Option<usize>],
    sizes: &[Option<usize>],
    channels: Option<usize>,
) -> Result<PartialShape, ShapeError> {
    let mut out = data.to_vec();
    out[windows.channel_axis()] = channels;
    for (i, size) in sizes.iter().enumerate().take(windows.n_spatial()) {
        let at = windows.spatial_axis(i);
        out[at] = match (data[at], *size) {
            (Some(length), Some(size)) => Some(windows.axis(i, length, size)?.output),
            _ => None,
        };
    }
    Ok(PartialShape::new(&out))
}

pub(super) fn forward(c: &mut InferContext<'_>, n: usize, depthwise: bool) -> Inferred {
    let windows = Windows::new(|name| c.attr(name), n)?;
    let (data, filter) = (c.of_rank(0, n + 2)?, c.of_rank(1, n + 2)?);
    let (Some(data), Some(filter)) = (data.dims(), filter.dims()) else { return Ok(()) };
    let (from, each, to) = (data[windows.channel_axis()], filter[n], filter[n + 1]);
    if let (Some(from), Some(each)) = (from, each) {
        let fits = if depthwise { from == each } else { n_groups(from, each, to).is_some() };
        if !fits {
            return Err(misfit(&c.input(0), &c.input(1)));
        }
    }
    let channels = if depthwise { each.or(from).zip(to).and_then(|(a, b)| a.checked_mul(b)) } else { to };
    let shape = slide(&windows, data, filter, channels)?;
    c.set(0, shape);
    Ok(())
}

fn dilation(c: &mut InferContext<'_>) -> Inferred {
    let windows = Windows::new(|name| c.attr(name), 2)?;
    let (data, filter) = (c.of_rank(0, 4)?, c.of_rank(1, 3)?);
    let (Some(data), Some(filter)) = (data.dims(), filter.dims()) else { return Ok(()) };
    let channels = c.merge(&[data[3]].into(), &[filter[2]].into())?;
    let shape = slide(&windows, data, filter, channels.dims().and_then(|d| d[0]))?;
    c.set(0, shape);
    Ok(())
}
