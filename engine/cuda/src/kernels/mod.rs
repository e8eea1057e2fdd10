//! Kernels for GPUs, registered for the device type `GPU`.

mod convolution;
pub mod depthwise;
mod elementwise;
mod fused;
pub mod index;
mod layout;
mod library;
pub mod lrn;
pub mod matmul;
mod norm;
mod plumbing;
pub mod pointwise;
pub mod random;
pub mod reduce;
pub mod rows;
pub mod support;
pub mod training;
mod transfer;
pub mod windows;

pub(crate) use elementwise::sum;
use support::Unit;

/// The sources that are compiled by element type; reductions and element-wise kernels are made as they come.
pub const UNITS: &[Unit] = &[
    matmul::UNIT,
    rows::UNIT,
    windows::UNIT,
    depthwise::UNIT,
    lrn::UNIT,
    index::UNIT,
    index::SEGMENTS,
    training::UNIT,
    training::ROWS,
    random::UNIT,
];
