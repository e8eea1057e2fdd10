//! Kernels of neural-net ops: biases, softmax, cross entropies. All work on rows of the last dimension.

use super::formats::any_format;
use super::support::{Computed, cpu, kernel, shard_slice, unique_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, measure};
use engine_core::dtype::{DType, Element};
use engine_core::geometry::Rows;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// A floating-point type, as far as these kernels need one.
pub trait Float:
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

macro_rules! float {
    ($t:ty, $values:ident: $exp:expr, $tanh:expr, $sigmoid:expr) => {
        impl Float for $t {
            const LOWEST: $t = <$t>::NEG_INFINITY;
            fn ln(self) -> $t {
                <$t>::ln(self)
            }
            fn exp(self) -> $t {
                <$t>::exp(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> $t {
                <$t>::abs(self)
            }
            fn powf(self, e: $t) -> $t {
                <$t>::powf(self, e)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn from_f64(v: f64) -> $t {
                v as $t
            }
            fn exp_all($values: &mut [$t]) {
                $exp;
            }
            fn tanh_all($values: &mut [$t]) {
                $tanh;
            }
            fn sigmoid_all($values: &mut [$t]) {
                $sigmoid;
            }
        }
    };
}
float!(f32, v: super::vecmath::exp(v), super::vecmath::tanh(v), super::vecmath::sigmoid(v));
float!(f64, v:
    v.iter_mut().for_each(|v| *v = v.exp()),
    v.iter_mut().for_each(|v| *v = v.tanh()),
    v.iter_mut().for_each(|v| *v = 1.0 / (1.0 + (-*v).exp())));

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

/// Each row of logits, made by `finish(logits, maximum, sum, row)` of what [`exp_row`] gives and writes to the row.
fn rows_of_exps<T: Float>(ctx: &mut KernelContext<'_>, finish: impl Fn(&[T], T, T, &mut [T]) + Sync) -> Computed {
    let logits = ctx.input(0)?;
    let n = Rows::new(logits.shape())?.n.max(1);
    let from = logits.slice::<T>()?;
    let out = ctx.filled::<T>(logits.shape().clone(), |out| {
        shard_slice(ctx.sharder, out, n, 1500, |at, part| {
            for (row, from) in part.chunks_exact_mut(n).zip(from[at..].chunks_exact(n)) {
                let (max, sum) = exp_row(from, row);
                finish(from, max, sum, row);
            }
        });
        Ok(())
    })?;
    ctx.set(0, out);
    Ok(())
}

fn softmax<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    rows_of_exps::<T>(ctx, |_, _, sum, row| row.iter_mut().for_each(|v| *v = *v / sum))
}

fn log_softmax<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    rows_of_exps::<T>(ctx, |from, max, sum, row| {
        let log = sum.ln();
        row.iter_mut().zip(from).for_each(|(o, v)| *o = *v - max - log);
    })
}

/// The loss of each row of logits, and its gradient: `loss(i, logits, maximum, sum, gradient)` makes both of what [`exp_row`]
/// gives and writes to the gradient.
fn losses<T: Float>(
    ctx: &KernelContext<'_>,
    rows: Rows,
    loss: impl Fn(usize, &[T], T, T, &mut [T]) -> T,
) -> Result<[Tensor; 2], KernelError> {
    let (x, n) = (ctx.slice::<T>(0)?, rows.n.max(1));
    let mut grad = ctx.room::<T>(ctx.input(0)?.shape().clone())?;
    let grads = unique_slice::<T>(&mut grad)?.chunks_exact_mut(n);
    let out = ctx.filled::<T>(Shape::new(&[rows.n_rows]), |out| {
        out.fill(T::default());
        for (i, ((grad, x), out)) in grads.zip(x.chunks_exact(n)).zip(out).enumerate() {
            let (max, sum) = exp_row(x, grad);
            *out = loss(i, x, max, sum, grad);
        }
        Ok(())
    })?;
    Ok([out, grad])
}

/// Loss of each row, -sum(labels * log softmax), and its gradient, softmax - labels (for labels that sum to 1).
fn cross_entropy<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let rows = measure::labelled_rows(ctx, false)?;
    let labels = ctx.slice::<T>(1)?;
    let [loss, grad] = losses::<T>(ctx, rows, |i, x, max, sum, grad| {
        let (p, log) = (&labels[i * rows.n..(i + 1) * rows.n], sum.ln());
        grad.iter_mut().zip(p).for_each(|(g, p)| *g = *g / sum - *p);
        x.iter().zip(p).map(|(x, p)| *p * (log - (*x - max))).sum()
    })?;
    ctx.set(0, loss);
    ctx.set(1, grad);
    Ok(())
}

/// As [`cross_entropy`] with one class per row. A class out of range is an error, as on TensorFlow's CPU.
fn sparse_cross_entropy<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let (rows, labels) = (measure::labelled_rows(ctx, true)?, ctx.ints(1)?);
    if let Some(l) = labels.iter().find(|l| !(0..rows.n as i64).contains(*l)) {
        return Err(KernelError::invalid(format!("label {l} is outside of [0, {})", rows.n)));
    }
    let [loss, grad] = losses::<T>(ctx, rows, |i, x, max, sum, grad| {
        let label = labels[i] as usize;
        grad.iter_mut().for_each(|g| *g = *g / sum);
        grad[label] = grad[label] - T::from_f64(1.0);
        sum.ln() - (x[label] - max)
    })?;
    ctx.set(0, loss);
    ctx.set(1, grad);
    Ok(())
}

fn l2_loss<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let sum: T = ctx.slice::<T>(0)?.iter().map(|v| *v * *v).sum();
    ctx.set(0, Tensor::scalar(sum * T::from_f64(0.5)));
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
