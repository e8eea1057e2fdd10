//! Local response normalisation, and its gradient.

use engine::graph::Node;
use engine::kernels::norm::Responses;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::{DType, Tensor};

use super::support::{FLOATS, Unit, device, gpu, kernel, operand, run};
use crate::backend::Address;
use crate::gpu::{Argument, Gpu};

/// Its kernels.
pub const UNIT: Unit =
    Unit { name: "lrn.cu", text: include_str!("../cu/lrn.cu"), kernels: &["lrn", "lrn_back"], dtypes: FLOATS };

#[linkme::distributed_slice(KERNEL_TABLES)]
static LRN: &[KernelDef] = &[gpu("LRN", ("T", FLOATS), forward), gpu("LRNGrad", ("T", FLOATS), back)];

/// Starts the kernel that makes norms and normalised values, either of them not where its address is 0.
fn normalise(
    r: &Responses,
    gpu: &Gpu,
    x: &Tensor,
    from: Address,
    [norms, to]: [Address; 2],
) -> Result<(), KernelError> {
    let numbers = [r.bias, r.alpha, r.beta].map(Argument::from);
    let sizes = [x.len(), Responses::channels(x.shape())?, r.radius].map(Argument::from);
    let arguments: Vec<Argument> =
        sizes.into_iter().chain(numbers).chain([from, norms, to].map(Argument::from)).collect();
    // SAFETY: the kernel takes these; each result is written once.
    unsafe { run(gpu, (&UNIT, "lrn", x.dtype()), x.len(), &arguments) }
}

fn forward(node: &Node) -> Built {
    let responses = Responses::of(node)?;
    kernel(node, move |ctx: &mut KernelContext<'_>| {
        let (x, from) = operand(ctx, 0)?;
        let gpu = device(ctx)?;
        let (y, to) = gpu.room(x.dtype(), x.shape().clone())?;
        normalise(&responses, gpu, &x, from, [0, to])?;
        ctx.set(0, y);
        Ok(())
    })
}

fn back(node: &Node) -> Built {
    let responses = Responses::of(node)?;
    kernel(node, move |ctx: &mut KernelContext<'_>| {
        let ((dy, of), (x, from), (y, at)) = (operand(ctx, 0)?, operand(ctx, 1)?, operand(ctx, 2)?);
        let n_channels = Responses::gradient_channels(dy.shape(), x.shape(), y.shape())?;
        let gpu = device(ctx)?;
        // In the type that is computed in.
        let size = if x.dtype() == DType::F64 { 8 } else { 4 };
        let norms = gpu.block(x.len() * size)?;
        normalise(&responses, gpu, &x, from, [norms.address(), 0])?;
        let (dx, to) = gpu.room(x.dtype(), x.shape().clone())?;
        let sizes = [x.len(), n_channels, responses.radius].map(Argument::from);
        let numbers = [responses.alpha, responses.beta].map(Argument::from);
        let memory = [of, from, at, norms.address(), to].map(Argument::from);
        let arguments: Vec<Argument> = sizes.into_iter().chain(numbers).chain(memory).collect();
        // SAFETY: the kernel takes these; each result is written once.
        unsafe { run(gpu, (&UNIT, "lrn_back", x.dtype()), x.len(), &arguments)? };
        ctx.set(0, dx);
        Ok(())
    })
}
