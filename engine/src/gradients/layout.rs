//! Gradients of ops that move elements, choose them by indices, or run along an axis.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::dtype::DType;
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;
type Ctx<'a, 'b> = &'a mut GradientContext<'b>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static MOVES: &[GradientSpec] = &[
    ("Pad", Function(pad)),
    ("PadV2", Function(pad)),
    ("MirrorPad", Function(|c| same_again(c, "MirrorPadGrad", &["mode"]))),
    ("MirrorPadGrad", Function(|c| same_again(c, "MirrorPad", &["mode"]))),
    ("Reverse", Function(|c| same_again(c, "Reverse", &[]))),
    ("ReverseV2", Function(|c| same_again(c, "ReverseV2", &[]))),
    ("ReverseSequence", Function(|c| same_again(c, "ReverseSequence", &["seq_dim", "batch_dim"]))),
    ("Roll", Function(roll)),
    ("Concat", Function(concat)),
    ("Split", Function(split)),
    ("SplitV", Function(split_v)),
    ("ConjugateTranspose", Function(conjugate_transpose)),
    ("SpaceToBatch", Function(|c| same_again(c, "BatchToSpace", &["block_size"]))),
    ("BatchToSpace", Function(|c| same_again(c, "SpaceToBatch", &["block_size"]))),
    ("SpaceToBatchND", Function(|c| same_again(c, "BatchToSpaceND", &[]))),
    ("BatchToSpaceND", Function(|c| same_again(c, "SpaceToBatchND", &[]))),
    ("SpaceToDepth", Function(|c| same_again(c, "DepthToSpace", &["block_size", "data_format"]))),
    ("DepthToSpace", Function(|c| same_again(c, "SpaceToDepth", &["block_size", "data_format"]))),
    ("ExtractImagePatches", Function(patches)),
    ("Snapshot", Function(|c| pass(c, 0))),
    ("EnsureShape", Function(|c| pass(c, 0))),
    ("DeepCopy", Function(|c| pass(c, 0))),
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
    ("MatrixBandPart", Function(|c| same_again(c, "MatrixBandPart", &[]))),
    ("BatchMatrixBandPart", Function(|c| same_again(c, "BatchMatrixBandPart", &[]))),
    ("Bitcast", Zero),
];

#[linkme::distributed_slice(GRADIENT_TABLES)]
static INDEXING: &[GradientSpec] = &[
    (
        "Gather",
        Function(|c| {
            let params = c.input(0);
            gather(c, params, None, 0)
        }),
    ),
    ("GatherV2", Function(gather_v2)),
    ("ResourceGather", Function(resource_gather)),
    ("GatherNd", Function(gather_nd)),
    ("ScatterNd", Function(scatter_nd)),
    ("ScatterNdNonAliasingAdd", Function(|c| tensor_scatter(c, None))),
    ("TensorScatterAdd", Function(|c| tensor_scatter(c, None))),
    ("TensorScatterSub", Function(|c| tensor_scatter(c, Some("Neg")))),
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

/// The node's own attributes of these names.
fn attrs<'n>(c: &GradientContext<'_>, names: &[&'n str]) -> Vec<(&'n str, Attr)> {
    names.iter().filter_map(|name| Some((*name, c.node().attrs.get(*name)?.clone()))).collect()
}

/// The gradient itself.
fn pass(c: Ctx<'_, '_>, i: usize) -> Done {
    let g = c.grad(0)?;
    c.set(i, g);
    Ok(())
}

/// An op of the gradient alone.
fn of_gradient(c: Ctx<'_, '_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let x = c.op(op, &[g])?;
    c.set(0, x);
    Ok(())
}

/// An op of the gradient in place of the first input, the other inputs being those of the node.
fn same_again(c: Ctx<'_, '_>, op: &str, names: &[&str]) -> Done {
    let mut inputs = vec![c.grad(0)?];
    inputs.extend((1..c.node().inputs.len()).map(|i| c.input(i)));
    let attrs = attrs(c, names);
    let x = c.op_with(op, &inputs, &attrs)?;
    c.set(0, x);
    Ok(())
}

/// The shape of an output as integers of the type of `like`.
fn shape_as(c: Ctx<'_, '_>, of: Output, like: Output) -> Added {
    let dtype = match c.dtype(like)? {
        DType::I64 => DType::I64,
        _ => DType::I32,
    };
    c.op_with("Shape", &[of], &[("out_type", Attr::Type(dtype))])
}

/// The sum of all elements.
fn total(c: Ctx<'_, '_>, of: Output) -> Added {
    let whole = c.vector(&[-1i32])?;
    let flat = c.op("Reshape", &[of, whole])?;
    let axis = c.vector(&[0i32])?;
    c.op("Sum", &[flat, axis])
}

fn pad(c: Ctx<'_, '_>) -> Done {
    let (g, x, paddings) = (c.grad(0)?, c.input(0), c.input(1));
    let (from, size) = (c.vector(&[0i32, 0])?, c.vector(&[-1i32, 1])?);
    let before = c.op("Slice", &[paddings, from, size])?;
    let whole = c.vector(&[-1i32])?;
    let before = c.op("Reshape", &[before, whole])?;
    let shape = shape_as(c, x, paddings)?;
    let of_x = c.op("Slice", &[g, before, shape])?;
    c.set(0, of_x);
    if c.node().inputs.len() > 2 {
        let (all, inside) = (total(c, g)?, total(c, of_x)?);
        let of_value = c.op("Sub", &[all, inside])?;
        c.set(2, of_value);
    }
    Ok(())
}

fn roll(c: Ctx<'_, '_>) -> Done {
    let (g, shift, axis) = (c.grad(0)?, c.input(1), c.input(2));
    let back = c.op("Neg", &[shift])?;
    let x = c.op("Roll", &[g, back, axis])?;
    c.set(0, x);
    Ok(())
}

/// Cuts the gradient of a concatenation apart again; `axis` may be anything that runs.
pub(super) fn cut_apart(c: Ctx<'_, '_>, values: std::ops::Range<usize>, axis: Output) -> Done {
    let g = c.grad(0)?;
    let shapes = values.clone().map(|i| c.shape_of(c.input(i))).collect::<Result<Vec<_>, _>>()?;
    let axis = if c.dtype(axis)? == DType::I32 {
        axis
    } else {
        c.op_with("Cast", &[axis], &[("DstT", Attr::Type(DType::I32))])?
    };
    let offsets = c.op_then_list("ConcatOffset", &[axis], &shapes)?;
    for (k, i) in values.enumerate() {
        let begin = Output { port: k as u32, ..offsets };
        let part = c.op("Slice", &[g, begin, shapes[k]])?;
        c.set(i, part);
    }
    Ok(())
}

fn concat(c: Ctx<'_, '_>) -> Done {
    let axis = c.input(0);
    cut_apart(c, 1..c.node().inputs.len(), axis)
}

fn split(c: Ctx<'_, '_>) -> Done {
    let grads = (0..c.node().outputs.len()).map(|i| c.grad(i)).collect::<Result<Vec<_>, _>>()?;
    let axis = c.input(0);
    let x = c.op_of_list("ConcatV2", &grads, &[axis], &[])?;
    c.set(1, x);
    Ok(())
}

fn split_v(c: Ctx<'_, '_>) -> Done {
    let grads = (0..c.node().outputs.len()).map(|i| c.grad(i)).collect::<Result<Vec<_>, _>>()?;
    let axis = c.input(2);
    let x = c.op_of_list("ConcatV2", &grads, &[axis], &[])?;
    c.set(0, x);
    Ok(())
}

fn conjugate_transpose(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let inverse = c.op("InvertPermutation", &[c.input(1)])?;
    let x = c.op("ConjugateTranspose", &[g, inverse])?;
    c.set(0, x);
    Ok(())
}

/// Each patch element is added to the pixel it was cut from; which one, cutting a picture of positions tells.
fn patches(c: Ctx<'_, '_>) -> Done {
    let (g, x) = (c.grad(0)?, c.input(0));
    let shape = c.shape_of(x)?;
    let [start, second, fourth] = [c.vector(&[0i32])?, c.vector(&[1i32])?, c.vector(&[3i32])?];
    let [one_long, two_long] = [c.vector(&[1i32])?, c.vector(&[2i32])?];
    let batch = c.op("Slice", &[shape, start, one_long])?;
    let size = c.op("Slice", &[shape, second, two_long])?;
    let channels = c.op("Slice", &[shape, fourth, one_long])?;
    let n = product_of(c, shape, second, fourth)?;
    let n = scalar(c, n)?;
    let (axis, step) = (c.constant(Tensor::scalar(0i32))?, c.constant(Tensor::scalar(1i32))?);
    let end = c.op("AddV2", &[n, step])?;
    let positions = c.op("Range", &[step, end, step])?;
    let positions = c.op_with("Cast", &[positions], &[("DstT", Attr::Type(DType::I64))])?;
    let picture = c.op_of_list("ConcatV2", &[one_long, size, one_long], &[axis], &[])?;
    let positions = c.op("Reshape", &[positions, picture])?;
    let attrs = attrs(c, &["ksizes", "strides", "rates", "padding"]);
    let cut = c.op_with("ExtractImagePatches", &[positions], &attrs)?;
    let (one, flat) = (c.constant(Tensor::scalar(1i64))?, c.vector(&[-1i32])?);
    let cut = c.op("Reshape", &[cut, flat])?;
    // Padding is position 0, so -1, which no segment is.
    let ids = c.op("Sub", &[cut, one])?;
    let rows = c.op_of_list("ConcatV2", &[batch, flat, channels], &[axis], &[])?;
    let g = c.op("Reshape", &[g, rows])?;
    let order = c.vector(&[1i32, 0, 2])?;
    let g = c.op("Transpose", &[g, order])?;
    let sums = c.op("UnsortedSegmentSum", &[g, ids, n])?;
    let sums = c.op("Transpose", &[sums, order])?;
    let of_x = c.op("Reshape", &[sums, shape])?;
    c.set(0, of_x);
    Ok(())
}

fn matrix_diag(c: Ctx<'_, '_>) -> Done {
    let (g, k, padding) = (c.grad(0)?, c.input(1), c.input(4));
    let zero = c.op("ZerosLike", &[padding])?;
    let v3 = if c.node().op.name == "MatrixDiagV3" { "MatrixDiagPartV3" } else { "MatrixDiagPartV2" };
    let attrs = attrs(c, &["align"]);
    let of_diagonal = c.op_with(v3, &[g, k, zero], &attrs)?;
    c.set(0, of_diagonal);
    let (all, inside) = (total(c, g)?, total(c, of_diagonal)?);
    let of_padding = c.op("Sub", &[all, inside])?;
    c.set(4, of_padding);
    Ok(())
}

fn matrix_diag_part(c: Ctx<'_, '_>) -> Done {
    let (g, x) = (c.grad(0)?, c.input(0));
    let zeros = c.op("ZerosLike", &[x])?;
    let of_x = match c.node().op.name {
        "MatrixDiagPart" => c.op("MatrixSetDiag", &[zeros, g])?,
        "MatrixDiagPartV2" => c.op("MatrixSetDiagV2", &[zeros, g, c.input(1)])?,
        _ => {
            let attrs = attrs(c, &["align"]);
            c.op_with("MatrixSetDiagV3", &[zeros, g, c.input(1)], &attrs)?
        }
    };
    c.set(0, of_x);
    Ok(())
}

fn matrix_set_diag(c: Ctx<'_, '_>) -> Done {
    let (g, diagonal) = (c.grad(0)?, c.input(1));
    let zeros = c.op("ZerosLike", &[diagonal])?;
    let attrs = attrs(c, &["align"]);
    let (of_x, of_diagonal) = if c.node().op.name == "MatrixSetDiag" {
        (c.op("MatrixSetDiag", &[g, zeros])?, c.op("MatrixDiagPart", &[g])?)
    } else {
        let k = c.input(2);
        let zero = c.scalar_like(0.0, g)?;
        let part = if attrs.is_empty() { "MatrixDiagPartV2" } else { "MatrixDiagPartV3" };
        (c.op_with(c.node().op.name, &[g, zeros, k], &attrs)?, c.op_with(part, &[g, k, zero], &attrs)?)
    };
    c.set(0, of_x);
    c.set(1, of_diagonal);
    Ok(())
}

fn gather_v2(c: Ctx<'_, '_>) -> Done {
    let (params, axis) = (c.input(0), c.input(2));
    let batch = c.node().int("batch_dims").copied().unwrap_or(0);
    gather(c, params, Some(axis), batch)
}

/// The gradient of the value, which is what the gradient of a variable's handle is.
fn resource_gather(c: Ctx<'_, '_>) -> Done {
    let handle = c.input(0);
    let attrs = attrs(c, &["dtype"]);
    let value = c.op_with("ReadVariableOp", &[handle], &attrs)?;
    let batch = c.node().int("batch_dims").copied().unwrap_or(0);
    let axis = c.constant(Tensor::scalar(batch as i32))?;
    gather(c, value, Some(axis), batch)
}

/// What was taken from a row is added up in that row.
fn gather(c: Ctx<'_, '_>, params: Output, axis: Option<Output>, batch: i64) -> Done {
    let (g, indices) = (c.grad(0)?, c.input(1));
    let first = axis.is_none_or(|axis| c.ints(axis).is_some_and(|axis| axis == [0]));
    let shape = c.shape_of(params)?;
    let of_params = if first && batch == 0 {
        let (zero, one) = (c.vector(&[0i32])?, c.vector(&[1i32])?);
        let n_rows = c.op("Slice", &[shape, zero, one])?;
        let n_rows = scalar(c, n_rows)?;
        c.op("UnsortedSegmentSum", &[g, indices, n_rows])?
    } else {
        gather_along(c, shape, axis, batch)?
    };
    c.set(0, of_params);
    Ok(())
}

/// A vector of one number as a scalar.
fn scalar(c: Ctx<'_, '_>, vector: Output) -> Added {
    let shape = c.vector::<i32>(&[])?;
    c.op("Reshape", &[vector, shape])
}

/// The product of a part of a shape, from `begin` to `end` (vectors of one number), as a vector.
fn product_of(c: Ctx<'_, '_>, shape: Output, begin: Output, end: Output) -> Added {
    let (one, axis) = (c.vector(&[1i32])?, c.vector(&[0i32])?);
    let part = c.op("StridedSlice", &[shape, begin, end, one])?;
    c.op_with("Prod", &[part, axis], &[("keep_dims", Attr::Bool(true))])
}

/// Params as [batch, outer, size, inner], the gradient as [batch, outer, n, inner]: rows of both are numbered through
/// batch and size, and the gradient's are summed by that number.
fn gather_along(c: Ctx<'_, '_>, shape: Output, axis: Option<Output>, batch: i64) -> Added {
    let (g, indices) = (c.grad(0)?, c.input(1));
    let batch = match (batch, c.shape(indices)?.rank()) {
        (0.., _) => batch,
        (_, Some(rank)) => batch + rank as i64,
        _ => return Err(c.unsupported("for batch_dims counted from an unknown rank")),
    };
    let flat = c.vector(&[-1i32])?;
    let zero = c.vector(&[0i32])?;
    let (one, batch) = (c.vector(&[1i32])?, c.vector(&[batch as i32])?);
    let rank = c.op("Shape", &[shape])?;
    let axis = axis.unwrap_or(zero);
    let axis = if c.dtype(axis)? == DType::I32 {
        axis
    } else {
        c.op_with("Cast", &[axis], &[("DstT", Attr::Type(DType::I32))])?
    };
    let axis = c.op("Reshape", &[axis, flat])?;
    let axis = c.op("FloorMod", &[axis, rank])?;
    let after = c.op("AddV2", &[axis, one])?;
    let n_batch = product_of(c, shape, zero, batch)?;
    let outer = product_of(c, shape, batch, axis)?;
    let size = c.op("StridedSlice", &[shape, axis, after, one])?;
    let inner = product_of(c, shape, after, rank)?;
    let of_indices = c.shape_of(indices)?;
    let index_rank = c.op("Shape", &[of_indices])?;
    let n = product_of(c, of_indices, batch, index_rank)?;
    let at = c.constant(Tensor::scalar(0i32))?;
    let joined = |c: Ctx<'_, '_>, parts: &[Output]| c.op_of_list("ConcatV2", parts, &[at], &[]);
    // Number the rows.
    let (count, step) = (scalar(c, n_batch)?, c.constant(Tensor::scalar(1i32))?);
    let batches = c.op("Range", &[at, count, step])?;
    let offsets = c.op("Mul", &[batches, size])?;
    let column = joined(c, &[n_batch, one])?;
    let offsets = c.op("Reshape", &[offsets, column])?;
    let index_type = c.dtype(indices)?;
    let offsets = c.op_with("Cast", &[offsets], &[("DstT", Attr::Type(index_type))])?;
    let table = joined(c, &[n_batch, n])?;
    let ids = c.op("Reshape", &[indices, table])?;
    let ids = c.op("AddV2", &[ids, offsets])?;
    let ids = c.op("Reshape", &[ids, flat])?;
    // Rows of the gradient, summed, and back.
    let order = c.vector(&[0i32, 2, 1, 3])?;
    let four = joined(c, &[n_batch, outer, n, inner])?;
    let rows = c.op("Reshape", &[g, four])?;
    let rows = c.op("Transpose", &[rows, order])?;
    let n_ids = c.op("Mul", &[n_batch, n])?;
    let three = joined(c, &[n_ids, outer, inner])?;
    let rows = c.op("Reshape", &[rows, three])?;
    let n_rows = c.op("Mul", &[n_batch, size])?;
    let n_rows = scalar(c, n_rows)?;
    let sums = c.op("UnsortedSegmentSum", &[rows, ids, n_rows])?;
    let four = joined(c, &[n_batch, size, outer, inner])?;
    let sums = c.op("Reshape", &[sums, four])?;
    let sums = c.op("Transpose", &[sums, order])?;
    c.op("Reshape", &[sums, shape])
}

fn gather_nd(c: Ctx<'_, '_>) -> Done {
    let (g, params, indices) = (c.grad(0)?, c.input(0), c.input(1));
    let shape = shape_as(c, params, indices)?;
    let x = c.op("ScatterNd", &[indices, g, shape])?;
    c.set(0, x);
    Ok(())
}

fn scatter_nd(c: Ctx<'_, '_>) -> Done {
    let (g, indices) = (c.grad(0)?, c.input(0));
    let updates = c.op("GatherNd", &[g, indices])?;
    c.set(1, updates);
    Ok(())
}

fn tensor_scatter(c: Ctx<'_, '_>, change: Option<&str>) -> Done {
    let (g, indices) = (c.grad(0)?, c.input(1));
    c.set(0, g);
    let mut updates = c.op("GatherNd", &[g, indices])?;
    if let Some(op) = change {
        updates = c.op(op, &[updates])?;
    }
    c.set(2, updates);
    Ok(())
}

fn scatter_update(c: Ctx<'_, '_>) -> Done {
    let (g, indices) = (c.grad(0)?, c.input(1));
    let zeros = c.op("ZerosLike", &[c.input(2)])?;
    let of_x = c.op("TensorScatterUpdate", &[g, indices, zeros])?;
    let updates = c.op("GatherNd", &[g, indices])?;
    c.set(0, of_x);
    c.set(2, updates);
    Ok(())
}

/// Shared equally among all that have the extreme value.
fn scatter_extreme(c: Ctx<'_, '_>) -> Done {
    let (g, x, indices, updates, z) = (c.grad(0)?, c.input(0), c.input(1), c.input(2), c.output(0));
    let dtype = [("DstT", Attr::Type(c.dtype(x)?))];
    let own = c.op("Equal", &[x, z])?;
    let own = c.op_with("Cast", &[own], &dtype)?;
    let chosen = c.op("GatherNd", &[z, indices])?;
    let theirs = c.op("Equal", &[updates, chosen])?;
    let theirs = c.op_with("Cast", &[theirs], &dtype)?;
    let shape = shape_as(c, x, indices)?;
    let spread = c.op("ScatterNd", &[indices, theirs, shape])?;
    let n = c.op("AddV2", &[own, spread])?;
    let share = c.op("RealDiv", &[g, n])?;
    let of_x = c.op("Mul", &[share, own])?;
    let of_updates = c.op("GatherNd", &[share, indices])?;
    let of_updates = c.op("Mul", &[of_updates, theirs])?;
    c.set(0, of_x);
    c.set(2, of_updates);
    Ok(())
}

fn top_k(c: Ctx<'_, '_>) -> Done {
    let (g, x, places) = (c.grad(0)?, c.input(0), c.output(1));
    let long = [("DstT", Attr::Type(DType::I64))];
    let places = c.op_with("Cast", &[places], &long)?;
    let shape = c.op_with("Shape", &[x], &[("out_type", Attr::Type(DType::I64))])?;
    let flat = c.vector(&[-1i64])?;
    let (last, end, one) = (c.vector(&[-1i32])?, c.vector(&[0i32])?, c.vector(&[1i32])?);
    let n = c.op_with("StridedSlice", &[shape, last, end, one], &[("end_mask", Attr::Int(1))])?;
    let of_places = c.op_with("Shape", &[places], &[("out_type", Attr::Type(DType::I64))])?;
    let k = c.op_with("StridedSlice", &[of_places, last, end, one], &[("end_mask", Attr::Int(1))])?;
    let axis = c.constant(Tensor::scalar(0i32))?;
    // Counted, as -1 does not say how many rows there are where k is 0.
    let n_rows = product_of(c, of_places, end, last)?;
    let table = c.op_of_list("ConcatV2", &[n_rows, k], &[axis], &[])?;
    let places = c.op("Reshape", &[places, table])?;
    let n_rows = scalar(c, n_rows)?;
    let (zero, step) = (c.constant(Tensor::scalar(0i64))?, c.constant(Tensor::scalar(1i64))?);
    let offsets = c.op("Range", &[zero, n_rows, step])?;
    let offsets = c.op("Mul", &[offsets, n])?;
    let column = c.vector(&[-1i64, 1])?;
    let offsets = c.op("Reshape", &[offsets, column])?;
    let at = c.op("AddV2", &[places, offsets])?;
    let at = c.op("Reshape", &[at, column])?;
    let g = c.op("Reshape", &[g, flat])?;
    let axes = c.vector(&[0i32])?;
    let size = c.op_with("Prod", &[shape, axes], &[("keep_dims", Attr::Bool(true))])?;
    let spread = c.op("ScatterNd", &[at, g, size])?;
    let of_x = c.op("Reshape", &[spread, shape])?;
    c.set(0, of_x);
    Ok(())
}

/// The flags of a scan that runs the other way.
fn other_way(c: &GradientContext<'_>) -> [(&'static str, Attr); 2] {
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    [("exclusive", Attr::Bool(flag("exclusive"))), ("reverse", Attr::Bool(!flag("reverse")))]
}

fn cumsum(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let flags = other_way(c);
    let x = c.op_with("Cumsum", &[g, c.input(1)], &flags)?;
    c.set(0, x);
    Ok(())
}

/// As TensorFlow's: nothing where x is 0.
fn cumprod(c: Ctx<'_, '_>) -> Done {
    let (g, x, y) = (c.grad(0)?, c.input(0), c.output(0));
    let gy = c.op("Mul", &[g, y])?;
    let flags = other_way(c);
    let sums = c.op_with("Cumsum", &[gy, c.input(1)], &flags)?;
    let of_x = c.op("DivNoNan", &[sums, x])?;
    c.set(0, of_x);
    Ok(())
}

/// In logarithms, so that nothing overflows: positive and negative gradients apart.
fn cumulative_log_sum_exp(c: Ctx<'_, '_>) -> Done {
    let (g, x, axis, y) = (c.grad(0)?, c.input(0), c.input(1), c.output(0));
    let flags = other_way(c);
    let zero = c.scalar_like(0.0, g)?;
    let nothing = c.scalar_like(f64::NEG_INFINITY, g)?;
    let minus = c.op("Neg", &[g])?;
    let mut parts = Vec::new();
    for part in [g, minus] {
        let some = c.op("Greater", &[part, zero])?;
        let one = c.op("OnesLike", &[part])?;
        let safe = c.op("SelectV2", &[some, part, one])?;
        let log = c.op("Log", &[safe])?;
        let log = c.op("SelectV2", &[some, log, nothing])?;
        let below = c.op("Sub", &[log, y])?;
        let sums = c.op_with("CumulativeLogsumexp", &[below, axis], &flags)?;
        let sums = c.op("AddV2", &[sums, x])?;
        parts.push(c.op("Exp", &[sums])?);
    }
    let of_x = c.op("Sub", &[parts[0], parts[1]])?;
    c.set(0, of_x);
    Ok(())
}

/// The product of all other elements, by running products from both ends: right where elements are zero.
fn prod(c: Ctx<'_, '_>) -> Done {
    let (x, axes) = (c.input(0), c.input(1));
    let grad = super::math::spread(c)?;
    let long = c.dtype(axes)? == DType::I64;
    let axes = if long { c.op_with("Cast", &[axes], &[("DstT", Attr::Type(DType::I32))])? } else { axes };
    let flat = c.vector(&[-1i32])?;
    let axes = c.op("Reshape", &[axes, flat])?;
    let rank = c.op("Rank", &[x])?;
    let reduced = c.op("FloorMod", &[axes, rank])?;
    let (zero, one) = (c.constant(Tensor::scalar(0i32))?, c.constant(Tensor::scalar(1i32))?);
    let all = c.op("Range", &[zero, rank, one])?;
    let kept = c.op("ListDiff", &[all, reduced])?;
    let order = c.op_of_list("ConcatV2", &[reduced, kept], &[zero], &[])?;
    let moved = c.op("Transpose", &[x, order])?;
    let shape = c.shape_of(x)?;
    let lengths = c.op("GatherV2", &[shape, reduced, zero])?;
    let first = c.vector(&[0i32])?;
    let n = c.op_with("Prod", &[lengths, first], &[("keep_dims", Attr::Bool(true))])?;
    let table = c.op_of_list("ConcatV2", &[n, flat], &[zero], &[])?;
    let rows = c.op("Reshape", &[moved, table])?;
    let from_left = c.op_with("Cumprod", &[rows, zero], &[("exclusive", Attr::Bool(true))])?;
    let both = [("exclusive", Attr::Bool(true)), ("reverse", Attr::Bool(true))];
    let from_right = c.op_with("Cumprod", &[rows, zero], &both)?;
    let others = c.op("Mul", &[from_left, from_right])?;
    let others = c.reshape_like(others, moved)?;
    let back = c.op("InvertPermutation", &[order])?;
    let others = c.op("Transpose", &[others, back])?;
    let others = super::elementwise::conjugate(c, others)?;
    let of_x = c.op("Mul", &[grad, others])?;
    // The rank may not have been known on the way.
    let of_x = c.op("Reshape", &[of_x, shape])?;
    c.set(0, of_x);
    Ok(())
}

/// `g x / y`
fn euclidean_norm(c: Ctx<'_, '_>) -> Done {
    let (x, y, g) = (c.input(0), c.output(0), c.grad(0)?);
    let y = super::math::with_kept_axes(c, y)?;
    let g = super::math::with_kept_axes(c, g)?;
    let share = c.op("RealDiv", &[g, y])?;
    let of_x = c.op("Mul", &[x, share])?;
    c.set(0, of_x);
    Ok(())
}
