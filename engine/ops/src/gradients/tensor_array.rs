//! Gradients of arrays of tensors: an array of gradients for each, which the same places of it are read and written.
//!
//! The gradient of an array's `flow` orders the accesses of the array of gradients. That array is found by the handle
//! of the one that it belongs to and by the name of the call of [`super::gradients`], its `source`.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Zero};
use engine_core::graph::Value;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static TENSOR_ARRAY: &[GradientSpec] = &[
    ("TensorArrayV3", Zero),
    ("TensorArrayGradV3", Zero),
    ("TensorArraySizeV3", Zero),
    ("TensorArrayCloseV3", Zero),
    ("TensorArrayReadV3", Function(|c| read(c, "TensorArrayWriteV3"))),
    ("TensorArrayWriteV3", Function(|c| write(c, "TensorArrayReadV3"))),
    ("TensorArrayGatherV3", Function(|c| read(c, "TensorArrayScatterV3"))),
    ("TensorArrayScatterV3", Function(|c| write(c, "TensorArrayGatherV3"))),
    ("TensorArrayConcatV3", Function(concat)),
    ("TensorArraySplitV3", Function(split)),
];

/// The array of gradients, once `flow` is there: its handle and flow.
fn array<'a>(c: &GradientContext<'a>, flow: Value<'a>) -> (Value<'a>, Value<'a>) {
    let array = c.add_node("TensorArrayGradV3").input(c.input(0)).input(flow);
    let handle = array.attr("source", c.source().as_str()).value();
    (handle, c.after(flow.identity(), handle))
}

/// What was read at an index, or at several, `op` writes.
fn read(c: &GradientContext<'_>, op: &str) -> RuleResult {
    let (handle, flow) = array(c, c.input(2));
    c.set(2, c.op(op, &[handle, c.input(1), c.grad(0), flow]));
    Ok(())
}

/// What was written at an index, or at several, `op` reads.
fn write(c: &GradientContext<'_>, op: &'static str) -> RuleResult {
    let (index, value, flow) = (c.input(1), c.input(2), c.grad(0));
    let (handle, ordered) = array(c, flow);
    let grad = c.add_node(op).input(handle).input(index).input(ordered).attr("dtype", value.dtype()).value();
    c.set(2, grad);
    c.set(3, flow);
    c.set_shape_of(grad, value)
}

fn concat(c: &GradientContext<'_>) -> RuleResult {
    let (handle, flow) = array(c, c.input(1));
    c.set(1, c.op("TensorArraySplitV3", &[handle, c.grad(0), c.output(1), flow]));
    Ok(())
}

fn split(c: &GradientContext<'_>) -> RuleResult {
    let (value, flow) = (c.input(1), c.grad(0));
    let (handle, ordered) = array(c, flow);
    let grad = c.add_node("TensorArrayConcatV3").input(handle).input(ordered).attr("dtype", value.dtype()).value();
    c.set(1, grad);
    c.set(3, flow);
    c.set_shape_of(grad, value)
}
