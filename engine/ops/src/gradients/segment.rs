//! Gradients of segment ops: each row gets its segment's, or its share of it.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function};
use engine_core::graph::{Output, Value};
use engine_core::tensor::Tensor;

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
fn rows_of<'a>(c: &GradientContext<'a>, x: Value<'a>) -> Value<'a> {
    let (ids, axis) = (c.input(1), c.graph().constant(Tensor::scalar(0i32)));
    let zero = ids.number(0.0);
    let rows = c.op("GatherV2", &[x, ids.maximum(zero), axis]);
    with_dims_of(c, ids.greater_equal(zero), rows).select(rows, rows.zeros_like())
}

/// `x`, whose dimensions are the first of `whole`, with dimensions of 1 for the others.
fn with_dims_of<'a>(c: &GradientContext<'a>, x: Value<'a>, whole: Value<'a>) -> Value<'a> {
    if let Some((rank, all)) = x.shape().rank().zip(whole.shape().rank()) {
        let last = c.graph().constant(Tensor::scalar(-1i32));
        return (rank..all).fold(x, |x, _| x.expand_dims(last));
    }
    let [axis, one] = [0i32, 1].map(|i| c.graph().constant(Tensor::scalar(i)));
    let missing = whole.rank_tensor() - x.rank_tensor();
    let ones = c.add_node("Pack").inputs(&[missing.output()]).value().op_with("Fill", one);
    let shape = c.add_node("ConcatV2").inputs(&[c.shape_of(x).output(), ones.output()]).input(axis);
    x.reshape(shape.value())
}

fn sum(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, rows_of(c, c.grad(0)));
    Ok(())
}

/// As the node, of other data.
fn same_segments<'a>(c: &GradientContext<'a>, op: &'static str, data: Value<'a>) -> Value<'a> {
    let others = &c.node().inputs[1..];
    others.iter().fold(c.add_node(op).input(data), |node, input| node.input(*input)).value()
}

/// For how many elements of each segment the condition holds.
fn count<'a>(c: &GradientContext<'a>, condition: Value<'a>) -> Value<'a> {
    let op = if c.node().inputs.len() > 2 { "UnsortedSegmentSum" } else { "SegmentSum" };
    same_segments(c, op, condition.cast(c.input(0).dtype()))
}

fn mean(c: &GradientContext<'_>) -> RuleResult {
    let counts = same_segments(c, "SegmentSum", c.input(0).ones_like());
    c.set(0, rows_of(c, c.grad(0) / counts.maximum(1.0)));
    Ok(())
}

/// Shared equally among the elements that have the extreme value.
fn extreme(c: &GradientContext<'_>) -> RuleResult {
    let hit = c.input(0).equal(rows_of(c, c.output(0)));
    let rows = rows_of(c, c.grad(0) / count(c, hit).maximum(1.0));
    // Chosen, not multiplied: a gradient that is not finite stays with the elements that it is for.
    c.set(0, hit.select(rows, rows.zeros_like()));
    Ok(())
}

/// The product of the others: the whole by the element, where that is not 0; where one element is 0, the product
/// without it. Where several are 0 nothing, whatever the gradient is.
fn product(c: &GradientContext<'_>) -> RuleResult {
    let data = c.input(0);
    let zeros = data.zeros_like();
    let is_zero = data.equal(zeros);
    let is_alone = rows_of(c, count(c, is_zero)).less_equal(1.0);
    let without = is_zero.select(data.ones_like(), data);
    let rest = rows_of(c, same_segments(c, c.node().op.name, without));
    let others = is_zero.select(rest, rows_of(c, c.output(0)) / without);
    c.set(0, is_alone.select(rows_of(c, c.grad(0)), zeros) * others);
    Ok(())
}

fn sparse(c: &GradientContext<'_>, op: &str) -> RuleResult {
    let ints = |values| c.graph().ints(values);
    let n = c.op("Slice", &[c.shape_of(c.input(0)), ints(&[0]), ints(&[1])]).reshape(ints(&[]));
    c.set(0, c.op(op, &[c.grad(0), c.input(1), c.input(2), n]));
    Ok(())
}

/// Numbers the rows as they lie, deals those out alike, and puts the gradients back where they came from.
fn partition(c: &GradientContext<'_>) -> RuleResult {
    let (data, parts, n) = (c.input(0), c.input(1), c.node().outputs.len());
    let [zero, one] = [0i32, 1].map(|i| c.graph().constant(Tensor::scalar(i)));
    let order = c.op("Range", &[zero, parts.size_tensor(), one]).reshape(c.shape_of(parts));
    let dealt = c.add_node("DynamicPartition").input(order).input(parts).attr("num_partitions", n as i64).value();
    let indices: Vec<Output> = (0..n as u32).map(|port| dealt.port(port).output()).collect();
    let grads: Vec<Output> = (0..n).map(|i| c.grad(i).output()).collect();
    let joined = c.add_node("DynamicStitch").inputs(&indices).inputs(&grads).value();
    c.set(0, c.reshape_like(joined, data));
    Ok(())
}

/// The row at each index, where that row was not overwritten by a later one.
fn stitch(c: &GradientContext<'_>) -> RuleResult {
    let (g, n, axis) = (c.grad(0), c.node().inputs.len() / 2, c.graph().constant(Tensor::scalar(0i32)));
    for i in 0..n {
        c.set(n + i, c.op("GatherV2", &[g, c.input(i), axis]));
    }
    Ok(())
}
