//! The library of ops: their signatures and shape functions, their [`kernels`] for CPUs, their [`gradients`]. Programs use it
//! through the crate `engine`.

pub mod gradients;
pub mod kernels;
mod ops;
