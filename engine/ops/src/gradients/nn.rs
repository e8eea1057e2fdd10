//! Gradients of neural-net ops.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Unary};
use engine_core::graph::Value;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static NN: &[GradientSpec] = &[
    ("Softmax", Unary(|g, _, y| through_softmax(g, y))),
    ("LogSoftmax", Unary(|g, _, y| g - sum_last(g) * y.exp())),
    ("BiasAdd", Function(bias_add)),
    ("BiasAddV1", Function(bias_add)),
    ("BiasAddGrad", Function(bias_add_grad)),
    ("SoftmaxCrossEntropyWithLogits", Function(cross_entropy)),
    ("SparseSoftmaxCrossEntropyWithLogits", Function(sparse_cross_entropy)),
];

/// Sum over the last axis, which is kept.
fn sum_last(v: Value<'_>) -> Value<'_> {
    let graph = v.graph();
    graph.add_node("Sum").input(v).input(graph.ints(&[-1])).attr("keep_dims", true).value()
}

/// The softmax's Jacobian at its result `y`, which is symmetric, times `v`.
fn through_softmax<'a>(v: Value<'a>, y: Value<'a>) -> Value<'a> {
    (v - sum_last(v * y)) * y
}

fn bias_add(c: &GradientContext<'_>) -> RuleResult {
    let g = c.grad(0);
    c.set(0, g);
    c.set(1, c.op_with_node_attrs("BiasAddGrad", &[g]));
    Ok(())
}

/// The gradient of the sum over all but the channels is the same for all that was summed.
fn bias_add_grad(c: &GradientContext<'_>) -> RuleResult {
    let (g, value) = (c.grad(0), c.input(0));
    c.set(0, c.op_with_node_attrs("BiasAdd", &[value.zeros_like(), g]));
    Ok(())
}

/// The gradients of the losses as a column, and that of the logits: through the loss (which gives `backprop` ready
/// made) and, for second derivatives, through `backprop` itself, whose derivative by the logits is that of the softmax.
fn logits<'a>(c: &GradientContext<'a>) -> (Value<'a>, Value<'a>) {
    let (g, features, backprop) = (c.grad(0), c.input(0), c.output(1));
    let column = g.expand_dims(-1);
    let through_loss = column * backprop;
    let of_logits = match c.arrived(1) {
        Some(second) => through_loss + through_softmax(second, features.softmax()),
        None => through_loss,
    };
    (column, of_logits)
}

fn cross_entropy(c: &GradientContext<'_>) -> RuleResult {
    let (column, of_logits) = logits(c);
    c.set(0, of_logits);
    let through_loss = column * -c.input(0).op("LogSoftmax");
    // `backprop` is softmax - labels.
    c.set(1, c.arrived(1).map_or(through_loss, |second| through_loss - second));
    Ok(())
}

fn sparse_cross_entropy(c: &GradientContext<'_>) -> RuleResult {
    let (_, of_logits) = logits(c);
    c.set(0, of_logits);
    Ok(())
}
