//! Tensors from pieces, pieces of tensors, and sums, of any element type, on the device where the elements are.

use crate::kernels::KernelError;
use crate::kernels::support::unique_slice;
use engine_core::buffer::Allocator;
use engine_core::convert::{convert, wide_of};
use engine_core::dtype::{DType, Element};
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Calls `$f` with the type that has the size of `$dtype`'s elements.
macro_rules! by_size {
    ($dtype:expr, $f:ident($($arg:expr),*)) => {
        match ($dtype, $dtype.size()) {
            (DType::Bool, _) => $f::<bool>($($arg),*),
            (_, 1) => $f::<u8>($($arg),*),
            (_, 2) => $f::<u16>($($arg),*),
            (_, 4) => $f::<u32>($($arg),*),
            (_, 8) => $f::<u64>($($arg),*),
            (DType::C128, _) => $f::<num_complex::Complex<f64>>($($arg),*),
            _ => Err(KernelError::invalid(format!("elements of {} cannot be copied", $dtype))),
        }
    };
}

/// The elements of all of `values`, one after the other, as a tensor of this shape.
pub(super) fn join(
    values: &[Tensor],
    shape: Shape,
    dtype: DType,
    allocator: &Allocator,
) -> Result<Tensor, KernelError> {
    if let Some(memory) = values.iter().find_map(Tensor::device_memory) {
        return Ok(memory.join(values, dtype, shape)?);
    }
    if dtype == DType::String {
        let mut all = memory::vec(shape.n_elements())?;
        for value in values {
            all.extend_from_slice(value.strings()?);
        }
        return Ok(Tensor::from_strings(shape, all)?);
    }
    let mut out = Tensor::with_room(dtype, shape, allocator)?;
    by_size!(dtype, join_words(values, &mut out))?;
    Ok(out)
}

fn join_words<T: Element>(values: &[Tensor], out: &mut Tensor) -> Result<(), KernelError> {
    let Some(mut rest) = out.words_mut::<T>()? else { return Ok(()) };
    for value in values {
        let words = value.words::<T>()?;
        let (head, tail) = rest.split_at_mut(words.len());
        head.copy_from_slice(words);
        rest = tail;
    }
    Ok(())
}

/// The elements of `value` from `first` on that fill this shape.
pub(super) fn piece(value: &Tensor, first: usize, shape: Shape, allocator: &Allocator) -> Result<Tensor, KernelError> {
    if let Some(memory) = value.device_memory() {
        return Ok(memory.piece(first, value.dtype(), shape)?);
    }
    let n = shape.n_elements();
    if value.dtype() == DType::String {
        return Ok(Tensor::from_strings(shape, value.strings()?[first..first + n].to_vec())?);
    }
    let mut out = Tensor::with_room(value.dtype(), shape, allocator)?;
    by_size!(value.dtype(), copy_words(value, first, n, &mut out))?;
    Ok(out)
}

fn copy_words<T: Element>(value: &Tensor, first: usize, n: usize, out: &mut Tensor) -> Result<(), KernelError> {
    if let Some(words) = out.words_mut::<T>()? {
        words.copy_from_slice(&value.words::<T>()?[first..first + n]);
    }
    Ok(())
}

/// The sum of two tensors of one shape, in the memory of one of them where nobody shares it.
pub(super) fn sum(a: Tensor, b: Tensor, allocator: &Allocator) -> Result<Tensor, KernelError> {
    if let Some(memory) = a.device_memory().or(b.device_memory()) {
        return Ok(memory.sum(&a, &b)?);
    }
    match a.dtype() {
        DType::F32 => add::<f32>(a, b, allocator, |a, b| a + b),
        DType::F64 => add::<f64>(a, b, allocator, |a, b| a + b),
        DType::I32 => add::<i32>(a, b, allocator, i32::wrapping_add),
        DType::I64 => add::<i64>(a, b, allocator, i64::wrapping_add),
        DType::U64 => add::<u64>(a, b, allocator, u64::wrapping_add),
        DType::C128 => add::<num_complex::Complex<f64>>(a, b, allocator, |a, b| a + b),
        dtype => match wide_of(dtype).filter(|wide| *wide != dtype) {
            Some(wide) => {
                let total = sum(convert(&a, wide, allocator)?, convert(&b, wide, allocator)?, allocator)?;
                Ok(convert(&total, dtype, allocator)?)
            }
            None => Err(KernelError::invalid(format!("elements of {dtype} cannot be added up"))),
        },
    }
}

fn add<T: Element>(a: Tensor, b: Tensor, allocator: &Allocator, f: fn(T, T) -> T) -> Result<Tensor, KernelError> {
    // The sum is commutative, wrapping or not.
    let (mut into, other) = if a.is_unique() { (a, b) } else { (b, a) };
    if !into.is_unique() {
        let shape = into.shape().clone();
        let mut copy = Tensor::with_room(into.dtype(), shape, allocator)?;
        unique_slice::<T>(&mut copy)?.copy_from_slice(into.slice::<T>()?);
        into = copy;
    }
    let others = other.slice::<T>()?;
    unique_slice::<T>(&mut into)?.iter_mut().zip(others).for_each(|(a, b)| *a = f(*a, *b));
    Ok(into)
}
