//! Gradients of the rectifiers' family, twice where the first gradient is an op of its own.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};
use crate::graph::{Attr, Output};

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static ACTIVATION: &[GradientSpec] = &[
    ("Relu6", Function(|c| of_output(c, "Relu6Grad"))),
    ("Relu6Grad", Function(|c| again(c, "Relu6Grad"))),
    ("LeakyRelu", Function(|c| of_features(c, "LeakyReluGrad"))),
    ("LeakyReluGrad", Function(|c| again(c, "LeakyReluGrad"))),
    ("Elu", Function(|c| of_output(c, "EluGrad"))),
    ("EluGrad", Function(exponential_again)),
    ("Selu", Function(|c| of_output(c, "SeluGrad"))),
    ("SeluGrad", Function(exponential_again)),
    ("Softplus", Function(|c| of_features(c, "SoftplusGrad"))),
    ("SoftplusGrad", Function(softplus_again)),
    ("Softsign", Function(|c| of_features(c, "SoftsignGrad"))),
    ("SoftsignGrad", Function(softsign_again)),
];

/// `op(g, other)` with the node's `alpha`, where it has one.
fn back(c: &mut GradientContext<'_>, op: &str, g: Output, other: Output) -> Result<Output, GradientError> {
    match c.node().float("alpha") {
        Ok(alpha) => c.op_with(op, &[g, other], &[("alpha", Attr::Float(*alpha))]),
        Err(_) => c.op(op, &[g, other]),
    }
}

fn of_output(c: &mut GradientContext<'_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let x = back(c, op, g, c.output(0))?;
    c.set(0, x);
    Ok(())
}

fn of_features(c: &mut GradientContext<'_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let x = back(c, op, g, c.input(0))?;
    c.set(0, x);
    Ok(())
}

/// Linear in the gradients; the steps in the features have no slope.
fn again(c: &mut GradientContext<'_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let x = back(c, op, g, c.input(1))?;
    c.set(0, x);
    Ok(())
}

/// `dy (y + limit)` where y < 0: the slope in y is `dy` there.
fn exponential_again(c: &mut GradientContext<'_>) -> Done {
    let (g, dy, y) = (c.grad(0)?, c.input(0), c.input(1));
    let of_dy = back(c, c.node().op.name, g, y)?;
    c.set(0, of_dy);
    let product = c.op("Mul", &[g, dy])?;
    let zero = c.op("ZerosLike", &[y])?;
    let negative = c.op("Less", &[y, zero])?;
    let of_y = c.op("SelectV2", &[negative, product, zero])?;
    c.set(1, of_y);
    Ok(())
}

/// `dy s` with s the logistic function: its slope is `s (1 - s)`.
fn softplus_again(c: &mut GradientContext<'_>) -> Done {
    let (g, dy, x) = (c.grad(0)?, c.input(0), c.input(1));
    let of_dy = c.op("SoftplusGrad", &[g, x])?;
    c.set(0, of_dy);
    let product = c.op("Mul", &[g, dy])?;
    let s = c.op("Sigmoid", &[x])?;
    let of_x = c.op("SigmoidGrad", &[s, product])?;
    c.set(1, of_x);
    Ok(())
}

/// `dy / (1 + |x|)^2`: its slope is `-2 sign(x) / (1 + |x|)^3`.
fn softsign_again(c: &mut GradientContext<'_>) -> Done {
    let (g, dy, x) = (c.grad(0)?, c.input(0), c.input(1));
    let of_dy = c.op("SoftsignGrad", &[g, x])?;
    c.set(0, of_dy);
    let product = c.op("Mul", &[g, dy])?;
    let once = c.op("SoftsignGrad", &[product, x])?;
    let (size, one) = (c.op("Abs", &[x])?, c.scalar_like(1.0, x)?);
    let bottom = c.op("AddV2", &[size, one])?;
    let sign = c.op("Sign", &[x])?;
    let minus_two = c.scalar_like(-2.0, x)?;
    let top = c.op("Mul", &[sign, minus_two])?;
    let slope = c.op("RealDiv", &[top, bottom])?;
    let of_x = c.op("Mul", &[once, slope])?;
    c.set(1, of_x);
    Ok(())
}
