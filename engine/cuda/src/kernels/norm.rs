//! Batch normalisation, from reductions and element-wise kernels.

use engine::geometry::Reduction;
use engine::graph::Node;
use engine::kernels::norm::{BatchNorm, Channels};
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

/// What is normalised.
struct Batch<'a> {
    gpu: &'a Gpu,
    dtype: DType,
    rank: usize,
    channels: Channels,
}

impl<'a> Batch<'a> {
    fn new(gpu: &'a Gpu, x: &Tensor, channels: Channels) -> Batch<'a> {
        Batch { gpu, dtype: x.dtype(), rank: x.shape().rank(), channels }
    }

    /// Input `i`, a vector of channels, in the shape that it is broadcast from.
    fn vector(&self, ctx: &KernelContext<'_>, i: usize) -> Result<Placed, KernelError> {
        self.channels.check_vector(i, ctx.input(i)?.shape())?;
        self.broadcast(operand(ctx, i)?)
    }

    /// A vector of channels, in the shape that it is broadcast from.
    fn broadcast(&self, (v, at): Placed) -> Result<Placed, KernelError> {
        let mut dims = vec![1; self.rank];
        dims[self.channels.axis] = v.len();
        Ok((v.into_shape(Shape::new(&dims))?, at))
    }

    fn all(&self, text: &str, operands: &[Placed]) -> Result<Placed, KernelError> {
        evaluate(self.gpu, text, operands, self.dtype)
    }

    /// The sums of each channel, times a factor.
    fn sums(&self, (x, from): &Placed, scale: f64) -> Result<Placed, KernelError> {
        let reduction = Reduction::all_but(x.dims(), self.channels.axis);
        let (sums, to) = self.gpu.room(self.dtype, reduction.shape.clone())?;
        reduce(self.gpu, Join::Sum, (x, *from), &reduction, to, scale)?;
        self.broadcast((sums, to))
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
    let (BatchNorm { epsilon, share, training, n_outputs }, is_first) = (BatchNorm::of(node)?, is_channels_first(node));
    kernel(node, move |ctx: &mut KernelContext<'_>| {
        let x = operand(ctx, 0)?;
        let b = Batch::new(device(ctx)?, &x.0, Channels::of(x.0.shape(), is_first)?);
        let vector = |i: usize| b.vector(ctx, i);
        let (scale, offset) = (vector(1)?, vector(2)?);
        let part = 1.0 / b.channels.pixels.max(1) as f64;
        let (mean, variance) = if training {
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
        if training {
            let unbiased = Batch::number(b.channels.pixels as f64 / b.channels.pixels.saturating_sub(1).max(1) as f64);
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
    let (BatchNorm { epsilon, training, .. }, is_first) = (BatchNorm::of(node)?, is_channels_first(node));
    kernel(node, move |ctx: &mut KernelContext<'_>| {
        let (dy, x) = (operand(ctx, 0)?, operand(ctx, 1)?);
        let channels = Channels::of_gradient("y_backprop", dy.0.shape(), x.0.shape(), is_first)?;
        let b = Batch::new(device(ctx)?, &x.0, channels);
        let vector = |i: usize| b.vector(ctx, i);
        let (scale, mean, variance) = (vector(2)?, vector(3)?, vector(4)?);
        let plain = b.sums(&dy, 1.0)?;
        let weighted = b.all("a * (b - c)", &[dy.clone(), x.clone(), mean.clone()])?;
        let weighted = b.sums(&weighted, 1.0)?;
        let inverse = b.all(&format!("inverse_root(a + {})", Batch::number(epsilon)), &[variance])?;
        let factor = b.all("a * b", &[scale, inverse.clone()])?;
        // Where the statistics are the batch's own, they change with x too.
        let part = Batch::number(if training { 1.0 / b.channels.pixels.max(1) as f64 } else { 0.0 });
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
