//! Element-wise kernels: maps of one or two inputs, in place where an input's memory is free to use.
//!
//! What they compute is mostly a line of [`super::formula`], whose loops are compiled, and vectorised, for each op and type
//! by itself. Others call a function per element ([`super::transcendental`], [`super::integer`], [`super::complex`],
//! [`super::special`]) or compute in a wider type ([`super::narrow`]).

use super::broadcast::Broadcast;
use super::support::{Built, Computed, cheap, cpu, cpu_any, kernel, shard_slice, unique_slice};
use super::wide;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::{DType, Element};
use engine_core::kernel::Sharder;
use engine_core::tensor::Tensor;

/// `y[i] = f(x[i])`. Scalars come by here by the thousand: one move, no drop, and no further call.
#[inline(always)]
pub(crate) fn map1<T: Element>(ctx: &mut KernelContext<'_>, ps: u64, f: impl Fn(T) -> T + Sync) -> Computed {
    if let Some(Some(x)) = ctx.inputs.first_mut()
        && let Some(x) = x.inline_mut::<T>()
    {
        *x = f(*x);
        ctx.outputs[0] = ctx.inputs[0].take();
        return Ok(());
    }
    map_array(ctx, ps, f)
}

#[inline(never)]
fn map_array<T: Element>(ctx: &mut KernelContext<'_>, ps: u64, f: impl Fn(T) -> T + Sync) -> Computed {
    if let Some(Some(x)) = ctx.inputs.first_mut()
        && let Some(values) = x.slice_mut::<T>()?
    {
        shard_slice(ctx.sharder, values, 1, ps, |_, part| wide::update(part, &f));
        ctx.outputs[0] = ctx.inputs[0].take();
        return Ok(());
    }
    let y = map_to::<T, T>(ctx, ctx.input(0)?, ps, f)?;
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
            wide::map(part, &from[at..], &f);
        });
        Ok(())
    })
}

/// `z[i] = f(x[i], y[i])`, both broadcast, in the memory of `x` or `y` where possible. Scalars as in [`map1`].
#[inline(always)]
pub(crate) fn map2<T: Element>(ctx: &mut KernelContext<'_>, ps: u64, f: impl Fn(T, T) -> T + Sync) -> Computed {
    if let [Some(x), Some(y)] = &mut *ctx.inputs
        && let (Some(x), Some(y)) = (x.inline_mut::<T>(), y.inline_mut::<T>())
    {
        *x = f(*x, *y);
        ctx.outputs[0] = ctx.inputs[0].take();
        return Ok(());
    }
    zip_arrays(ctx, ps, f)
}

#[inline(never)]
fn zip_arrays<T: Element>(ctx: &mut KernelContext<'_>, ps: u64, f: impl Fn(T, T) -> T + Sync) -> Computed {
    if let [Some(x), Some(y)] = &mut *ctx.inputs
        && let Some(input) = zip_in_place(ctx.sharder, x, y, ps, &f)?
    {
        ctx.outputs[0] = ctx.inputs[input].take();
        return Ok(());
    }
    let z = zip_to::<T, T>(ctx, ctx.input(0)?, ctx.input(1)?, ps, f)?;
    ctx.set(0, z);
    Ok(())
}

/// `f(x[i], y[i])` in the memory of one of them, if it is free and the result has its shape. Gives which it is.
fn zip_in_place<T: Element>(
    sharder: &dyn Sharder,
    x: &mut Tensor,
    y: &mut Tensor,
    ps: u64,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<Option<usize>, KernelError> {
    if x.shape() == y.shape() {
        if let Some(values) = x.slice_mut::<T>()? {
            let other = y.slice::<T>()?;
            shard_slice(sharder, values, 1, ps, |at, part| wide::update_with(part, &other[at..], &f));
            return Ok(Some(0));
        }
        if let Some(values) = y.slice_mut::<T>()? {
            let other = x.slice::<T>()?;
            shard_slice(sharder, values, 1, ps, |at, part| wide::update_with(part, &other[at..], |b, a| f(a, b)));
            return Ok(Some(1));
        }
        return Ok(None);
    }
    if y.shape().rank() == 0 && x.is_unique() {
        let b = y.item::<T>()?;
        shard_slice(sharder, unique_slice(x)?, 1, ps, |_, part| wide::update(part, |a| f(a, b)));
        return Ok(Some(0));
    }
    if x.shape().rank() == 0 && y.is_unique() {
        let a = x.item::<T>()?;
        shard_slice(sharder, unique_slice(y)?, 1, ps, |_, part| wide::update(part, |b| f(a, b)));
        return Ok(Some(1));
    }
    Ok(None)
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
                    (0, _) => {
                        let a = a[oa];
                        wide::map(row, &b[ob..], |b| f(a, b));
                    }
                    (_, 0) => {
                        let b = b[ob];
                        wide::map(row, &a[oa..], |a| f(a, b));
                    }
                    _ => wide::zip(row, &a[oa..], &b[ob..], &f),
                }
            }
        });
        Ok(())
    })
}

/// Compares, both inputs broadcast. By an attribute, `Equal` and `NotEqual` take other shapes as just not equal.
pub(crate) fn compare<T: Element>(ctx: &mut KernelContext<'_>, ps: u64, f: impl Fn(T, T) -> bool + Sync) -> Computed {
    let z = zip_to::<T, bool>(ctx, ctx.input(0)?, ctx.input(1)?, ps, f)?;
    ctx.set(0, z);
    Ok(())
}

/// A kernel of a loop that the function is compiled into; an element takes `PS` picoseconds. A kernel that has no data of
/// its own needs no memory, which steps of many small ops would wait for: hence not an argument.
pub(crate) fn each1<const PS: u64, T: Element>(f: impl Fn(T) -> T + Copy + Send + Sync + 'static) -> Built {
    kernel(move |c| map1::<T>(c, PS, f))
}

/// As [`each1`], of two arguments.
pub(crate) fn each2<const PS: u64, T: Element>(f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static) -> Built {
    kernel(move |c| map2::<T>(c, PS, f))
}

/// As [`each2`], for comparisons.
pub(crate) fn each_compare<const PS: u64, T: Element>(
    f: impl Fn(T, T) -> bool + Copy + Send + Sync + 'static,
) -> Built {
    kernel(move |c| compare::<T>(c, PS, f))
}

/// A kernel that calls a function for each element: the loop around it is compiled once per element type.
pub(crate) fn call1<T: Element>(ps: u64, f: fn(T) -> T) -> Built {
    kernel(move |c| map1::<T>(c, ps, f))
}

/// As [`call1`], of two arguments.
pub(crate) fn call2<T: Element>(ps: u64, f: fn(T, T) -> T) -> Built {
    kernel(move |c| map2::<T>(c, ps, f))
}

/// As [`call2`], for comparisons.
pub(crate) fn call_compare<T: Element>(ps: u64, f: fn(T, T) -> bool) -> Built {
    kernel(move |c| compare::<T>(c, ps, f))
}

/// Lines of a table of functions that are called, by [`call1`], [`call2`] or [`call_compare`].
macro_rules! called {
    ($call:ident; $($op:literal [$($t:ty),+] $ps:literal $f:expr;)+) => {
        &[ $( $( $crate::kernels::support::cpu(
            $op, ("T", &[<$t as engine_core::dtype::Element>::DTYPE]), |_| $call::<$t>($ps, $f),
        ), )+ )+ ]
    };
}
pub(crate) use called;

#[linkme::distributed_slice(KERNEL_TABLES)]
static OTHERS: &[KernelDef] = &[
    cpu("Exp", ("T", &[DType::F32]), |_| kernel(|c| map_slices(c, 500, super::vecmath::exp))),
    cpu("Tanh", ("T", &[DType::F32]), |_| kernel(|c| map_slices(c, 700, super::vecmath::tanh))),
    cpu("Sigmoid", ("T", &[DType::F32]), |_| kernel(|c| map_slices(c, 700, super::vecmath::sigmoid))),
    cpu("Equal", ("T", &[DType::Bool]), |_| each_compare::<300, bool>(|x, y| x == y)),
    cpu("NotEqual", ("T", &[DType::Bool]), |_| each_compare::<300, bool>(|x, y| x != y)),
    cpu_any("Identity", |_| cheap(forward)),
    cpu_any("StopGradient", |_| cheap(forward)),
    cpu_any("PlaceholderWithDefault", |_| cheap(forward)),
    cpu_any("NoOp", |_| cheap(|_| Ok(()))),
];

macro_rules! leaky {
    ($($t:ty),+) => { &[ $(
        cpu("LeakyRelu", ("T", &[<$t as Element>::DTYPE]), |n| {
            let alpha = <$t>::from(*n.float("alpha")?);
            each1::<300, $t>(move |x| if x > 0.0 { x } else { alpha * x })
        }),
        cpu("LeakyReluGrad", ("T", &[<$t as Element>::DTYPE]), |n| {
            let alpha = <$t>::from(*n.float("alpha")?);
            each2::<300, $t>(move |dy, x| if x > 0.0 { dy } else { alpha * dy })
        }),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static LEAKY: &[KernelDef] = leaky!(f32, f64);

/// The input is the output.
pub fn forward(ctx: &mut KernelContext<'_>) -> Computed {
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
