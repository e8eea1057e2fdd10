//! Gradients of reading variables: they pass to the variable's handle.

use super::{GRADIENT_TABLES, GradientSpec, Rule::Unary};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static STATE: &[GradientSpec] = &[("ReadVariableOp", Unary(|g, _, _| g))];
