//! Batches from rows and rows from batches.

use smallvec::SmallVec;

use crate::buffer::Allocator;
use crate::checkpoint::encode;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorError};

/// One element of a queue: a tensor for each component.
pub type Row = SmallVec<[Tensor; 2]>;

/// The tensors of equal type and shape as one, with a new first dimension.
pub fn stack(parts: &[&Tensor], dtype: DType, shape: &Shape, allocator: &Allocator) -> Result<Tensor, TensorError> {
    let mut dims = vec![parts.len()];
    dims.extend_from_slice(shape.dims());
    let whole = Shape::new(&dims);
    if dtype == DType::String {
        let strings = parts.iter().map(|t| t.strings()).collect::<Result<Vec<_>, _>>()?;
        return Tensor::from_strings(whole, strings.concat());
    }
    let mut bytes = Vec::with_capacity(whole.checked_n_elements().unwrap_or(0).saturating_mul(dtype.size()));
    parts.iter().for_each(|t| bytes.extend_from_slice(t.bytes()));
    numbers(dtype, whole, &bytes, allocator)
}

fn numbers(dtype: DType, shape: Shape, bytes: &[u8], allocator: &Allocator) -> Result<Tensor, TensorError> {
    match dtype {
        DType::Bool => encode::numbers(dtype, shape, bytes),
        _ => Tensor::from_bytes(dtype, shape, bytes, allocator),
    }
}

/// Tensors of one rank as one, each padded behind with zeros (empty strings) to the largest extent of all.
pub(crate) fn stack_padded(parts: &[&Tensor], dtype: DType, min: &[usize]) -> Result<Tensor, TensorError> {
    let mut largest = min.to_vec();
    for t in parts {
        largest.iter_mut().zip(t.dims()).for_each(|(l, d)| *l = (*l).max(*d));
    }
    let mut dims = vec![parts.len()];
    dims.extend_from_slice(&largest);
    let whole = Shape::new(&dims);
    let n = whole.checked_n_elements().ok_or_else(|| TensorError::TooLarge(Box::new(whole.clone())))?;
    let each = n / parts.len().max(1);
    let zeros = vec![0; dims.len()];
    if dtype == DType::String {
        let mut out = vec![Vec::new(); n];
        for (i, t) in parts.iter().enumerate() {
            let own = &mut out[i * each..(i + 1) * each];
            copy(own, &largest, t.strings()?, t.dims(), &zeros[1..], 1);
        }
        return Tensor::from_strings(whole, out);
    }
    let size = dtype.size();
    let mut out = vec![0u8; n.saturating_mul(size)];
    for (i, t) in parts.iter().enumerate() {
        let own = &mut out[i * each * size..(i + 1) * each * size];
        copy(own, &largest, t.bytes(), t.dims(), &zeros[1..], size);
    }
    encode::numbers(dtype, whole, &out)
}

/// Copies all of `src` to the beginning of each dimension of `dst`, whose elements are `size` units.
fn copy<T: Clone>(dst: &mut [T], to: &[usize], src: &[T], from: &[usize], start: &[usize], size: usize) {
    use crate::checkpoint::slice::{Region, copy_region};
    if from.is_empty() {
        return dst[..size].clone_from_slice(&src[..size]);
    }
    let scaled = |dims: &[usize]| {
        let mut dims = dims.to_vec();
        if let Some(last) = dims.last_mut() {
            *last *= size;
        }
        dims
    };
    let (to, from) = (scaled(to), scaled(from));
    copy_region(dst, &Region { dims: &to, start }, src, &Region { dims: &from, start }, &from);
}

/// The parts of a batch along its first dimension, row by row over all components.
///
/// # Errors
/// There is no memory. All components have rank 1 at least and one first dimension (the caller has checked).
pub fn unstack(components: &[Tensor], allocator: &Allocator) -> Result<Vec<Row>, TensorError> {
    let n = components.first().and_then(|t| t.dims().first()).copied().unwrap_or(0);
    let mut rows: Vec<Row> = (0..n).map(|_| Row::with_capacity(components.len())).collect();
    for t in components {
        let shape = Shape::new(&t.dims()[1..]);
        let each = shape.n_elements();
        for (i, row) in rows.iter_mut().enumerate() {
            row.push(match t.dtype() {
                DType::String => Tensor::from_strings(shape.clone(), t.strings()?[i * each..(i + 1) * each].to_vec())?,
                dtype => {
                    let size = each * dtype.size();
                    numbers(dtype, shape.clone(), &t.bytes()[i * size..(i + 1) * size], allocator)?
                }
            });
        }
    }
    Ok(rows)
}
