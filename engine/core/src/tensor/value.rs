//! What a tensor is made of. A list of tensors and a device's memory are both parts of tensors and made of them.

use std::any::Any;
use std::sync::Arc;

use crate::buffer::{AllocError, Allocator, Buffer};
use crate::dtype::DType;
use crate::memory::Charge;
use crate::shape::{PartialShape, Shape};

/// A dense tensor. Clones share the elements.
#[derive(Clone)]
pub struct Tensor {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) data: Data,
}

#[derive(Clone)]
pub(super) enum Data {
    /// The elements themselves, where they fit: a scalar.
    Inline([u64; 2]),
    Heap(Buffer),
    Strings(Arc<Strings>),
    /// Behind a pointer, so that it does not make every tensor larger.
    Resource(Arc<ResourceHandle>),
    List(Arc<TensorList>),
    /// In memory that the host cannot read.
    Device(Arc<dyn DeviceMemory>),
}

/// Strings, and what they take.
pub(super) struct Strings {
    pub values: Vec<Vec<u8>>,
    _charge: Charge,
}

impl Strings {
    pub fn bytes(values: &[Vec<u8>]) -> usize {
        values.iter().map(|value| size_of::<Vec<u8>>().saturating_add(value.capacity())).fold(0, usize::saturating_add)
    }

    pub fn new(values: Vec<Vec<u8>>) -> Result<Arc<Strings>, AllocError> {
        let charge = Charge::taken(Strings::bytes(&values))?;
        Ok(Arc::new(Strings { values, _charge: charge }))
    }

    /// Even where there is too much already.
    pub fn unchecked(values: Vec<Vec<u8>>) -> Arc<Strings> {
        let charge = Charge::unchecked(Strings::bytes(&values));
        Arc::new(Strings { values, _charge: charge })
    }
}

/// A handle to an object of a resource manager: what a `DT_RESOURCE` tensor holds.
#[derive(Clone)]
pub struct ResourceHandle {
    /// The container that the object lives in.
    pub container: Arc<str>,
    /// The object's name there.
    pub name: Arc<str>,
    /// The object.
    pub object: Arc<dyn Any + Send + Sync>,
}

/// Why a tensor could not be made or looked at.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TensorError {
    /// The elements are of another type than the caller takes them for.
    #[error("expected a tensor of {expected}, got {got}")]
    DType {
        /// What the caller takes them for.
        expected: DType,
        /// What they are.
        got: DType,
    },
    /// The number of elements is not the shape's.
    #[error("shape {shape} has {expected} elements, got {got}")]
    Count {
        /// The shape.
        shape: Box<Shape>,
        /// Its number of elements.
        expected: usize,
        /// The number of elements given.
        got: usize,
    },
    /// The shape has more elements than memory can hold, or too many dimensions.
    #[error("shape {0} is too large")]
    TooLarge(Box<Shape>),
    /// There is no memory for it.
    #[error("{dtype}{shape}: {source}")]
    Alloc {
        /// The element type.
        dtype: DType,
        /// The shape.
        shape: Box<Shape>,
        /// Who has no more.
        source: AllocError,
    },
    /// There is no memory for what is no tensor yet.
    #[error(transparent)]
    Memory(#[from] AllocError),
    /// The host is to read what lies in the memory of a device.
    #[error("the elements are in the memory of {device}, which the host cannot read")]
    Elsewhere {
        /// The device.
        device: Box<str>,
    },
    /// A device could not copy elements.
    #[error("{device}: {reason}")]
    Device {
        /// The device.
        device: Box<str>,
        /// What its driver says.
        reason: Box<str>,
    },
}

impl TensorError {
    #[cold]
    pub(super) fn alloc(dtype: DType, shape: Shape, source: AllocError) -> TensorError {
        TensorError::Alloc { dtype, shape: Box::new(shape), source }
    }
}

/// A list of tensors of one element type. Clones share the tensors.
#[derive(Debug, Clone)]
pub struct TensorList {
    /// The tensors' element type.
    pub element_dtype: DType,
    /// What is known of the tensors' shape.
    pub element_shape: PartialShape,
    /// How many tensors there may be; `None`: as many as come.
    pub max_num_elements: Option<usize>,
    /// The tensors; `None` where none was set, which reads as zeros.
    pub tensors: Vec<Option<Tensor>>,
    /// What the list takes of the host's memory.
    pub charge: Charge,
}

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
