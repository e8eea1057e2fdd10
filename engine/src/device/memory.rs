//! Memory of devices that the host cannot read.

use std::any::Any;
use std::sync::Arc;

use crate::buffer::Allocator;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorError};

/// Called with the elements in memory that the host reads, or with why there are none; from any thread, once.
pub type Read = Box<dyn FnOnce(Result<Tensor, TensorError>) + Send>;

/// A piece of a device's memory that tensors share. Work on it is ordered by the device: what was begun before on it comes
/// before what is begun now.
pub trait DeviceMemory: Any + Send + Sync {
    /// The device's name.
    fn device(&self) -> &str;

    /// How many bytes it has.
    fn n_bytes(&self) -> usize;

    /// Copies its first elements into a tensor in memory of `allocator`, as soon as what was begun on it is done. Never blocks.
    fn read(self: Arc<Self>, dtype: DType, shape: Shape, allocator: Allocator, done: Read);

    /// Itself, for whoever knows the type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
