//! Local response normalisation, and its gradient.

use engine::graph::Node;
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

/// The op's attributes.
#[derive(Clone, Copy)]
struct Responses {
    radius: i64,
    bias: f64,
    alpha: f64,
    beta: f64,
}

impl Responses {
    fn of(node: &Node) -> Result<Responses, KernelError> {
        let radius = *node.int("depth_radius")?;
        if radius < 0 {
            return Err(KernelError::invalid("depth_radius must not be negative"));
        }
        let number = |name| node.float(name).map(|v| f64::from(*v));
        Ok(Responses { radius, bias: number("bias")?, alpha: number("alpha")?, beta: number("beta")? })
    }

    /// Starts the kernel that makes norms and normalised values, either of them not where its address is 0.
    fn run(&self, gpu: &Gpu, x: &Tensor, from: Address, [norms, to]: [Address; 2]) -> Result<(), KernelError> {
        let numbers = [self.bias, self.alpha, self.beta].map(Argument::from);
        let sizes = [x.len().into(), channels(x)?.into(), Argument::from(self.radius)];
        let arguments: Vec<Argument> =
            sizes.into_iter().chain(numbers).chain([from, norms, to].map(Argument::from)).collect();
        // SAFETY: the kernel takes these; each result is written once.
        unsafe { run(gpu, (&UNIT, "lrn", x.dtype()), x.len(), &arguments) }
    }
}

fn channels(x: &Tensor) -> Result<usize, KernelError> {
    match x.dims() {
        [_, _, _, n] => Ok(*n),
        _ => Err(KernelError::invalid(format!("the data must have rank 4, got shape {}", x.shape()))),
    }
}

fn forward(node: &Node) -> Built {
    let responses = Responses::of(node)?;
    kernel(node, move |ctx: &mut KernelContext<'_>| {
        let (x, from) = operand(ctx, 0)?;
        let gpu = device(ctx)?;
        let (y, to) = gpu.room(x.dtype(), x.shape().clone())?;
        responses.run(gpu, &x, from, [0, to])?;
        ctx.set(0, y);
        Ok(())
    })
}

fn back(node: &Node) -> Built {
    let responses = Responses::of(node)?;
    kernel(node, move |ctx: &mut KernelContext<'_>| {
        let ((dy, of), (x, from), (y, at)) = (operand(ctx, 0)?, operand(ctx, 1)?, operand(ctx, 2)?);
        if dy.shape() != x.shape() || y.shape() != x.shape() {
            let text = format!("shapes {}, {} and {} must be equal", dy.shape(), x.shape(), y.shape());
            return Err(KernelError::invalid(text));
        }
        let gpu = device(ctx)?;
        // In the type that is computed in.
        let size = if x.dtype() == DType::F64 { 8 } else { 4 };
        let norms = gpu.block(x.len() * size)?;
        responses.run(gpu, &x, from, [norms.address(), 0])?;
        let (dx, to) = gpu.room(x.dtype(), x.shape().clone())?;
        let sizes = [x.len().into(), channels(&x)?.into(), Argument::from(responses.radius)];
        let numbers = [responses.alpha, responses.beta].map(Argument::from);
        let memory = [of, from, at, norms.address(), to].map(Argument::from);
        let arguments: Vec<Argument> = sizes.into_iter().chain(numbers).chain(memory).collect();
        // SAFETY: the kernel takes these; each result is written once.
        unsafe { run(gpu, (&UNIT, "lrn_back", x.dtype()), x.len(), &arguments)? };
        ctx.set(0, dx);
        Ok(())
    })
}
