//! Convolutions that keep channels apart, and their gradients: each channel has filters of its own. Direct: there is too little to
//! multiply for a product of matrices.

use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::window::Windows;

use super::support::{FLOATS, THREADS, Unit, device, gpu, operand, run};
use super::windows::{arguments, images};
use crate::backend::Grid;

/// Its kernels.
pub const UNIT: Unit = Unit {
    name: "depthwise.cu",
    text: concat!(include_str!("../cu/geometry.cu"), include_str!("../cu/depthwise.cu")),
    kernels: &["depthwise", "depthwise_to_input", "depthwise_to_filter"],
    dtypes: FLOATS,
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static DEPTHWISE: &[KernelDef] = &[
    gpu("DepthwiseConv2dNative", ("T", FLOATS), |node| images(node, &[0], &[0], forward)),
    gpu("DepthwiseConv2dNativeBackpropInput", ("T", FLOATS), |node| images(node, &[2], &[0], to_input)),
    gpu("DepthwiseConv2dNativeBackpropFilter", ("T", FLOATS), |node| images(node, &[0, 2], &[], to_filter)),
];

fn forward(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let ((image, from), (filter, weights)) = (operand(ctx, 0)?, operand(ctx, 1)?);
    let g = windows.depthwise(image.shape(), filter.shape())?;
    let (out, to) = gpu.room(image.dtype(), g.output())?;
    let [a, b] = arguments(&g, g.batch);
    let arguments = [out.len().into(), a, b, g.multiplier().into(), from.into(), weights.into(), to.into()];
    // SAFETY: the kernel takes these; each result is written once.
    unsafe { run(gpu, (&UNIT, "depthwise", image.dtype()), out.len(), &arguments)? };
    ctx.set(0, out);
    Ok(())
}

fn to_input(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let shape = windows.listed(&ctx.ints(0)?)?;
    let ((filter, weights), (gradient, from)) = (operand(ctx, 1)?, operand(ctx, 2)?);
    let g = windows.depthwise(&shape, filter.shape())?;
    g.check_output("out_backprop", gradient.shape())?;
    let (out, to) = gpu.room(gradient.dtype(), shape)?;
    let [a, b] = arguments(&g, g.batch);
    let arguments = [out.len().into(), a, b, g.multiplier().into(), weights.into(), from.into(), to.into()];
    // SAFETY: the kernel takes these; each image element is written once.
    unsafe { run(gpu, (&UNIT, "depthwise_to_input", gradient.dtype()), out.len(), &arguments)? };
    ctx.set(0, out);
    Ok(())
}

fn to_filter(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let shape = ctx.shape_input(1)?;
    let ((image, from), (gradient, of)) = (operand(ctx, 0)?, operand(ctx, 2)?);
    let g = windows.depthwise(image.shape(), &shape)?;
    g.check_output("out_backprop", gradient.shape())?;
    let (out, to) = gpu.room(image.dtype(), shape)?;
    let [a, b] = arguments(&g, g.batch);
    let arguments = [out.len().into(), a, b, g.multiplier().into(), from.into(), of.into(), to.into()];
    if !out.is_empty() {
        let function = UNIT.kernel(gpu, "depthwise_to_filter", image.dtype())?;
        let grid = Grid { blocks: [out.len().min(1 << 20) as u32, 1, 1], threads: THREADS };
        // SAFETY: the kernel takes these; each filter element is written once, by its block.
        unsafe { gpu.launch(function, grid, &arguments)? };
    }
    ctx.set(0, out);
    Ok(())
}
