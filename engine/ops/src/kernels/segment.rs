//! Segments: rows reduced by segment, rows dealt out to parts and put together again.

use super::rows::{Arith, Combine, MISSING, number_kernels, pick, row_function};
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::{Complex64, DType};
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// What becomes of a segment's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduce {
    Sum,
    Mean,
    SqrtN,
    Prod,
    Min,
    Max,
}

impl Reduce {
    fn combine(self) -> Combine {
        match self {
            Reduce::Sum | Reduce::Mean | Reduce::SqrtN => Combine::Add,
            Reduce::Prod => Combine::Mul,
            Reduce::Min => Combine::Min,
            Reduce::Max => Combine::Max,
        }
    }

    fn start<T: Arith>(self) -> T {
        match self {
            Reduce::Sum | Reduce::Mean | Reduce::SqrtN => T::ZERO,
            Reduce::Prod => T::ONE,
            Reduce::Min => T::HIGHEST,
            Reduce::Max => T::LOWEST,
        }
    }

    /// What the sum of `n` rows is divided by.
    fn divisor(self, n: usize) -> Option<f64> {
        match self {
            Reduce::Mean => Some(n.max(1) as f64),
            Reduce::SqrtN => Some((n.max(1) as f64).sqrt()),
            _ => None,
        }
    }
}

/// How segments are given, and what those without rows hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Ascending ids; the last one says how many. Empty ones hold 0 (products: 1).
    Sorted,
    /// Any ids, negative ones left out; input 2 says how many. Empty ones hold where the reduction starts.
    Unsorted,
}

/// The single integer of input `i`, at least 0.
fn count(c: &KernelContext<'_>, i: usize) -> Result<usize, KernelError> {
    let n = match c.ints(i)?.as_slice() {
        [n] => usize::try_from(*n).ok(),
        _ => None,
    };
    n.ok_or_else(|| KernelError::invalid(format!("input {i} must be one integer >= 0")))
}

/// The number of segments of ascending ids.
fn sorted_count(ids: &[i64]) -> Result<usize, KernelError> {
    if let Some(pair) = ids.windows(2).find(|w| w[1] < w[0]) {
        return Err(KernelError::invalid(format!("segment ids must not decrease, got {} after {}", pair[1], pair[0])));
    }
    match (ids.first(), ids.last()) {
        (Some(first), _) if *first < 0 => Err(KernelError::invalid(format!("segment id {first} is negative"))),
        (_, Some(last)) => usize::try_from(last + 1).map_err(|_| KernelError::invalid("too many segments")),
        _ => Ok(0),
    }
}

/// Rows of `data` reduced by segment: row `i` is `rows(i)` and goes to segment `ids[i]`.
fn reduce<T: Arith>(
    data: &[T],
    row: usize,
    ids: &[i64],
    source: impl Fn(usize) -> usize,
    how: Reduce,
    empty: T,
    out: &mut [T],
) {
    let n = out.len() / row.max(1);
    let f = row_function::<T>(how.combine());
    let mut counts = vec![0usize; n];
    out.fill(empty);
    for (i, id) in ids.iter().enumerate() {
        let Some(id) = usize::try_from(*id).ok().filter(|id| *id < n) else { continue };
        let to = &mut out[id * row..(id + 1) * row];
        if counts[id] == 0 {
            to.fill(how.start());
        }
        counts[id] += 1;
        let at = source(i) * row;
        f(to, &data[at..at + row]);
    }
    for (to, n) in out.chunks_exact_mut(row.max(1)).zip(counts) {
        if let Some(by) = how.divisor(n).filter(|_| n > 1) {
            to.iter_mut().for_each(|v| *v = v.over(T::from_f64(by)));
        }
    }
}

/// The shape of `n` rows such as those behind the first `skipped` dimensions of `data`.
fn rows_shape(data: &Tensor, skipped: usize, n: usize) -> Shape {
    Shape::new(&[&[n], data.dims().get(skipped..).unwrap_or_default()].concat())
}

fn segments<T: Arith>(_: &Node, how: Reduce, kind: Kind) -> Built {
    kernel(move |c| {
        let (data, ids, id_shape) = (c.input(0)?, c.ints(1)?, c.input(1)?.shape());
        let rank = id_shape.rank();
        if data.dims().get(..rank) != Some(id_shape.dims()) || (kind == Kind::Sorted && rank != 1) {
            let text = format!("segment ids of shape {id_shape} do not begin the shape of data {}", data.shape());
            return Err(KernelError::invalid(text));
        }
        let (n, empty) = match kind {
            Kind::Unsorted => (count(c, 2)?, how.start()),
            Kind::Sorted => (sorted_count(&ids)?, if how == Reduce::Prod { T::ONE } else { T::ZERO }),
        };
        if let Some(id) = ids.iter().find(|id| **id >= n as i64) {
            return Err(KernelError::invalid(format!("segment id {id} is outside of [0, {n})")));
        }
        let row = data.dims()[rank..].iter().product();
        let from = data.slice::<T>()?;
        let out = c.filled::<T>(rows_shape(data, rank, n), |out| {
            reduce(from, row, &ids, |i| i, how, empty, out);
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

/// Indices into the rows of a tensor of `n`.
fn row_indices(c: &KernelContext<'_>, i: usize, n: usize) -> Result<Vec<usize>, KernelError> {
    let inside = |at: &i64| usize::try_from(*at).ok().filter(|at| *at < n);
    let index = |at: &i64| inside(at).ok_or_else(|| KernelError::invalid(format!("index {at} is outside of [0, {n})")));
    c.ints(i)?.iter().map(index).collect()
}

/// Chosen rows reduced by segment; with `counted`, input 3 says how many segments.
fn sparse_segments<T: Arith>(_: &Node, how: Reduce, counted: bool) -> Built {
    kernel(move |c| {
        let (data, ids) = (c.input(0)?, c.ints(2)?);
        let n_rows =
            *data.dims().first().ok_or_else(|| KernelError::invalid("data must have at least one dimension"))?;
        let indices = row_indices(c, 1, n_rows)?;
        if indices.len() != ids.len() {
            return Err(KernelError::invalid(format!("{} indices for {} segment ids", indices.len(), ids.len())));
        }
        let needed = sorted_count(&ids)?;
        let n = if counted { count(c, 3)? } else { needed };
        if needed > n {
            return Err(KernelError::invalid(format!("segment id {} is outside of [0, {n})", needed - 1)));
        }
        let row = data.dims()[1..].iter().product();
        let from = data.slice::<T>()?;
        let out = c.filled::<T>(rows_shape(data, 1, n), |out| {
            reduce(from, row, &ids, |i| indices[i], how, T::ZERO, out);
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

/// The gradient of [`sparse_segments`]: each chosen row gets its share of its segment's gradient.
fn sparse_segments_grad<T: Arith>(_: &Node, how: Reduce) -> Built {
    kernel(move |c| {
        let (grad, ids, n) = (c.input(0)?, c.ints(2)?, count(c, 3)?);
        let indices = row_indices(c, 1, n)?;
        let n_segments = *grad.dims().first().ok_or_else(|| KernelError::invalid("the gradient must have rows"))?;
        let ids_in = row_indices(c, 2, n_segments)?;
        if indices.len() != ids.len() {
            return Err(KernelError::invalid(format!("{} indices for {} segment ids", indices.len(), ids.len())));
        }
        let mut counts = vec![0usize; n_segments];
        ids_in.iter().for_each(|id| counts[*id] += 1);
        let row: usize = grad.dims()[1..].iter().product();
        let from = grad.slice::<T>()?;
        let out = c.filled::<T>(rows_shape(grad, 1, n), |out| {
            out.fill(T::ZERO);
            for (to, id) in indices.iter().zip(&ids_in) {
                let by = T::from_f64(how.divisor(counts[*id]).unwrap_or(1.0));
                let share = out[to * row..(to + 1) * row].iter_mut().zip(&from[id * row..(id + 1) * row]);
                share.for_each(|(o, g)| *o = o.plus(g.over(by)));
            }
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

/// Rows dealt out to as many outputs as there are partitions.
fn dynamic_partition(c: &mut KernelContext<'_>) -> Computed {
    let (data, parts, n) = (c.input(0)?, c.ints(1)?, c.outputs.len());
    let part_shape = c.input(1)?.shape();
    let rank = part_shape.rank();
    if data.dims().get(..rank) != Some(part_shape.dims()) {
        let text = format!("partitions of shape {part_shape} do not begin the shape of data {}", data.shape());
        return Err(KernelError::invalid(text));
    }
    let mut picks = vec![Vec::new(); n];
    for (i, part) in parts.iter().enumerate() {
        let to = usize::try_from(*part).ok().and_then(|p| picks.get_mut(p));
        to.ok_or_else(|| KernelError::invalid(format!("partition {part} is outside of [0, {n})")))?.push((0, i));
    }
    let row = data.dims()[rank..].iter().product();
    let mut outs = Vec::with_capacity(n);
    for picks in &picks {
        outs.push(pick(c, data.dtype(), &[data], picks, row, rows_shape(data, rank, picks.len()))?);
    }
    outs.into_iter().enumerate().for_each(|(i, out)| c.set(i, out));
    Ok(())
}

/// Rows put at the places that the indices name; of several for one place the last stays.
fn dynamic_stitch(c: &mut KernelContext<'_>) -> Computed {
    let n = c.inputs.len() / 2;
    let mut inner: Option<&[usize]> = None;
    let mut places: Vec<(usize, usize, i64)> = Vec::new();
    for i in 0..n {
        let (index, data) = (c.input(i)?, c.input(n + i)?);
        let rank = index.shape().rank();
        let rest = data.dims().get(rank..).filter(|_| &data.dims()[..rank] == index.dims());
        let rest = rest.filter(|rest| inner.is_none_or(|inner| inner == *rest)).ok_or_else(|| {
            let (index, data) = (index.shape(), data.shape());
            KernelError::invalid(format!(
                "data {i} of shape {data} does not fit indices of shape {index} and the others"
            ))
        })?;
        inner = Some(rest);
        places.extend(c.ints(i)?.into_iter().enumerate().map(|(row, to)| (i, row, to)));
    }
    let last = places.iter().map(|p| p.2).max().unwrap_or(-1);
    if let Some((.., to)) = places.iter().find(|p| p.2 < 0) {
        return Err(KernelError::invalid(format!("index {to} is negative")));
    }
    let inner = inner.unwrap_or_default();
    let row: usize = inner.iter().product();
    let shape = Shape::new(&[&[(last + 1) as usize], inner].concat());
    let dtype = c.input(n)?.dtype();
    // The memory that the result takes is tested before anything of its size is made.
    if shape.checked_n_elements().is_none_or(|n| n > isize::MAX as usize / 16) {
        return Err(KernelError::invalid(format!("index {last} makes the result too large")));
    }
    let mut picks = memory::filled(MISSING, (last + 1) as usize)?;
    places.iter().for_each(|(source, at, to)| picks[*to as usize] = (*source, *at));
    let sources = (0..n).map(|i| c.input(n + i)).collect::<Result<Vec<_>, _>>()?;
    let out = pick(c, dtype, &sources, &picks, row, shape)?;
    c.set(0, out);
    Ok(())
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static MOVES: &[KernelDef] = &[
    cpu_any("DynamicPartition", |_| kernel(dynamic_partition)),
    cpu_any("DynamicStitch", |_| kernel(dynamic_stitch)),
    cpu_any("ParallelDynamicStitch", |_| kernel(dynamic_stitch)),
];

#[linkme::distributed_slice(KERNEL_TABLES)]
static SEGMENTS: &[KernelDef] = number_kernels! {
    "SegmentSum", "T" => segments(Reduce::Sum, Kind::Sorted);
    "SegmentMean", "T" => segments(Reduce::Mean, Kind::Sorted);
    "SegmentProd", "T" => segments(Reduce::Prod, Kind::Sorted);
    "SegmentMin", "T" => segments(Reduce::Min, Kind::Sorted);
    "SegmentMax", "T" => segments(Reduce::Max, Kind::Sorted);
    "SegmentSumV2", "T" => segments(Reduce::Sum, Kind::Unsorted);
    "SegmentProdV2", "T" => segments(Reduce::Prod, Kind::Unsorted);
    "SegmentMinV2", "T" => segments(Reduce::Min, Kind::Unsorted);
    "SegmentMaxV2", "T" => segments(Reduce::Max, Kind::Unsorted);
    "UnsortedSegmentSum", "T" => segments(Reduce::Sum, Kind::Unsorted);
    "UnsortedSegmentProd", "T" => segments(Reduce::Prod, Kind::Unsorted);
    "UnsortedSegmentMin", "T" => segments(Reduce::Min, Kind::Unsorted);
    "UnsortedSegmentMax", "T" => segments(Reduce::Max, Kind::Unsorted);
    "SparseSegmentSum", "T" => sparse_segments(Reduce::Sum, false);
    "SparseSegmentMean", "T" => sparse_segments(Reduce::Mean, false);
    "SparseSegmentSqrtN", "T" => sparse_segments(Reduce::SqrtN, false);
    "SparseSegmentSumWithNumSegments", "T" => sparse_segments(Reduce::Sum, true);
    "SparseSegmentMeanWithNumSegments", "T" => sparse_segments(Reduce::Mean, true);
    "SparseSegmentSqrtNWithNumSegments", "T" => sparse_segments(Reduce::SqrtN, true);
    "SparseSegmentSumGrad", "T" => sparse_segments_grad(Reduce::Sum);
    "SparseSegmentMeanGrad", "T" => sparse_segments_grad(Reduce::Mean);
    "SparseSegmentSqrtNGrad", "T" => sparse_segments_grad(Reduce::SqrtN);
};
