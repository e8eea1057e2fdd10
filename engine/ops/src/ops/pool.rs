//! Pools: the largest or the mean of each window, and what leads back through them.

use super::conv::{like, sized, slide};
use super::shapes::Inferred;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;
use engine_core::window::Windows;

const MAX: &str = "T: {reals} = float; ksize: list(int); strides: list(int); \
                   padding: string; explicit_paddings: list(int) = []; data_format: string = 'NHWC'";
const MAX_V2: &str = "T: {reals} = float; padding: string; data_format: string = 'NHWC'";
const ARGMAX: &str = "ksize: list(int); strides: list(int); Targmax: {int32, int64} = int64; padding: string; \
                      include_batch_in_index: bool = false; T: {reals}";
const AVERAGE: &str = "ksize: list(int); strides: list(int); padding: string; data_format: string = 'NHWC'; \
                       T: {floats}";
const POOL3D: &str = "ksize: list(int); strides: list(int); padding: string; data_format: string = 'NDHWC'; \
                      T: {floats}";
const MAX3D_GRAD: &str = "ksize: list(int); strides: list(int); padding: string; data_format: string = 'NDHWC'; \
                          T: {floats} = float; TInput: {floats} = float";
const TO_INPUT: &str = "orig_input: T, orig_output: T, grad: T -> output: T";
const TO_INPUT_V2: &str = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T";

#[linkme::distributed_slice(OP_TABLES)]
static POOL: &[OpSpec] = &[
    op("MaxPool", "input: T -> output: T", MAX, |c| pool(c, 2)),
    op("MaxPoolV2", "input: T, ksize: int32, strides: int32 -> output: T", MAX_V2, pool_v2),
    op("MaxPoolGrad", TO_INPUT, MAX, |c| like(c, 0)),
    op("MaxPoolGradV2", TO_INPUT_V2, MAX_V2, |c| like(c, 0)),
    op("MaxPoolGradGrad", TO_INPUT, MAX, |c| like(c, 1)),
    op("MaxPoolGradGradV2", TO_INPUT_V2, MAX_V2, |c| like(c, 1)),
    op("MaxPoolWithArgmax", "input: T -> output: T, argmax: Targmax", ARGMAX, |c| {
        pool(c, 2)?;
        let shape = c.output(0);
        c.set(1, shape);
        Ok(())
    }),
    op("MaxPoolGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T", ARGMAX, |c| like(c, 0)),
    op("MaxPoolGradGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T", ARGMAX, |c| like(c, 2)),
    op("AvgPool", "value: T -> output: T", AVERAGE, |c| pool(c, 2)),
    op("AvgPoolGrad", "orig_input_shape: int32, grad: T -> output: T", AVERAGE, |c| sized(c, 0, 4)),
    op("MaxPool3D", "input: T -> output: T", POOL3D, |c| pool(c, 3)),
    op("MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T -> output: T", MAX3D_GRAD, |c| like(c, 0)),
    op("MaxPool3DGradGrad", TO_INPUT, POOL3D, |c| like(c, 1)),
    op("AvgPool3D", "input: T -> output: T", POOL3D, |c| pool(c, 3)),
    op("AvgPool3DGrad", "orig_input_shape: int32, grad: T -> output: T", POOL3D, |c| sized(c, 0, 5)),
];

pub(super) fn pool(c: &mut InferContext<'_>, n: usize) -> Inferred {
    let windows = Windows::new(|name| c.attr(name), n)?;
    if windows.sizes.len() != n {
        return Err(ShapeError::new("ksize is missing"));
    }
    slid(c, &windows)
}

fn slid(c: &mut InferContext<'_>, windows: &Windows) -> Inferred {
    let data = c.of_rank(0, windows.n_spatial() + 2)?;
    let Some(data) = data.dims() else { return Ok(()) };
    let sizes: Vec<Option<usize>> = windows.sizes.iter().map(|s| Some(*s)).collect();
    let shape = slide(windows, data, &sizes, data[windows.channel_axis()])?;
    c.set(0, shape);
    Ok(())
}

/// Sizes and strides are inputs.
fn pool_v2(c: &mut InferContext<'_>) -> Inferred {
    let windows = Windows::new(|name| c.attr(name), 2)?;
    match (c.ints(1), c.ints(2)) {
        (Some(sizes), Some(strides)) => {
            let windows = windows.with_sizes(&sizes, &strides)?;
            slid(c, &windows)
        }
        _ => {
            c.set(0, PartialShape::of_rank(4));
            Ok(())
        }
    }
}
