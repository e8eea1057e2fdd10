//! Gradients of reading variables: they pass to the variable's handle.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static STATE: &[GradientSpec] = &[("ReadVariableOp", Function(read))];

fn read(c: &mut GradientContext<'_>) -> Result<(), GradientError> {
    let grad = c.grad(0)?;
    c.set(0, grad);
    Ok(())
}
