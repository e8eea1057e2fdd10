//! Inputs of a kernel as what it computes with, and outputs that it fills.

use super::{KernelContext, KernelError};
use crate::dtype::{DType, Element};
use crate::shape::Shape;
use crate::tensor::Tensor;

impl KernelContext<'_> {
    /// The elements of input `i`.
    ///
    /// # Errors
    /// It is missing or of another type.
    #[inline]
    pub fn slice<T: Element>(&self, i: usize) -> Result<&[T], KernelError> {
        Ok(self.input(i)?.slice::<T>()?)
    }

    /// The elements of input `i` as another type as wide: see [`Tensor::words`].
    ///
    /// # Errors
    /// It is missing or of another size.
    #[inline]
    pub fn words<T: Element>(&self, i: usize) -> Result<&[T], KernelError> {
        Ok(self.input(i)?.words::<T>()?)
    }

    /// The only element of input `i`.
    ///
    /// # Errors
    /// It is missing, of another type, or not alone.
    pub fn item<T: Element>(&self, i: usize) -> Result<T, KernelError> {
        Ok(self.input(i)?.item::<T>()?)
    }

    /// Input `i` as a list of integers, of whatever width; waits for the device that has them.
    ///
    /// # Errors
    /// It is missing, not of integers, or cannot be copied from its device.
    pub fn ints(&self, i: usize) -> Result<Vec<i64>, KernelError> {
        let t = self.input(i)?.to_host()?;
        Ok(match t.dtype() {
            DType::I32 => t.slice::<i32>()?.iter().map(|v| i64::from(*v)).collect(),
            DType::I64 => t.slice::<i64>()?.to_vec(),
            d if d.is_integer() => crate::convert::convert(&t, DType::I64, self.allocator)?.slice::<i64>()?.to_vec(),
            got => return Err(crate::tensor::TensorError::DType { expected: DType::I64, got }.into()),
        })
    }

    /// Input `i` as a shape.
    ///
    /// # Errors
    /// It is missing, not of integers, or has a negative number.
    pub fn shape_input(&self, i: usize) -> Result<Shape, KernelError> {
        let dims: Result<Vec<usize>, _> = self.ints(i)?.iter().map(|d| usize::try_from(*d)).collect();
        let dims = dims.map_err(|_| KernelError::invalid(format!("{:?} is not a shape", self.input(i))))?;
        Ok(Shape::new(&dims))
    }

    /// An output filled by `fill`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn filled<T: Element>(
        &self,
        shape: Shape,
        fill: impl FnOnce(&mut [T]) -> Result<(), KernelError>,
    ) -> Result<Tensor, KernelError> {
        let mut t = self.room::<T>(shape)?;
        fill(t.slice_mut::<T>()?.ok_or_else(|| KernelError::invalid("the output is shared"))?)?;
        Ok(t)
    }

    /// An output of type `dtype` filled by `fill`, which sees its elements as another type as wide.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn filled_words<T: Element>(
        &self,
        dtype: DType,
        shape: Shape,
        fill: impl FnOnce(&mut [T]) -> Result<(), KernelError>,
    ) -> Result<Tensor, KernelError> {
        let mut t = Tensor::with_room(dtype, shape, self.allocator)?;
        fill(t.words_mut::<T>()?.ok_or_else(|| KernelError::invalid("the output is shared"))?)?;
        Ok(t)
    }
}
