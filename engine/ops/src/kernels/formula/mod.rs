//! The formulas of element-wise ops, each written once: one line of [`FORMULAS`] per op.
//!
//! A formula is a function of any [`Scalar`](scalar::Scalar): of elements it is what a loop computes, of C text
//! ([`source`]) what a GPU's kernel is generated from. What follows from a line: the CPU's kernels, compiled and vectorised
//! for each op and element type, the steps of fused nodes ([`FUSED_OPS`]), and the text.

mod scalar;
mod step;
mod table;
mod text;

pub(super) use scalar::Real;
pub(super) use step::Step;
pub use step::{FusedOp, Operands};
pub use table::{FORMULAS, FUSED_OPS, Formula, Kind, Numbers, fused_op, source};
