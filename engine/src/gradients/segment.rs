//! Gradients of segment ops: each row gets its segment's, or its share of it.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static SEGMENT: &[GradientSpec] = &[
    ("SegmentSum", Function(sum)),
    ("SegmentSumV2", Function(sum)),
    ("SegmentMean", Function(mean)),
    ("SegmentMin", Function(extreme)),
    ("SegmentMax", Function(extreme)),
    ("SegmentMinV2", Function(extreme)),
    ("SegmentMaxV2", Function(extreme)),
    ("UnsortedSegmentSum", Function(sum)),
    ("UnsortedSegmentMin", Function(extreme)),
    ("UnsortedSegmentMax", Function(extreme)),
    ("UnsortedSegmentProd", Function(product)),
    ("SegmentProd", Function(product)),
    ("SegmentProdV2", Function(product)),
    ("SparseSegmentSum", Function(|c| sparse(c, "SparseSegmentSumGrad"))),
    ("SparseSegmentMean", Function(|c| sparse(c, "SparseSegmentMeanGrad"))),
    ("SparseSegmentSqrtN", Function(|c| sparse(c, "SparseSegmentSqrtNGrad"))),
    ("SparseSegmentSumWithNumSegments", Function(|c| sparse(c, "SparseSegmentSumGrad"))),
    ("SparseSegmentMeanWithNumSegments", Function(|c| sparse(c, "SparseSegmentMeanGrad"))),
    ("SparseSegmentSqrtNWithNumSegments", Function(|c| sparse(c, "SparseSegmentSqrtNGrad"))),
    ("DynamicPartition", Function(partition)),
    ("DynamicStitch", Function(stitch)),
    ("ParallelDynamicStitch", Function(stitch)),
];

/// The row of `x` that each id names; rows with a negative id are zeros.
fn rows_of(c: &mut GradientContext<'_>, x: Output) -> Added {
    let ids = c.input(1);
    let (axis, zero) = (c.constant(Tensor::scalar(0i32))?, c.scalar_like(0.0, ids)?);
    let safe = c.op("Maximum", &[ids, zero])?;
    let rows = c.op("GatherV2", &[x, safe, axis])?;
    let inside = c.op("GreaterEqual", &[ids, zero])?;
    let inside = with_dims_of(c, inside, rows)?;
    let zeros = c.op("ZerosLike", &[rows])?;
    c.op("SelectV2", &[inside, rows, zeros])
}

/// `x`, whose dimensions are the first of `whole`, with dimensions of 1 for the others.
fn with_dims_of(c: &mut GradientContext<'_>, mut x: Output, whole: Output) -> Added {
    if let Some((rank, all)) = c.shape(x)?.rank().zip(c.shape(whole)?.rank()) {
        let last = c.constant(Tensor::scalar(-1i32))?;
        for _ in rank..all {
            x = c.op("ExpandDims", &[x, last])?;
        }
        return Ok(x);
    }
    let (shape, rank, all) = (c.shape_of(x)?, c.op("Rank", &[x])?, c.op("Rank", &[whole])?);
    let (missing, one) = (c.op("Sub", &[all, rank])?, c.constant(Tensor::scalar(1i32))?);
    let length = c.op_of_list("Pack", &[missing], &[], &[])?;
    let (ones, axis) = (c.op("Fill", &[length, one])?, c.constant(Tensor::scalar(0i32))?);
    let shape = c.op_of_list("ConcatV2", &[shape, ones], &[axis], &[])?;
    c.op("Reshape", &[x, shape])
}

fn sum(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let x = rows_of(c, g)?;
    c.set(0, x);
    Ok(())
}

/// As the node, of other data.
fn same_segments(c: &mut GradientContext<'_>, op: &str, data: Output) -> Added {
    let mut inputs = vec![data, c.input(1)];
    if c.node().inputs.len() > 2 {
        inputs.push(c.input(2));
    }
    c.op(op, &inputs)
}

fn mean(c: &mut GradientContext<'_>) -> Done {
    let (g, data) = (c.grad(0)?, c.input(0));
    let ones = c.op("OnesLike", &[data])?;
    let counts = same_segments(c, "SegmentSum", ones)?;
    let one = c.scalar_like(1.0, g)?;
    let counts = c.op("Maximum", &[counts, one])?;
    let share = c.op("RealDiv", &[g, counts])?;
    let x = rows_of(c, share)?;
    c.set(0, x);
    Ok(())
}

/// Shared equally among the elements that have the extreme value.
fn extreme(c: &mut GradientContext<'_>) -> Done {
    let (g, data, y) = (c.grad(0)?, c.input(0), c.output(0));
    let best = rows_of(c, y)?;
    let hit = c.op("Equal", &[data, best])?;
    let dtype = c.dtype(data)?;
    let hits = c.op_with("Cast", &[hit], &[("DstT", Attr::Type(dtype))])?;
    let op = if c.node().inputs.len() > 2 { "UnsortedSegmentSum" } else { "SegmentSum" };
    let n = same_segments(c, op, hits)?;
    let one = c.scalar_like(1.0, g)?;
    let n = c.op("Maximum", &[n, one])?;
    let share = c.op("RealDiv", &[g, n])?;
    let rows = rows_of(c, share)?;
    // Chosen, not multiplied: a gradient that is not finite stays with the elements that it is for.
    let zeros = c.op("ZerosLike", &[rows])?;
    let x = c.op("SelectV2", &[hit, rows, zeros])?;
    c.set(0, x);
    Ok(())
}

/// The product of the others: the whole by the element, where that is not 0; where one element is 0, the product
/// without it. Where several are 0 nothing, whatever the gradient is.
fn product(c: &mut GradientContext<'_>) -> Done {
    let (g, data) = (c.grad(0)?, c.input(0));
    let dtype = c.dtype(data)?;
    let zeros = c.op("ZerosLike", &[data])?;
    let ones = c.op("OnesLike", &[data])?;
    let is_zero = c.op("Equal", &[data, zeros])?;
    let n_zero = c.op_with("Cast", &[is_zero], &[("DstT", Attr::Type(dtype))])?;
    let op = if c.node().inputs.len() > 2 { "UnsortedSegmentSum" } else { "SegmentSum" };
    let n_zeros = same_segments(c, op, n_zero)?;
    let n_zeros = rows_of(c, n_zeros)?;
    let one = c.scalar_like(1.0, g)?;
    let is_alone = c.op("LessEqual", &[n_zeros, one])?;
    let without = c.op("SelectV2", &[is_zero, ones, data])?;
    let rest = same_segments(c, c.node().op.name, without)?;
    let rest = rows_of(c, rest)?;
    let whole = rows_of(c, c.output(0))?;
    let divided = c.op("RealDiv", &[whole, without])?;
    let others = c.op("SelectV2", &[is_zero, rest, divided])?;
    let g = rows_of(c, g)?;
    let g = c.op("SelectV2", &[is_alone, g, zeros])?;
    let x = c.op("Mul", &[g, others])?;
    c.set(0, x);
    Ok(())
}

fn sparse(c: &mut GradientContext<'_>, op: &str) -> Done {
    let (g, data) = (c.grad(0)?, c.input(0));
    let shape = c.shape_of(data)?;
    let (zero, one) = (c.vector(&[0i32])?, c.vector(&[1i32])?);
    let n = c.op("Slice", &[shape, zero, one])?;
    let scalar = c.constant(Tensor::vector::<i32>(&[]))?;
    let n = c.op("Reshape", &[n, scalar])?;
    let x = c.op(op, &[g, c.input(1), c.input(2), n])?;
    c.set(0, x);
    Ok(())
}

/// Numbers the rows as they lie, deals those out alike, and puts the gradients back where they came from.
fn partition(c: &mut GradientContext<'_>) -> Done {
    let (data, parts) = (c.input(0), c.input(1));
    let n = c.node().outputs.len();
    let shape = c.shape_of(parts)?;
    let size = c.op("Size", &[parts])?;
    let (zero, one) = (c.constant(Tensor::scalar(0i32))?, c.constant(Tensor::scalar(1i32))?);
    let order = c.op("Range", &[zero, size, one])?;
    let order = c.op("Reshape", &[order, shape])?;
    let dealt = c.op_with("DynamicPartition", &[order, parts], &[("num_partitions", Attr::Int(n as i64))])?;
    let indices: Vec<Output> = (0..n as u32).map(|port| Output { port, ..dealt }).collect();
    let grads = (0..n).map(|i| c.grad(i)).collect::<Result<Vec<_>, _>>()?;
    let joined = c.op_of_lists("DynamicStitch", &[&indices, &grads])?;
    let x = c.reshape_like(joined, data)?;
    c.set(0, x);
    Ok(())
}

/// The row at each index, where that row was not overwritten by a later one.
fn stitch(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let n = c.node().inputs.len() / 2;
    let axis = c.constant(Tensor::scalar(0i32))?;
    for i in 0..n {
        let rows = c.op("GatherV2", &[g, c.input(i), axis])?;
        c.set(n + i, rows);
    }
    Ok(())
}
