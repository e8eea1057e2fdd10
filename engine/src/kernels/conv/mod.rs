//! Kernels of convolutions and their gradients, of two and three spatial dimensions.
//!
//! [`pass`] says where windows lie, [`tile`] multiplies them where they lie (nothing like `im2col` is ever written
//! down; only a block that reaches into the padding is copied), [`compute`] puts them together. [`depthwise`] has the
//! convolutions that keep channels apart, [`dilation`] the one by maxima,
//! [`quantized`] those of levels.

mod attributes;
mod compute;
mod depthwise;
mod dilation;
mod pass;
mod quantized;
mod tile;

use attributes::{Attributes, F32, F64, means};
use tile::TileType;

use super::formats::any_format;
use super::support::{Built, Computed, cpu, kernel};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef};
use crate::dtype::DType;
use crate::graph::Node;

fn convolution<T: TileType>(node: &Node, n: usize) -> Built {
    let attributes = Attributes::of(node, n)?;
    let inner = kernel(move |c| {
        let (x, filter) = (c.input(0)?, c.input(1)?);
        let g = attributes.geometry(x.shape(), filter.shape())?;
        let shape = attributes.output(g.batch, &g.axes, g.out_channels);
        let (x, filter) = (x.slice::<T>()?, filter.slice::<T>()?);
        let y =
            c.filled::<T>(shape, |y| if y.is_empty() { Ok(()) } else { compute::forward(&g, means(c), x, filter, y) })?;
        c.set(0, y);
        Ok(())
    })?;
    any_format(node, &[0], &[0], inner)
}

fn to_input<T: TileType>(node: &Node, n: usize) -> Built {
    let attributes = Attributes::of(node, n)?;
    let inner = kernel(move |c| {
        let (shape, filter, gradient) = (attributes.listed(c, 0)?, c.input(1)?, c.input(2)?);
        let g = attributes.geometry(&shape, filter.shape())?;
        attributes.check_gradient(&attributes.output(g.batch, &g.axes, g.out_channels), gradient.shape())?;
        let (filter, gradient) = (filter.slice::<T>()?, gradient.slice::<T>()?);
        let x = c.filled::<T>(shape, |x| match x.is_empty() {
            true => Ok(()),
            false => compute::input_gradient(&g, means(c), filter, gradient, x),
        })?;
        c.set(0, x);
        Ok(())
    })?;
    any_format(node, &[2], &[0], inner)
}

fn to_filter<T: TileType>(node: &Node, n: usize) -> Built {
    let attributes = Attributes::of(node, n)?;
    let inner = kernel(move |c| filter_gradient::<T>(c, &attributes))?;
    any_format(node, &[0, 2], &[], inner)
}

fn filter_gradient<T: TileType>(c: &mut KernelContext<'_>, attributes: &Attributes) -> Computed {
    let (x, shape, gradient) = (c.input(0)?, c.shape_input(1)?, c.input(2)?);
    let g = attributes.geometry(x.shape(), &shape)?;
    attributes.check_gradient(&attributes.output(g.batch, &g.axes, g.out_channels), gradient.shape())?;
    let (x, gradient) = (x.slice::<T>()?, gradient.slice::<T>()?);
    let filter = c.filled::<T>(shape, |filter| match filter.is_empty() {
        true => Ok(()),
        false => compute::filter_gradient(&g, means(c), x, gradient, filter),
    })?;
    c.set(0, filter);
    Ok(())
}

const NARROW: (&str, &[DType]) = ("T", DType::NARROW_FLOATS);

#[linkme::distributed_slice(KERNEL_TABLES)]
static CONV: &[KernelDef] = &[
    cpu("Conv2D", F32, |n| convolution::<f32>(n, 2)),
    cpu("Conv2D", F64, |n| convolution::<f64>(n, 2)),
    cpu("Conv2DBackpropInput", F32, |n| to_input::<f32>(n, 2)),
    cpu("Conv2DBackpropInput", F64, |n| to_input::<f64>(n, 2)),
    cpu("Conv2DBackpropFilter", F32, |n| to_filter::<f32>(n, 2)),
    cpu("Conv2DBackpropFilter", F64, |n| to_filter::<f64>(n, 2)),
    cpu("Conv3D", F32, |n| convolution::<f32>(n, 3)),
    cpu("Conv3D", F64, |n| convolution::<f64>(n, 3)),
    cpu("Conv3DBackpropInputV2", F32, |n| to_input::<f32>(n, 3)),
    cpu("Conv3DBackpropInputV2", F64, |n| to_input::<f64>(n, 3)),
    cpu("Conv3DBackpropFilterV2", F32, |n| to_filter::<f32>(n, 3)),
    cpu("Conv3DBackpropFilterV2", F64, |n| to_filter::<f64>(n, 3)),
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
