//! Gradients of pools, once and again.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static POOL: &[GradientSpec] = &[
    ("MaxPool", Function(|c| max(c, "MaxPoolGrad"))),
    ("MaxPoolV2", Function(max_v2)),
    ("MaxPoolGrad", Function(|c| max_grad(c, "MaxPoolGradGrad"))),
    ("MaxPoolGradV2", Function(|c| max_grad(c, "MaxPoolGradGradV2"))),
    ("MaxPoolGradGrad", Function(|c| max_grad(c, "MaxPoolGrad"))),
    ("MaxPoolGradGradV2", Function(|c| max_grad(c, "MaxPoolGradV2"))),
    ("MaxPoolWithArgmax", Function(max_with_argmax)),
    ("MaxPoolGradWithArgmax", Function(|c| again_with_argmax(c, "MaxPoolGradGradWithArgmax"))),
    ("MaxPoolGradGradWithArgmax", Function(|c| again_with_argmax(c, "MaxPoolGradWithArgmax"))),
    ("AvgPool", Function(|c| average(c, "AvgPoolGrad"))),
    ("AvgPoolGrad", Function(|c| average_grad(c, "AvgPool"))),
    ("MaxPool3D", Function(|c| max(c, "MaxPool3DGrad"))),
    ("MaxPool3DGrad", Function(|c| max_grad(c, "MaxPool3DGradGrad"))),
    ("MaxPool3DGradGrad", Function(|c| max_grad(c, "MaxPool3DGrad"))),
    ("AvgPool3D", Function(|c| average(c, "AvgPool3DGrad"))),
    ("AvgPool3DGrad", Function(|c| average_grad(c, "AvgPool3D"))),
];

fn max(c: &GradientContext<'_>, op: &str) -> RuleResult {
    c.set(0, c.op_with_node_attrs(op, &[c.input(0), c.output(0), c.grad(0)]));
    Ok(())
}

/// Sizes and strides are inputs.
fn max_v2(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, y, sizes, strides) = (c.grad(0), c.input(0), c.output(0), c.input(1), c.input(2));
    c.set(0, c.op_with_node_attrs("MaxPoolGradV2", &[x, y, g, sizes, strides]));
    Ok(())
}

/// Linear in the gradient, input 2; moving the input moves no maximum.
fn max_grad(c: &GradientContext<'_>, op: &str) -> RuleResult {
    let mut inputs: Vec<_> = (0..c.node().inputs.len()).map(|i| c.input(i)).collect();
    inputs[2] = c.grad(0);
    c.set(2, c.op_with_node_attrs(op, &inputs));
    Ok(())
}

fn max_with_argmax(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.op_with_node_attrs("MaxPoolGradWithArgmax", &[c.input(0), c.grad(0), c.output(1)]));
    Ok(())
}

fn again_with_argmax(c: &GradientContext<'_>, op: &str) -> RuleResult {
    c.set(1, c.op_with_node_attrs(op, &[c.input(0), c.grad(0), c.input(2)]));
    Ok(())
}

fn average(c: &GradientContext<'_>, op: &str) -> RuleResult {
    c.set(0, c.op_with_node_attrs(op, &[c.shape_of(c.input(0)), c.grad(0)]));
    Ok(())
}

fn average_grad(c: &GradientContext<'_>, op: &str) -> RuleResult {
    c.set(1, c.op_with_node_attrs(op, &[c.grad(0)]));
    Ok(())
}
