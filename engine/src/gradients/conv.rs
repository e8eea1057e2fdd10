//! Gradients of convolutions. A convolution is linear in its input and in its filter, and so are its gradients: each
//! leads to the two others.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};
use crate::graph::{Attr, Output};

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;

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

/// The ops of a kind of convolution, and the attributes that all three have.
struct Kind {
    forward: &'static str,
    to_input: &'static str,
    to_filter: &'static str,
    attrs: &'static [&'static str],
}

const TWO: Kind = Kind {
    forward: "Conv2D",
    to_input: "Conv2DBackpropInput",
    to_filter: "Conv2DBackpropFilter",
    attrs: &["strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu"],
};
const DEPTHWISE: Kind = Kind {
    forward: "DepthwiseConv2dNative",
    to_input: "DepthwiseConv2dNativeBackpropInput",
    to_filter: "DepthwiseConv2dNativeBackpropFilter",
    attrs: &["strides", "padding", "explicit_paddings", "data_format", "dilations"],
};
const THREE: Kind = Kind {
    forward: "Conv3D",
    to_input: "Conv3DBackpropInputV2",
    to_filter: "Conv3DBackpropFilterV2",
    attrs: &["strides", "padding", "data_format", "dilations"],
};

impl Kind {
    fn attrs(&self, c: &GradientContext<'_>) -> Vec<(&'static str, Attr)> {
        let value = |name: &&'static str| c.node().attrs.get(*name).map(|v| (*name, v.clone()));
        self.attrs.iter().filter_map(value).collect()
    }

    fn convolve(&self, c: &mut GradientContext<'_>, input: Output, filter: Output) -> Added {
        let attrs = self.attrs(c);
        c.op_with(self.forward, &[input, filter], &attrs)
    }

    fn input(&self, c: &mut GradientContext<'_>, sizes: Output, filter: Output, g: Output) -> Added {
        let attrs = self.attrs(c);
        c.op_with(self.to_input, &[sizes, filter, g], &attrs)
    }

    fn filter(&self, c: &mut GradientContext<'_>, input: Output, sizes: Output, g: Output) -> Added {
        let attrs = self.attrs(c);
        c.op_with(self.to_filter, &[input, sizes, g], &attrs)
    }
}

fn forward(c: &mut GradientContext<'_>, kind: &Kind) -> Done {
    let (g, input, filter) = (c.grad(0)?, c.input(0), c.input(1));
    let (of_input, of_filter) = (c.shape_of(input)?, c.shape_of(filter)?);
    let input_grad = kind.input(c, of_input, filter, g)?;
    let filter_grad = kind.filter(c, input, of_filter, g)?;
    c.set(0, input_grad);
    c.set(1, filter_grad);
    Ok(())
}

/// Inputs: sizes, filter, gradient of the output.
fn to_input(c: &mut GradientContext<'_>, kind: &Kind) -> Done {
    let (g, filter, dy) = (c.grad(0)?, c.input(1), c.input(2));
    let of_filter = c.shape_of(filter)?;
    let filter_grad = kind.filter(c, g, of_filter, dy)?;
    let dy_grad = kind.convolve(c, g, filter)?;
    c.set(1, filter_grad);
    c.set(2, dy_grad);
    Ok(())
}

/// Inputs: input, sizes of the filter, gradient of the output.
fn to_filter(c: &mut GradientContext<'_>, kind: &Kind) -> Done {
    let (g, input, dy) = (c.grad(0)?, c.input(0), c.input(2));
    let of_input = c.shape_of(input)?;
    let input_grad = kind.input(c, of_input, g, dy)?;
    let dy_grad = kind.convolve(c, input, g)?;
    c.set(0, input_grad);
    c.set(2, dy_grad);
    Ok(())
}

fn dilation(c: &mut GradientContext<'_>) -> Done {
    let (g, input, filter) = (c.grad(0)?, c.input(0), c.input(1));
    let attrs = ["strides", "rates", "padding"];
    let attrs: Vec<(&str, Attr)> =
        attrs.iter().filter_map(|name| c.node().attrs.get(*name).map(|v| (*name, v.clone()))).collect();
    let input_grad = c.op_with("Dilation2DBackpropInput", &[input, filter, g], &attrs)?;
    let filter_grad = c.op_with("Dilation2DBackpropFilter", &[input, filter, g], &attrs)?;
    c.set(0, input_grad);
    c.set(1, filter_grad);
    Ok(())
}
