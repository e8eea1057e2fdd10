//! Gradients of connectionist temporal classification: the loss computes its own.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static CTC: &[GradientSpec] = &[("CTCLoss", Function(loss)), ("CTCLossV2", Function(loss))];

fn loss(c: &GradientContext<'_>) -> RuleResult {
    let (g, of_inputs) = (c.grad(0), c.output(1));
    // One loss for each sequence of the batch, which is the middle dimension.
    c.set(0, g.reshape([1, -1, 1]) * of_inputs);
    Ok(())
}
