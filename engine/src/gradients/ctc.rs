//! Gradients of connectionist temporal classification: the loss computes its own.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};
use crate::graph::Output;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static CTC: &[GradientSpec] = &[("CTCLoss", Function(loss)), ("CTCLossV2", Function(loss))];

fn loss(c: &mut GradientContext<'_>) -> Result<(), GradientError> {
    let (g, of_inputs) = (c.grad(0)?, Output { port: 1, ..c.output(0) });
    // One loss for each sequence of the batch, which is the middle dimension.
    let dims = c.vector(&[1i32, -1, 1])?;
    let g = c.op("Reshape", &[g, dims])?;
    let grad = c.op("Mul", &[g, of_inputs])?;
    c.set(0, grad);
    Ok(())
}
