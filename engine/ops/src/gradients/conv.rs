//! Gradients of convolutions. A convolution is linear in its input and in its filter, and so are its gradients: each
//! leads to the two others.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static CONV: &[GradientSpec] = &[
    ("Conv2D", Function(|c| forward(c, &TWO))),
    ("Conv2DBackpropInput", Function(|c| to_input(c, &TWO))),
    ("Conv2DBackpropFilter", Function(|c| to_filter(c, &TWO))),
    ("DepthwiseConv2dNative", Function(|c| forward(c, &DEPTHWISE))),
    ("DepthwiseConv2dNativeBackpropInput", Function(|c| to_input(c, &DEPTHWISE))),
    ("DepthwiseConv2dNativeBackpropFilter", Function(|c| to_filter(c, &DEPTHWISE))),
    ("Conv3D", Function(|c| forward(c, &THREE))),
    ("Conv3DBackpropInputV2", Function(|c| to_input(c, &THREE))),
    ("Conv3DBackpropFilterV2", Function(|c| to_filter(c, &THREE))),
    ("Dilation2D", Function(dilation)),
];

/// The ops of a kind of convolution.
struct Kind {
    forward: &'static str,
    to_input: &'static str,
    to_filter: &'static str,
}

const TWO: Kind = Kind { forward: "Conv2D", to_input: "Conv2DBackpropInput", to_filter: "Conv2DBackpropFilter" };
const DEPTHWISE: Kind = Kind {
    forward: "DepthwiseConv2dNative",
    to_input: "DepthwiseConv2dNativeBackpropInput",
    to_filter: "DepthwiseConv2dNativeBackpropFilter",
};
const THREE: Kind = Kind { forward: "Conv3D", to_input: "Conv3DBackpropInputV2", to_filter: "Conv3DBackpropFilterV2" };

fn forward(c: &GradientContext<'_>, kind: &Kind) -> RuleResult {
    let (g, input, filter) = (c.grad(0), c.input(0), c.input(1));
    c.set(0, c.op_with_node_attrs(kind.to_input, &[c.shape_of(input), filter, g]));
    c.set(1, c.op_with_node_attrs(kind.to_filter, &[input, c.shape_of(filter), g]));
    Ok(())
}

/// Inputs: sizes, filter, gradient of the output.
fn to_input(c: &GradientContext<'_>, kind: &Kind) -> RuleResult {
    let (g, filter, dy) = (c.grad(0), c.input(1), c.input(2));
    c.set(1, c.op_with_node_attrs(kind.to_filter, &[g, c.shape_of(filter), dy]));
    c.set(2, c.op_with_node_attrs(kind.forward, &[g, filter]));
    Ok(())
}

/// Inputs: input, sizes of the filter, gradient of the output.
fn to_filter(c: &GradientContext<'_>, kind: &Kind) -> RuleResult {
    let (g, input, dy) = (c.grad(0), c.input(0), c.input(2));
    c.set(0, c.op_with_node_attrs(kind.to_input, &[c.shape_of(input), g, dy]));
    c.set(2, c.op_with_node_attrs(kind.forward, &[input, g]));
    Ok(())
}

fn dilation(c: &GradientContext<'_>) -> RuleResult {
    let inputs = [c.input(0), c.input(1), c.grad(0)];
    c.set(0, c.op_with_node_attrs("Dilation2DBackpropInput", &inputs));
    c.set(1, c.op_with_node_attrs("Dilation2DBackpropFilter", &inputs));
    Ok(())
}
