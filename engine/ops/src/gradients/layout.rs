//! Gradients of ops that move elements, choose them by indices, or run along an axis.

use super::array::{all_grads, as_i32, cut_apart, identity, shape_as, total};
use super::context::conjugate;
use super::math::{spread, with_kept_axes};
use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use engine_core::dtype::DType;
use engine_core::graph::Value;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static MOVES: &[GradientSpec] = &[
    ("Pad", Function(pad)),
    ("PadV2", Function(pad)),
    ("MirrorPad", Function(|c| same_again(c, "MirrorPadGrad"))),
    ("MirrorPadGrad", Function(|c| same_again(c, "MirrorPad"))),
    ("Reverse", Function(|c| same_again(c, "Reverse"))),
    ("ReverseV2", Function(|c| same_again(c, "ReverseV2"))),
    ("ReverseSequence", Function(|c| same_again(c, "ReverseSequence"))),
    ("Roll", Function(roll)),
    ("Concat", Function(|c| cut_apart(c, 1..c.node().inputs.len(), c.input(0)))),
    ("Split", Function(|c| join(c, 1, 0))),
    ("SplitV", Function(|c| join(c, 0, 2))),
    ("ConjugateTranspose", Function(conjugate_transpose)),
    ("SpaceToBatch", Function(|c| same_again(c, "BatchToSpace"))),
    ("BatchToSpace", Function(|c| same_again(c, "SpaceToBatch"))),
    ("SpaceToBatchND", Function(|c| same_again(c, "BatchToSpaceND"))),
    ("BatchToSpaceND", Function(|c| same_again(c, "SpaceToBatchND"))),
    ("SpaceToDepth", Function(|c| same_again(c, "DepthToSpace"))),
    ("DepthToSpace", Function(|c| same_again(c, "SpaceToDepth"))),
    ("ExtractImagePatches", Function(patches)),
    ("Snapshot", Function(identity)),
    ("EnsureShape", Function(identity)),
    ("DeepCopy", Function(identity)),
    ("PreventGradient", Function(|c| Err(c.unsupported("passes here: that is what the op is for")))),
    ("Diag", Function(|c| of_gradient(c, "DiagPart"))),
    ("DiagPart", Function(|c| of_gradient(c, "Diag"))),
    ("MatrixDiag", Function(|c| of_gradient(c, "MatrixDiagPart"))),
    ("MatrixDiagV2", Function(matrix_diag)),
    ("MatrixDiagV3", Function(matrix_diag)),
    ("MatrixDiagPart", Function(matrix_diag_part)),
    ("MatrixDiagPartV2", Function(matrix_diag_part)),
    ("MatrixDiagPartV3", Function(matrix_diag_part)),
    ("MatrixSetDiag", Function(matrix_set_diag)),
    ("MatrixSetDiagV2", Function(matrix_set_diag)),
    ("MatrixSetDiagV3", Function(matrix_set_diag)),
    ("MatrixBandPart", Function(|c| same_again(c, "MatrixBandPart"))),
    ("BatchMatrixBandPart", Function(|c| same_again(c, "BatchMatrixBandPart"))),
    ("Bitcast", Zero),
];

#[linkme::distributed_slice(GRADIENT_TABLES)]
static INDEXING: &[GradientSpec] = &[
    ("Gather", Function(|c| gather(c, c.input(0), None))),
    ("GatherV2", Function(|c| gather(c, c.input(0), Some(c.input(2))))),
    ("ResourceGather", Function(resource_gather)),
    ("GatherNd", Function(gather_nd)),
    ("ScatterNd", Function(scatter_nd)),
    ("ScatterNdNonAliasingAdd", Function(tensor_scatter)),
    ("TensorScatterAdd", Function(tensor_scatter)),
    ("TensorScatterSub", Function(tensor_scatter)),
    ("TensorScatterUpdate", Function(scatter_update)),
    ("TensorScatterMin", Function(scatter_extreme)),
    ("TensorScatterMax", Function(scatter_extreme)),
    ("TopK", Function(top_k)),
    ("TopKV2", Function(top_k)),
    ("Cumsum", Function(cumsum)),
    ("Cumprod", Function(cumprod)),
    ("CumulativeLogsumexp", Function(cumulative_log_sum_exp)),
    ("Prod", Function(prod)),
    ("EuclideanNorm", Function(euclidean_norm)),
    ("InTopK", Zero),
    ("InTopKV2", Zero),
    ("OneHot", Zero),
    ("Where", Zero),
    ("Unique", Zero),
    ("UniqueV2", Zero),
    ("UniqueWithCounts", Zero),
    ("UniqueWithCountsV2", Zero),
    ("ListDiff", Zero),
    ("LowerBound", Zero),
    ("UpperBound", Zero),
    ("InvertPermutation", Zero),
    ("ShapeN", Zero),
    ("BroadcastArgs", Zero),
    ("ConcatOffset", Zero),
    ("Bincount", Zero),
    ("HistogramFixedWidth", Zero),
    ("Empty", Zero),
];

/// An op of the gradient alone.
fn of_gradient(c: &GradientContext<'_>, op: &str) -> RuleResult {
    c.set(0, c.grad(0).op(op));
    Ok(())
}

/// An op of the gradient in place of the first input, the other inputs being those of the node.
fn same_again(c: &GradientContext<'_>, op: &str) -> RuleResult {
    let mut inputs = vec![c.grad(0)];
    inputs.extend((1..c.node().inputs.len()).map(|i| c.input(i)));
    c.set(0, c.op_with_node_attrs(op, &inputs));
    Ok(())
}

/// A vector of one number as a scalar.
fn scalar(vector: Value<'_>) -> Value<'_> {
    vector.reshape([] as [i32; 0])
}

/// The elements of a vector from `begin` to before `end`, which are vectors of one number.
fn part<'a>(of: Value<'a>, begin: Value<'a>, end: Value<'a>) -> Value<'a> {
    let one = of.graph().ints(&[1]);
    of.graph().add_node("StridedSlice").input(of).input(begin).input(end).input(one).value()
}

/// The product of a vector, as a vector of one number.
fn product(of: Value<'_>) -> Value<'_> {
    of.graph().add_node("Prod").input(of).input(of.graph().ints(&[0])).attr("keep_dims", true).value()
}

/// 0, 1, ... to before `end`.
fn counted(end: Value<'_>) -> Value<'_> {
    end.graph().add_node("Range").input(end.number(0.0)).input(end).input(end.number(1.0)).value()
}

fn pad(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, paddings) = (c.grad(0), c.input(0), c.input(1));
    let before = c.op("Slice", &[paddings, c.graph().ints(&[0, 0]), c.graph().ints(&[-1, 1])]);
    let before = before.reshape([-1]);
    let of_x = c.op("Slice", &[g, before, shape_as(x, paddings.dtype())]);
    c.set(0, of_x);
    if c.node().inputs.len() > 2 {
        c.set(2, total(g) - total(of_x));
    }
    Ok(())
}

fn roll(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.op("Roll", &[c.grad(0), -c.input(1), c.input(2)]));
    Ok(())
}

/// Of a node that cuts its input `value` apart along its input `axis`.
fn join(c: &GradientContext<'_>, value: usize, axis: usize) -> RuleResult {
    c.set(value, c.add_node("ConcatV2").inputs(&all_grads(c)).input(c.input(axis)).value());
    Ok(())
}

fn conjugate_transpose(c: &GradientContext<'_>) -> RuleResult {
    let inverse = c.input(1).op("InvertPermutation");
    c.set(0, c.grad(0).op_with("ConjugateTranspose", inverse));
    Ok(())
}

/// Each patch element is added to the pixel it was cut from; cutting a picture of positions shows which one.
fn patches(c: &GradientContext<'_>) -> RuleResult {
    let (g, shape) = (c.grad(0), c.shape_of(c.input(0)));
    let [zero, one, two, three, flat] = [0, 1, 2, 3, -1].map(|i| c.graph().ints(&[i]));
    let batch = c.op("Slice", &[shape, zero, one]);
    let size = c.op("Slice", &[shape, one, two]);
    let channels = c.op("Slice", &[shape, three, one]);
    let n = scalar(product(part(shape, one, three)));
    let step = n.number(1.0);
    let positions = c.op("Range", &[step, n + step, step]).cast(DType::I64);
    let picture = positions.reshape(c.graph().concat(&[one, size, one], 0));
    let cut = c.op_with_node_attrs("ExtractImagePatches", &[picture]);
    // Padding is position 0, so -1, which no segment is.
    let ids = cut.reshape(flat) - 1.0;
    let order = c.graph().ints(&[1, 0, 2]);
    let rows = g.reshape(c.graph().concat(&[batch, flat, channels], 0)).transpose(order);
    let sums = c.op("UnsortedSegmentSum", &[rows, ids, n]);
    c.set(0, sums.transpose(order).reshape(shape));
    Ok(())
}

fn matrix_diag(c: &GradientContext<'_>) -> RuleResult {
    let (g, k, padding) = (c.grad(0), c.input(1), c.input(4));
    let inverse = if c.node().op.name == "MatrixDiagV3" { "MatrixDiagPartV3" } else { "MatrixDiagPartV2" };
    let of_diagonal = c.op_with_node_attrs(inverse, &[g, k, padding.zeros_like()]);
    c.set(0, of_diagonal);
    c.set(4, total(g) - total(of_diagonal));
    Ok(())
}

fn matrix_diag_part(c: &GradientContext<'_>) -> RuleResult {
    let (g, zeros) = (c.grad(0), c.input(0).zeros_like());
    let of_x = match c.node().op.name {
        "MatrixDiagPart" => zeros.op_with("MatrixSetDiag", g),
        "MatrixDiagPartV2" => c.op("MatrixSetDiagV2", &[zeros, g, c.input(1)]),
        _ => c.op_with_node_attrs("MatrixSetDiagV3", &[zeros, g, c.input(1)]),
    };
    c.set(0, of_x);
    Ok(())
}

fn matrix_set_diag(c: &GradientContext<'_>) -> RuleResult {
    let (g, zeros) = (c.grad(0), c.input(1).zeros_like());
    let diagonal_of = match c.node().op.name {
        "MatrixSetDiag" => {
            c.set(0, g.op_with("MatrixSetDiag", zeros));
            c.set(1, g.op("MatrixDiagPart"));
            return Ok(());
        }
        "MatrixSetDiagV2" => "MatrixDiagPartV2",
        _ => "MatrixDiagPartV3",
    };
    let k = c.input(2);
    c.set(0, c.op_with_node_attrs(c.node().op.name, &[g, zeros, k]));
    c.set(1, c.op_with_node_attrs(diagonal_of, &[g, k, g.number(0.0)]));
    Ok(())
}

fn batch_dims(c: &GradientContext<'_>) -> i64 {
    c.node().int("batch_dims").copied().unwrap_or(0)
}

/// The gradient of the value, which is what the gradient of a variable's handle is.
fn resource_gather(c: &GradientContext<'_>) -> RuleResult {
    let value = c.op_with_node_attrs("ReadVariableOp", &[c.input(0)]);
    gather(c, value, Some(c.graph().constant(Tensor::scalar(batch_dims(c) as i32))))
}

/// What was taken from a row is added up in that row; without `axis` rows lie along the first.
fn gather<'a>(c: &GradientContext<'a>, params: Value<'a>, axis: Option<Value<'a>>) -> RuleResult {
    let shape = c.shape_of(params);
    let is_first = |axis| batch_dims(c) == 0 && c.known_ints(axis).is_some_and(|axis| axis == [0]);
    let of_params = match axis.filter(|axis| !is_first(*axis)) {
        Some(axis) => gather_along(c, shape, axis)?,
        None => {
            let n_rows = scalar(c.op("Slice", &[shape, c.graph().ints(&[0]), c.graph().ints(&[1])]));
            c.op("UnsortedSegmentSum", &[c.grad(0), c.input(1), n_rows])
        }
    };
    c.set(0, of_params);
    Ok(())
}

/// Params as [batch, outer, size, inner], the gradient as [batch, outer, n, inner]: rows of both are numbered through
/// batch and size, and the gradient's are summed by that number.
fn gather_along<'a>(c: &GradientContext<'a>, shape: Value<'a>, axis: Value<'a>) -> Result<Value<'a>, GradientError> {
    let (g, indices) = (c.grad(0), c.input(1));
    let batch = match (batch_dims(c), indices.shape().rank()) {
        (batch @ 0.., _) => batch,
        (batch, Some(rank)) => batch + rank as i64,
        _ => return Err(c.unsupported("for batch_dims counted from an unknown rank")),
    };
    let [zero, one, flat, batch] = [0, 1, -1, batch as i32].map(|i| c.graph().ints(&[i]));
    let rank = shape.shape_tensor();
    let axis = as_i32(axis).reshape(flat).op_with("FloorMod", rank);
    let after = axis + one;
    let n_batch = product(part(shape, zero, batch));
    let outer = product(part(shape, batch, axis));
    let size = part(shape, axis, after);
    let inner = product(part(shape, after, rank));
    let of_indices = c.shape_of(indices);
    let n = product(part(of_indices, batch, of_indices.shape_tensor()));
    // Number the rows.
    let offsets = counted(scalar(n_batch)) * size;
    let offsets = offsets.reshape(c.graph().concat(&[n_batch, one], 0)).cast(indices.dtype());
    let ids = (indices.reshape(c.graph().concat(&[n_batch, n], 0)) + offsets).reshape(flat);
    // Rows of the gradient, summed, and back.
    let order = c.graph().ints(&[0, 2, 1, 3]);
    let rows = g.reshape(c.graph().concat(&[n_batch, outer, n, inner], 0)).transpose(order);
    let rows = rows.reshape(c.graph().concat(&[n_batch * n, outer, inner], 0));
    let sums = c.op("UnsortedSegmentSum", &[rows, ids, scalar(n_batch * size)]);
    let sums = sums.reshape(c.graph().concat(&[n_batch, size, outer, inner], 0)).transpose(order);
    Ok(sums.reshape(shape))
}

fn gather_nd(c: &GradientContext<'_>) -> RuleResult {
    let (g, params, indices) = (c.grad(0), c.input(0), c.input(1));
    c.set(0, c.op("ScatterNd", &[indices, g, shape_as(params, indices.dtype())]));
    Ok(())
}

fn scatter_nd(c: &GradientContext<'_>) -> RuleResult {
    c.set(1, c.grad(0).op_with("GatherNd", c.input(0)));
    Ok(())
}

fn tensor_scatter(c: &GradientContext<'_>) -> RuleResult {
    let (g, indices) = (c.grad(0), c.input(1));
    let updates = g.op_with("GatherNd", indices);
    c.set(0, g);
    c.set(2, if c.node().op.name == "TensorScatterSub" { -updates } else { updates });
    Ok(())
}

fn scatter_update(c: &GradientContext<'_>) -> RuleResult {
    let (g, indices, updates) = (c.grad(0), c.input(1), c.input(2));
    c.set(0, c.op("TensorScatterUpdate", &[g, indices, updates.zeros_like()]));
    c.set(2, g.op_with("GatherNd", indices));
    Ok(())
}

/// Shared equally among all that have the extreme value.
fn scatter_extreme(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, indices, updates, z) = (c.grad(0), c.input(0), c.input(1), c.input(2), c.output(0));
    let own = x.equal(z).cast(x.dtype());
    let theirs = updates.equal(z.op_with("GatherNd", indices)).cast(x.dtype());
    let added = c.op("ScatterNd", &[indices, theirs, shape_as(x, indices.dtype())]);
    let share = g / (own + added);
    c.set(0, share * own);
    c.set(2, share.op_with("GatherNd", indices) * theirs);
    Ok(())
}

fn top_k(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, places) = (c.grad(0), c.input(0), c.output(1).cast(DType::I64));
    let (shape, of_places) = (shape_as(x, DType::I64), shape_as(places, DType::I64));
    let [last, end, one] = [-1, 0, 1].map(|i| c.graph().ints(&[i]));
    let [n, k] = [shape, of_places].map(|shape| {
        let node = c.add_node("StridedSlice").input(shape).input(last).input(end).input(one);
        node.attr("end_mask", 1i64).value()
    });
    // Counted, as -1 does not say how many rows there are where k is 0.
    let n_rows = product(part(of_places, end, last));
    let places = places.reshape(c.graph().concat(&[n_rows, k], 0));
    let column = c.graph().constant(Tensor::vector(&[-1i64, 1]));
    let offsets = (counted(scalar(n_rows)) * n).reshape(column);
    let at = (places + offsets).reshape(column);
    let flat = g.reshape(c.graph().constant(Tensor::vector(&[-1i64])));
    c.set(0, c.op("ScatterNd", &[at, flat, product(shape)]).reshape(shape));
    Ok(())
}

/// The scan `op` of a value along the node's axis, the other way.
fn scan_back<'a>(c: &GradientContext<'a>, op: &'a str, of: Value<'a>) -> Value<'a> {
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    let node = c.add_node(op).input(of).input(c.input(1));
    node.attr("exclusive", flag("exclusive")).attr("reverse", !flag("reverse")).value()
}

fn cumsum(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, scan_back(c, "Cumsum", c.grad(0)));
    Ok(())
}

/// As TensorFlow's: nothing where x is 0.
fn cumprod(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, y) = (c.grad(0), c.input(0), c.output(0));
    c.set(0, scan_back(c, "Cumsum", g * y).op_with("DivNoNan", x));
    Ok(())
}

/// In logarithms, so that nothing overflows: positive and negative gradients apart.
fn cumulative_log_sum_exp(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, y) = (c.grad(0), c.input(0), c.output(0));
    let [positive, negative] = [g, -g].map(|g| {
        let some = g.greater(0.0);
        let log = some.select(g, g.ones_like()).log();
        let log = some.select(log, log.number(f64::NEG_INFINITY));
        (scan_back(c, "CumulativeLogsumexp", log - y) + x).exp()
    });
    c.set(0, positive - negative);
    Ok(())
}

/// The product of all other elements, by running products from both ends: right where elements are zero.
fn prod(c: &GradientContext<'_>) -> RuleResult {
    let (x, axes, grad) = (c.input(0), c.input(1), spread(c));
    let (shape, rank, flat) = (c.shape_of(x), x.rank_tensor(), c.graph().ints(&[-1]));
    let zero = rank.number(0.0);
    let reduced = as_i32(axes).reshape(flat).op_with("FloorMod", rank);
    let kept = counted(rank).op_with("ListDiff", reduced);
    let order = c.graph().concat(&[reduced, kept], 0);
    let moved = x.transpose(order);
    let n = product(c.op("GatherV2", &[shape, reduced, zero]));
    let rows = moved.reshape(c.graph().concat(&[n, flat], 0));
    let [from_left, from_right] = [false, true].map(|reverse| {
        c.add_node("Cumprod").input(rows).input(zero).attr("exclusive", true).attr("reverse", reverse).value()
    });
    let others = c.reshape_like(from_left * from_right, moved);
    let others = others.transpose(order.op("InvertPermutation"));
    // The rank may not have been known on the way.
    c.set(0, (grad * conjugate(others)).reshape(shape));
    Ok(())
}

fn euclidean_norm(c: &GradientContext<'_>) -> RuleResult {
    let (x, y, g) = (c.input(0), c.output(0), c.grad(0));
    c.set(0, x * (with_kept_axes(c, g) / with_kept_axes(c, y)));
    Ok(())
}
