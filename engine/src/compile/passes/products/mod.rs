//! Sums of matrix products become one product over all their steps: `A1 B1 + A2 B2` is what the left matrices side by side
//! give with the right ones one upon the other. Nothing is copied for that, and the products themselves, which gradients
//! of weights used several times add up, are never written down.
//!
//! [`sums`] finds them in trees of additions, [`loops`] where a loop adds one in each of its iterations. Sums are taken in
//! another order, so results change by rounding.

mod loops;
mod product;
mod sums;

use super::{PassContext, WorkGraph};
use crate::compile::CompileError;

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    Ok(loops::run(graph, context)? + sums::run(graph, context)?)
}
