//! Gradients of conditionals: what a `Merge` joined a `Switch` parts, and the other way round.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Zero};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Output};
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static CONTROL_FLOW: &[GradientSpec] = &[
    ("Switch", Function(switch)),
    ("RefSwitch", Function(switch)),
    ("Merge", Function(merge)),
    ("RefMerge", Function(merge)),
    ("IdentityN", Function(identity_n)),
    ("ToBool", Zero),
    ("OptionalNone", Zero),
    ("OptionalHasValue", Zero),
    ("OptionalFromValue", Function(from_value)),
    ("OptionalGetValue", Function(get_value)),
    ("StackV2", Zero),
    ("StackPushV2", Function(push)),
    ("StackPopV2", Function(pop)),
];

/// The gradient of the side that was taken; where nothing comes back from a side, zeros if that one was taken.
fn switch(c: &GradientContext<'_>) -> RuleResult {
    let zeros = |side| c.zeros(c.input(0)).op_with("Switch", c.input(1)).port(side);
    let sides = [0, 1].map(|side| c.arrived(side as usize).unwrap_or_else(|| zeros(side)).output());
    c.set(0, c.add_node("Merge").inputs(&sides).value());
    Ok(())
}

/// To the input that was alive, and dead to the others.
fn merge(c: &GradientContext<'_>) -> RuleResult {
    let Some(grad) = c.arrived(0) else { return Ok(()) };
    if let Some((pred, side_of_first)) = c.sides_of_inputs() {
        let switch = grad.op_with("Switch", pred);
        c.set(0, switch.port(side_of_first));
        c.set(1, switch.port(1 - side_of_first));
        return Ok(());
    }
    for i in 0..c.node().inputs.len() {
        let alive = c.output(1).equal(c.graph().constant(Tensor::scalar(i as i32)));
        c.set(i, grad.op_with("Switch", alive).port(1));
    }
    Ok(())
}

fn identity_n(c: &GradientContext<'_>) -> RuleResult {
    for i in 0..c.node().inputs.len() {
        if let Some(grad) = c.arrived(i) {
            c.set(i, grad);
        }
    }
    Ok(())
}

/// A push passes its value on; what the way back popped of it comes with the loop that it is in.
fn push(c: &GradientContext<'_>) -> RuleResult {
    c.set(1, c.grad(0));
    Ok(())
}

/// Pushed, to be popped where the value was pushed.
fn pop(c: &GradientContext<'_>) -> RuleResult {
    c.push_gradient(c.grad(0))
}

fn from_value(c: &GradientContext<'_>) -> RuleResult {
    let n = c.node().inputs.len();
    let types: Vec<DType> = (0..n).map(|i| c.input(i).dtype()).collect();
    let shapes: Vec<PartialShape> = (0..n).map(|i| c.input(i).shape()).collect();
    let got = c.add_node("OptionalGetValue").input(c.grad(0)).attr("output_types", types);
    let got = got.attr("output_shapes", Attr::ListShape(shapes)).value();
    (0..n).for_each(|i| c.set(i, got.port(i as u32)));
    Ok(())
}

fn get_value(c: &GradientContext<'_>) -> RuleResult {
    let grads: Vec<Output> = (0..c.node().outputs.len()).map(|i| c.grad(i).output()).collect();
    c.set(0, c.add_node("OptionalFromValue").inputs(&grads).value());
    Ok(())
}
