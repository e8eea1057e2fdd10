//! Gradients of the rectifiers' family, twice where the first gradient is an op of its own.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Unary};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static ACTIVATION: &[GradientSpec] = &[
    ("Relu", Unary(|g, _, y| g.op_with("ReluGrad", y))),
    ("ReluGrad", Function(again)),
    ("Relu6", Unary(|g, _, y| g.op_with("Relu6Grad", y))),
    ("Relu6Grad", Function(again)),
    ("LeakyRelu", Function(leaky_relu)),
    ("LeakyReluGrad", Function(again)),
    ("Elu", Unary(|g, _, y| g.op_with("EluGrad", y))),
    ("EluGrad", Function(exponential_again)),
    ("Selu", Unary(|g, _, y| g.op_with("SeluGrad", y))),
    ("SeluGrad", Function(exponential_again)),
    ("Softplus", Unary(|g, x, _| g.op_with("SoftplusGrad", x))),
    ("SoftplusGrad", Function(softplus_again)),
    ("Softsign", Unary(|g, x, _| g.op_with("SoftsignGrad", x))),
    ("SoftsignGrad", Function(softsign_again)),
];

fn leaky_relu(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.op_with_node_attrs("LeakyReluGrad", &[c.grad(0), c.input(0)]));
    Ok(())
}

/// Linear in the gradients; the steps in the features have no slope.
fn again(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.op_with_node_attrs(c.node().op.name, &[c.grad(0), c.input(1)]));
    Ok(())
}

/// `dy (y + limit)` where y < 0: the slope in y is `dy` there.
fn exponential_again(c: &GradientContext<'_>) -> RuleResult {
    let (g, dy, y) = (c.grad(0), c.input(0), c.input(1));
    let zero = y.zeros_like();
    c.set(0, g.op_with(c.node().op.name, y));
    c.set(1, y.less(zero).select(g * dy, zero));
    Ok(())
}

/// `dy s` with s the logistic function, whose slope is `s (1 - s)`.
fn softplus_again(c: &GradientContext<'_>) -> RuleResult {
    let (g, dy, x) = (c.grad(0), c.input(0), c.input(1));
    c.set(0, g.op_with("SoftplusGrad", x));
    c.set(1, x.sigmoid().op_with("SigmoidGrad", g * dy));
    Ok(())
}

/// `dy / (1 + |x|)^2`: its slope is `-2 sign(x) / (1 + |x|)^3`.
fn softsign_again(c: &GradientContext<'_>) -> RuleResult {
    let (g, dy, x) = (c.grad(0), c.input(0), c.input(1));
    c.set(0, g.op_with("SoftsignGrad", x));
    c.set(1, (g * dy).op_with("SoftsignGrad", x) * (x.sign() * -2.0 / (x.abs() + 1.0)));
    Ok(())
}
