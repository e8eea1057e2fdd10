//! Gradients of pools, once and again.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};
use crate::graph::{Attr, Output};

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static POOL: &[GradientSpec] = &[
    ("MaxPool", Function(|c| max(c, "MaxPoolGrad"))),
    ("MaxPoolV2", Function(|c| max_v2(c, "MaxPoolGradV2"))),
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

/// `op` with those of the node's window attributes that it has.
fn window_op(c: &mut GradientContext<'_>, op: &str, inputs: &[Output]) -> Added {
    let names = ["ksize", "strides", "padding", "explicit_paddings", "data_format", "include_batch_in_index"];
    let has =
        crate::ops::lookup(op).map(|def| def.attrs.iter().map(|a| a.name).collect::<Vec<_>>()).unwrap_or_default();
    let value = |name: &&'static str| c.node().attrs.get(*name).map(|v| (*name, v.clone()));
    let attrs: Vec<(&str, Attr)> = names.iter().filter(|n| has.contains(n)).filter_map(value).collect();
    c.op_with(op, inputs, &attrs)
}

fn max(c: &mut GradientContext<'_>, op: &str) -> Done {
    let (g, x, y) = (c.grad(0)?, c.input(0), c.output(0));
    let of_x = window_op(c, op, &[x, y, g])?;
    c.set(0, of_x);
    Ok(())
}

fn max_v2(c: &mut GradientContext<'_>, op: &str) -> Done {
    let (g, x, y, sizes, strides) = (c.grad(0)?, c.input(0), c.output(0), c.input(1), c.input(2));
    let of_x = window_op(c, op, &[x, y, g, sizes, strides])?;
    c.set(0, of_x);
    Ok(())
}

/// Linear in the gradient, input 2; moving the input moves no maximum.
fn max_grad(c: &mut GradientContext<'_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let mut inputs: Vec<Output> = c.node().inputs.clone();
    inputs[2] = g;
    let of_grad = window_op(c, op, &inputs)?;
    c.set(2, of_grad);
    Ok(())
}

fn max_with_argmax(c: &mut GradientContext<'_>) -> Done {
    let (g, x, argmax) = (c.grad(0)?, c.input(0), c.output(1));
    let of_x = window_op(c, "MaxPoolGradWithArgmax", &[x, g, argmax])?;
    c.set(0, of_x);
    Ok(())
}

fn again_with_argmax(c: &mut GradientContext<'_>, op: &str) -> Done {
    let (g, x, argmax) = (c.grad(0)?, c.input(0), c.input(2));
    let of_grad = window_op(c, op, &[x, g, argmax])?;
    c.set(1, of_grad);
    Ok(())
}

fn average(c: &mut GradientContext<'_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let shape = c.shape_of(c.input(0))?;
    let of_x = window_op(c, op, &[shape, g])?;
    c.set(0, of_x);
    Ok(())
}

fn average_grad(c: &mut GradientContext<'_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let of_grad = window_op(c, op, &[g])?;
    c.set(1, of_grad);
    Ok(())
}
