//! Kernels of convolutions and their gradients, of two and three spatial dimensions.
//!
//! [`pass`] says where windows lie, [`tile`] multiplies them where they lie (nothing like `im2col` is ever written
//! down; only a block that reaches into the padding is copied), [`compute`] puts them together. [`depthwise`] has the
//! convolutions that keep channels apart, [`dilation`] the one by maxima,
//! [`quantized`] those of levels.

mod compute;
mod depthwise;
mod dilation;
mod pass;
mod quantized;
mod tile;

use tile::TileType;

use super::formats::any_format;
use super::support::{Built, Computed, cpu, kernel};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::window::Windows;

const F32: (&str, &[DType]) = ("T", &[DType::F32]);
const F64: (&str, &[DType]) = ("T", &[DType::F64]);

/// What a kernel computes, of windows over data with its channels last.
type Compute = fn(&mut KernelContext<'_>, &Windows) -> Computed;

/// A kernel of `n` spatial dimensions whose `inputs` and `outputs` of these numbers are in the node's data format.
fn built(node: &Node, n: usize, inputs: &'static [usize], outputs: &'static [usize], compute: Compute) -> Built {
    let windows = Windows::of(&node.attrs, n)?;
    any_format(node, inputs, outputs, kernel(move |c| compute(c, &windows))?)
}

fn convolution<T: TileType>(c: &mut KernelContext<'_>, windows: &Windows) -> Computed {
    let (x, filter) = (c.input(0)?, c.input(1)?);
    let g = windows.convolution(x.shape(), filter.shape())?;
    let (x, filter) = (x.slice::<T>()?, filter.slice::<T>()?);
    let y = c.filled::<T>(g.output(), |y| match y.is_empty() {
        true => Ok(()),
        false => compute::forward(&g, c, x, filter, y),
    })?;
    c.set(0, y);
    Ok(())
}

fn to_input<T: TileType>(c: &mut KernelContext<'_>, windows: &Windows) -> Computed {
    let (shape, filter, gradient) = (windows.listed(&c.ints(0)?)?, c.input(1)?, c.input(2)?);
    let g = windows.convolution(&shape, filter.shape())?;
    g.check_output("out_backprop", gradient.shape())?;
    let (filter, gradient) = (filter.slice::<T>()?, gradient.slice::<T>()?);
    let x = c.filled::<T>(shape, |x| match x.is_empty() {
        true => Ok(()),
        false => compute::input_gradient(&g, c, filter, gradient, x),
    })?;
    c.set(0, x);
    Ok(())
}

fn to_filter<T: TileType>(c: &mut KernelContext<'_>, windows: &Windows) -> Computed {
    let (x, shape, gradient) = (c.input(0)?, c.shape_input(1)?, c.input(2)?);
    let g = windows.convolution(x.shape(), &shape)?;
    g.check_output("out_backprop", gradient.shape())?;
    let (x, gradient) = (x.slice::<T>()?, gradient.slice::<T>()?);
    let filter = c.filled::<T>(shape, |filter| match filter.is_empty() {
        true => Ok(()),
        false => compute::filter_gradient(&g, c, x, gradient, filter),
    })?;
    c.set(0, filter);
    Ok(())
}

const NARROW: (&str, &[DType]) = ("T", DType::NARROW_FLOATS);

#[linkme::distributed_slice(KERNEL_TABLES)]
static CONV: &[KernelDef] = &[
    cpu("Conv2D", F32, |n| built(n, 2, &[0], &[0], convolution::<f32>)),
    cpu("Conv2D", F64, |n| built(n, 2, &[0], &[0], convolution::<f64>)),
    cpu("Conv2DBackpropInput", F32, |n| built(n, 2, &[2], &[0], to_input::<f32>)),
    cpu("Conv2DBackpropInput", F64, |n| built(n, 2, &[2], &[0], to_input::<f64>)),
    cpu("Conv2DBackpropFilter", F32, |n| built(n, 2, &[0, 2], &[], to_filter::<f32>)),
    cpu("Conv2DBackpropFilter", F64, |n| built(n, 2, &[0, 2], &[], to_filter::<f64>)),
    cpu("Conv3D", F32, |n| built(n, 3, &[0], &[0], convolution::<f32>)),
    cpu("Conv3D", F64, |n| built(n, 3, &[0], &[0], convolution::<f64>)),
    cpu("Conv3DBackpropInputV2", F32, |n| built(n, 3, &[2], &[0], to_input::<f32>)),
    cpu("Conv3DBackpropInputV2", F64, |n| built(n, 3, &[2], &[0], to_input::<f64>)),
    cpu("Conv3DBackpropFilterV2", F32, |n| built(n, 3, &[0, 2], &[], to_filter::<f32>)),
    cpu("Conv3DBackpropFilterV2", F64, |n| built(n, 3, &[0, 2], &[], to_filter::<f64>)),
    widened("Conv2D", NARROW),
    widened("Conv2DBackpropInput", NARROW),
    widened("Conv2DBackpropFilter", NARROW),
    widened("Conv3D", NARROW),
    widened("Conv3DBackpropInputV2", NARROW),
    widened("Conv3DBackpropFilterV2", NARROW),
    widened("DepthwiseConv2dNative", NARROW),
    widened("DepthwiseConv2dNativeBackpropInput", NARROW),
    widened("DepthwiseConv2dNativeBackpropFilter", NARROW),
    widened("Dilation2D", NARROW),
    widened("Dilation2DBackpropInput", NARROW),
    widened("Dilation2DBackpropFilter", NARROW),
];
