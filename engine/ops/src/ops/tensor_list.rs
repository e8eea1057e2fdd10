//! Lists of tensors, as loops of TensorFlow 2 make them.

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, op};
use engine_core::shape::PartialShape;

const NEW: &str = "element_dtype: type; shape_type: {int32, int64}";
const ELEMENT: &str = "element_dtype: type";

#[linkme::distributed_slice(OP_TABLES)]
static TENSOR_LIST: &[OpSpec] = &[
    op("EmptyTensorList", "element_shape: shape_type, max_num_elements: int32 -> handle: variant", NEW, scalar),
    op("TensorListReserve", "element_shape: shape_type, num_elements: int32 -> handle: variant", NEW, scalar),
    op(
        "TensorListFromTensor",
        "tensor: element_dtype, element_shape: shape_type -> output_handle: variant",
        NEW,
        scalar,
    ),
    op("TensorListPushBack", "input_handle: variant, tensor: element_dtype -> output_handle: variant", ELEMENT, scalar),
    op(
        "TensorListPopBack",
        "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
        ELEMENT,
        pop_back,
    ),
    op("TensorListLength", "input_handle: variant -> length: int32", "", scalar),
    op(
        "TensorListElementShape",
        "input_handle: variant -> element_shape: shape_type",
        "shape_type: {int32, int64}",
        none,
    ),
    op(
        "TensorListGetItem",
        "input_handle: variant, index: int32, element_shape: int32 -> item: element_dtype",
        ELEMENT,
        get_item,
    ),
    op(
        "TensorListSetItem",
        "input_handle: variant, index: int32, item: element_dtype -> output_handle: variant",
        "element_dtype: type; resize_if_index_out_of_bounds: bool = false",
        scalar,
    ),
    op(
        "TensorListStack",
        "input_handle: variant, element_shape: int32 -> tensor: element_dtype",
        "element_dtype: type; num_elements: int = -1",
        stack,
    ),
    op(
        "TensorListGather",
        "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
        ELEMENT,
        gather,
    ),
    op(
        "TensorListScatter",
        "tensor: element_dtype, indices: int32, element_shape: shape_type -> output_handle: variant",
        NEW,
        scalar,
    ),
    op(
        "TensorListScatterV2",
        "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32 -> output_handle: variant",
        NEW,
        scalar,
    ),
    op(
        "TensorListScatterIntoExistingList",
        "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant",
        ELEMENT,
        scalar,
    ),
    op(
        "TensorListConcat",
        "input_handle: variant -> tensor: element_dtype, lengths: int64",
        "element_dtype: type; element_shape: shape = unknown",
        none,
    ),
    op(
        "TensorListConcatV2",
        "input_handle: variant, element_shape: shape_type, leading_dims: int64 -> tensor: element_dtype, lengths: int64",
        NEW,
        concat,
    ),
    op(
        "TensorListSplit",
        "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: variant",
        NEW,
        scalar,
    ),
    op("TensorListResize", "input_handle: variant, size: int32 -> output_handle: variant", "", scalar),
    op("TensorListConcatLists", "input_a: variant, input_b: variant -> output: variant", ELEMENT, scalar),
];

/// What input `i` says of the elements' shape: a scalar says nothing.
fn element_shape(c: &InferContext<'_>, i: usize) -> PartialShape {
    match (c.input(i).rank(), c.ints(i)) {
        (Some(1), Some(dims)) => {
            PartialShape::new(&dims.iter().map(|d| usize::try_from(*d).ok()).collect::<Vec<Option<usize>>>())
        }
        _ => PartialShape::unknown(),
    }
}

fn with_leading(first: Option<usize>, rest: &PartialShape) -> PartialShape {
    match rest.dims() {
        Some(rest) => PartialShape::new(&std::iter::once(first).chain(rest.iter().copied()).collect::<Vec<_>>()),
        None => PartialShape::unknown(),
    }
}

fn pop_back(c: &mut InferContext<'_>) -> Inferred {
    let shape = element_shape(c, 1);
    c.set(0, PartialShape::scalar());
    c.set(1, shape);
    Ok(())
}

fn get_item(c: &mut InferContext<'_>) -> Inferred {
    let shape = element_shape(c, 2);
    c.set(0, shape);
    Ok(())
}

fn stack(c: &mut InferContext<'_>) -> Inferred {
    let n = c.int("num_elements").and_then(|n| usize::try_from(n).ok());
    let shape = with_leading(n, &element_shape(c, 1));
    c.set(0, shape);
    Ok(())
}

fn gather(c: &mut InferContext<'_>) -> Inferred {
    let n = c.input(1).dims().and_then(|dims| dims.first().copied()).flatten();
    let shape = with_leading(n, &element_shape(c, 2));
    c.set(0, shape);
    Ok(())
}

fn concat(c: &mut InferContext<'_>) -> Inferred {
    if let Some([_, rest @ ..]) = element_shape(c, 1).dims() {
        c.set(0, with_leading(None, &PartialShape::new(rest)));
    }
    c.set(1, PartialShape::of_rank(1));
    Ok(())
}
