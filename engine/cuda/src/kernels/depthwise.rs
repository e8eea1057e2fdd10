//! Convolutions that keep channels apart, and their gradients: each channel has filters of its own. Direct: there is too little to
//! multiply for a product of matrices.

use engine::Shape;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::window::Windows;

use super::support::{FLOATS, THREADS, Unit, device, gpu, operand, run};
use super::windows::{Sizes, check, convolution, listed};
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
    gpu("DepthwiseConv2dNative", ("T", FLOATS), |node| convolution(node, forward, &[0], &[0])),
    gpu("DepthwiseConv2dNativeBackpropInput", ("T", FLOATS), |node| convolution(node, to_input, &[2], &[0])),
    gpu("DepthwiseConv2dNativeBackpropFilter", ("T", FLOATS), |node| convolution(node, to_filter, &[0, 2], &[])),
];

/// The sizes, and how many filters each channel has.
fn sizes(windows: &Windows, image: &[usize], filter: &[usize]) -> Result<(Sizes, usize), KernelError> {
    let (&[batch, height, width, channels], &[win_y, win_x, of, each]) = (image, filter) else {
        return Err(KernelError::invalid(format!("the input {image:?} and the filter {filter:?} must have rank 4")));
    };
    if of != channels {
        let text = format!("channels of the input {image:?} do not fit the filter {filter:?}");
        return Err(KernelError::invalid(text));
    }
    let sizes = Sizes { batch, channels, y: windows.axis(0, height, win_y)?, x: windows.axis(1, width, win_x)? };
    Ok((sizes, each))
}

fn forward(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let ((image, from), (filter, weights)) = (operand(ctx, 0)?, operand(ctx, 1)?);
    let (s, each) = sizes(windows, image.dims(), filter.dims())?;
    let (out, to) = gpu.room(image.dtype(), Shape::new(&[s.batch, s.y.output, s.x.output, s.channels * each]))?;
    let [a, b] = s.arguments(s.batch);
    let arguments = [out.len().into(), a, b, each.into(), from.into(), weights.into(), to.into()];
    // SAFETY: the kernel takes these; each result is written once.
    unsafe { run(gpu, (&UNIT, "depthwise", image.dtype()), out.len(), &arguments)? };
    ctx.set(0, out);
    Ok(())
}

fn to_input(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let dims = listed(ctx, 0, windows.channels_first)?;
    let ((filter, weights), (gradient, from)) = (operand(ctx, 1)?, operand(ctx, 2)?);
    let (s, each) = sizes(windows, &dims, filter.dims())?;
    check(&s, s.channels * each, &gradient)?;
    let (out, to) = gpu.room(gradient.dtype(), Shape::new(&dims))?;
    let [a, b] = s.arguments(s.batch);
    let arguments = [out.len().into(), a, b, each.into(), weights.into(), from.into(), to.into()];
    // SAFETY: the kernel takes these; each image element is written once.
    unsafe { run(gpu, (&UNIT, "depthwise_to_input", gradient.dtype()), out.len(), &arguments)? };
    ctx.set(0, out);
    Ok(())
}

fn to_filter(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let dims = listed(ctx, 1, false)?;
    let ((image, from), (gradient, of)) = (operand(ctx, 0)?, operand(ctx, 2)?);
    let (s, each) = sizes(windows, image.dims(), &dims)?;
    check(&s, s.channels * each, &gradient)?;
    let (out, to) = gpu.room(image.dtype(), Shape::new(&dims))?;
    let [a, b] = s.arguments(s.batch);
    let arguments = [out.len().into(), a, b, each.into(), from.into(), of.into(), to.into()];
    if !out.is_empty() {
        let function = UNIT.kernel(gpu, "depthwise_to_filter", image.dtype())?;
        let grid = Grid { blocks: [out.len().min(1 << 20) as u32, 1, 1], threads: THREADS };
        // SAFETY: the kernel takes these; each filter element is written once, by its block.
        unsafe { gpu.launch(function, grid, &arguments)? };
    }
    ctx.set(0, out);
    Ok(())
}
