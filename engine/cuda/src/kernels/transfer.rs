//! The ends of a lossy transfer on a device: values that go and come as their upper halves.

use engine::kernels::KernelError;
use engine::{DType, Tensor};

use super::pointwise::{Pointwise, Side};
use super::support::strides;
use crate::gpu::Gpu;

/// The upper halves of f32 values, in the device's memory: half as much is copied from there.
pub(super) fn shortened(gpu: &Gpu, values: &Tensor) -> Result<Tensor, KernelError> {
    // A NaN whose set bits are all in the lower half would become an infinity.
    let upper = "((a & 0x7fffffffu) > 0x7f800000u ? a >> 16 | 0x40u : a >> 16)";
    converted(gpu, values, DType::BF16, ("u32", "u16"), upper)
}

/// f32 values of these upper halves, zeros below.
pub(super) fn lengthened(gpu: &Gpu, halves: &Tensor) -> Result<Tensor, KernelError> {
    converted(gpu, halves, DType::F32, ("brain16", "float"), "a")
}

/// A tensor of `to` whose elements are made of `values`', each taken for a C type and stored as one of the same size.
fn converted(
    gpu: &Gpu,
    values: &Tensor,
    to: DType,
    (taken_for, stored_as): (&'static str, &'static str),
    text: &str,
) -> Result<Tensor, KernelError> {
    let (values, from) = gpu.bring(values)?;
    let (out, at) = gpu.room(to, values.shape().clone())?;
    let along = strides(values.dims());
    let input = Side { at: from, of: taken_for, strides: along.clone().into() };
    let output = (Side { at, of: stored_as, strides: along.into() }, text.to_owned());
    // SAFETY: both are whole tensors of one shape, walked as it says; the types are as wide as the elements.
    unsafe { Pointwise { dims: values.dims(), inputs: &[input], body: "", outputs: &[output] }.run(gpu)? };
    Ok(out)
}
