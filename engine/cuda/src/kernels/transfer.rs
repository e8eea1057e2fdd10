//! The end of a lossy transfer: values that came as their upper halves.

use engine::kernels::KernelError;
use engine::{DType, Tensor};

use super::pointwise::{Pointwise, Side};
use super::support::strides;
use crate::gpu::Gpu;

/// f32 values of these upper halves, zeros below.
pub(super) fn lengthened(gpu: &Gpu, halves: &Tensor) -> Result<Tensor, KernelError> {
    let (halves, from) = gpu.bring(halves)?;
    let (out, to) = gpu.room(DType::F32, halves.shape().clone())?;
    let along = strides(halves.dims());
    let input = Side { at: from, of: "brain16", strides: along.clone().into() };
    let output = (Side { at: to, of: "float", strides: along.into() }, "a".to_owned());
    // SAFETY: both are whole tensors of one shape, walked as it says.
    unsafe { Pointwise { dims: halves.dims(), inputs: &[input], body: "", outputs: &[output] }.run(gpu)? };
    Ok(out)
}
