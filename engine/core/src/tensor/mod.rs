//! Tensors: a dtype, a shape, and elements that are shared between clones.
//!
//! Scalars of up to 16 bytes lie in the tensor itself; everything else is a [`Buffer`](crate::buffer::Buffer) (or, for
//! strings and resource handles, a shared slice). Elements are row-major and contiguous.

mod access;
mod format;
mod make;
mod value;

pub use value::{DeviceMemory, Read, ResourceHandle, Tensor, TensorError, TensorList};

#[cfg(test)]
mod tests;
