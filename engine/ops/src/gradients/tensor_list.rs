//! Gradients of lists of tensors: lists of gradients.

use super::Rule::{Function, Unary, Zero};
use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec};
use engine_core::dtype::DType;
use engine_core::graph::Value;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static TENSOR_LIST: &[GradientSpec] = &[
    ("EmptyTensorList", Zero),
    ("TensorListReserve", Zero),
    ("TensorListLength", Zero),
    ("TensorListElementShape", Zero),
    ("TensorListPushBack", Function(push_back)),
    ("TensorListPopBack", Function(pop_back)),
    ("TensorListFromTensor", Function(from_tensor)),
    ("TensorListStack", Function(stack)),
    ("TensorListGetItem", Function(get_item)),
    ("TensorListSetItem", Function(set_item)),
    ("TensorListGather", Function(gather)),
    ("TensorListScatter", Function(scatter)),
    ("TensorListScatterV2", Function(scatter)),
    ("TensorListScatterIntoExistingList", Function(scatter_into)),
    ("TensorListConcat", Function(concat)),
    ("TensorListConcatV2", Function(concat)),
    ("TensorListSplit", Function(split)),
    ("TensorListResize", Unary(|g, list, _| g.op_with("TensorListResize", length(list)))),
];

/// Adds a node of an op that has as an attribute the type of a list's tensors.
fn typed<'a>(c: &GradientContext<'a>, op: &'static str, inputs: &[Value<'a>]) -> Value<'a> {
    let dtype = c.node().dtype("element_dtype").copied().unwrap_or(DType::F32);
    let node = c.add_node(op).attr("element_dtype", dtype);
    inputs.iter().fold(node, |node, input| node.input(*input)).value()
}

/// A shape of which nothing is known.
fn any_shape<'a>(c: &GradientContext<'a>) -> Value<'a> {
    c.graph().constant(Tensor::scalar(-1i32))
}

/// The shape of a list's tensors.
fn shape_of_elements<'a>(c: &GradientContext<'a>, list: Value<'a>) -> Value<'a> {
    c.add_node("TensorListElementShape").input(list).attr("shape_type", DType::I32).value()
}

fn length(list: Value<'_>) -> Value<'_> {
    list.op("TensorListLength")
}

fn push_back(c: &GradientContext<'_>) -> RuleResult {
    let popped = typed(c, "TensorListPopBack", &[c.grad(0), c.shape_of(c.input(1))]);
    c.set(0, popped);
    c.set(1, popped.port(1));
    Ok(())
}

fn pop_back(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, typed(c, "TensorListPushBack", &[c.grad(0), c.grad(1)]));
    Ok(())
}

fn from_tensor(c: &GradientContext<'_>) -> RuleResult {
    let (g, tensor) = (c.grad(0), c.input(0));
    let (one, rest, step) = (c.graph().ints(&[1]), c.graph().ints(&[0]), c.graph().ints(&[1]));
    let shape = c.add_node("StridedSlice").input(c.shape_of(tensor)).input(one).input(rest).input(step);
    let stacked = typed(c, "TensorListStack", &[g, shape.attr("end_mask", 1i64).value()]);
    c.set(0, stacked);
    c.set_shape_of(stacked, tensor)
}

fn stack(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, typed(c, "TensorListFromTensor", &[c.grad(0), shape_of_elements(c, c.input(0))]));
    Ok(())
}

fn get_item(c: &GradientContext<'_>) -> RuleResult {
    let (g, list, index) = (c.grad(0), c.input(0), c.input(1));
    let unset = typed(c, "TensorListReserve", &[shape_of_elements(c, list), length(list)]);
    c.set(0, typed(c, "TensorListSetItem", &[unset, index, g]));
    Ok(())
}

fn set_item(c: &GradientContext<'_>) -> RuleResult {
    let (g, list, index, item) = (c.grad(0), c.input(0), c.input(1), c.input(2));
    let of_item = typed(c, "TensorListGetItem", &[g, index, c.shape_of(item)]);
    let mut of_list = typed(c, "TensorListSetItem", &[g, index, c.zeros(item)]);
    if c.node().flag("resize_if_index_out_of_bounds").is_ok_and(|resize| *resize) {
        of_list = of_list.op_with("TensorListResize", length(list));
    }
    c.set(0, of_list);
    c.set(2, of_item);
    c.set_shape_of(of_item, item)
}

/// What was gathered twice gets both gradients.
fn gather(c: &GradientContext<'_>) -> RuleResult {
    let (g, list, indices) = (c.grad(0), c.input(0), c.input(1));
    let rows = c.op("UnsortedSegmentSum", &[g, indices, length(list)]);
    c.set(0, typed(c, "TensorListFromTensor", &[rows, shape_of_elements(c, list)]));
    Ok(())
}

fn scatter(c: &GradientContext<'_>) -> RuleResult {
    let (g, tensor, indices) = (c.grad(0), c.input(0), c.input(1));
    let of_tensor = typed(c, "TensorListGather", &[g, indices, any_shape(c)]);
    c.set(0, of_tensor);
    c.set_shape_of(of_tensor, tensor)
}

fn scatter_into(c: &GradientContext<'_>) -> RuleResult {
    let (g, tensor, indices) = (c.grad(0), c.input(1), c.input(2));
    let of_tensor = typed(c, "TensorListGather", &[g, indices, any_shape(c)]);
    c.set(0, typed(c, "TensorListScatterIntoExistingList", &[g, c.zeros(tensor), indices]));
    c.set(1, of_tensor);
    c.set_shape_of(of_tensor, tensor)
}

fn concat(c: &GradientContext<'_>) -> RuleResult {
    let (g, list, lengths) = (c.grad(0), c.input(0), c.output(1));
    c.set(0, typed(c, "TensorListSplit", &[g, shape_of_elements(c, list), lengths]));
    Ok(())
}

fn split(c: &GradientContext<'_>) -> RuleResult {
    let (g, tensor, lengths) = (c.grad(0), c.input(0), c.input(2));
    let joined = typed(c, "TensorListConcatV2", &[g, shape_of_elements(c, g), lengths]);
    c.set(0, joined);
    c.set_shape_of(joined, tensor)
}
