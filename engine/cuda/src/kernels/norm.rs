//! Batch normalisation, from reductions and element-wise kernels.

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::{DType, Shape, Tensor};

use super::elementwise::{Placed, evaluate, is_channels_first};
use super::reduce::{Join, reduce};
use super::support::{device, gpu, kernel, operand};
use crate::gpu::Gpu;

const TYPES: &[DType] = &[DType::F32, DType::F64];

#[linkme::distributed_slice(KERNEL_TABLES)]
static NORM: &[KernelDef] = &[
    gpu("FusedBatchNorm", ("T", TYPES), batch_norm),
    gpu("FusedBatchNormV2", ("T", TYPES), batch_norm),
    gpu("FusedBatchNormV3", ("T", TYPES), batch_norm),
    gpu("FusedBatchNormGrad", ("T", TYPES), batch_norm_grad),
    gpu("FusedBatchNormGradV2", ("T", TYPES), batch_norm_grad),
    gpu("FusedBatchNormGradV3", ("T", TYPES), batch_norm_grad),
];

/// What is normalised: where its channels are, and how many pixels each has.
struct Batch<'a> {
    gpu: &'a Gpu,
    dtype: DType,
    rank: usize,
    channel: usize,
    pixels: usize,
}

impl<'a> Batch<'a> {
    fn of(gpu: &'a Gpu, x: &Tensor, is_first: bool) -> Result<Batch<'a>, KernelError> {
        let rank = x.shape().rank();
        if !(4..=5).contains(&rank) {
            return Err(KernelError::invalid(format!("the data must have rank 4 or 5, got shape {}", x.shape())));
        }
        let channel = if is_first { 1 } else { rank - 1 };
        let pixels = x.len().checked_div(x.dims()[channel]).unwrap_or(0);
        Ok(Batch { gpu, dtype: x.dtype(), rank, channel, pixels })
    }

    /// A vector of channels, in the shape that it is broadcast from.
    fn vector(&self, (v, at): Placed) -> Result<Placed, KernelError> {
        let mut dims = vec![1; self.rank];
        dims[self.channel] = v.len();
        Ok((v.into_shape(Shape::new(&dims))?, at))
    }

    fn all(&self, text: &str, operands: &[Placed]) -> Result<Placed, KernelError> {
        evaluate(self.gpu, text, operands, self.dtype)
    }

    /// The sums of each channel, times a factor.
    fn sums(&self, (x, from): &Placed, scale: f64) -> Result<Placed, KernelError> {
        let is_reduced: Vec<bool> = (0..self.rank).map(|d| d != self.channel).collect();
        let (sums, to) = self.gpu.room(self.dtype, Shape::new(&[x.dims()[self.channel]]))?;
        reduce(self.gpu, Join::Sum, (x, *from), &is_reduced, to, scale)?;
        self.vector((sums, to))
    }

    fn flat(&self, value: &Placed) -> Result<Tensor, KernelError> {
        Ok(value.0.reshaped(Shape::new(&[value.0.len()]))?)
    }

    /// A number as an expression.
    fn number(value: f64) -> String {
        format!("((C){value:e})")
    }
}

fn batch_norm(node: &Node) -> Built {
    let (epsilon, trains, is_first) =
        (f64::from(*node.float("epsilon")?), *node.flag("is_training")?, is_channels_first(node));
    let share = f64::from(node.float("exponential_avg_factor").copied().unwrap_or(1.0));
    let n_outputs = node.outputs.len();
    kernel(node, move |ctx: &mut KernelContext<'_>| {
        let x = operand(ctx, 0)?;
        let b = Batch::of(device(ctx)?, &x.0, is_first)?;
        let vector = |i: usize| b.vector(operand(ctx, i)?);
        let (scale, offset) = (vector(1)?, vector(2)?);
        let part = 1.0 / b.pixels.max(1) as f64;
        let (mean, variance) = if trains {
            let mean = b.sums(&x, part)?;
            let squares = b.all("(a - b) * (a - b)", &[x.clone(), mean.clone()])?;
            let variance = b.sums(&squares, part)?;
            (mean, variance)
        } else {
            (vector(3)?, vector(4)?)
        };
        let epsilon = Batch::number(epsilon);
        let factor = b.all(&format!("a / root(b + {epsilon})"), &[scale, variance.clone()])?;
        let y = b.all("(a - b) * c + x3", &[x, mean.clone(), factor, offset])?;
        let (mut running_mean, mut running_variance) = (mean.clone(), variance.clone());
        if trains {
            let unbiased = Batch::number(b.pixels as f64 / b.pixels.saturating_sub(1).max(1) as f64);
            running_variance = b.all(&format!("a * {unbiased}"), &[running_variance])?;
            if share != 1.0 {
                let (old, new) = (Batch::number(1.0 - share), Batch::number(share));
                let mixed = format!("a * {new} + b * {old}");
                running_mean = b.all(&mixed, &[running_mean, vector(3)?])?;
                running_variance = b.all(&mixed, &[running_variance, vector(4)?])?;
            }
        }
        let vectors = [running_mean, running_variance, mean, variance].map(|v| b.flat(&v));
        let dtype = b.dtype;
        ctx.set(0, y.0);
        for (i, value) in vectors.into_iter().enumerate() {
            ctx.set(i + 1, value?);
        }
        if n_outputs > 5 {
            ctx.set(5, Tensor::zeros(dtype, Shape::new(&[0]), ctx.allocator)?);
        }
        Ok(())
    })
}

fn batch_norm_grad(node: &Node) -> Built {
    let (epsilon, trains, is_first) =
        (f64::from(*node.float("epsilon")?), *node.flag("is_training")?, is_channels_first(node));
    kernel(node, move |ctx: &mut KernelContext<'_>| {
        let (dy, x) = (operand(ctx, 0)?, operand(ctx, 1)?);
        if dy.0.shape() != x.0.shape() {
            let (dy, x) = (dy.0.shape(), x.0.shape());
            return Err(KernelError::invalid(format!("y_backprop has shape {dy}, x {x}")));
        }
        let b = Batch::of(device(ctx)?, &x.0, is_first)?;
        let vector = |i: usize| b.vector(operand(ctx, i)?);
        let (scale, mean, variance) = (vector(2)?, vector(3)?, vector(4)?);
        let plain = b.sums(&dy, 1.0)?;
        let weighted = b.all("a * (b - c)", &[dy.clone(), x.clone(), mean.clone()])?;
        let weighted = b.sums(&weighted, 1.0)?;
        let inverse = b.all(&format!("inverse_root(a + {})", Batch::number(epsilon)), &[variance])?;
        let factor = b.all("a * b", &[scale, inverse.clone()])?;
        // Where the statistics are the batch's own, they change with x too.
        let part = Batch::number(if trains { 1.0 / b.pixels.max(1) as f64 } else { 0.0 });
        let slope = b.all(&format!("a * b * b * {part}"), &[weighted.clone(), inverse.clone()])?;
        let text = format!("(a - x3 * {part} - (b - c) * x4) * x5");
        let dx = b.all(&text, &[dy, x, mean, plain.clone(), slope, factor])?;
        let of_scale = b.all("a * b", &[weighted, inverse])?;
        let (of_scale, of_offset, dtype) = (b.flat(&of_scale)?, b.flat(&plain)?, b.dtype);
        ctx.set(0, dx.0);
        ctx.set(1, of_scale);
        ctx.set(2, of_offset);
        for i in 3..5 {
            ctx.set(i, Tensor::zeros(dtype, Shape::new(&[0]), ctx.allocator)?);
        }
        Ok(())
    })
}
