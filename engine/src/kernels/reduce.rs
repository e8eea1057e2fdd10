//! Reductions: sums, means, products, extremes, and their positions.
//!
//! The input is seen as alternating kept and reduced dimensions (neighbours of a kind merged). Reducing the last
//! dimensions sums contiguous rows, with eight partial sums so that it vectorises and loses fewer digits; everything
//! else adds whole rows to rows of the output.

use smallvec::SmallVec;

use super::support::{cpu, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::{DType, Element};
use crate::graph::Node;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The axes that `axes` mean, in a mask.
pub(crate) fn axis_mask(axes: &[i64], rank: usize) -> Result<SmallVec<[bool; 8]>, KernelError> {
    let mut mask = SmallVec::from_elem(false, rank);
    for a in axes {
        mask[axis(*a, rank)?] = true;
    }
    Ok(mask)
}

/// The axis that `axis` means in a shape of this rank.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, KernelError> {
    let rank_i = rank as i64;
    match axis {
        a if (0..rank_i).contains(&a) => Ok(a as usize),
        a if (-rank_i..0).contains(&a) => Ok((a + rank_i) as usize),
        _ => Err(KernelError::invalid(format!("axis {axis} is outside of [-{rank}, {rank})"))),
    }
}

struct Reduction {
    shape: Shape,
    /// Merged dimensions, outermost first, and whether each is reduced.
    dims: SmallVec<[(usize, bool); 4]>,
    /// How many elements go into one.
    n_reduced: usize,
}

fn plan(ctx: &KernelContext<'_>, keep: bool) -> Result<Reduction, KernelError> {
    let input = ctx.input(0)?;
    let mask = axis_mask(&ctx.ints(1)?, input.shape().rank())?;
    let mut dims: SmallVec<[(usize, bool); 4]> = SmallVec::new();
    let mut out: SmallVec<[usize; 4]> = SmallVec::new();
    for (d, reduced) in input.dims().iter().zip(&mask) {
        match dims.last_mut() {
            Some(last) if last.1 == *reduced => last.0 *= d,
            _ => dims.push((*d, *reduced)),
        }
        match (reduced, keep) {
            (false, _) => out.push(*d),
            (true, true) => out.push(1),
            (true, false) => {}
        }
    }
    let n_reduced = dims.iter().filter(|d| d.1).map(|d| d.0).product();
    Ok(Reduction { shape: Shape::new(&out), dims, n_reduced })
}

/// Reduces with an associative function, from `start`.
fn reduce<T: Element>(
    ctx: &mut KernelContext<'_>,
    keep: bool,
    start: T,
    f: impl Fn(T, T) -> T,
) -> Result<(Tensor, usize), KernelError> {
    let plan = plan(ctx, keep)?;
    let from = ctx.slice::<T>(0)?;
    let out = ctx.filled::<T>(plan.shape.clone(), |out| {
        out.fill(start);
        if !from.is_empty() && !out.is_empty() {
            walk(&plan.dims, from, out, &f, start);
        }
        Ok(())
    })?;
    Ok((out, plan.n_reduced))
}

/// Reduces `from`, which has these dimensions, into `out`.
fn walk<T: Element>(dims: &[(usize, bool)], from: &[T], out: &mut [T], f: &impl Fn(T, T) -> T, start: T) {
    match dims {
        [] => out[0] = f(out[0], from[0]),
        [(_, true)] => out[0] = f(out[0], fold_row(from, f, start)),
        [(_, false)] => out.iter_mut().zip(from).for_each(|(o, v)| *o = f(*o, *v)),
        [(n, reduced), rest @ ..] => {
            let (part_in, part_out) = (from.len() / n, if *reduced { 0 } else { out.len() / n });
            for i in 0..*n {
                let to = if *reduced { &mut *out } else { &mut out[i * part_out..(i + 1) * part_out] };
                walk(rest, &from[i * part_in..(i + 1) * part_in], to, f, start);
            }
        }
    }
}

fn fold_row<T: Element>(row: &[T], f: &impl Fn(T, T) -> T, start: T) -> T {
    const LANES: usize = 16;
    let mut lanes = [start; LANES];
    let mut chunks = row.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (l, v) in lanes.iter_mut().zip(chunk) {
            *l = f(*l, *v);
        }
    }
    for (l, v) in lanes.iter_mut().zip(chunks.remainder()) {
        *l = f(*l, *v);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// A function that the loops of a kernel have inlined.
trait Fold<T>: Fn(T, T) -> T + Copy + Send + Sync + 'static {}
impl<T, F: Fn(T, T) -> T + Copy + Send + Sync + 'static> Fold<T> for F {}

fn simple<T: Element>(node: &Node, start: T, f: impl Fold<T>) -> super::support::Built {
    let keep = *node.flag("keep_dims")?;
    kernel(move |c| {
        let out = reduce(c, keep, start, f)?.0;
        c.set(0, out);
        Ok(())
    })
}

fn mean<T: Element>(node: &Node, start: T, f: impl Fold<T>, divide: fn(T, usize) -> T) -> super::support::Built {
    let keep = *node.flag("keep_dims")?;
    kernel(move |c| {
        let (mut out, n) = reduce(c, keep, start, f)?;
        super::support::unique_slice::<T>(&mut out)?.iter_mut().for_each(|v| *v = divide(*v, n));
        c.set(0, out);
        Ok(())
    })
}

/// An integer mean truncates; of nothing it is 0.
macro_rules! numbers {
    ($($t:ty, $lowest:expr, $highest:expr, $add:expr, $mul:expr, $div:expr;)+) => { &[ $(
        cpu("Sum", ("T", &[<$t as Element>::DTYPE]), |n| simple::<$t>(n, 0 as $t, $add)),
        cpu("Prod", ("T", &[<$t as Element>::DTYPE]), |n| simple::<$t>(n, 1 as $t, $mul)),
        cpu("Max", ("T", &[<$t as Element>::DTYPE]), |n| simple::<$t>(n, $lowest, |a, b| if b > a || b != b { b } else { a })),
        cpu("Min", ("T", &[<$t as Element>::DTYPE]), |n| simple::<$t>(n, $highest, |a, b| if b < a || b != b { b } else { a })),
        cpu("Mean", ("T", &[<$t as Element>::DTYPE]), |n| mean::<$t>(n, 0 as $t, $add, $div)),
        cpu("ArgMax", ("T", &[<$t as Element>::DTYPE]), |n| arg::<$t>(n, |best, v| v > best)),
        cpu("ArgMin", ("T", &[<$t as Element>::DTYPE]), |n| arg::<$t>(n, |best, v| v < best)),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static NUMBERS: &[KernelDef] = numbers! {
    f32, f32::NEG_INFINITY, f32::INFINITY, |a, b| a + b, |a, b| a * b, |s, n| s / n as f32;
    f64, f64::NEG_INFINITY, f64::INFINITY, |a, b| a + b, |a, b| a * b, |s, n| s / n as f64;
    i32, i32::MIN, i32::MAX, i32::wrapping_add, i32::wrapping_mul, |s, n| s / (n as i32).max(1);
    i64, i64::MIN, i64::MAX, i64::wrapping_add, i64::wrapping_mul, |s, n| s / (n as i64).max(1);
    u8, u8::MIN, u8::MAX, u8::wrapping_add, u8::wrapping_mul, |s, n| s / (n.min(255) as u8).max(1);
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static BOOLS: &[KernelDef] = &[
    cpu_any("All", |n| simple::<bool>(n, true, |a, b| a & b)),
    cpu_any("Any", |n| simple::<bool>(n, false, |a, b| a | b)),
];

/// The position of the first element along an axis that nothing is `better` than.
fn arg<T: Element>(node: &Node, better: impl Fn(T, T) -> bool + Copy + Send + Sync + 'static) -> super::support::Built {
    let out_type = *node.dtype("output_type")?;
    kernel(move |c| {
        let input = c.input(0)?;
        let &[at] = c.ints(1)?.as_slice() else {
            return Err(KernelError::invalid("the dimension must be one integer"));
        };
        let at = axis(at, input.shape().rank())?;
        let (dims, values) = (input.dims(), input.slice::<T>()?);
        if dims[at] == 0 {
            return Err(KernelError::invalid(format!("axis {at} of shape {} is empty", input.shape())));
        }
        let inner: usize = dims[at + 1..].iter().product();
        let outer: usize = dims[..at].iter().product();
        let best = |i: usize| {
            let at_k = |k: usize| values[(i / inner * dims[at] + k) * inner + i % inner];
            (1..dims[at]).fold(0, |best, k| if better(at_k(best), at_k(k)) { k } else { best })
        };
        let shape: SmallVec<[usize; 4]> = dims[..at].iter().chain(&dims[at + 1..]).copied().collect();
        let shape = Shape::new(&shape);
        let n = outer * inner;
        let out = match out_type {
            DType::I32 => c.filled::<i32>(shape, |o| {
                o.iter_mut().zip(0..n).for_each(|(o, i)| *o = best(i) as i32);
                Ok(())
            })?,
            _ => c.filled::<i64>(shape, |o| {
                o.iter_mut().zip(0..n).for_each(|(o, i)| *o = best(i) as i64);
                Ok(())
            })?,
        };
        c.set(0, out);
        Ok(())
    })
}
