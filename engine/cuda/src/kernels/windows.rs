//! Windows over images, and pools, channels last. (Where they come first, values are turned before and after.)

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::window::{Axis, Windows};
use engine::{Shape, Tensor};

use super::pointwise::move_elements;
use super::support::{FLOATS, Unit, c_word, device, gpu, ints, kernel, operand, run, strides};
use crate::gpu::{Argument, Gpu};

/// Its kernels.
pub const UNIT: Unit = Unit {
    name: "windows.cu",
    text: concat!(include_str!("../cu/geometry.cu"), include_str!("../cu/windows.cu")),
    kernels: &["to_columns", "from_columns", "pool", "max_back", "average_back"],
    dtypes: FLOATS,
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static WINDOWS: &[KernelDef] = &[
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
    /// As the kernels take them; `each` are the channels of a group, where windows are written down.
    pub fn arguments_in_groups(&self, batch: usize, each: usize) -> [Argument; 2] {
        let [first, second] = self.arguments(batch);
        let Argument::Eight(mut second) = second else { return [first, second] };
        second[6] = each as i64;
        [first, second.into()]
    }

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

/// The sizes that input `i` lists, channels last.
pub(super) fn listed(ctx: &KernelContext<'_>, i: usize, is_first: bool) -> Result<Vec<usize>, KernelError> {
    let dims: Result<Vec<usize>, _> = ints(ctx, i)?.iter().map(|d| usize::try_from(*d)).collect();
    in_order(dims.as_deref().unwrap_or(&[]), is_first).map(|dims| dims.to_vec())
}

/// The sizes of images with the channels last: `[batch, rows, columns, channels]`.
pub(super) fn in_order(dims: &[usize], is_first: bool) -> Result<[usize; 4], KernelError> {
    match *dims {
        [n, c, y, x] if is_first => Ok([n, y, x, c]),
        [n, y, x, c] => Ok([n, y, x, c]),
        _ => Err(KernelError::invalid("the sizes of images are four numbers")),
    }
}

pub(super) type Body = fn(&mut KernelContext<'_>, &Windows) -> Result<(), KernelError>;

/// A kernel whose inputs and outputs of these numbers are images, channels last to `body`.
fn images(node: &Node, windows: Windows, inputs: &'static [usize], outputs: &'static [usize], body: Body) -> Built {
    kernel(node, move |ctx| channels_last(ctx, &windows, (inputs, outputs), body))
}

/// Calls `body` with these inputs and outputs channels last.
pub(super) fn channels_last(
    ctx: &mut KernelContext<'_>,
    windows: &Windows,
    (inputs, outputs): (&[usize], &[usize]),
    body: Body,
) -> Result<(), KernelError> {
    if !windows.channels_first {
        return body(ctx, windows);
    }
    for i in inputs {
        ctx.inputs[*i] = Some(turned(device(ctx)?, ctx.input(*i)?, false)?);
    }
    body(ctx, windows)?;
    for i in outputs {
        let Some(value) = ctx.outputs[*i].take() else { continue };
        ctx.outputs[*i] = Some(turned(device(ctx)?, &value, true)?);
    }
    Ok(())
}

pub(super) fn convolution(node: &Node, body: Body, inputs: &'static [usize], outputs: &'static [usize]) -> Built {
    let windows = Windows::new(|name| node.attrs.get(name), 2).map_err(KernelError::from)?;
    images(node, windows, inputs, outputs, body)
}

/// That a gradient has the shape of the convolution's output.
pub(super) fn check(s: &Sizes, channels: usize, gradient: &Tensor) -> Result<(), KernelError> {
    let expected = Shape::new(&[s.batch, s.y.output, s.x.output, channels]);
    if *gradient.shape() == expected {
        return Ok(());
    }
    Err(KernelError::invalid(format!("out_backprop has shape {}, the output {expected}", gradient.shape())))
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
