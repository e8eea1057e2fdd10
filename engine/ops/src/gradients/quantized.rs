//! Gradients of rounding that stays in floats: they pass as if nothing had been rounded, within the range.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Zero};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static QUANTIZED: &[GradientSpec] = &[
    ("QuantizeAndDequantizeV2", Function(straight)),
    ("QuantizeAndDequantizeV3", Function(straight)),
    ("QuantizeAndDequantizeV4", Function(|c| within_range(c, "QuantizeAndDequantizeV4Grad"))),
    ("FakeQuantWithMinMaxArgs", Function(fake_args)),
    ("FakeQuantWithMinMaxVars", Function(|c| within_range(c, "FakeQuantWithMinMaxVarsGradient"))),
    ("FakeQuantWithMinMaxVarsPerChannel", Function(|c| within_range(c, "FakeQuantWithMinMaxVarsPerChannelGradient"))),
    ("QuantizeV2", Zero),
    ("RequantizationRange", Zero),
];

fn straight(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.grad(0));
    Ok(())
}

/// Inputs: values, and the bounds of the range, to which goes what lies outside.
fn within_range(c: &GradientContext<'_>, op: &str) -> RuleResult {
    let grad = c.op_with_node_attrs(op, &[c.grad(0), c.input(0), c.input(1), c.input(2)]);
    (0..3).for_each(|i| c.set(i, grad.port(i as u32)));
    Ok(())
}

fn fake_args(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.op_with_node_attrs("FakeQuantWithMinMaxArgsGradient", &[c.grad(0), c.input(0)]));
    Ok(())
}
