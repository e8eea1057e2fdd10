//! Element-wise kernels: maps of one or two inputs, in place where an input's memory is free to use.
//!
//! What they compute is mostly a line of [`super::formula`], whose loops are compiled, and vectorised, for each op and type
//! by itself. Others call a function per element ([`super::transcendental`], [`super::integer`], [`super::complex`],
//! [`super::special`]) or compute in a wider type ([`super::narrow`]).

use super::broadcast::Broadcast;
use super::support::{Built, Computed, cheap, cpu, cpu_any, kernel, shard_slice, unique_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::{DType, Element};
use crate::tensor::Tensor;

/// `y[i] = f(x[i])`.
pub(crate) fn map1<T: Element>(ctx: &mut KernelContext<'_>, ps: u64, f: impl Fn(T) -> T + Sync) -> Computed {
    // Scalars come by here by the thousand: one move, no drop.
    if let Some(Some(x)) = ctx.inputs.first_mut()
        && let Some(x) = x.inline_mut::<T>()
    {
        *x = f(*x);
        ctx.outputs[0] = ctx.inputs[0].take();
        return Ok(());
    }
    let mut x = ctx.take(0)?;
    if let Some(values) = x.slice_mut::<T>()? {
        shard_slice(ctx.sharder, values, 1, ps, |_, part| part.iter_mut().for_each(|v| *v = f(*v)));
        ctx.set(0, x);
        return Ok(());
    }
    let y = map_to::<T, T>(ctx, &x, ps, f)?;
    ctx.set(0, y);
    Ok(())
}

/// `y[i] = f(x[i])`, into fresh memory.
pub(crate) fn map_to<T: Element, U: Element>(
    ctx: &KernelContext<'_>,
    x: &Tensor,
    ps: u64,
    f: impl Fn(T) -> U + Sync,
) -> Result<Tensor, KernelError> {
    let from = x.slice::<T>()?;
    ctx.filled::<U>(x.shape().clone(), |out| {
        shard_slice(ctx.sharder, out, 1, ps, |at, part| {
            part.iter_mut().zip(&from[at..]).for_each(|(y, x)| *y = f(*x));
        });
        Ok(())
    })
}

/// `z[i] = f(x[i], y[i])`, both broadcast, in the memory of `x` or `y` where possible.
pub(crate) fn map2<T: Element>(ctx: &mut KernelContext<'_>, ps: u64, f: impl Fn(T, T) -> T + Sync) -> Computed {
    if let [Some(x), Some(y)] = &mut *ctx.inputs
        && let (Some(x), Some(y)) = (x.inline_mut::<T>(), y.inline_mut::<T>())
    {
        *x = f(*x, *y);
        ctx.outputs[0] = ctx.inputs[0].take();
        return Ok(());
    }
    let (mut x, mut y) = (ctx.take(0)?, ctx.take(1)?);
    if x.shape() == y.shape() {
        if let Some(values) = x.slice_mut::<T>()? {
            let other = y.slice::<T>()?;
            shard_slice(ctx.sharder, values, 1, ps, |at, part| {
                part.iter_mut().zip(&other[at..]).for_each(|(a, b)| *a = f(*a, *b));
            });
            ctx.set(0, x);
            return Ok(());
        }
        if let Some(values) = y.slice_mut::<T>()? {
            let other = x.slice::<T>()?;
            shard_slice(ctx.sharder, values, 1, ps, |at, part| {
                part.iter_mut().zip(&other[at..]).for_each(|(b, a)| *b = f(*a, *b));
            });
            ctx.set(0, y);
            return Ok(());
        }
    }
    // A scalar against a tensor whose memory is free.
    if y.shape().rank() == 0 && x.is_unique() {
        let b = y.item::<T>()?;
        shard_slice(ctx.sharder, unique_slice(&mut x)?, 1, ps, |_, part| {
            part.iter_mut().for_each(|a| *a = f(*a, b));
        });
        ctx.set(0, x);
        return Ok(());
    }
    if x.shape().rank() == 0 && y.is_unique() {
        let a = x.item::<T>()?;
        shard_slice(ctx.sharder, unique_slice(&mut y)?, 1, ps, |_, part| {
            part.iter_mut().for_each(|b| *b = f(a, *b));
        });
        ctx.set(0, y);
        return Ok(());
    }
    let z = zip_to::<T, T>(ctx, &x, &y, ps, f)?;
    ctx.set(0, z);
    Ok(())
}

/// `z[i] = f(x[i], y[i])`, both broadcast, into fresh memory.
pub(crate) fn zip_to<T: Element, U: Element>(
    ctx: &KernelContext<'_>,
    x: &Tensor,
    y: &Tensor,
    ps: u64,
    f: impl Fn(T, T) -> U + Sync,
) -> Result<Tensor, KernelError> {
    let along = Broadcast::new(x.shape(), y.shape())?;
    let (a, b) = (x.slice::<T>()?, y.slice::<T>()?);
    let (inner, last) = (along.inner(), along.dims.len() - 1);
    let steps = (along.strides[0][last], along.strides[1][last]);
    ctx.filled::<U>(along.shape.clone(), |out| {
        shard_slice(ctx.sharder, out, inner, ps, |at, part| {
            let rows = along.rows(at / inner.max(1));
            for (row, [oa, ob]) in part.chunks_exact_mut(inner.max(1)).zip(rows) {
                match steps {
                    (0, 0) => row.fill(f(a[oa], b[ob])),
                    (0, _) => row.iter_mut().zip(&b[ob..]).for_each(|(z, b)| *z = f(a[oa], *b)),
                    (_, 0) => row.iter_mut().zip(&a[oa..]).for_each(|(z, a)| *z = f(*a, b[ob])),
                    _ => row.iter_mut().zip(&a[oa..]).zip(&b[ob..]).for_each(|((z, a), b)| *z = f(*a, *b)),
                }
            }
        });
        Ok(())
    })
}

/// Compares, both inputs broadcast. `Equal` and `NotEqual` may be told that other shapes are just not equal.
pub(crate) fn compare<T: Element>(ctx: &mut KernelContext<'_>, ps: u64, f: impl Fn(T, T) -> bool + Sync) -> Computed {
    let z = zip_to::<T, bool>(ctx, ctx.input(0)?, ctx.input(1)?, ps, f)?;
    ctx.set(0, z);
    Ok(())
}

/// A kernel of a loop that the function is compiled into.
pub(crate) fn each1<T: Element>(ps: u64, f: impl Fn(T) -> T + Copy + Send + Sync + 'static) -> Built {
    kernel(move |c| map1::<T>(c, ps, f))
}

/// As [`each1`], of two arguments.
pub(crate) fn each2<T: Element>(ps: u64, f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static) -> Built {
    kernel(move |c| map2::<T>(c, ps, f))
}

/// As [`each2`], for comparisons.
pub(crate) fn each_compare<T: Element>(ps: u64, f: impl Fn(T, T) -> bool + Copy + Send + Sync + 'static) -> Built {
    kernel(move |c| compare::<T>(c, ps, f))
}

/// A kernel that calls a function for each element: the loop around it is compiled once per element type.
pub(crate) fn call1<T: Element>(ps: u64, f: fn(T) -> T) -> Built {
    each1(ps, f)
}

/// As [`call1`], of two arguments.
pub(crate) fn call2<T: Element>(ps: u64, f: fn(T, T) -> T) -> Built {
    each2(ps, f)
}

/// As [`call2`], for comparisons.
pub(crate) fn call_compare<T: Element>(ps: u64, f: fn(T, T) -> bool) -> Built {
    each_compare(ps, f)
}

/// Lines of a table of functions that are called, by [`call1`], [`call2`] or [`call_compare`].
macro_rules! called {
    ($call:ident; $($op:literal [$($t:ty),+] $ps:literal $f:expr;)+) => {
        &[ $( $( $crate::kernels::support::cpu(
            $op, ("T", &[<$t as $crate::dtype::Element>::DTYPE]), |_| $call::<$t>($ps, $f),
        ), )+ )+ ]
    };
}
pub(crate) use called;

#[linkme::distributed_slice(KERNEL_TABLES)]
static OTHERS: &[KernelDef] = &[
    cpu("Exp", ("T", &[DType::F32]), |_| kernel(|c| map_slices(c, 500, super::vecmath::exp))),
    cpu("Tanh", ("T", &[DType::F32]), |_| kernel(|c| map_slices(c, 700, super::vecmath::tanh))),
    cpu("Sigmoid", ("T", &[DType::F32]), |_| kernel(|c| map_slices(c, 700, super::vecmath::sigmoid))),
    cpu("Equal", ("T", &[DType::Bool]), |_| each_compare::<bool>(300, |x, y| x == y)),
    cpu("NotEqual", ("T", &[DType::Bool]), |_| each_compare::<bool>(300, |x, y| x != y)),
    cpu_any("Identity", |_| cheap(forward)),
    cpu_any("StopGradient", |_| cheap(forward)),
    cpu_any("PlaceholderWithDefault", |_| cheap(forward)),
    cpu_any("NoOp", |_| cheap(|_| Ok(()))),
];

macro_rules! leaky {
    ($($t:ty),+) => { &[ $(
        cpu("LeakyRelu", ("T", &[<$t as Element>::DTYPE]), |n| {
            let alpha = <$t>::from(*n.float("alpha")?);
            each1::<$t>(300, move |x| if x > 0.0 { x } else { alpha * x })
        }),
        cpu("LeakyReluGrad", ("T", &[<$t as Element>::DTYPE]), |n| {
            let alpha = <$t>::from(*n.float("alpha")?);
            each2::<$t>(300, move |dy, x| if x > 0.0 { dy } else { alpha * dy })
        }),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static LEAKY: &[KernelDef] = leaky!(f32, f64);

/// The input is the output.
pub(crate) fn forward(ctx: &mut KernelContext<'_>) -> Computed {
    let x = ctx.take(0)?;
    ctx.set(0, x);
    Ok(())
}

/// As [`map1`], by a function of whole slices.
fn map_slices(ctx: &mut KernelContext<'_>, ps: u64, f: fn(&mut [f32])) -> Computed {
    let mut x = ctx.take(0)?;
    if !x.is_unique() {
        x = ctx.filled::<f32>(x.shape().clone(), |out| {
            out.copy_from_slice(x.slice::<f32>()?);
            Ok(())
        })?;
    }
    shard_slice(ctx.sharder, unique_slice(&mut x)?, 1, ps, |_, part| f(part));
    ctx.set(0, x);
    Ok(())
}
