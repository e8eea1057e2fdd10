//! Tensors: a dtype, a shape, and elements that are shared between clones.
//!
//! Scalars of up to 16 bytes lie in the tensor itself; everything else is a [`Buffer`] (or, for strings and resource
//! handles, a shared slice). Elements are row-major and contiguous.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::buffer::{AllocError, Allocator, Buffer};
use crate::device::DeviceMemory;
use crate::dtype::{DType, Element};
use crate::memory::{self, Charge};
use crate::shape::Shape;
use crate::tensor_list::TensorList;

/// A dense tensor. Clones share the elements.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    data: Data,
}

#[derive(Clone)]
enum Data {
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
struct Strings {
    values: Vec<Vec<u8>>,
    _charge: Charge,
}

impl Strings {
    fn bytes(values: &[Vec<u8>]) -> usize {
        values.iter().map(|value| size_of::<Vec<u8>>().saturating_add(value.capacity())).fold(0, usize::saturating_add)
    }

    fn new(values: Vec<Vec<u8>>) -> Result<Arc<Strings>, AllocError> {
        let charge = Charge::taken(Strings::bytes(&values))?;
        Ok(Arc::new(Strings { values, _charge: charge }))
    }

    /// Even where there is too much already.
    fn unchecked(values: Vec<Vec<u8>>) -> Arc<Strings> {
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
    fn alloc(dtype: DType, shape: Shape, source: AllocError) -> TensorError {
        TensorError::Alloc { dtype, shape: Box::new(shape), source }
    }
}

impl Tensor {
    /// A tensor of rank 0.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        let mut bits = [0u64; 2];
        // SAFETY: an element has at most 16 bytes and an alignment of 8.
        unsafe { bits.as_mut_ptr().cast::<T>().write(value) };
        Tensor { dtype: T::DTYPE, shape: Shape::scalar(), data: Data::Inline(bits) }
    }

    /// A tensor that takes over `values`, row-major, without copying them.
    ///
    /// # Errors
    /// Their number is not the shape's.
    pub fn from_vec<T: Element>(shape: impl Into<Shape>, values: Vec<T>) -> Result<Tensor, TensorError> {
        let shape = shape.into();
        let expected = shape.checked_n_elements().ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        if expected != values.len() {
            return Err(TensorError::Count { shape: Box::new(shape), expected, got: values.len() });
        }
        if shape.rank() == 0 {
            return Ok(Tensor::scalar(values[0]));
        }
        match Buffer::adopt(values) {
            Ok(buffer) => Ok(Tensor { dtype: T::DTYPE, shape, data: Data::Heap(buffer) }),
            Err(source) => Err(TensorError::alloc(T::DTYPE, shape, source)),
        }
    }

    /// A vector of `values`.
    pub fn vector<T: Element>(values: &[T]) -> Tensor {
        let data = Data::Heap(Buffer::adopt_unchecked(values.to_vec()));
        Tensor { dtype: T::DTYPE, shape: Shape::new(&[values.len()]), data }
    }

    /// A tensor of strings.
    ///
    /// # Errors
    /// Their number is not the shape's.
    pub fn from_strings(shape: impl Into<Shape>, values: Vec<Vec<u8>>) -> Result<Tensor, TensorError> {
        let shape = shape.into();
        let expected = shape.checked_n_elements().ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        if expected != values.len() {
            return Err(TensorError::Count { shape: Box::new(shape), expected, got: values.len() });
        }
        match Strings::new(values) {
            Ok(strings) => Ok(Tensor { dtype: DType::String, shape, data: Data::Strings(strings) }),
            Err(source) => Err(TensorError::alloc(DType::String, shape, source)),
        }
    }

    /// One string.
    pub fn string(value: impl Into<Vec<u8>>) -> Tensor {
        Tensor {
            dtype: DType::String,
            shape: Shape::scalar(),
            data: Data::Strings(Strings::unchecked(vec![value.into()])),
        }
    }

    /// A vector of strings.
    pub fn string_vector(values: Vec<Vec<u8>>) -> Tensor {
        Tensor {
            dtype: DType::String,
            shape: Shape::new(&[values.len()]),
            data: Data::Strings(Strings::unchecked(values)),
        }
    }

    /// A handle to a resource.
    pub fn resource(handle: ResourceHandle) -> Tensor {
        Tensor { dtype: DType::Resource, shape: Shape::scalar(), data: Data::Resource(Arc::new(handle)) }
    }

    /// A scalar of type variant: a list of tensors.
    pub fn list(list: impl Into<Arc<TensorList>>) -> Tensor {
        Tensor { dtype: DType::Variant, shape: Shape::scalar(), data: Data::List(list.into()) }
    }

    /// The list of tensors that this is.
    ///
    /// # Errors
    /// The tensor holds something else.
    pub fn as_list(&self) -> Result<&Arc<TensorList>, TensorError> {
        match &self.data {
            Data::List(list) => Ok(list),
            _ => Err(TensorError::DType { expected: DType::Variant, got: self.dtype }),
        }
    }

    /// The list of tensors that this is, for changing it where nobody shares it.
    ///
    /// # Errors
    /// The tensor holds something else.
    pub fn into_list(self) -> Result<Arc<TensorList>, TensorError> {
        match self.data {
            Data::List(list) => Ok(list),
            _ => Err(TensorError::DType { expected: DType::Variant, got: self.dtype }),
        }
    }

    /// A tensor with room for its elements, which are initialised to anything (`bool`: to false), to be overwritten.
    ///
    /// # Errors
    /// The shape or the memory does not allow it; `dtype` is one that lives in no buffer.
    pub fn with_room(dtype: DType, shape: Shape, allocator: &Allocator) -> Result<Tensor, TensorError> {
        if dtype.size() == 0 {
            return Err(TensorError::DType { expected: DType::F32, got: dtype });
        }
        if shape.rank() == 0 {
            return Ok(Tensor { dtype, shape, data: Data::Inline([0; 2]) });
        }
        let n_bytes = shape
            .checked_n_elements()
            .and_then(|n| n.checked_mul(dtype.size()))
            .ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        let mut buffer = match allocator.alloc(n_bytes) {
            Ok(buffer) => buffer,
            Err(source) => return Err(TensorError::alloc(dtype, shape, source)),
        };
        if dtype == DType::Bool
            && let Some(data) = buffer.as_mut_ptr()
        {
            // SAFETY: the buffer is unique and has this many bytes. Old contents need not be bools.
            unsafe { data.write_bytes(0, n_bytes) };
        }
        Ok(Tensor { dtype, shape, data: Data::Heap(buffer) })
    }

    /// A tensor of a number type from the bytes of its elements as they lie in memory.
    ///
    /// # Errors
    /// Their number is not the shape's, the type is `bool` or lives in no buffer, or there is no memory.
    pub fn from_bytes(dtype: DType, shape: Shape, bytes: &[u8], allocator: &Allocator) -> Result<Tensor, TensorError> {
        let expected = shape.checked_n_elements().and_then(|n| n.checked_mul(dtype.size()));
        let expected = expected.ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        if dtype == DType::Bool || dtype.size() == 0 {
            return Err(TensorError::DType { expected: DType::U8, got: dtype });
        }
        if expected != bytes.len() {
            let got = bytes.len() / dtype.size();
            return Err(TensorError::Count { expected: expected / dtype.size(), shape: Box::new(shape), got });
        }
        let mut t = Tensor::with_room(dtype, shape, allocator)?;
        t.bytes_mut().expect("just made, so unique").copy_from_slice(bytes);
        Ok(t)
    }

    /// A tensor of a type that lives in a buffer, whose bytes `fill` writes as they lie in memory: what comes from another
    /// process, without a copy in between.
    ///
    /// # Errors
    /// `fill` fails; bytes of a `bool` are neither 0 nor 1; the shape or the memory does not allow it.
    pub fn filled_by<E: From<TensorError>>(
        dtype: DType,
        shape: Shape,
        allocator: &Allocator,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Tensor, E> {
        let mut t = Tensor::with_room(dtype, shape, allocator)?;
        let bytes = t.bytes_mut().expect("just made, so unique");
        let filled = fill(bytes);
        if dtype == DType::Bool && (filled.is_err() || bytes.iter().any(|b| *b > 1)) {
            // Whatever holds this memory next may take it for bools.
            bytes.fill(0);
            filled?;
            return Err(TensorError::DType { expected: DType::U8, got: dtype }.into());
        }
        filled.map(|()| t)
    }

    /// A tensor of zeros (empty strings).
    ///
    /// # Errors
    /// The shape or the memory does not allow it; `dtype` is a resource.
    pub fn zeros(dtype: DType, shape: Shape, allocator: &Allocator) -> Result<Tensor, TensorError> {
        if dtype == DType::String {
            let n = shape.checked_n_elements().filter(|n| *n < isize::MAX as usize / size_of::<Vec<u8>>());
            let n = n.ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
            memory::check(n * size_of::<Vec<u8>>())?;
            return Tensor::from_strings(shape, vec![Vec::new(); n]);
        }
        let mut t = Tensor::with_room(dtype, shape, allocator)?;
        t.bytes_mut().expect("just made, so unique").fill(0);
        Ok(t)
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The dimensions.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.shape.n_elements()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the elements (of strings: their bytes).
    pub fn n_bytes(&self) -> usize {
        match &self.data {
            Data::Strings(s) => s.values.iter().map(Vec::len).sum(),
            Data::Resource(_) => 0,
            Data::List(list) => list.tensors.iter().flatten().map(Tensor::n_bytes).sum(),
            _ => self.len() * self.dtype.size(),
        }
    }

    /// The elements, row-major.
    ///
    /// # Errors
    /// They are of another type.
    #[inline]
    pub fn slice<T: Element>(&self) -> Result<&[T], TensorError> {
        if self.dtype != T::DTYPE {
            return Err(TensorError::DType { expected: T::DTYPE, got: self.dtype });
        }
        let (data, n) = match &self.data {
            Data::Inline(bits) => (bits.as_ptr().cast::<T>(), 1),
            Data::Heap(buffer) => (buffer.as_ptr().cast::<T>(), self.len()),
            _ => return Err(self.no_elements(T::DTYPE)),
        };
        // SAFETY: the constructors made the data as large as the shape says, aligned for the dtype, initialised with
        // values of it; the dtype was checked.
        Ok(unsafe { std::slice::from_raw_parts(data, n) })
    }

    /// The elements as another type of the same size: for what only moves them about.
    ///
    /// # Errors
    /// The sizes differ, or one type is `bool` and the other is not.
    #[inline]
    pub fn words<T: Element>(&self) -> Result<&[T], TensorError> {
        self.check_words::<T>()?;
        let (data, n) = match &self.data {
            Data::Inline(bits) => (bits.as_ptr().cast::<T>(), 1),
            Data::Heap(buffer) => (buffer.as_ptr().cast::<T>(), self.len()),
            _ => return Err(self.no_elements(T::DTYPE)),
        };
        // SAFETY: as in `slice`: the sizes are equal, so there are as many, and an element's alignment is at most 8
        // (adopted memory is checked); any bits are a `T`, which is no bool unless the elements are bools.
        Ok(unsafe { std::slice::from_raw_parts(data, n) })
    }

    /// As [`Tensor::words`] for writing, where nobody shares the elements (`None` otherwise).
    ///
    /// # Errors
    /// As [`Tensor::words`].
    #[inline]
    pub fn words_mut<T: Element>(&mut self) -> Result<Option<&mut [T]>, TensorError> {
        self.check_words::<T>()?;
        let n = self.len();
        let data = match &mut self.data {
            Data::Inline(bits) => bits.as_mut_ptr().cast::<T>(),
            Data::Heap(buffer) => match buffer.as_mut_ptr() {
                Some(data) => data.cast::<T>(),
                None => return Ok(None),
            },
            _ => return Err(self.no_elements(T::DTYPE)),
        };
        // SAFETY: as in `words`; nobody else holds the buffer, `self` is borrowed for writing, and any bits of a `T` are
        // an element of this tensor, bools being written as bools only.
        Ok(Some(unsafe { std::slice::from_raw_parts_mut(data, n) }))
    }

    /// Why the host finds no elements here.
    #[cold]
    fn no_elements(&self, expected: DType) -> TensorError {
        match &self.data {
            Data::Device(memory) => TensorError::Elsewhere { device: memory.device().into() },
            _ => TensorError::DType { expected, got: self.dtype },
        }
    }

    fn check_words<T: Element>(&self) -> Result<(), TensorError> {
        let aligned = match &self.data {
            Data::Heap(buffer) => (buffer.as_ptr() as usize).is_multiple_of(align_of::<T>()),
            _ => true,
        };
        let alike = T::DTYPE.size() == self.dtype.size() && (T::DTYPE == DType::Bool) == (self.dtype == DType::Bool);
        if alike && aligned { Ok(()) } else { Err(TensorError::DType { expected: T::DTYPE, got: self.dtype }) }
    }

    /// The only element.
    ///
    /// # Errors
    /// They are of another type, or not one.
    pub fn item<T: Element>(&self) -> Result<T, TensorError> {
        match self.slice::<T>()? {
            [one] => Ok(*one),
            more => Err(TensorError::Count { shape: Box::new(self.shape.clone()), expected: 1, got: more.len() }),
        }
    }

    /// The elements for writing, where nobody shares them (`None` otherwise).
    ///
    /// # Errors
    /// They are of another type.
    #[inline]
    pub fn slice_mut<T: Element>(&mut self) -> Result<Option<&mut [T]>, TensorError> {
        if self.dtype != T::DTYPE {
            return Err(TensorError::DType { expected: T::DTYPE, got: self.dtype });
        }
        let n = self.len();
        let data = match &mut self.data {
            Data::Inline(bits) => bits.as_mut_ptr().cast::<T>(),
            Data::Heap(buffer) => match buffer.as_mut_ptr() {
                Some(data) => data.cast::<T>(),
                None => return Ok(None),
            },
            _ => return Err(self.no_elements(T::DTYPE)),
        };
        // SAFETY: as in `slice`; nobody else holds the buffer, and `self` is borrowed for writing.
        Ok(Some(unsafe { std::slice::from_raw_parts_mut(data, n) }))
    }

    /// The element of a scalar that lies in the tensor itself.
    #[inline(always)]
    pub(crate) fn inline_mut<T: Element>(&mut self) -> Option<&mut T> {
        match &mut self.data {
            // SAFETY: the constructors initialised the element with a value of the dtype, which was checked; it has at most
            // the size and alignment of the words.
            Data::Inline(bits) if self.dtype == T::DTYPE => Some(unsafe { &mut *bits.as_mut_ptr().cast::<T>() }),
            _ => None,
        }
    }

    /// The bytes of the elements (empty for strings, resources and what lies on a device).
    pub fn bytes(&self) -> &[u8] {
        let n = self.len() * self.dtype.size();
        match &self.data {
            // SAFETY: elements have no padding; the data has this many initialised bytes.
            Data::Inline(bits) => unsafe { std::slice::from_raw_parts(bits.as_ptr().cast(), n) },
            // SAFETY: as above.
            Data::Heap(buffer) => unsafe { std::slice::from_raw_parts(buffer.as_ptr(), n) },
            _ => &[],
        }
    }

    /// The bytes of the elements for writing, where nobody shares them. Not every byte is a bool.
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let n = self.len() * self.dtype.size();
        let data = match &mut self.data {
            Data::Inline(bits) => bits.as_mut_ptr().cast(),
            Data::Heap(buffer) => buffer.as_mut_ptr()?,
            _ => return None,
        };
        // SAFETY: the data has this many initialised bytes, and nobody else holds them.
        Some(unsafe { std::slice::from_raw_parts_mut(data, n) })
    }

    /// The strings.
    ///
    /// # Errors
    /// The elements are of another type.
    pub fn strings(&self) -> Result<&[Vec<u8>], TensorError> {
        match &self.data {
            Data::Strings(s) => Ok(&s.values),
            _ => Err(TensorError::DType { expected: DType::String, got: self.dtype }),
        }
    }

    /// The resource handle.
    ///
    /// # Errors
    /// The tensor holds something else.
    pub fn handle(&self) -> Result<&ResourceHandle, TensorError> {
        match &self.data {
            Data::Resource(handle) => Ok(handle),
            _ => Err(TensorError::DType { expected: DType::Resource, got: self.dtype }),
        }
    }

    /// The same elements in another shape, shared.
    ///
    /// # Errors
    /// The number of elements differs.
    pub fn reshaped(&self, shape: Shape) -> Result<Tensor, TensorError> {
        self.clone().into_shape(shape)
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// The number of elements differs.
    pub fn into_shape(self, shape: Shape) -> Result<Tensor, TensorError> {
        let got = self.len();
        let expected = shape.checked_n_elements().ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        if expected != got {
            return Err(TensorError::Count { shape: Box::new(shape), expected, got });
        }
        let data = match self.data {
            // An element that is no longer a scalar needs a buffer (a scalar may well stay in one).
            Data::Inline(bits) if shape.rank() > 0 => {
                let mut buffer = Allocator::host().alloc(self.dtype.size())?;
                let data = buffer.as_mut_ptr().expect("just made, so unique");
                // SAFETY: an element has at most 16 bytes, the buffer has as many as one.
                unsafe { data.copy_from_nonoverlapping(bits.as_ptr().cast(), self.dtype.size()) };
                Data::Heap(buffer)
            }
            data => data,
        };
        Ok(Tensor { dtype: self.dtype, shape, data })
    }

    /// Whether nobody shares the elements, so that a kernel may overwrite them.
    #[inline]
    pub fn is_unique(&self) -> bool {
        match &self.data {
            Data::Inline(_) => true,
            Data::Heap(buffer) => buffer.is_unique(),
            Data::Device(memory) => Arc::strong_count(memory) == 1,
            Data::Strings(_) | Data::Resource(_) | Data::List(_) => false,
        }
    }

    /// The same elements in memory of `allocator`. What lies in no buffer (strings, handles, scalars in the tensor itself) is
    /// shared.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn copied_to(&self, allocator: &Allocator) -> Result<Tensor, TensorError> {
        let Data::Heap(from) = &self.data else { return Ok(self.clone()) };
        let n_bytes = self.n_bytes();
        let mut buffer = match allocator.alloc(n_bytes) {
            Ok(buffer) => buffer,
            Err(source) => return Err(TensorError::alloc(self.dtype, self.shape.clone(), source)),
        };
        if let Some(to) = buffer.as_mut_ptr() {
            // SAFETY: both are at least as long as the elements, initialised, and distinct: the one was just allocated.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, n_bytes) };
        }
        Ok(Tensor { dtype: self.dtype, shape: self.shape.clone(), data: Data::Heap(buffer) })
    }

    /// A tensor of elements that lie in the memory of a device, from its beginning.
    ///
    /// # Errors
    /// The memory is too small for the shape; elements of this type live in no memory.
    pub fn on_device(dtype: DType, shape: Shape, memory: Arc<dyn DeviceMemory>) -> Result<Tensor, TensorError> {
        if dtype.size() == 0 {
            return Err(TensorError::DType { expected: DType::F32, got: dtype });
        }
        let expected = shape.checked_n_elements().ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        let got = memory.n_bytes() / dtype.size();
        if got < expected {
            return Err(TensorError::Count { shape: Box::new(shape), expected, got });
        }
        Ok(Tensor { dtype, shape, data: Data::Device(memory) })
    }

    /// The memory of a device that the elements lie in, where they do.
    #[inline]
    pub fn device_memory(&self) -> Option<&Arc<dyn DeviceMemory>> {
        match &self.data {
            Data::Device(memory) => Some(memory),
            _ => None,
        }
    }

    /// Calls `done` with the same elements where the host can read them: at once, or from another thread when a device copied
    /// them into memory of `allocator`.
    pub fn to_host_then(self, allocator: &Allocator, done: impl FnOnce(Result<Tensor, TensorError>) + Send + 'static) {
        match self.data {
            Data::Device(memory) => memory.read(self.dtype, self.shape, allocator.clone(), Box::new(done)),
            _ => done(Ok(self)),
        }
    }

    /// The same elements where the host can read them. Waits for the device that has them.
    ///
    /// # Errors
    /// The device failed, or there is no memory.
    pub fn to_host(&self) -> Result<Tensor, TensorError> {
        let Data::Device(memory) = &self.data else { return Ok(self.clone()) };
        let device: Box<str> = memory.device().into();
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.clone().to_host_then(Allocator::host(), move |result| drop(sender.send(result)));
        let lost = || TensorError::Device { device, reason: "the copy to the host never ended".into() };
        receiver.recv().unwrap_or_else(|_| Err(lost()))
    }

    /// Whether both hold the same memory.
    pub fn shares_memory_with(&self, other: &Tensor) -> bool {
        match (&self.data, &other.data) {
            (Data::Heap(a), Data::Heap(b)) => a.as_ptr() == b.as_ptr(),
            (Data::Strings(a), Data::Strings(b)) => Arc::ptr_eq(a, b),
            (Data::Device(a), Data::Device(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// Equal dtype, shape and elements (bit by bit; resources: the same object; on a device: the same memory).
impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        self.dtype == other.dtype
            && self.shape == other.shape
            && match (&self.data, &other.data) {
                (Data::Strings(a), Data::Strings(b)) => a.values == b.values,
                (Data::Resource(a), Data::Resource(b)) => Arc::ptr_eq(&a.object, &b.object),
                (Data::List(a), Data::List(b)) => a == b,
                (Data::Device(a), Data::Device(b)) => Arc::ptr_eq(a, b),
                (Data::Device(_), _) | (_, Data::Device(_)) => false,
                _ => self.bytes() == other.bytes(),
            }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        fn list<T: fmt::Debug>(f: &mut fmt::Formatter<'_>, values: &[T]) -> fmt::Result {
            for (i, v) in values.iter().take(SHOWN).enumerate() {
                write!(f, "{}{v:?}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str(if values.len() > SHOWN { ", ..." } else { "" })
        }
        write!(f, "{}{} ", self.dtype, self.shape)?;
        if let Data::Device(memory) = &self.data {
            return write!(f, "{{in the memory of {}}}", memory.device());
        }
        f.write_str("{")?;
        fn numbers<T: Element>(f: &mut fmt::Formatter<'_>, t: &Tensor) -> fmt::Result {
            list(f, t.slice::<T>().unwrap_or_default())
        }
        crate::convert::with_number!(self.dtype, numbers(f, self), other => match other {
            DType::String => {
                let strings = self.strings().unwrap_or_default().iter();
                list(f, &strings.take(SHOWN + 1).map(|s| String::from_utf8_lossy(s)).collect::<Vec<_>>())
            }
            _ => match self.handle() {
                Ok(h) => write!(f, "{}/{}", h.container, h.name),
                Err(_) => f.write_str("?"),
            },
        })?;
        f.write_str("}")
    }
}

impl From<f32> for Tensor {
    fn from(v: f32) -> Tensor {
        Tensor::scalar(v)
    }
}

impl From<i64> for Tensor {
    fn from(v: i64) -> Tensor {
        Tensor::scalar(v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_shared_until_asked_for_alone() {
        let mut a = Tensor::from_vec([2, 2], vec![1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let b = a.clone();
        assert!(a.shares_memory_with(&b));
        assert!(a.slice_mut::<f32>().unwrap().is_none());
        drop(b);
        a.slice_mut::<f32>().unwrap().unwrap()[3] = 5.0;
        assert_eq!(format!("{a:?}"), "float[2,2] {1.0, 2.0, 3.0, 5.0}");
    }

    #[test]
    fn wrong_uses_are_errors() {
        let t = Tensor::scalar(1i32);
        assert_eq!(t.slice::<f32>().unwrap_err().to_string(), "expected a tensor of float, got int32");
        let err = Tensor::from_vec([3], vec![1u8]).unwrap_err();
        assert_eq!(err.to_string(), "shape [3] has 3 elements, got 1");
        let err = Tensor::zeros(DType::F32, [usize::MAX, 2].into(), Allocator::host()).unwrap_err();
        assert!(err.to_string().ends_with("is too large"));
        assert!(Tensor::zeros(DType::F32, [1 << 60].into(), Allocator::host()).is_err());
    }

    #[test]
    fn reshaping_a_scalar_gives_it_a_buffer() {
        let t = Tensor::scalar(7i64).into_shape([1, 1].into()).unwrap();
        assert_eq!((t.dims(), t.slice::<i64>().unwrap()), (&[1, 1][..], &[7][..]));
        assert_eq!(t.into_shape(Shape::scalar()).unwrap().item::<i64>().unwrap(), 7);
    }

    #[test]
    fn words_are_elements_of_any_type_as_wide() {
        let mut t = Tensor::vector(&[1.0f32, -0.0]);
        assert_eq!(t.words::<u32>().unwrap(), [0x3f80_0000, 0x8000_0000]);
        t.words_mut::<u32>().unwrap().unwrap()[0] = 0x4000_0000;
        assert_eq!(t.slice::<f32>().unwrap(), [2.0, 0.0]);
        assert!(t.words::<u64>().is_err() && t.words::<u8>().is_err());
        assert!(Tensor::vector(&[1u8]).words::<bool>().is_err() && Tensor::scalar(true).words::<u8>().is_err());
        let complex = Tensor::scalar(crate::dtype::Complex64::new(1.0, 2.0));
        assert_eq!(complex.n_bytes(), 16);
        assert_eq!(complex.into_shape([1].into()).unwrap().words::<crate::dtype::Complex64>().unwrap()[0].im, 2.0);
    }

    #[test]
    fn bools_are_bools_in_reused_memory() {
        let a = Allocator::new("/device:CPU:0", 1 << 20);
        let mut t = Tensor::with_room(DType::U8, [64].into(), &a).unwrap();
        t.slice_mut::<u8>().unwrap().unwrap().fill(7);
        drop(t);
        let t = Tensor::with_room(DType::Bool, [64].into(), &a).unwrap();
        assert_eq!(t.slice::<bool>().unwrap(), &[false; 64]);
    }
}
