//! Convolutions and pools of images, channels last. (Where they come first, values are turned before and after.)
//!
//! A convolution is a product: its windows are written down as rows (`to_columns`), some images at a time, and multiplied with
//! the filter, whose memory is a matrix as it lies. Its gradients are the products the other way round.

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::window::{Axis, Windows};
use engine::{DType, Shape, Tensor};

use super::matmul::Product;
use super::pointwise::move_elements;
use super::support::{FLOATS, Unit, c_word, device, gpu, ints, kernel, operand, run, strides};
use crate::backend::Address;
use crate::gpu::{Argument, Gpu};

/// Its kernels.
pub const UNIT: Unit = Unit {
    name: "windows.cu",
    text: concat!(include_str!("../cu/geometry.cu"), include_str!("../cu/windows.cu")),
    kernels: &["to_columns", "from_columns", "pool", "max_back", "average_back"],
    dtypes: FLOATS,
};
/// Bytes of windows that are written down at once.
const COLUMN_BYTES: usize = 512 << 20;

#[linkme::distributed_slice(KERNEL_TABLES)]
static WINDOWS: &[KernelDef] = &[
    gpu("Conv2D", ("T", FLOATS), |node| convolution(node, forward, &[0], &[0])),
    gpu("Conv2DBackpropInput", ("T", FLOATS), |node| convolution(node, to_input, &[2], &[0])),
    gpu("Conv2DBackpropFilter", ("T", FLOATS), |node| convolution(node, to_filter, &[0, 2], &[])),
    gpu("MaxPool", ("T", FLOATS), |node| pool(node, 1)),
    gpu("AvgPool", ("T", FLOATS), |node| pool(node, 0)),
    gpu("MaxPoolGrad", ("T", FLOATS), max_back),
    gpu("AvgPoolGrad", ("T", FLOATS), average_back),
];

/// The sizes of a window over images.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub batch: usize,
    pub channels: usize,
    pub y: Axis,
    pub x: Axis,
}

impl Sizes {
    /// As the kernels take them.
    pub fn arguments(&self, batch: usize) -> [Argument; 2] {
        let n = |v: usize| v as i64;
        let (y, x) = (self.y, self.x);
        let first =
            [n(batch), n(self.channels), n(y.input), n(y.window), n(y.stride), n(y.dilation), n(y.before), n(y.output)];
        let second = [n(x.input), n(x.window), n(x.stride), n(x.dilation), n(x.before), n(x.output), 0, 0];
        [first.into(), second.into()]
    }

    pub fn in_pixels(&self) -> usize {
        self.y.input * self.x.input
    }

    pub fn out_pixels(&self) -> usize {
        self.y.output * self.x.output
    }

    /// Elements of a window.
    fn window(&self) -> usize {
        self.y.window * self.x.window * self.channels
    }

    /// Whether a window is one pixel and there is one for each: the image is its own columns.
    fn is_plain(&self) -> bool {
        let single = |a: Axis| a.window == 1 && a.stride == 1 && a.before == 0 && a.output == a.input;
        single(self.y) && single(self.x)
    }
}

/// A value with its channels last (`back`: first).
fn turned(gpu: &Gpu, value: &Tensor, back: bool) -> Result<Tensor, KernelError> {
    let (value, from) = gpu.bring(value)?;
    let order: &[usize] = if back { &[0, 3, 1, 2] } else { &[0, 2, 3, 1] };
    if value.shape().rank() != 4 {
        return Err(KernelError::invalid(format!("a value of shape {} is no batch of images", value.shape())));
    }
    let own = strides(value.dims());
    let dims: Vec<usize> = order.iter().map(|d| value.dims()[*d]).collect();
    let steps: Vec<i64> = order.iter().map(|d| own[*d]).collect();
    let (out, to) = gpu.room(value.dtype(), Shape::new(&dims))?;
    let of = c_word(value.dtype())?;
    // SAFETY: the steps are those of the value, in another order.
    unsafe { move_elements(gpu, of, &dims, (from, &steps), (to, &strides(&dims)))? };
    Ok(out)
}

pub(super) fn listed(ctx: &KernelContext<'_>, i: usize, is_first: bool) -> Result<Vec<usize>, KernelError> {
    let dims: Result<Vec<usize>, _> = ints(ctx, i)?.iter().map(|d| usize::try_from(*d)).collect();
    match dims.as_deref() {
        Ok([n, c, y, x]) if is_first => Ok(vec![*n, *y, *x, *c]),
        Ok(dims @ [_, _, _, _]) => Ok(dims.to_vec()),
        _ => Err(KernelError::invalid("the sizes of images are four numbers")),
    }
}

pub(super) type Body = fn(&mut KernelContext<'_>, &Windows) -> Result<(), KernelError>;

/// A kernel whose inputs and outputs of these numbers are images, channels last to `body`.
fn images(node: &Node, windows: Windows, inputs: &'static [usize], outputs: &'static [usize], body: Body) -> Built {
    kernel(node, move |ctx| {
        if windows.channels_first {
            for i in inputs {
                ctx.inputs[*i] = Some(turned(device(ctx)?, ctx.input(*i)?, false)?);
            }
        }
        body(ctx, &windows)?;
        if windows.channels_first {
            for i in outputs {
                let Some(value) = ctx.outputs[*i].take() else { continue };
                ctx.outputs[*i] = Some(turned(device(ctx)?, &value, true)?);
            }
        }
        Ok(())
    })
}

pub(super) fn convolution(node: &Node, body: Body, inputs: &'static [usize], outputs: &'static [usize]) -> Built {
    let windows = Windows::new(|name| node.attrs.get(name), 2).map_err(KernelError::from)?;
    images(node, windows, inputs, outputs, body)
}

fn sizes(windows: &Windows, image: &[usize], filter: &[usize]) -> Result<Sizes, KernelError> {
    let (&[batch, height, width, channels], &[win_y, win_x, each, _]) = (image, filter) else {
        return Err(KernelError::invalid(format!("the input {image:?} and the filter {filter:?} must have rank 4")));
    };
    if each != channels {
        let text = format!("{channels} channels of the input, {each} of the filter: groups have no kernel on a GPU");
        return Err(KernelError::invalid(text));
    }
    Ok(Sizes { batch, channels, y: windows.axis(0, height, win_y)?, x: windows.axis(1, width, win_x)? })
}

/// Calls `f` with groups of images whose windows fit the memory that is set aside, and that memory: the first image, how many.
fn in_groups(
    gpu: &Gpu,
    s: &Sizes,
    dtype: DType,
    mut f: impl FnMut(usize, usize, Address) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let each = s.out_pixels() * s.window() * dtype.size();
    let group = (COLUMN_BYTES / each.max(1)).clamp(1, s.batch.max(1));
    let columns = if s.is_plain() { None } else { Some(gpu.block(group * each)?) };
    for first in (0..s.batch).step_by(group) {
        f(first, group.min(s.batch - first), columns.as_ref().map_or(0, |block| block.address()))?;
    }
    Ok(())
}

/// Writes the windows of `n` images down.
fn to_columns(gpu: &Gpu, s: &Sizes, dtype: DType, n: usize, from: Address, to: Address) -> Result<(), KernelError> {
    let elements = n * s.out_pixels() * s.window();
    let [a, b] = s.arguments(n);
    // SAFETY: the kernel takes these; `to` has room for the windows of a group.
    unsafe { run(gpu, (&UNIT, "to_columns", dtype), elements, &[elements.into(), a, b, from.into(), to.into()]) }
}

fn product(dtype: DType, m: usize, n: usize, k: usize) -> Product {
    Product { dtype, m, n, k, transpose_a: false, transpose_b: false, n_batches: 1, strides: [0, 0], adds: false }
}

fn forward(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let ((image, from), (filter, weights)) = (operand(ctx, 0)?, operand(ctx, 1)?);
    let s = sizes(windows, image.dims(), filter.dims())?;
    let (dtype, to_channels) = (image.dtype(), filter.dims()[3]);
    let (out, to) = gpu.room(dtype, Shape::new(&[s.batch, s.y.output, s.x.output, to_channels]))?;
    let at = |base: Address, n: usize, each: usize| base + (n * each * dtype.size()) as u64;
    in_groups(gpu, &s, dtype, |first, n, columns| {
        let image = at(from, first, s.in_pixels() * s.channels);
        let rows = if s.is_plain() { image } else { columns };
        if !s.is_plain() {
            to_columns(gpu, &s, dtype, n, image, columns)?;
        }
        let result = at(to, first, s.out_pixels() * to_channels);
        product(dtype, n * s.out_pixels(), to_channels, s.window()).run(gpu, rows, weights, result)
    })?;
    ctx.set(0, out);
    Ok(())
}

/// That a gradient has the shape of the convolution's output.
pub(super) fn check(s: &Sizes, channels: usize, gradient: &Tensor) -> Result<(), KernelError> {
    let expected = Shape::new(&[s.batch, s.y.output, s.x.output, channels]);
    if *gradient.shape() == expected {
        return Ok(());
    }
    Err(KernelError::invalid(format!("out_backprop has shape {}, the output {expected}", gradient.shape())))
}

fn to_input(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let dims = listed(ctx, 0, windows.channels_first)?;
    let ((filter, weights), (gradient, from)) = (operand(ctx, 1)?, operand(ctx, 2)?);
    let s = sizes(windows, &dims, filter.dims())?;
    let (dtype, channels) = (gradient.dtype(), filter.dims()[3]);
    check(&s, channels, &gradient)?;
    let (out, to) = gpu.room(dtype, Shape::new(&dims))?;
    let at = |base: Address, n: usize, each: usize| base + (n * each * dtype.size()) as u64;
    in_groups(gpu, &s, dtype, |first, n, columns| {
        let image = at(to, first, s.in_pixels() * s.channels);
        let rows = if s.is_plain() { image } else { columns };
        let gradient = at(from, first, s.out_pixels() * channels);
        let back = Product { transpose_b: true, ..product(dtype, n * s.out_pixels(), s.window(), channels) };
        back.run(gpu, gradient, weights, rows)?;
        if s.is_plain() {
            return Ok(());
        }
        let elements = n * s.in_pixels() * s.channels;
        let [a, b] = s.arguments(n);
        let arguments = [elements.into(), a, b, columns.into(), image.into()];
        // SAFETY: the kernel takes these; each image element is written once.
        unsafe { run(gpu, (&UNIT, "from_columns", dtype), elements, &arguments) }
    })?;
    ctx.set(0, out);
    Ok(())
}

fn to_filter(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let dims = listed(ctx, 1, false)?;
    let ((image, from), (gradient, at_gradient)) = (operand(ctx, 0)?, operand(ctx, 2)?);
    let s = sizes(windows, image.dims(), &dims)?;
    let (dtype, channels) = (image.dtype(), dims[3]);
    check(&s, channels, &gradient)?;
    let (out, to) = gpu.room(dtype, Shape::new(&dims))?;
    if s.batch == 0 {
        gpu.zero(to, out.n_bytes())?;
    }
    let at = |base: Address, n: usize, each: usize| base + (n * each * dtype.size()) as u64;
    in_groups(gpu, &s, dtype, |first, n, columns| {
        let image = at(from, first, s.in_pixels() * s.channels);
        let rows = if s.is_plain() { image } else { columns };
        if !s.is_plain() {
            to_columns(gpu, &s, dtype, n, image, columns)?;
        }
        let gradient = at(at_gradient, first, s.out_pixels() * channels);
        let part = product(dtype, s.window(), channels, n * s.out_pixels());
        Product { transpose_a: true, adds: first > 0, ..part }.run(gpu, rows, gradient, to)
    })?;
    ctx.set(0, out);
    Ok(())
}

fn pool_sizes(windows: &Windows, image: &[usize]) -> Result<Sizes, KernelError> {
    let (&[batch, height, width, channels], &[win_y, win_x]) = (image, windows.sizes.as_slice()) else {
        return Err(KernelError::invalid(format!("{image:?} is no batch of images, or ksize is missing")));
    };
    Ok(Sizes { batch, channels, y: windows.axis(0, height, win_y)?, x: windows.axis(1, width, win_x)? })
}

fn pool(node: &Node, is_max: usize) -> Built {
    let windows = Windows::new(|name| node.attrs.get(name), 2).map_err(KernelError::from)?;
    let body: Body = if is_max == 1 { |c, w| pooled(c, w, 1) } else { |c, w| pooled(c, w, 0) };
    images(node, windows, &[0], &[0], body)
}

fn pooled(ctx: &mut KernelContext<'_>, windows: &Windows, is_max: usize) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let (image, from) = operand(ctx, 0)?;
    let s = pool_sizes(windows, image.dims())?;
    let (out, to) = gpu.room(image.dtype(), Shape::new(&[s.batch, s.y.output, s.x.output, s.channels]))?;
    let [a, b] = s.arguments(s.batch);
    let arguments = [out.len().into(), a, b, is_max.into(), from.into(), to.into()];
    // SAFETY: the kernel takes these; each result is written once.
    unsafe { run(gpu, (&UNIT, "pool", image.dtype()), out.len(), &arguments)? };
    ctx.set(0, out);
    Ok(())
}

fn max_back(node: &Node) -> Built {
    let windows = Windows::new(|name| node.attrs.get(name), 2).map_err(KernelError::from)?;
    images(node, windows, &[0, 1, 2], &[0], |ctx, windows| {
        let gpu = device(ctx)?;
        let ((image, from), (pooled, at), (gradient, of)) = (operand(ctx, 0)?, operand(ctx, 1)?, operand(ctx, 2)?);
        let s = pool_sizes(windows, image.dims())?;
        check(&s, s.channels, &pooled)?;
        check(&s, s.channels, &gradient)?;
        let (out, to) = gpu.room(image.dtype(), image.shape().clone())?;
        let [a, b] = s.arguments(s.batch);
        let arguments = [out.len().into(), a, b, from.into(), at.into(), of.into(), to.into()];
        // SAFETY: the kernel takes these; each result is written once.
        unsafe { run(gpu, (&UNIT, "max_back", image.dtype()), out.len(), &arguments)? };
        ctx.set(0, out);
        Ok(())
    })
}

fn average_back(node: &Node) -> Built {
    let windows = Windows::new(|name| node.attrs.get(name), 2).map_err(KernelError::from)?;
    images(node, windows, &[1], &[0], |ctx, windows| {
        let gpu = device(ctx)?;
        let dims = listed(ctx, 0, windows.channels_first)?;
        let (gradient, from) = operand(ctx, 1)?;
        let s = pool_sizes(windows, &dims)?;
        check(&s, s.channels, &gradient)?;
        let (out, to) = gpu.room(gradient.dtype(), Shape::new(&dims))?;
        let [a, b] = s.arguments(s.batch);
        let arguments = [out.len().into(), a, b, from.into(), to.into()];
        // SAFETY: the kernel takes these; each result is written once.
        unsafe { run(gpu, (&UNIT, "average_back", gradient.dtype()), out.len(), &arguments)? };
        ctx.set(0, out);
        Ok(())
    })
}
