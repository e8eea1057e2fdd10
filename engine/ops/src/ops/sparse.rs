//! Sparse tensors: a matrix of coordinates, a vector of values and a shape, three edges of the graph.

use super::shapes::{Inferred, none, second_input_lists, unchanged};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, op};
use engine_core::shape::PartialShape;

const T: &str = "T: {numbers, quantized}";
const REDUCE: &str = "keep_dims: bool = false; T: {numbers, quantized}";
const REDUCTION: &str = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output: T";
const REDUCTION_SPARSE: &str = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> \
                                output_indices: int64, output_values: T, output_shape: int64";
const WITH_DENSE: &str = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T";
const TWO: &str = "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64 -> \
                   output_indices: int64, output_values: T";

#[linkme::distributed_slice(OP_TABLES)]
static SPARSE: &[OpSpec] = &[
    op(
        "SparseTensorDenseMatMul",
        "a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T",
        "T: type; Tindices: {int32, int64} = int64; adjoint_a: bool = false; adjoint_b: bool = false",
        matmul,
    ),
    op(
        "SparseAdd",
        "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64, thresh: Treal \
         -> sum_indices: int64, sum_values: T, sum_shape: int64",
        "T: {numbers, quantized}; Treal: {reals}",
        |c| triple(c, 0),
    ),
    op(
        "SparseAddGrad",
        "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64 -> a_val_grad: T, b_val_grad: T",
        T,
        add_grad,
    ),
    op("SparseSparseMaximum", TWO, T, pair),
    op("SparseSparseMinimum", TWO, T, pair),
    op("SparseReduceSum", REDUCTION, REDUCE, none),
    op("SparseReduceMax", REDUCTION, REDUCE, none),
    op("SparseReduceSumSparse", REDUCTION_SPARSE, REDUCE, reduced),
    op("SparseReduceMaxSparse", REDUCTION_SPARSE, REDUCE, reduced),
    op(
        "SparseToDense",
        "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> dense: T",
        "validate_indices: bool = true; T: type; Tindices: {int32, int64}",
        second_input_lists,
    ),
    op(
        "SparseReorder",
        "input_indices: int64, input_values: T, input_shape: int64 -> output_indices: int64, output_values: T",
        "T: type",
        reorder,
    ),
    op(
        "SparseReshape",
        "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, output_shape: int64",
        "",
        reshape,
    ),
    op(
        "SparseConcat",
        "indices: N * int64, values: N * T, shapes: N * int64 -> output_indices: int64, output_values: T, \
         output_shape: int64",
        "concat_dim: int; N: int; T: type",
        |c| triple(c, 0),
    ),
    op(
        "SparseSplit",
        "split_dim: int64, indices: int64, values: T, shape: int64 -> output_indices: num_split * int64, \
         output_values: num_split * T, output_shape: num_split * int64",
        "num_split: int; T: type",
        split,
    ),
    op(
        "SparseSlice",
        "indices: int64, values: T, shape: int64, start: int64, size: int64 -> output_indices: int64, \
         output_values: T, output_shape: int64",
        "T: type",
        |c| triple(c, 0),
    ),
    op(
        "SparseSliceGrad",
        "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64 -> val_grad: T",
        T,
        |c| values_of(c, 1, 0),
    ),
    op(
        "SparseSoftmax",
        "sp_indices: int64, sp_values: T, sp_shape: int64 -> output: T",
        "T: {half, float, double}",
        second,
    ),
    op("SparseDenseCwiseMul", WITH_DENSE, T, second),
    op("SparseDenseCwiseDiv", WITH_DENSE, T, second),
    op("SparseDenseCwiseAdd", WITH_DENSE, T, second),
    op(
        "SparseTensorDenseAdd",
        "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T -> output: T",
        "T: {numbers, quantized}; Tindices: {int32, int64}",
        fourth,
    ),
    op(
        "SparseFillEmptyRows",
        "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: int64, output_values: T, \
         empty_row_indicator: bool, reverse_index_map: int64",
        "T: type",
        fill_empty_rows,
    ),
    op(
        "SparseFillEmptyRowsGrad",
        "reverse_index_map: int64, grad_values: T -> d_values: T, d_default_value: T",
        "T: type",
        |c| {
            unchanged(c)?;
            c.set(1, PartialShape::scalar());
            Ok(())
        },
    ),
];

/// The rank that a list of coordinates has.
fn rank_of(c: &InferContext<'_>, i: usize) -> Option<usize> {
    c.input(i).dims().and_then(|dims| *dims.get(1)?)
}

/// Coordinates, values and shape of unknown length, of the rank of the coordinates in an input.
fn triple(c: &mut InferContext<'_>, i: usize) -> Inferred {
    let rank = rank_of(c, i);
    c.set(0, [None, rank]);
    c.set(1, [None]);
    c.set(2, [rank]);
    Ok(())
}

fn reduced(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, [None, None]);
    c.set(1, [None]);
    c.set(2, [None]);
    Ok(())
}

fn pair(c: &mut InferContext<'_>) -> Inferred {
    let rank = rank_of(c, 0);
    c.set(0, [None, rank]);
    c.set(1, [None]);
    Ok(())
}

/// Output `o` has one value for each coordinate of input `i`.
fn values_of(c: &mut InferContext<'_>, i: usize, o: usize) -> Inferred {
    let n = c.input(i).dims().and_then(|dims| *dims.first()?);
    c.set(o, [n]);
    Ok(())
}

fn add_grad(c: &mut InferContext<'_>) -> Inferred {
    values_of(c, 1, 0)?;
    values_of(c, 2, 1)
}

fn reorder(c: &mut InferContext<'_>) -> Inferred {
    let (at, values) = (c.input(0), c.input(1));
    c.set(0, at);
    c.set(1, values);
    Ok(())
}

fn reshape(c: &mut InferContext<'_>) -> Inferred {
    let n = c.input(0).dims().and_then(|dims| *dims.first()?);
    let rank = c.input(2).dims().and_then(|dims| *dims.first()?);
    c.set(0, [n, rank]);
    c.set(1, [rank]);
    Ok(())
}

fn split(c: &mut InferContext<'_>) -> Inferred {
    let rank = rank_of(c, 1);
    let n = c.n_outputs() / 3;
    for i in 0..n {
        c.set(i, [None, rank]);
        c.set(n + i, [None]);
        c.set(2 * n + i, [rank]);
    }
    Ok(())
}

fn second(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.input(1);
    c.set(0, shape);
    Ok(())
}

fn fourth(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.input(3);
    c.set(0, shape);
    Ok(())
}

fn matmul(c: &mut InferContext<'_>) -> Inferred {
    let b = c.of_rank(3, 2)?;
    let n = b.dims().and_then(|dims| dims[usize::from(!c.flag("adjoint_b"))]);
    let m = c.ints(2).and_then(|shape| usize::try_from(*shape.get(usize::from(c.flag("adjoint_a")))?).ok());
    c.set(0, [m, n]);
    Ok(())
}

fn fill_empty_rows(c: &mut InferContext<'_>) -> Inferred {
    let rank = rank_of(c, 0);
    let rows = c.ints(2).and_then(|shape| usize::try_from(*shape.first()?).ok());
    c.set(0, [None, rank]);
    c.set(1, [None]);
    c.set(2, [rows]);
    values_of(c, 0, 3)
}
