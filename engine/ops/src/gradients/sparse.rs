//! Gradients of ops on sparse tensors: those of the values, which lie where the values lie.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Zero};
use engine_core::dtype::DType;
use engine_core::graph::Value;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static SPARSE: &[GradientSpec] = &[
    ("SparseTensorDenseMatMul", Function(matmul)),
    ("SparseAdd", Function(add)),
    ("SparseReduceSum", Function(reduce_sum)),
    ("SparseToDense", Function(to_dense)),
    ("SparseReorder", Function(reorder)),
    ("SparseSlice", Function(slice)),
    ("SparseSoftmax", Function(softmax)),
    ("SparseDenseCwiseMul", Function(mul)),
    ("SparseDenseCwiseDiv", Function(div)),
    ("SparseTensorDenseAdd", Function(add_dense)),
    ("SparseFillEmptyRows", Function(fill_empty_rows)),
    ("SparseReshape", Zero),
];

/// dB = A* G; of the values: rows of G times rows of B.
fn matmul(c: &GradientContext<'_>) -> RuleResult {
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    let (adjoint_a, adjoint_b) = (flag("adjoint_a"), flag("adjoint_b"));
    let (g, at, values, shape, mut b) = (c.grad(0), c.input(0), c.input(1), c.input(2), c.input(3));
    if b.dtype().is_complex() {
        return Err(c.unsupported("of complex matrices"));
    }
    let product = c.add_node("SparseTensorDenseMatMul").input(at).input(values).input(shape).input(g);
    let mut of_b = product.attr("adjoint_a", !adjoint_a).value();
    if adjoint_b {
        let swapped = c.graph().ints(&[1, 0]);
        (of_b, b) = (of_b.transpose(swapped), b.transpose(swapped));
    }
    let columns = c.add_node("Unpack").input(at).attr("num", 2i64).attr("axis", 1i64).value();
    let (rows, cols) = (columns, columns.port(1));
    let (of_g, of_other) = if adjoint_a { (cols, rows) } else { (rows, cols) };
    let first = c.graph().constant(Tensor::scalar(0i32));
    let rows_of = |matrix, at| c.op("GatherV2", &[matrix, at, first]);
    c.set(1, (rows_of(g, of_g) * rows_of(b, of_other)).sum([1]));
    c.set(3, of_b);
    Ok(())
}

fn add(c: &GradientContext<'_>) -> RuleResult {
    let both = c.op("SparseAddGrad", &[c.grad(1), c.input(0), c.input(3), c.output(0)]);
    c.set(1, both);
    c.set(4, both.port(1));
    Ok(())
}

/// Every value gets the gradient of the sum that it went into.
fn reduce_sum(c: &GradientContext<'_>) -> RuleResult {
    let (g, at, shape, axes) = (c.grad(0), c.input(0), c.input(2), c.known_ints(c.input(3)));
    let rank = at.shape().dims().and_then(|dims| *dims.get(1)?);
    let Some((rank, axes)) = rank.zip(axes) else { return Err(c.unsupported("for axes or a rank not known")) };
    let is_reduced = |d: usize| axes.iter().any(|a| a.rem_euclid(rank as i64) == d as i64);
    let reduced: Vec<i32> = (0..rank).map(|d| i32::from(is_reduced(d))).collect();
    let kept: Vec<i64> = reduced.iter().map(|one| i64::from(1 - one)).collect();
    // The sums with their reduced dimensions as ones, looked up with 0 along them.
    let one = c.graph().ints(&vec![1; rank]);
    let shape = c.graph().ints(&reduced).equal(one).select(one, shape.cast(DType::I32));
    let place = at * c.graph().constant(Tensor::vector(&kept));
    c.set(1, g.reshape(shape).op_with("GatherNd", place));
    Ok(())
}

fn to_dense(c: &GradientContext<'_>) -> RuleResult {
    let (g, at, values) = (c.grad(0), c.input(0), c.input(2));
    let of_rank_1 = at.shape().rank().is_some_and(|rank| rank < 2);
    let place = if of_rank_1 { at.reshape([-1, 1]) } else { at };
    let of_values = g.op_with("GatherNd", place);
    let is_scalar = values.shape().rank() == Some(0);
    c.set(2, if is_scalar { sum_all(of_values) } else { of_values });
    let shape = c.add_node("Shape").input(g).attr("out_type", at.dtype()).value();
    let mask = c.add_node("SparseToDense").input(at).input(shape).input(values.zeros_like()).input(g.number(1.0));
    c.set(3, sum_all(g * mask.attr("validate_indices", false).value()));
    Ok(())
}

fn sum_all(x: Value<'_>) -> Value<'_> {
    x.reshape([-1]).sum([0])
}

/// Numbers the values, orders those alike, and scatters the gradients back.
fn reorder(c: &GradientContext<'_>) -> RuleResult {
    let (g, at, values, shape) = (c.grad(1), c.input(0), c.input(1), c.input(2));
    let [zero, one] = [0i32, 1].map(|i| c.graph().constant(Tensor::scalar(i)));
    let numbers = c.op("Range", &[zero, values.size_tensor(), one]);
    let order = c.op("SparseReorder", &[at, numbers, shape]).port(1);
    c.set(1, c.add_node("DynamicStitch").inputs(&[order.output()]).inputs(&[g.output()]).value());
    Ok(())
}

fn slice(c: &GradientContext<'_>) -> RuleResult {
    c.set(1, c.op("SparseSliceGrad", &[c.grad(1), c.input(0), c.input(3), c.output(0)]));
    Ok(())
}

/// `(g - sum(g y)) y`, the sum over each innermost row.
fn softmax(c: &GradientContext<'_>) -> RuleResult {
    let (g, at, shape, y) = (c.grad(0), c.input(0), c.input(2), c.output(0));
    let sums = c.add_node("SparseReduceSum").input(at).input(g * y).input(shape).input(c.graph().ints(&[-1]));
    let sums = sums.attr("keep_dims", true).value();
    c.set(1, c.op("SparseDenseCwiseAdd", &[at, g, shape, -sums]) * y);
    Ok(())
}

/// The gradient of a dense operand that was stretched: that of the values, made dense and summed back.
fn of_dense<'a>(c: &GradientContext<'a>, values: Value<'a>) -> Value<'a> {
    let (at, shape, dense) = (c.input(0), c.input(2), c.input(3));
    let own = c.add_node("Shape").input(dense).attr("out_type", DType::I64).value();
    let axes = own.op_with("BroadcastGradientArgs", shape);
    c.op("ScatterNd", &[at, values, shape]).sum(axes).reshape(own)
}

/// What multiplies the values: the dense operand where they lie, as the op itself takes it.
fn mul(c: &GradientContext<'_>) -> RuleResult {
    let (g, at, values, shape, dense) = (c.grad(0), c.input(0), c.input(1), c.input(2), c.input(3));
    c.set(1, c.op("SparseDenseCwiseMul", &[at, g, shape, dense]));
    c.set(3, of_dense(c, g * values));
    Ok(())
}

/// `g / d` and `-g v / d^2`.
fn div(c: &GradientContext<'_>) -> RuleResult {
    let (g, at, shape, dense, y) = (c.grad(0), c.input(0), c.input(2), c.input(3), c.output(0));
    let of_values = c.op("SparseDenseCwiseDiv", &[at, g, shape, dense]);
    c.set(1, of_values);
    c.set(3, of_dense(c, -(of_values * y)));
    Ok(())
}

fn add_dense(c: &GradientContext<'_>) -> RuleResult {
    let (g, at) = (c.grad(0), c.input(0));
    c.set(1, g.op_with("GatherNd", at));
    c.set(3, g);
    Ok(())
}

fn fill_empty_rows(c: &GradientContext<'_>) -> RuleResult {
    let both = c.output(3).op_with("SparseFillEmptyRowsGrad", c.grad(1));
    c.set(1, both);
    c.set(3, both.port(1));
    Ok(())
}
