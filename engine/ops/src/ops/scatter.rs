//! Scatter ops: rows and slices of variables updated at indices.

use super::shapes::{Inferred, none};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, ShapeError, op, reads, stateful};
use engine_core::shape::PartialShape;

const REF: &str = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)";
const REF_ANY: &str = "T: type; Tindices: {int32, int64}; use_locking: bool = true";
const REF_NUM: &str = "T: {numbers, quantized}; Tindices: {int32, int64}; use_locking: bool = false";
const REF_ND_ANY: &str = "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = ''";
const REF_ND_NUM: &str = "T: {numbers, quantized}; Tindices: {int32, int64}; use_locking: bool = false; \
                          bad_indices_policy: string = ''";
const RESOURCE: &str = "resource: resource, indices: Tindices, updates: dtype ->";
const RESOURCE_T: &str = "dtype: type; Tindices: {int32, int64}";
const RESOURCE_ND: &str = "ref: resource, indices: Tindices, updates: T ->";
const TENSOR: &str = "tensor: T, indices: Tindices, updates: T -> output: T";
const TENSOR_T: &str = "T: type; Tindices: {int16, int32, int64, uint16}; bad_indices_policy: string = ''";
const MASKS: &str = "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; \
                     ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0";

#[linkme::distributed_slice(OP_TABLES)]
static SCATTER: &[OpSpec] = &[
    stateful("ScatterUpdate", REF, REF_ANY, same),
    stateful("ScatterAdd", REF, REF_NUM, same),
    stateful("ScatterSub", REF, REF_NUM, same),
    stateful("ScatterMul", REF, REF_NUM, same),
    stateful("ScatterDiv", REF, REF_NUM, same),
    stateful("ScatterMin", REF, REF_NUM, same),
    stateful("ScatterMax", REF, REF_NUM, same),
    stateful("ScatterNdUpdate", REF, REF_ND_ANY, same),
    stateful("ScatterNdAdd", REF, REF_ND_NUM, same),
    stateful("ScatterNdSub", REF, REF_ND_NUM, same),
    stateful("ScatterNdMin", REF, REF_ND_NUM, same),
    stateful("ScatterNdMax", REF, REF_ND_NUM, same),
    stateful("ResourceScatterUpdate", RESOURCE, RESOURCE_T, none),
    stateful("ResourceScatterAdd", RESOURCE, RESOURCE_T, none),
    stateful("ResourceScatterSub", RESOURCE, RESOURCE_T, none),
    stateful("ResourceScatterMul", RESOURCE, RESOURCE_T, none),
    stateful("ResourceScatterDiv", RESOURCE, RESOURCE_T, none),
    stateful("ResourceScatterMin", RESOURCE, RESOURCE_T, none),
    stateful("ResourceScatterMax", RESOURCE, RESOURCE_T, none),
    stateful("ResourceScatterNdUpdate", RESOURCE_ND, REF_ND_ANY, none),
    stateful("ResourceScatterNdAdd", RESOURCE_ND, REF_ND_ANY, none),
    stateful("ResourceScatterNdSub", RESOURCE_ND, REF_ND_ANY, none),
    stateful("ResourceScatterNdMin", RESOURCE_ND, REF_ND_ANY, none),
    stateful("ResourceScatterNdMax", RESOURCE_ND, REF_ND_ANY, none),
    op("TensorScatterUpdate", TENSOR, TENSOR_T, same),
    op("TensorScatterAdd", TENSOR, TENSOR_T, same),
    op("TensorScatterSub", TENSOR, TENSOR_T, same),
    op("TensorScatterMin", TENSOR, TENSOR_T, same),
    op("TensorScatterMax", TENSOR, TENSOR_T, same),
    op(
        "ScatterNdNonAliasingAdd",
        "input: T, indices: Tindices, updates: T -> output: T",
        "T: {numbers, quantized, bool}; Tindices: {int32, int64}; bad_indices_policy: string = ''",
        same,
    ),
    op(
        "ScatterNd",
        "indices: Tindices, updates: T, shape: Tindices -> output: T",
        "T: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''",
        scatter_nd,
    ),
    stateful(
        "ResourceStridedSliceAssign",
        "ref: resource, begin: Index, end: Index, strides: Index, value: T ->",
        MASKS,
        none,
    ),
    stateful(
        "StridedSliceAssign",
        "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
        MASKS,
        same,
    ),
    reads(
        "ResourceGather",
        "resource: resource, indices: Tindices -> output: dtype",
        "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: {int32, int64}",
        gather,
    ),
    reads(
        "ResourceGatherNd",
        "resource: resource, indices: Tindices -> output: dtype",
        "dtype: type; Tindices: {int32, int64}",
        gather_nd,
    ),
];

fn same(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.input(0);
    c.set(0, shape);
    Ok(())
}

fn scatter_nd(c: &mut InferContext<'_>) -> Inferred {
    let shape = super::shapes::from_value(c, 2)?;
    c.set(0, shape);
    Ok(())
}

fn gather(c: &mut InferContext<'_>) -> Inferred {
    let (params, indices) = (c.variable_shape(0), c.input(1));
    let (Some(params), Some(indices)) = (params.dims(), indices.dims()) else { return Ok(()) };
    let batch = usize::try_from(c.int("batch_dims").unwrap_or(0)).unwrap_or(0);
    let rest = params.get(batch + 1..).ok_or_else(|| ShapeError::new("batch_dims exceeds the variable's rank"))?;
    c.set(0, PartialShape::new(&[indices, rest].concat()));
    Ok(())
}

fn gather_nd(c: &mut InferContext<'_>) -> Inferred {
    let (params, indices) = (c.variable_shape(0), c.input(1));
    let (Some(params), Some([outer @ .., Some(depth)])) = (params.dims(), indices.dims()) else { return Ok(()) };
    let rest = params.get(*depth..).ok_or_else(|| ShapeError::new("the indices are deeper than the variable"))?;
    c.set(0, PartialShape::new(&[outer, rest].concat()));
    Ok(())
}
