//! Kernels that run along an axis: cumulative sums, the largest elements, evenly spaced numbers.

use super::support::{Built, Computed, cpu, cpu_any, kernel, unique_slice};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::{Complex64, DType, Element};
use engine_core::geometry::{Along, one};
use engine_core::graph::{Attr, Node};
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// A running combination along an axis: `exclusive` leaves out the element itself, `reverse` runs from the end.
fn scan<T: Element>(node: &Node, start: T, f: fn(T, T) -> T) -> Built {
    let (exclusive, reverse) = (*node.flag("exclusive")?, *node.flag("reverse")?);
    kernel(move |c| {
        let x = c.input(0)?;
        let Along { n, inner, .. } = Along::new(x.shape(), one("the axis", &c.ints(1)?)?)?;
        let from = x.slice::<T>()?;
        let out = c.filled::<T>(x.shape().clone(), |out| {
            let mut sums = vec![start; inner];
            let blocks = out.chunks_exact_mut((n * inner).max(1)).zip(from.chunks_exact((n * inner).max(1)));
            for (out, from) in blocks {
                sums.fill(start);
                for k in 0..n {
                    let row = if reverse { n - 1 - k } else { k } * inner;
                    for ((o, v), sum) in out[row..row + inner].iter_mut().zip(&from[row..]).zip(&mut sums) {
                        let next = f(*sum, *v);
                        *o = if exclusive { *sum } else { next };
                        *sum = next;
                    }
                }
            }
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

/// ln(e^a + e^b)
fn log_add_exp(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY || low.is_nan() || high == f64::INFINITY {
        high + if low.is_nan() { low } else { 0.0 }
    } else {
        high + (low - high).exp().ln_1p()
    }
}

macro_rules! scans {
    ($($t:ty, $zero:expr, $one:expr, $add:expr, $mul:expr;)+) => { &[ $(
        cpu("Cumsum", ("T", &[<$t as Element>::DTYPE]), |n| scan::<$t>(n, $zero, $add)),
        cpu("Cumprod", ("T", &[<$t as Element>::DTYPE]), |n| scan::<$t>(n, $one, $mul)),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static SCANS: &[KernelDef] = scans! {
    f32, 0.0, 1.0, |a, b| a + b, |a, b| a * b;
    f64, 0.0, 1.0, |a, b| a + b, |a, b| a * b;
    i32, 0, 1, i32::wrapping_add, i32::wrapping_mul;
    i64, 0, 1, i64::wrapping_add, i64::wrapping_mul;
    Complex64, Complex64::new(0.0, 0.0), Complex64::new(1.0, 0.0), |a, b| a + b, |a, b| a * b;
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static OTHERS: &[KernelDef] = &[
    widened("Cumsum", ("T", super::narrow::WRAPPING)),
    widened("Cumprod", ("T", super::narrow::WRAPPING)),
    cpu("CumulativeLogsumexp", ("T", &[DType::F64]), |n| scan::<f64>(n, f64::NEG_INFINITY, log_add_exp)),
    super::widen::in_f64("CumulativeLogsumexp", ("T", &[DType::F16, DType::BF16, DType::F32])),
    cpu("LinSpace", ("T", &[DType::F32]), |_| kernel(lin_space::<f32>)),
    cpu("LinSpace", ("T", &[DType::F64]), |_| kernel(lin_space::<f64>)),
    widened("LinSpace", ("T", DType::NARROW_FLOATS)),
    cpu("TopK", ("T", &[DType::F32]), top_k::<f32>),
    cpu("TopK", ("T", &[DType::F64]), top_k::<f64>),
    cpu("TopK", ("T", &[DType::I32]), top_k::<i32>),
    cpu("TopK", ("T", &[DType::I64]), top_k::<i64>),
    cpu("TopK", ("T", &[DType::U64]), top_k::<u64>),
    widened("TopK", ("T", DType::NARROW_REAL)),
    cpu("TopKV2", ("T", &[DType::F32]), top_k::<f32>),
    cpu("TopKV2", ("T", &[DType::F64]), top_k::<f64>),
    cpu("TopKV2", ("T", &[DType::I32]), top_k::<i32>),
    cpu("TopKV2", ("T", &[DType::I64]), top_k::<i64>),
    cpu("TopKV2", ("T", &[DType::U64]), top_k::<u64>),
    widened("TopKV2", ("T", DType::NARROW_REAL)),
    cpu_any("InTopK", |n| {
        let k = *n.int("k")?;
        kernel(move |c| in_top_k(c, k))
    }),
    cpu_any("InTopKV2", |_| {
        kernel(|c| {
            let k = c.ints(2)?.first().copied().unwrap_or(0);
            in_top_k(c, k)
        })
    }),
];

/// The last number is `stop` itself.
fn lin_space<T: Element + super::nn::Float>(c: &mut KernelContext<'_>) -> Computed {
    let (start, stop) = (c.item::<T>(0)?, c.item::<T>(1)?);
    let n = c.ints(2)?.first().and_then(|n| usize::try_from(*n).ok()).filter(|n| *n > 0);
    let n = n.ok_or_else(|| KernelError::invalid("num must be positive"))?;
    let out = c.filled::<T>(Shape::new(&[n]), |out| {
        let step = (stop - start) / T::from_f64((n.max(2) - 1) as f64);
        out.iter_mut().enumerate().for_each(|(i, v)| *v = start + step * T::from_f64(i as f64));
        if n > 1 {
            out[n - 1] = stop;
        }
        Ok(())
    })?;
    c.set(0, out);
    Ok(())
}

/// The `k` largest of each row, largest first, of equal ones the earlier first; and where they are.
fn top_k<T: Element + PartialOrd>(node: &Node) -> Built {
    let fixed = match node.attrs.get("k") {
        Some(Attr::Int(k)) => Some(*k),
        _ => None,
    };
    let index_type = match node.attrs.get("index_type") {
        Some(Attr::Type(t)) => *t,
        _ => DType::I32,
    };
    kernel(move |c| {
        let x = c.input(0)?;
        let k = match fixed {
            Some(k) => k,
            None => c.ints(1)?.first().copied().unwrap_or(-1),
        };
        let Some((&n, outer)) = x.dims().split_last() else {
            return Err(KernelError::invalid("input must have at least one dimension"));
        };
        let k = usize::try_from(k).ok().filter(|k| *k <= n);
        let k =
            k.ok_or_else(|| KernelError::invalid(format!("input {} has fewer than k columns, or k < 0", x.shape())))?;
        let shape = Shape::new(&[outer, &[k]].concat());
        let mut places: Vec<i64> = Vec::with_capacity(shape.n_elements());
        let mut order: Vec<usize> = Vec::with_capacity(n);
        let from = x.slice::<T>()?;
        let values = c.filled::<T>(shape.clone(), |out| {
            for (row, out) in from.chunks_exact(n.max(1)).zip(out.chunks_exact_mut(k.max(1))) {
                order.clear();
                order.extend(0..n);
                let first = |a: &usize, b: &usize| {
                    row[*b].partial_cmp(&row[*a]).unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(b))
                };
                if k < n {
                    order.select_nth_unstable_by(k, first);
                    order.truncate(k);
                }
                order.sort_unstable_by(first);
                for (o, i) in out.iter_mut().zip(&order) {
                    *o = row[*i];
                    places.push(*i as i64);
                }
            }
            Ok(())
        })?;
        places.resize(shape.n_elements(), 0);
        let places = convert(&Tensor::from_vec(shape, places)?, index_type, c.allocator)?;
        c.set(0, values);
        c.set(1, places);
        Ok(())
    })
}

/// Whether fewer than `k` predictions of a row are above that of its target.
fn in_top_k(c: &mut KernelContext<'_>, k: i64) -> Computed {
    let (predictions, targets) = (c.input(0)?, c.ints(1)?);
    let &[batch, n] = predictions.dims() else {
        return Err(KernelError::invalid(format!("predictions must be a matrix, got shape {}", predictions.shape())));
    };
    if targets.len() != batch {
        return Err(KernelError::invalid(format!("{} targets for {batch} rows", targets.len())));
    }
    let rows = predictions.slice::<f32>()?.chunks_exact(n.max(1)).zip(&targets);
    let one = |(row, target): (&[f32], &i64)| {
        let Some(own) = usize::try_from(*target).ok().and_then(|t| row.get(t)).filter(|v| v.is_finite()) else {
            return false;
        };
        row.iter().all(|v| v.is_finite()) && (row.iter().filter(|v| *v > own).count() as i64) < k
    };
    let mut out = c.room::<bool>(Shape::new(&[batch]))?;
    unique_slice::<bool>(&mut out)?.iter_mut().zip(rows.map(one)).for_each(|(o, v)| *o = v);
    c.set(0, out);
    Ok(())
}
