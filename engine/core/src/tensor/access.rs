//! Looking at tensors and changing what they hold.

use std::sync::Arc;

use super::value::{Data, DeviceMemory, ResourceHandle, Tensor, TensorError};
use crate::buffer::Allocator;
use crate::dtype::{DType, Element};
use crate::shape::Shape;

impl Tensor {
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
    pub fn inline_mut<T: Element>(&mut self) -> Option<&mut T> {
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
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
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
