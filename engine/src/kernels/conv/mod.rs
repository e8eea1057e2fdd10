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

use compute::{Geometry, Means};
use tile::TileType;

use super::formats::any_format;
use super::support::{Built, Computed, cpu, kernel};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::DType;
use crate::graph::{Node, ShapeError};
use crate::shape::Shape;
use crate::window::{Axis, Windows};

/// What a node's attributes say, without the format: kernels see channels last.
#[derive(Debug, Clone)]
pub(super) struct Attributes {
    windows: Windows,
    /// Whether shapes that come as values have the channels first.
    turned: bool,
}

impl Attributes {
    /// Of a convolution with `n` spatial dimensions.
    pub fn of(node: &Node, n: usize) -> Result<Attributes, KernelError> {
        let mut windows = Windows::new(|name| node.attrs.get(name), n)?;
        let turned = std::mem::take(&mut windows.channels_first);
        Ok(Attributes { windows, turned })
    }

    /// A shape that input `i` lists, channels last.
    pub fn listed(&self, c: &KernelContext<'_>, i: usize) -> Result<Shape, KernelError> {
        let shape = c.shape_input(i)?;
        let n = self.windows.n_spatial();
        if shape.rank() != n + 2 {
            return Err(KernelError::invalid(format!("input {i} must list {} dimensions, got {shape}", n + 2)));
        }
        if !self.turned {
            return Ok(shape);
        }
        let d = shape.dims();
        let turned: Vec<usize> = std::iter::once(d[0]).chain(d[2..].iter().copied()).chain([d[1]]).collect();
        Ok(Shape::new(&turned))
    }

    /// The axes of windows of `filter`'s first sizes over `data`; what is missing of three is single.
    pub fn axes(&self, data: &Shape, filter: &Shape) -> Result<[Axis; 3], KernelError> {
        let n = self.windows.n_spatial();
        let mut axes = [Axis::single(); 3];
        for i in 0..n {
            axes[3 - n + i] = self.windows.axis(i, data.dims()[1 + i], filter.dims()[i])?;
        }
        Ok(axes)
    }

    /// The shape of the output, of `channels`.
    pub fn output(&self, batch: usize, axes: &[Axis; 3], channels: usize) -> Shape {
        let n = self.windows.n_spatial();
        let spatial = axes[3 - n..].iter().map(|a| a.output);
        Shape::new(&std::iter::once(batch).chain(spatial).chain([channels]).collect::<Vec<_>>())
    }

    /// Both shapes have the rank of a convolution's data and filter.
    pub fn check_ranks(&self, data: &Shape, filter: &Shape) -> Result<(), KernelError> {
        let n = self.windows.n_spatial() + 2;
        if data.rank() == n && filter.rank() == n {
            return Ok(());
        }
        let text = format!("the input {data} and the filter {filter} must have rank {n}");
        Err(KernelError::invalid(text))
    }

    /// The sizes of a convolution of `data` with `filter`.
    fn geometry(&self, data: &Shape, filter: &Shape) -> Result<Geometry, KernelError> {
        self.check_ranks(data, filter)?;
        let n = self.windows.n_spatial();
        let (channels, each, to) = (data.dims()[n + 1], filter.dims()[n], filter.dims()[n + 1]);
        let groups = channels.checked_div(each).unwrap_or(0);
        if each == 0 || groups * each != channels || channels > 0 && to % groups.max(1) != 0 {
            let text = format!("channels of the input {data} do not fit the filter {filter}");
            return Err(KernelError::invalid(text));
        }
        let axes = self.axes(data, filter)?;
        Ok(Geometry { batch: data.dims()[0], axes, channels, out_channels: to, filter_channels: each })
    }

    /// That `gradient` has the shape that the convolution's output has.
    pub fn check_gradient(&self, expected: &Shape, gradient: &Shape) -> Result<(), KernelError> {
        if expected == gradient {
            return Ok(());
        }
        Err(KernelError::invalid(format!("out_backprop has shape {gradient}, the output {expected}")))
    }
}

impl From<ShapeError> for KernelError {
    fn from(e: ShapeError) -> KernelError {
        KernelError::Invalid(e.0)
    }
}

fn means<'a>(c: &'a KernelContext<'_>) -> Means<'a> {
    Means { sharder: c.sharder, allocator: c.allocator }
}

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

const F32: (&str, &[DType]) = ("T", &[DType::F32]);
const F64: (&str, &[DType]) = ("T", &[DType::F64]);
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
