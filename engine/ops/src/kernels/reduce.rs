//! Reductions: sums, means, products, extremes, and their positions.
//!
//! The input is seen as alternating kept and reduced dimensions (neighbours of a kind merged). Reducing the last
//! dimensions sums contiguous rows, with eight partial sums so that it vectorises and loses fewer digits; everything
//! else adds whole rows to rows of the output.

use smallvec::SmallVec;

use super::support::{Built, cpu, cpu_any, kernel, shard_rows, shard_slice, unique_slice};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, Sharder, measure};
use engine_core::dtype::{Complex64, DType, Element};
use engine_core::geometry::{Along, Reduction};
use engine_core::graph::Node;
use engine_core::tensor::Tensor;

/// Reduces with an associative function, from `start`.
fn reduce<T: Element>(
    ctx: &mut KernelContext<'_>,
    keep: bool,
    start: T,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<(Tensor, usize), KernelError> {
    let Reduction { shape, dims, n_reduced } = measure::reduction(ctx, keep)?;
    let from = ctx.slice::<T>(0)?;
    let out = ctx.filled::<T>(shape, |out| {
        out.fill(start);
        if !from.is_empty() && !out.is_empty() {
            sharded(ctx.sharder, &dims, from, out, &f, start);
        }
        Ok(())
    })?;
    Ok((out, n_reduced))
}

/// Elements of one shard's input. Shards, and so rounding, depend on the shape alone, not on the number of threads.
const SHARD: usize = 1 << 15;

/// As [`walk`], cut into shards where that is worth it: along a kept outermost dimension, else into partial results
/// that are combined in order.
fn sharded<T: Element>(
    sharder: &dyn Sharder,
    dims: &[(usize, bool)],
    from: &[T],
    out: &mut [T],
    f: &(impl Fn(T, T) -> T + Sync),
    start: T,
) {
    let [(n, reduced), rest @ ..] = dims else { return walk(dims, from, out, f, start) };
    let (n, part_in) = (*n, from.len() / n);
    if from.len() <= 2 * SHARD || n == 1 {
        return walk(dims, from, out, f, start);
    }
    if !reduced {
        let part_out = out.len() / n;
        let ps = 300 * (from.len() / out.len()) as u64;
        return shard_slice(sharder, out, part_out, ps, |at, part| {
            let first = at / part_out;
            let n = part.len() / part_out;
            let mut shard: SmallVec<[(usize, bool); 4]> = SmallVec::from_slice(dims);
            shard[0].0 = n;
            walk(&shard, &from[first * part_in..(first + n) * part_in], part, f, start);
        });
    }
    let per = (SHARD / part_in.max(1)).max(n.div_ceil(64)).max(1);
    let n_shards = n.div_ceil(per);
    if n_shards < 2 || n_shards * out.len() > from.len() {
        return walk(dims, from, out, f, start);
    }
    let mut partials = vec![start; n_shards * out.len()];
    let len = out.len();
    shard_rows(sharder, &mut partials, len, 300 * (per * part_in) as u64, |i, part| {
        let (first, last) = (i * per, ((i + 1) * per).min(n));
        let mut shard: SmallVec<[(usize, bool); 4]> = SmallVec::from_slice(&[(last - first, true)]);
        shard.extend_from_slice(rest);
        walk(&shard, &from[first * part_in..last * part_in], part, f, start);
    });
    for part in partials.chunks_exact(len) {
        out.iter_mut().zip(part).for_each(|(o, v)| *o = f(*o, *v));
    }
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

fn simple<T: Element>(node: &Node, start: T, f: impl Fold<T>) -> Built {
    let keep = *node.flag("keep_dims")?;
    kernel(move |c| {
        let out = reduce(c, keep, start, f)?.0;
        c.set(0, out);
        Ok(())
    })
}

fn mean<T: Element>(node: &Node, start: T, f: impl Fold<T>, divide: fn(T, usize) -> T) -> Built {
    let keep = *node.flag("keep_dims")?;
    kernel(move |c| {
        let (mut out, n) = reduce(c, keep, start, f)?;
        unique_slice::<T>(&mut out)?.iter_mut().for_each(|v| *v = divide(*v, n));
        c.set(0, out);
        Ok(())
    })
}

/// An integer mean truncates; of nothing it is 0.
macro_rules! sums {
    ($($t:ty, $zero:expr, $one:expr, $add:expr, $mul:expr, $div:expr;)+) => { &[ $(
        cpu("Sum", ("T", &[<$t as Element>::DTYPE]), |n| simple::<$t>(n, $zero, $add)),
        cpu("Prod", ("T", &[<$t as Element>::DTYPE]), |n| simple::<$t>(n, $one, $mul)),
        cpu("Mean", ("T", &[<$t as Element>::DTYPE]), |n| mean::<$t>(n, $zero, $add, $div)),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static SUMS: &[KernelDef] = sums! {
    f32, 0.0, 1.0, |a, b| a + b, |a, b| a * b, |s, n| s / n as f32;
    f64, 0.0, 1.0, |a, b| a + b, |a, b| a * b, |s, n| s / n as f64;
    i32, 0, 1, i32::wrapping_add, i32::wrapping_mul, |s, n| s / (n as i32).max(1);
    i64, 0, 1, i64::wrapping_add, i64::wrapping_mul, |s, n| s / (n as i64).max(1);
    Complex64, Complex64::new(0.0, 0.0), Complex64::new(1.0, 0.0), |a, b| a + b, |a, b| a * b, |s, n| s / n as f64;
};

macro_rules! extremes {
    ($($t:ty, $lowest:expr, $highest:expr;)+) => { &[ $(
        cpu("Max", ("T", &[<$t as Element>::DTYPE]), |n| simple::<$t>(n, $lowest, |a, b| if b > a || b != b { b } else { a })),
        cpu("Min", ("T", &[<$t as Element>::DTYPE]), |n| simple::<$t>(n, $highest, |a, b| if b < a || b != b { b } else { a })),
        cpu("ArgMax", ("T", &[<$t as Element>::DTYPE]), |n| arg::<$t>(n, |best, v| v > best)),
        cpu("ArgMin", ("T", &[<$t as Element>::DTYPE]), |n| arg::<$t>(n, |best, v| v < best)),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static EXTREMES: &[KernelDef] = extremes! {
    f32, f32::NEG_INFINITY, f32::INFINITY;
    f64, f64::NEG_INFINITY, f64::INFINITY;
    i32, i32::MIN, i32::MAX;
    i64, i64::MIN, i64::MAX;
    u64, u64::MIN, u64::MAX;
};

const REALS: &[DType] = &[
    DType::F16,
    DType::BF16,
    DType::I8,
    DType::I16,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::QI8,
    DType::QU8,
    DType::QI16,
    DType::QU16,
    DType::QI32,
];

#[linkme::distributed_slice(KERNEL_TABLES)]
static NARROW: &[KernelDef] = &[
    widened("Sum", ("T", super::narrow::WRAPPING)),
    widened("Prod", ("T", super::narrow::WRAPPING)),
    widened("Mean", ("T", DType::NARROW)),
    // Sums beyond the half of uint64 would come back negative, and be divided as such.
    cpu("Mean", ("T", &[DType::U64]), |n| mean::<u64>(n, 0, u64::wrapping_add, |s, n| s / (n as u64).max(1))),
    widened("Max", ("T", REALS)),
    widened("Min", ("T", REALS)),
    widened("ArgMax", ("T", REALS)),
    widened("ArgMin", ("T", REALS)),
    cpu("ArgMax", ("T", &[DType::Bool]), |n| arg::<bool>(n, |best, v| v & !best)),
    cpu("ArgMin", ("T", &[DType::Bool]), |n| arg::<bool>(n, |best, v| !v & best)),
    cpu("EuclideanNorm", ("T", &[DType::F32]), |n| norm::<f32>(n, 0.0, |v| v * v, |a, b| a + b, f32::sqrt)),
    cpu("EuclideanNorm", ("T", &[DType::F64]), |n| norm::<f64>(n, 0.0, |v| v * v, |a, b| a + b, f64::sqrt)),
    cpu("EuclideanNorm", ("T", &[DType::I32]), |n| {
        norm::<i32>(n, 0, |v| v.wrapping_mul(v), i32::wrapping_add, |v| f64::from(v).sqrt() as i32)
    }),
    cpu("EuclideanNorm", ("T", &[DType::I64]), |n| {
        norm::<i64>(n, 0, |v| v.wrapping_mul(v), i64::wrapping_add, |v| (v as f64).sqrt() as i64)
    }),
    cpu("EuclideanNorm", ("T", &[DType::U64]), |n| {
        norm::<u64>(n, 0, |v| v.wrapping_mul(v), u64::wrapping_add, |v| (v as f64).sqrt() as u64)
    }),
    cpu("EuclideanNorm", ("T", &[DType::C128]), |n| {
        norm::<Complex64>(n, Complex64::new(0.0, 0.0), |v| v * v.conj(), |a, b| a + b, num_complex::Complex::sqrt)
    }),
    widened("EuclideanNorm", ("T", DType::NARROW)),
];

/// The root of the sum of squares.
fn norm<T: Element>(node: &Node, start: T, square: fn(T) -> T, add: impl Fold<T>, root: fn(T) -> T) -> Built {
    let keep = *node.flag("keep_dims")?;
    kernel(move |c| {
        let squares = super::elementwise::map_to::<T, T>(c, c.input(0)?, 500, square)?;
        c.inputs[0] = Some(squares);
        let mut out = reduce(c, keep, start, add)?.0;
        unique_slice::<T>(&mut out)?.iter_mut().for_each(|v| *v = root(*v));
        c.set(0, out);
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static BOOLS: &[KernelDef] = &[
    cpu_any("All", |n| simple::<bool>(n, true, |a, b| a & b)),
    cpu_any("Any", |n| simple::<bool>(n, false, |a, b| a | b)),
];

/// The position of the first element along an axis that nothing is `better` than.
fn arg<T: Element>(node: &Node, better: impl Fn(T, T) -> bool + Copy + Send + Sync + 'static) -> Built {
    let out_type = *node.dtype("output_type")?;
    kernel(move |c| {
        let (Along { n, inner, .. }, shape) = measure::position(c)?;
        let values = c.slice::<T>(0)?;
        let best = |i: usize| {
            let at_k = |k: usize| values[(i / inner * n + k) * inner + i % inner];
            (1..n).fold(0, |best, k| if better(at_k(best), at_k(k)) { k } else { best })
        };
        let out = c.filled::<i64>(shape, |o| {
            shard_slice(c.sharder, o, 1, 1000 * n as u64, |first, part| {
                part.iter_mut().zip(first..).for_each(|(o, i)| *o = best(i) as i64);
            });
            Ok(())
        })?;
        let out =
            if out_type == DType::I64 { out } else { engine_core::convert::convert(&out, out_type, c.allocator)? };
        c.set(0, out);
        Ok(())
    })
}
