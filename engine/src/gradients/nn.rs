//! Gradients of neural-net ops.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static NN: &[GradientSpec] = &[
    ("Relu", Function(relu)),
    ("ReluGrad", Function(relu_grad)),
    ("Softmax", Function(softmax)),
    ("LogSoftmax", Function(log_softmax)),
    ("BiasAdd", Function(bias_add)),
    ("BiasAddV1", Function(bias_add)),
    ("BiasAddGrad", Function(bias_add_grad)),
    ("SoftmaxCrossEntropyWithLogits", Function(cross_entropy)),
    ("SparseSoftmaxCrossEntropyWithLogits", Function(sparse_cross_entropy)),
];

fn relu(c: &mut GradientContext<'_>) -> Done {
    let (g, y) = (c.grad(0)?, c.output(0));
    let x = c.op("ReluGrad", &[g, y])?;
    c.set(0, x);
    Ok(())
}

/// Linear in the gradients; the step in the features has no slope.
fn relu_grad(c: &mut GradientContext<'_>) -> Done {
    let (g, features) = (c.grad(0)?, c.input(1));
    let x = c.op("ReluGrad", &[g, features])?;
    c.set(0, x);
    Ok(())
}

/// Sum over the last axis, which is kept.
fn sum_last(c: &mut GradientContext<'_>, of: Output) -> Result<Output, GradientError> {
    let last = c.vector(&[-1i32])?;
    c.op_with("Sum", &[of, last], &[("keep_dims", Attr::Bool(true))])
}

/// `(v - sum(v * y)) * y`: the softmax's Jacobian `y`, which is symmetric, times `v`.
fn through_softmax(c: &mut GradientContext<'_>, v: Output, y: Output) -> Result<Output, GradientError> {
    let weighted = c.op("Mul", &[v, y])?;
    let sum = sum_last(c, weighted)?;
    let centred = c.op("Sub", &[v, sum])?;
    c.op("Mul", &[centred, y])
}

fn softmax(c: &mut GradientContext<'_>) -> Done {
    let (g, y) = (c.grad(0)?, c.output(0));
    let x = through_softmax(c, g, y)?;
    c.set(0, x);
    Ok(())
}

fn log_softmax(c: &mut GradientContext<'_>) -> Done {
    let (g, y) = (c.grad(0)?, c.output(0));
    let softmax = c.op("Exp", &[y])?;
    let sum = sum_last(c, g)?;
    let scaled = c.op("Mul", &[sum, softmax])?;
    let x = c.op("Sub", &[g, scaled])?;
    c.set(0, x);
    Ok(())
}

/// The node's data format, where it has one.
fn format(c: &GradientContext<'_>) -> Vec<(&'static str, Attr)> {
    c.node().attrs.get("data_format").map(|f| ("data_format", f.clone())).into_iter().collect()
}

fn bias_add(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let format = format(c);
    let bias = c.op_with("BiasAddGrad", &[g], &format)?;
    c.set(0, g);
    c.set(1, bias);
    Ok(())
}

/// The gradient of the sum over all but the channels is the same for all that was summed.
fn bias_add_grad(c: &mut GradientContext<'_>) -> Done {
    let (g, value) = (c.grad(0)?, c.input(0));
    let zeros = c.op("ZerosLike", &[value])?;
    let format = format(c);
    let spread = c.op_with("BiasAdd", &[zeros, g], &format)?;
    c.set(0, spread);
    Ok(())
}

/// Through the loss (which gives `backprop` ready made) and, for second derivatives, through `backprop` itself, whose
/// derivative by the logits is that of the softmax.
fn logits(c: &mut GradientContext<'_>) -> Result<(Output, Output), GradientError> {
    let (g, backprop) = (c.grad(0)?, c.output(1));
    let last = c.constant(Tensor::scalar(-1i32))?;
    let column = c.op("ExpandDims", &[g, last])?;
    let mut x = c.op("Mul", &[column, backprop])?;
    if let Some(second) = c.arrived(1) {
        let features = c.input(0);
        let softmax = c.op("Softmax", &[features])?;
        let through = through_softmax(c, second, softmax)?;
        x = c.op("AddV2", &[x, through])?;
    }
    Ok((column, x))
}

fn cross_entropy(c: &mut GradientContext<'_>) -> Done {
    let (column, x) = logits(c)?;
    c.set(0, x);
    let features = c.input(0);
    let log = c.op("LogSoftmax", &[features])?;
    let negative = c.op("Neg", &[log])?;
    let mut labels = c.op("Mul", &[column, negative])?;
    if let Some(second) = c.arrived(1) {
        // `backprop` is softmax - labels.
        labels = c.op("Sub", &[labels, second])?;
    }
    c.set(1, labels);
    Ok(())
}

fn sparse_cross_entropy(c: &mut GradientContext<'_>) -> Done {
    let (_, x) = logits(c)?;
    c.set(0, x);
    Ok(())
}
