//! What a convolution's kernel knows of its node, and the sizes that follow.

use super::compute::{Geometry, Means};
use crate::dtype::DType;
use crate::graph::{Node, ShapeError};
use crate::kernels::{KernelContext, KernelError};
use crate::shape::Shape;
use crate::window::{Axis, Windows};

pub(super) const F32: (&str, &[DType]) = ("T", &[DType::F32]);
pub(super) const F64: (&str, &[DType]) = ("T", &[DType::F64]);

/// What a node's attributes say, without the format: kernels see channels last.
#[derive(Debug, Clone)]
pub(super) struct Attributes {
    pub windows: Windows,
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
    pub fn geometry(&self, data: &Shape, filter: &Shape) -> Result<Geometry, KernelError> {
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

/// What the parts of a convolution compute with.
pub(super) fn means<'a>(c: &'a KernelContext<'_>) -> Means<'a> {
    Means { sharder: c.sharder, allocator: c.allocator }
}
