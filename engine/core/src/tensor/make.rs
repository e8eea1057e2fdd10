//! Making tensors.

use std::sync::Arc;

use super::value::{Data, ResourceHandle, Strings, Tensor, TensorError, TensorList};
use crate::buffer::{Allocator, Buffer};
use crate::dtype::{DType, Element};
use crate::memory;
use crate::shape::Shape;

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
}
