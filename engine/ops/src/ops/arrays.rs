//! Ops on what lives as long as a step: stacks and tensor arrays (white paper section 4.4; TensorFlow's dynamic loops).
//!
//! The first versions name their object by a pair of strings, the later ones by a resource handle; otherwise they are
//! the same.

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpKind as K, OpSpec, ShapeError, of_step};
use engine_core::shape::PartialShape;

const STACK: &str = "elem_type: type; stack_name: string = ''";
const PUSH: &str = "T: type; swap_memory: bool = false";
const ARRAY: &str = "dtype: type; element_shape: shape = unknown; dynamic_size: bool = false; \
                     clear_after_read: bool = true; identical_element_shapes: bool = false; \
                     tensor_array_name: string = ''";
const ARRAY_V2: &str = "dtype: type; element_shape: shape = unknown; dynamic_size: bool = false; \
                        clear_after_read: bool = true; tensor_array_name: string = ''";
const GATHER: &str = "dtype: type; element_shape: shape = unknown";
const CONCAT: &str = "dtype: type; element_shape_except0: shape = unknown";

#[linkme::distributed_slice(OP_TABLES)]
static ARRAYS: &[OpSpec] = &[
    of_step("Stack", "-> handle: string", STACK, pair),
    of_step("StackPush", "handle: string, elem: T -> output: T", PUSH, push),
    of_step("StackPop", "handle: string -> elem: elem_type", "elem_type: type", none),
    of_step("StackClose", "handle: string ->", "", none),
    of_step("StackV2", "max_size: int32 -> handle: resource", STACK, scalar).kind(K::Stack),
    of_step("StackPushV2", "handle: resource, elem: T -> output: T", PUSH, push).kind(K::StackPush),
    of_step("StackPopV2", "handle: resource -> elem: elem_type", "elem_type: type", none).kind(K::StackPop),
    of_step("StackCloseV2", "handle: resource ->", "", none),
    of_step("TensorArrayV2", "size: int32 -> handle: string", ARRAY_V2, pair),
    of_step("TensorArrayGradV2", "handle: string, flow_in: float -> grad_handle: string", "source: string", pair),
    of_step(
        "TensorArrayWriteV2",
        "handle: string, index: int32, value: T, flow_in: float -> flow_out: float",
        "T: type",
        scalar,
    ),
    of_step("TensorArrayReadV2", "handle: string, index: int32, flow_in: float -> value: dtype", "dtype: type", none),
    of_step("TensorArrayGatherV2", "handle: string, indices: int32, flow_in: float -> value: dtype", GATHER, gather),
    of_step(
        "TensorArrayScatterV2",
        "handle: string, indices: int32, value: T, flow_in: float -> flow_out: float",
        "T: type",
        scalar,
    ),
    of_step("TensorArrayConcatV2", "handle: string, flow_in: float -> value: dtype, lengths: int64", CONCAT, concat),
    of_step(
        "TensorArraySplitV2",
        "handle: string, value: T, lengths: int64, flow_in: float -> flow_out: float",
        "T: type",
        scalar,
    ),
    of_step("TensorArraySizeV2", "handle: string, flow_in: float -> size: int32", "", scalar),
    of_step("TensorArrayCloseV2", "handle: string ->", "", none),
    of_step("TensorArrayV3", "size: int32 -> handle: resource, flow: float", ARRAY, array),
    of_step(
        "TensorArrayGradV3",
        "handle: resource, flow_in: float -> grad_handle: resource, flow_out: float",
        "source: string",
        array,
    ),
    of_step(
        "TensorArrayGradWithShape",
        "handle: resource, flow_in: float, shape_to_prepend: int32 -> grad_handle: resource, flow_out: float",
        "source: string",
        array,
    ),
    of_step(
        "TensorArrayWriteV3",
        "handle: resource, index: int32, value: T, flow_in: float -> flow_out: float",
        "T: type",
        write,
    ),
    of_step("TensorArrayReadV3", "handle: resource, index: int32, flow_in: float -> value: dtype", "dtype: type", read),
    of_step("TensorArrayGatherV3", "handle: resource, indices: int32, flow_in: float -> value: dtype", GATHER, gather),
    of_step(
        "TensorArrayScatterV3",
        "handle: resource, indices: int32, value: T, flow_in: float -> flow_out: float",
        "T: type",
        scatter,
    ),
    of_step("TensorArrayConcatV3", "handle: resource, flow_in: float -> value: dtype, lengths: int64", CONCAT, concat),
    of_step(
        "TensorArraySplitV3",
        "handle: resource, value: T, lengths: int64, flow_in: float -> flow_out: float",
        "T: type",
        split,
    ),
    of_step("TensorArraySizeV3", "handle: resource, flow_in: float -> size: int32", "", scalar),
    of_step("TensorArrayCloseV3", "handle: resource ->", "", none),
];

/// A handle of the first versions: container and name.
fn pair(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, PartialShape::new(&[Some(2)]));
    Ok(())
}

fn push(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.input(1);
    c.set(0, shape);
    Ok(())
}

fn array(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, PartialShape::scalar());
    c.set(1, PartialShape::scalar());
    Ok(())
}

/// What the array that input 0 comes from says of its elements.
fn element_shape(c: &InferContext<'_>) -> PartialShape {
    match c.origin(0).and_then(|node| node.attrs.get("element_shape")) {
        Some(Attr::Shape(shape)) => shape.clone(),
        _ => PartialShape::unknown(),
    }
}

fn read(c: &mut InferContext<'_>) -> Inferred {
    let shape = element_shape(c);
    c.set(0, shape);
    Ok(())
}

fn write(c: &mut InferContext<'_>) -> Inferred {
    c.of_rank(1, 0)?;
    c.merge(&c.input(2), &element_shape(c))?;
    scalar(c)
}

fn scatter(c: &mut InferContext<'_>) -> Inferred {
    let (indices, value) = (c.of_rank(1, 1)?, c.input(2));
    if let Some(dims) = value.dims() {
        let [n, element @ ..] = dims else {
            return Err(ShapeError("the value must have a first dimension, one element for each index".to_owned()));
        };
        c.merge(&indices, &[*n].into())?;
        c.merge(&PartialShape::new(element), &element_shape(c))?;
    }
    scalar(c)
}

fn split(c: &mut InferContext<'_>) -> Inferred {
    c.of_rank(2, 1)?;
    scalar(c)
}

fn gather(c: &mut InferContext<'_>) -> Inferred {
    let own = match c.attr("element_shape") {
        Some(Attr::Shape(shape)) => shape.clone(),
        _ => PartialShape::unknown(),
    };
    let element = if own.dims().is_some() { own } else { element_shape(c) };
    let n = c.of_rank(1, 1)?.dims().and_then(|dims| dims[0]);
    if let Some(dims) = element.dims() {
        let dims: Vec<Option<usize>> = std::iter::once(n).chain(dims.iter().copied()).collect();
        c.set(0, PartialShape::new(&dims));
    }
    Ok(())
}

fn concat(c: &mut InferContext<'_>) -> Inferred {
    if let Some(Attr::Shape(shape)) = c.attr("element_shape_except0")
        && let Some(dims) = shape.dims()
    {
        let dims: Vec<Option<usize>> = std::iter::once(None).chain(dims.iter().copied()).collect();
        c.set(0, PartialShape::new(&dims));
    }
    c.set(1, PartialShape::of_rank(1));
    Ok(())
}
