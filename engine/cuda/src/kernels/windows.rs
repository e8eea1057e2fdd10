//! Windows over images, and pools, channels last. (Where they come first, values are turned before and after.)

use engine::Tensor;
use engine::geometry::View;
use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::window::{WindowGeometry, Windows};

use super::layout::viewed;
use super::support::{FLOATS, Unit, device, gpu, kernel, operand, run};
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
    gpu("MaxPool", ("T", FLOATS), |node| images(node, &[0], &[0], |ctx, windows| pool(ctx, windows, 1))),
    gpu("AvgPool", ("T", FLOATS), |node| images(node, &[0], &[0], |ctx, windows| pool(ctx, windows, 0))),
    gpu("MaxPoolGrad", ("T", FLOATS), |node| images(node, &[0, 1, 2], &[0], max_back)),
    gpu("AvgPoolGrad", ("T", FLOATS), |node| images(node, &[1], &[0], average_back)),
];

/// The sizes of windows over so many images, as the kernels take them.
pub(super) fn arguments(g: &WindowGeometry, batch: usize) -> [Argument; 2] {
    let [_, y, x] = g.axes;
    let first = [batch, g.channels, y.input, y.window, y.stride, y.dilation, y.before, y.output];
    let second = [x.input, x.window, x.stride, x.dilation, x.before, x.output, g.filter_channels, 0];
    [first, second].map(|sizes| sizes.map(|n| n as i64).into())
}

/// A value with its channels last (`back`: first).
fn turned(gpu: &Gpu, value: &Tensor, back: bool) -> Result<Tensor, KernelError> {
    if value.shape().rank() != 4 {
        return Err(KernelError::invalid(format!("a value of shape {} is no batch of images", value.shape())));
    }
    let order = if back { [0, 3, 1, 2] } else { [0, 2, 3, 1] };
    Ok(viewed(gpu, &gpu.bring(value)?, &View::permuted(value.shape(), &order))?.0)
}

pub(super) type Body = fn(&mut KernelContext<'_>, &Windows) -> Result<(), KernelError>;

/// A kernel whose inputs and outputs of these numbers are images, channels last to `body`.
pub(super) fn images(node: &Node, inputs: &'static [usize], outputs: &'static [usize], body: Body) -> Built {
    let windows = Windows::of(&node.attrs, 2)?;
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

fn pool(ctx: &mut KernelContext<'_>, windows: &Windows, is_max: usize) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let (image, from) = operand(ctx, 0)?;
    let g = windows.pool(image.shape())?;
    let (out, to) = gpu.room(image.dtype(), g.output())?;
    let [a, b] = arguments(&g, g.batch);
    let arguments = [out.len().into(), a, b, is_max.into(), from.into(), to.into()];
    // SAFETY: the kernel takes these; each result is written once.
    unsafe { run(gpu, (&UNIT, "pool", image.dtype()), out.len(), &arguments)? };
    ctx.set(0, out);
    Ok(())
}

fn max_back(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let ((image, from), (pooled, at), (gradient, of)) = (operand(ctx, 0)?, operand(ctx, 1)?, operand(ctx, 2)?);
    let g = windows.pool(image.shape())?;
    g.check_output("orig_output", pooled.shape())?;
    g.check_output("grad", gradient.shape())?;
    let (out, to) = gpu.room(image.dtype(), image.shape().clone())?;
    let [a, b] = arguments(&g, g.batch);
    let arguments = [out.len().into(), a, b, from.into(), at.into(), of.into(), to.into()];
    // SAFETY: the kernel takes these; each result is written once.
    unsafe { run(gpu, (&UNIT, "max_back", image.dtype()), out.len(), &arguments)? };
    ctx.set(0, out);
    Ok(())
}

fn average_back(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let shape = windows.listed(&ctx.ints(0)?)?;
    let (gradient, from) = operand(ctx, 1)?;
    let g = windows.pool(&shape)?;
    g.check_output("grad", gradient.shape())?;
    let (out, to) = gpu.room(gradient.dtype(), shape)?;
    let [a, b] = arguments(&g, g.batch);
    let arguments = [out.len().into(), a, b, from.into(), to.into()];
    // SAFETY: the kernel takes these; each result is written once.
    unsafe { run(gpu, (&UNIT, "average_back", gradient.dtype()), out.len(), &arguments)? };
    ctx.set(0, out);
    Ok(())
}
