//! Element-wise kernels of three tensors, of any number of them, and of strings.

use super::broadcast::Broadcast;
use super::elementwise::map_to;
use super::support::{Built, Computed, by_word, cpu, cpu_any, kernel, shard_slice, unique_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::{Complex64, DType, Element};
use engine_core::graph::{Attr, Node};
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

macro_rules! sums {
    ($($t:ty, $add:expr;)+) => { &[ $(
        cpu("AddN", ("T", &[<$t as Element>::DTYPE]), |_| kernel(|c| add_n::<$t>(c, $add))),
        cpu("AccumulateNV2", ("T", &[<$t as Element>::DTYPE]), |_| kernel(|c| add_n::<$t>(c, $add))),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static SUMS: &[KernelDef] = sums! {
    f32, |a, b| a + b;
    f64, |a, b| a + b;
    i32, i32::wrapping_add;
    i64, i64::wrapping_add;
    Complex64, |a, b| a + b;
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static OTHERS: &[KernelDef] = &[
    cpu_any("Select", |_| kernel(select)),
    cpu_any("SelectV2", |_| kernel(select)),
    cpu("ClipByValue", ("T", &[DType::F32]), |_| kernel(clip::<f32>)),
    cpu("ClipByValue", ("T", &[DType::F64]), |_| kernel(clip::<f64>)),
    cpu("ClipByValue", ("T", &[DType::I32]), |_| kernel(clip::<i32>)),
    cpu("ClipByValue", ("T", &[DType::I64]), |_| kernel(clip::<i64>)),
    cpu("ClipByValue", ("T", &[DType::U64]), |_| kernel(clip::<u64>)),
    cpu("Bucketize", ("T", &[DType::F32]), |n| bucketize::<f32>(n, |v| v)),
    cpu("Bucketize", ("T", &[DType::F64]), |n| bucketize::<f64>(n, |v| v as f32)),
    cpu("Bucketize", ("T", &[DType::I32]), |n| bucketize::<i32>(n, |v| v as f32)),
    cpu("Bucketize", ("T", &[DType::I64]), |n| bucketize::<i64>(n, |v| v as f32)),
    cpu("Add", ("T", &[DType::String]), |_| kernel(add_strings)),
    cpu("AddV2", ("T", &[DType::String]), |_| kernel(add_strings)),
    cpu("Equal", ("T", &[DType::String]), |_| kernel(|c| compare_strings(c, |x, y| x == y))),
    cpu("NotEqual", ("T", &[DType::String]), |_| kernel(|c| compare_strings(c, |x, y| x != y))),
];

/// The sum of any number of tensors of one shape.
fn add_n<T: Element>(ctx: &mut KernelContext<'_>, add: impl Fn(T, T) -> T + Copy + Sync) -> Computed {
    let n = ctx.inputs.len();
    let mut sum = ctx.take(0)?;
    if n > 1 && !sum.is_unique() {
        sum = ctx.filled::<T>(sum.shape().clone(), |out| {
            out.copy_from_slice(sum.slice::<T>()?);
            Ok(())
        })?;
    }
    for i in 1..n {
        let other = ctx.input(i)?;
        if other.shape() != sum.shape() {
            let (a, b) = (sum.shape(), other.shape());
            return Err(KernelError::invalid(format!("input 0 has shape {a}, input {i} has {b}")));
        }
        let other = other.slice::<T>()?;
        shard_slice(ctx.sharder, unique_slice(&mut sum)?, 1, 300, |at, part| {
            part.iter_mut().zip(&other[at..]).for_each(|(a, b)| *a = add(*a, *b));
        });
    }
    ctx.set(0, sum);
    Ok(())
}

/// `max(min(x, high), low)`; the bounds are scalars or have the shape of x.
fn clip<T: Element + PartialOrd>(c: &mut KernelContext<'_>) -> Computed {
    let (x, low, high) = (c.input(0)?, c.input(1)?, c.input(2)?);
    for (name, bound) in [("clip_value_min", low), ("clip_value_max", high)] {
        if bound.len() != 1 && bound.shape() != x.shape() {
            let text = format!("{name} must be a scalar or have the shape {} of t, got {}", x.shape(), bound.shape());
            return Err(KernelError::invalid(text));
        }
    }
    let (from, low, high) = (x.slice::<T>()?, low.slice::<T>()?, high.slice::<T>()?);
    let out = c.filled::<T>(x.shape().clone(), |out| {
        let bound = |of: &[T], i: usize| if of.len() == 1 { of[0] } else { of[i] };
        shard_slice(c.sharder, out, 1, 600, |at, part| {
            for (i, (y, x)) in part.iter_mut().zip(&from[at..]).enumerate() {
                let (low, high) = (bound(low, at + i), bound(high, at + i));
                let below = if *x > high { high } else { *x };
                *y = if below < low { low } else { below };
            }
        });
        Ok(())
    })?;
    c.set(0, out);
    Ok(())
}

/// The number of boundaries that are not above a value.
fn bucketize<T: Element>(node: &Node, as_f32: fn(T) -> f32) -> Built {
    let Some(Attr::ListFloat(boundaries)) = node.attrs.get("boundaries").cloned() else {
        return kernel(|c| {
            // An empty list: everything is in the first bucket.
            let zeros = Tensor::zeros(DType::I32, c.input(0)?.shape().clone(), c.allocator)?;
            c.set(0, zeros);
            Ok(())
        });
    };
    if !boundaries.is_sorted() {
        return Err(KernelError::invalid(format!("boundaries {boundaries:?} are not sorted")));
    }
    kernel(move |c| {
        let bucket = |v: T| boundaries.partition_point(|b| *b <= as_f32(v)) as i32;
        let out = map_to::<T, i32>(c, c.input(0)?, 5000, bucket)?;
        c.set(0, out);
        Ok(())
    })
}

/// `condition ? t : e`, all broadcast; a vector condition of `Select` chooses whole rows.
fn select(c: &mut KernelContext<'_>) -> Computed {
    let (mut condition, t, e) = (c.input(0)?.clone(), c.input(1)?, c.input(2)?);
    if c.node.op == "Select" {
        if t.shape() != e.shape() {
            return Err(KernelError::invalid(format!("t has shape {}, e {}", t.shape(), e.shape())));
        }
        let rows = condition.shape().rank() == 1 && t.shape().rank() > 1 && t.dims()[0] == condition.len();
        if rows {
            let mut dims = vec![1; t.shape().rank()];
            dims[0] = condition.len();
            condition = condition.into_shape(Shape::new(&dims))?;
        }
    }
    let values = super::broadcast::broadcast_shape(t.shape(), e.shape())?;
    let full = super::broadcast::broadcast_shape(condition.shape(), &values)?;
    let out = if t.dtype() == DType::String {
        let (ct, cc) = ((t.strings()?, e.strings()?), condition.slice::<bool>()?);
        let at = [positions(condition.shape(), &full)?, positions(t.shape(), &full)?, positions(e.shape(), &full)?];
        let pick = |i: usize| if cc[at[0][i]] { ct.0[at[1][i]].clone() } else { ct.1[at[2][i]].clone() };
        let mut out = memory::vec(full.n_elements())?;
        out.extend((0..full.n_elements()).map(pick));
        Tensor::from_strings(full.clone(), out)?
    } else {
        by_word!(t.dtype(), select_words(c, &condition, full))?
    };
    c.set(0, out);
    Ok(())
}

/// Where each element of `full` lies in a tensor of shape `own` that is broadcast to it.
fn positions(own: &Shape, full: &Shape) -> Result<Vec<usize>, KernelError> {
    let along = Broadcast::new(own, full)?;
    memory::check(full.n_elements().saturating_mul(size_of::<usize>()))?;
    let (inner, step) = (along.inner(), along.strides[0][along.dims.len() - 1]);
    let n_rows = full.n_elements() / inner.max(1);
    Ok(along.rows(0).take(n_rows).flat_map(|o| (0..inner).map(move |j| o[0] + j * step)).collect())
}

fn select_words<T: Element>(c: &KernelContext<'_>, condition: &Tensor, full: Shape) -> Result<Tensor, KernelError> {
    let (t, e) = (c.input(1)?, c.input(2)?);
    let (tv, ev, cv) = (t.words::<T>()?, e.words::<T>()?, condition.slice::<bool>()?);
    if t.shape() == &full && e.shape() == &full && condition.shape() == &full {
        return c.filled_words::<T>(t.dtype(), full, |out| {
            shard_slice(c.sharder, out, 1, 400, |at, part| {
                for ((o, c), (t, e)) in part.iter_mut().zip(&cv[at..]).zip(tv[at..].iter().zip(&ev[at..])) {
                    *o = if *c { *t } else { *e };
                }
            });
            Ok(())
        });
    }
    let [pc, pt, pe] = [condition.shape(), t.shape(), e.shape()].map(|own| positions(own, &full));
    let (pc, pt, pe) = (pc?, pt?, pe?);
    c.filled_words::<T>(t.dtype(), full, |out| {
        for (i, o) in out.iter_mut().enumerate() {
            *o = if cv[pc[i]] { tv[pt[i]] } else { ev[pe[i]] };
        }
        Ok(())
    })
}

/// Calls `f` for each pair of strings, broadcast.
fn zip_strings<U>(c: &KernelContext<'_>, f: impl Fn(&[u8], &[u8]) -> U) -> Result<(Shape, Vec<U>), KernelError> {
    let (x, y) = (c.input(0)?, c.input(1)?);
    let full = super::broadcast::broadcast_shape(x.shape(), y.shape())?;
    let (px, py) = (positions(x.shape(), &full)?, positions(y.shape(), &full)?);
    let (x, y) = (x.strings()?, y.strings()?);
    let all = px.iter().zip(&py).map(|(i, j)| f(&x[*i], &y[*j])).collect();
    Ok((full, all))
}

/// One after the other.
fn add_strings(c: &mut KernelContext<'_>) -> Computed {
    let (shape, all) = zip_strings(c, |x, y| [x, y].concat())?;
    c.set(0, Tensor::from_strings(shape, all)?);
    Ok(())
}

fn compare_strings(c: &mut KernelContext<'_>, f: fn(&[u8], &[u8]) -> bool) -> Computed {
    let (shape, all) = zip_strings(c, f)?;
    c.set(0, Tensor::from_vec(shape, all)?);
    Ok(())
}
