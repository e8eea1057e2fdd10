//! Kernels of neural-net ops: biases, softmax, cross entropies. All work on rows of the last dimension.

use super::formats::any_format;
use super::support::{Computed, cpu, kernel, shard_slice, unique_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::{DType, Element};
use crate::shape::Shape;

/// A floating-point type, as far as these kernels need one.
pub(crate) trait Float:
    Element
    + PartialOrd
    + Default
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::iter::Sum
{
    const LOWEST: Self;
    fn ln(self) -> Self;
    fn exp(self) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn powf(self, e: Self) -> Self;
    fn from_f64(v: f64) -> Self;
    fn to_f64(self) -> f64;
    fn exp_all(values: &mut [Self]);
    fn tanh_all(values: &mut [Self]);
    fn sigmoid_all(values: &mut [Self]);
}

impl Float for f32 {
    const LOWEST: f32 = f32::NEG_INFINITY;
    fn ln(self) -> f32 {
        f32::ln(self)
    }
    fn exp(self) -> f32 {
        f32::exp(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }
    fn powf(self, e: f32) -> f32 {
        f32::powf(self, e)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn from_f64(v: f64) -> f32 {
        v as f32
    }
    fn exp_all(values: &mut [f32]) {
        super::vecmath::exp(values);
    }
    fn tanh_all(values: &mut [f32]) {
        super::vecmath::tanh(values);
    }
    fn sigmoid_all(values: &mut [f32]) {
        super::vecmath::sigmoid(values);
    }
}

impl Float for f64 {
    const LOWEST: f64 = f64::NEG_INFINITY;
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    fn exp(self) -> f64 {
        f64::exp(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }
    fn powf(self, e: f64) -> f64 {
        f64::powf(self, e)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    fn from_f64(v: f64) -> f64 {
        v
    }
    fn exp_all(values: &mut [f64]) {
        values.iter_mut().for_each(|v| *v = v.exp());
    }
    fn tanh_all(values: &mut [f64]) {
        values.iter_mut().for_each(|v| *v = v.tanh());
    }
    fn sigmoid_all(values: &mut [f64]) {
        values.iter_mut().for_each(|v| *v = 1.0 / (1.0 + (-*v).exp()));
    }
}

/// Length of the last dimension of input `i`, which must have at least `rank` dimensions.
fn last_dim(ctx: &KernelContext<'_>, i: usize, rank: usize) -> Result<usize, KernelError> {
    let shape = ctx.input(i)?.shape();
    match shape.dims().last() {
        Some(d) if shape.rank() >= rank => Ok(*d),
        _ => Err(KernelError::invalid(format!("input {i} must have rank {rank} or more, got shape {shape}"))),
    }
}

fn bias_add<T: Element>(ctx: &mut KernelContext<'_>, add: impl Fn(T, T) -> T + Sync) -> Computed {
    let n = last_dim(ctx, 0, 2)?;
    if ctx.input(1)?.dims() != [n] {
        let (value, bias) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
        return Err(KernelError::invalid(format!("a bias of shape {bias} does not fit a value of shape {value}")));
    }
    let mut value = ctx.take(0)?;
    let bias = ctx.take(1)?;
    let bias = bias.slice::<T>()?;
    if value.is_unique() {
        shard_slice(ctx.sharder, unique_slice::<T>(&mut value)?, n, 300, |_, part| {
            for row in part.chunks_exact_mut(n.max(1)) {
                row.iter_mut().zip(bias).for_each(|(v, b)| *v = add(*v, *b));
            }
        });
    } else {
        let from = value.slice::<T>()?;
        value = ctx.filled::<T>(value.shape().clone(), |out| {
            shard_slice(ctx.sharder, out, n, 300, |at, part| {
                for (row, from) in part.chunks_exact_mut(n.max(1)).zip(from[at..].chunks_exact(n.max(1))) {
                    row.iter_mut().zip(from).zip(bias).for_each(|((v, f), b)| *v = add(*f, *b));
                }
            });
            Ok(())
        })?;
    }
    ctx.set(0, value);
    Ok(())
}

fn bias_add_grad<T: Element + Default>(ctx: &mut KernelContext<'_>, add: impl Fn(T, T) -> T + Sync) -> Computed {
    let n = last_dim(ctx, 0, 2)?;
    let grad = ctx.slice::<T>(0)?;
    let sum = ctx.filled::<T>(Shape::new(&[n]), |sum| {
        // Shards of columns: each sum is taken in the rows' order, whatever their number.
        shard_slice(ctx.sharder, sum, 1, 300 * (grad.len() / n.max(1)) as u64, |at, sums| {
            sums.fill(T::default());
            for row in grad.chunks_exact(n.max(1)) {
                sums.iter_mut().zip(&row[at..]).for_each(|(s, g)| *s = add(*s, *g));
            }
        });
        Ok(())
    })?;
    ctx.set(0, sum);
    Ok(())
}

fn max_of<T: Float>(row: &[T]) -> T {
    row.iter().fold(T::LOWEST, |m, v| if *v > m { *v } else { m })
}

/// Writes e^(x - max) to `out`; gives the maximum and the sum.
fn exp_row<T: Float>(row: &[T], out: &mut [T]) -> (T, T) {
    let max = max_of(row);
    out.iter_mut().zip(row).for_each(|(o, v)| *o = *v - max);
    T::exp_all(out);
    (max, out.iter().copied().sum())
}

fn softmax<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let n = last_dim(ctx, 0, 1)?;
    let logits = ctx.input(0)?;
    let from = logits.slice::<T>()?;
    let out = ctx.filled::<T>(logits.shape().clone(), |out| {
        shard_slice(ctx.sharder, out, n, 1500, |at, part| {
            for (row, from) in part.chunks_exact_mut(n.max(1)).zip(from[at..].chunks_exact(n.max(1))) {
                let (_, sum) = exp_row(from, row);
                row.iter_mut().for_each(|v| *v = *v / sum);
            }
        });
        Ok(())
    })?;
    ctx.set(0, out);
    Ok(())
}

fn log_softmax<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let n = last_dim(ctx, 0, 1)?;
    let logits = ctx.input(0)?;
    let from = logits.slice::<T>()?;
    let out = ctx.filled::<T>(logits.shape().clone(), |out| {
        shard_slice(ctx.sharder, out, n, 1500, |at, part| {
            for (row, from) in part.chunks_exact_mut(n.max(1)).zip(from[at..].chunks_exact(n.max(1))) {
                let (max, sum) = exp_row(from, row);
                let log = sum.ln();
                row.iter_mut().zip(from).for_each(|(o, v)| *o = *v - max - log);
            }
        });
        Ok(())
    })?;
    ctx.set(0, out);
    Ok(())
}

/// Loss of each row, -sum(labels * log softmax), and its gradient, softmax - labels (for labels that sum to 1).
fn cross_entropy<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let (logits, labels) = (ctx.input(0)?, ctx.input(1)?);
    let &[batch, n] = logits.dims() else {
        return Err(KernelError::invalid(format!("logits must be a matrix, got shape {}", logits.shape())));
    };
    if labels.shape() != logits.shape() {
        let text = format!("logits {} and labels {} must have one shape", logits.shape(), labels.shape());
        return Err(KernelError::invalid(text));
    }
    let (x, p) = (logits.slice::<T>()?, labels.slice::<T>()?);
    let mut grad = ctx.room::<T>(logits.shape().clone())?;
    let rows = unique_slice::<T>(&mut grad)?.chunks_exact_mut(n.max(1));
    let loss = ctx.filled::<T>(Shape::new(&[batch]), |loss| {
        loss.fill(T::default());
        for (((row, x), p), loss) in rows.zip(x.chunks_exact(n.max(1))).zip(p.chunks_exact(n.max(1))).zip(loss) {
            let (max, sum) = exp_row(x, row);
            let log = sum.ln();
            *loss = x.iter().zip(p).map(|(x, p)| *p * (log - (*x - max))).sum();
            row.iter_mut().zip(p).for_each(|(g, p)| *g = *g / sum - *p);
        }
        Ok(())
    })?;
    ctx.set(0, loss);
    ctx.set(1, grad);
    Ok(())
}

/// As [`cross_entropy`] with one class per row. A class out of range is an error, as on TensorFlow's CPU.
fn sparse_cross_entropy<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let (logits, labels) = (ctx.input(0)?, ctx.ints(1)?);
    let &[batch, n] = logits.dims() else {
        return Err(KernelError::invalid(format!("logits must be a matrix, got shape {}", logits.shape())));
    };
    if labels.len() != batch {
        return Err(KernelError::invalid(format!("{} labels for {batch} rows of logits", labels.len())));
    }
    if let Some(l) = labels.iter().find(|l| !(0..n as i64).contains(*l)) {
        return Err(KernelError::invalid(format!("label {l} is outside of [0, {n})")));
    }
    let x = logits.slice::<T>()?;
    let mut grad = ctx.room::<T>(logits.shape().clone())?;
    let rows = unique_slice::<T>(&mut grad)?.chunks_exact_mut(n.max(1));
    let loss = ctx.filled::<T>(Shape::new(&[batch]), |loss| {
        for (((row, x), label), loss) in rows.zip(x.chunks_exact(n.max(1))).zip(&labels).zip(loss) {
            let (max, sum) = exp_row(x, row);
            let label = *label as usize;
            *loss = sum.ln() - (x[label] - max);
            row.iter_mut().for_each(|g| *g = *g / sum);
            row[label] = row[label] - T::from_f64(1.0);
        }
        Ok(())
    })?;
    ctx.set(0, loss);
    ctx.set(1, grad);
    Ok(())
}

fn l2_loss<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let sum: T = ctx.slice::<T>(0)?.iter().map(|v| *v * *v).sum();
    ctx.set(0, crate::tensor::Tensor::scalar(sum * T::from_f64(0.5)));
    Ok(())
}

macro_rules! floats {
    ($($op:literal $f:ident;)+) => { &[ $(
        cpu($op, ("T", &[DType::F32]), |_| kernel($f::<f32>)),
        cpu($op, ("T", &[DType::F64]), |_| kernel($f::<f64>)),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static FLOATS: &[KernelDef] = floats! {
    "Softmax" softmax;
    "LogSoftmax" log_softmax;
    "SoftmaxCrossEntropyWithLogits" cross_entropy;
    "SparseSoftmaxCrossEntropyWithLogits" sparse_cross_entropy;
    "L2Loss" l2_loss;
};

macro_rules! biases {
    ($($t:ty, $add:expr;)+) => { &[ $(
        cpu("BiasAdd", ("T", &[<$t as Element>::DTYPE]), |n| {
            any_format(n, &[0], &[0], kernel(|c| bias_add::<$t>(c, $add))?)
        }),
        cpu("BiasAddV1", ("T", &[<$t as Element>::DTYPE]), |_| kernel(|c| bias_add::<$t>(c, $add))),
        cpu("BiasAddGrad", ("T", &[<$t as Element>::DTYPE]), |n| {
            any_format(n, &[0], &[], kernel(|c| bias_add_grad::<$t>(c, $add))?)
        }),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static BIASES: &[KernelDef] = biases! {
    f32, |a, b| a + b;
    f64, |a, b| a + b;
    i32, i32::wrapping_add;
    i64, i64::wrapping_add;
};
