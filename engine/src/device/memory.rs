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

    /// The elements of `values`, wherever they lie, one after the other as a tensor of this shape on this device. The kernels of
    /// arrays of tensors are the same for all devices but for this and the two below.
    ///
    /// # Errors
    /// There is no memory, or the device fails.
    fn join(&self, values: &[Tensor], dtype: DType, shape: Shape) -> Result<Tensor, TensorError>;

    /// A copy of those of its elements from `first` on that fill this shape.
    ///
    /// # Errors
    /// As [`DeviceMemory::join`].
    fn piece(&self, first: usize, dtype: DType, shape: Shape) -> Result<Tensor, TensorError>;

    /// The sum of two tensors of one shape and type, of which this memory holds at least one.
    ///
    /// # Errors
    /// As [`DeviceMemory::join`]; elements of the type cannot be added up there.
    fn sum(&self, a: &Tensor, b: &Tensor) -> Result<Tensor, TensorError>;

    /// Itself, for whoever knows the type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
