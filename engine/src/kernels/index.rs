//! Kernels that read rows by indices, and sums of elements by position.

use super::reduce::axis;
use super::support::{Computed, by_word, cpu_any, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::convert::{convert, wide_of};
use crate::dtype::{Complex64, DType, Element};
use crate::memory;
use crate::shape::Shape;
use crate::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static GATHERS: &[KernelDef] = &[
    cpu_any("Gather", |_| {
        kernel(|c| {
            let out = gather(c, c.input(0)?, 0, 0)?;
            c.set(0, out);
            Ok(())
        })
    }),
    cpu_any("GatherV2", |n| {
        let batch = *n.int("batch_dims")?;
        kernel(move |c| {
            let &[at] = c.ints(2)?.as_slice() else {
                return Err(KernelError::invalid("the axis must be one integer"));
            };
            let out = gather(c, c.input(0)?, at, batch)?;
            c.set(0, out);
            Ok(())
        })
    }),
    cpu_any("GatherNd", |_| kernel(gather_nd)),
];

/// Rows of `params` along an axis, chosen by the indices of input 1; the first `batch` dimensions of both run together.
fn gather(c: &KernelContext<'_>, params: &Tensor, at: i64, batch: i64) -> Result<Tensor, KernelError> {
    let (indices, of_indices) = (c.ints(1)?, c.input(1)?.shape().clone());
    let rank = of_indices.rank() as i64;
    let batch = usize::try_from(if batch < 0 { batch + rank } else { batch }).ok().filter(|b| *b <= of_indices.rank());
    let batch = batch.ok_or_else(|| KernelError::invalid("batch_dims is outside of the rank of indices"))?;
    let at = axis(at, params.shape().rank())?;
    let dims = params.dims();
    if at < batch || dims.get(..batch) != of_indices.dims().get(..batch) {
        let text = format!("{batch} batch dimensions of params {} and indices {of_indices}, axis {at}", params.shape());
        return Err(KernelError::invalid(text));
    }
    let size = dims[at];
    if let Some(i) = indices.iter().find(|i| !(0..size as i64).contains(*i)) {
        return Err(KernelError::invalid(format!("index {i} is outside of [0, {size})")));
    }
    let shape = Shape::new(&[&dims[..at], &of_indices.dims()[batch..], &dims[at + 1..]].concat());
    let inner: usize = dims[at + 1..].iter().product();
    let outer: usize = dims[batch..at].iter().product();
    let n_batch: usize = dims[..batch].iter().product();
    let per = indices.len() / n_batch.max(1);
    // The row of params that row `r` of the output is.
    let row_of = |r: usize| {
        let (o, k) = (r / per, r % per);
        o * size + indices[o / outer * per + k] as usize
    };
    rows(c, params, shape, inner, &row_of)
}

/// An output of rows of `inner` elements, each a row of `x`.
fn rows(
    c: &KernelContext<'_>,
    x: &Tensor,
    shape: Shape,
    inner: usize,
    row_of: &(dyn Fn(usize) -> usize + Sync),
) -> Result<Tensor, KernelError> {
    fn of<T: Element>(
        c: &KernelContext<'_>,
        x: &Tensor,
        shape: Shape,
        inner: usize,
        row_of: &(dyn Fn(usize) -> usize + Sync),
    ) -> Result<Tensor, KernelError> {
        let from = x.words::<T>()?;
        c.filled_words::<T>(x.dtype(), shape, |out| {
            shard_slice(c.sharder, out, inner, 300 + 4000 / inner.max(1) as u64, |at, part| {
                let first = at / inner.max(1);
                for (i, row) in part.chunks_exact_mut(inner.max(1)).enumerate() {
                    let at = row_of(first + i) * inner;
                    row.copy_from_slice(&from[at..at + inner]);
                }
            });
            Ok(())
        })
    }
    if x.dtype() == DType::String {
        let from = x.strings()?;
        let n = shape.n_elements();
        let one = |i: usize| from[row_of(i / inner.max(1)) * inner + i % inner.max(1)].clone();
        let mut out = memory::vec(n)?;
        out.extend((0..n).map(one));
        return Ok(Tensor::from_strings(shape, out)?);
    }
    by_word!(x.dtype(), of(c, x, shape, inner, row_of))
}

/// What the rows of `indices` point at in a tensor: positions of slices of `inner` elements.
struct Slices {
    /// For each row of indices, which slice.
    at: Vec<usize>,
    inner: usize,
    /// The dimensions of `indices` but the last.
    outer: Vec<usize>,
    depth: usize,
}

fn slices(c: &KernelContext<'_>, of: &Shape, i: usize) -> Result<Slices, KernelError> {
    let indices = c.input(i)?;
    let Some((&depth, outer)) = indices.dims().split_last() else {
        return Err(KernelError::invalid("indices must have at least one dimension"));
    };
    if depth > of.rank() {
        return Err(KernelError::invalid(format!("indices {} go deeper than shape {of}", indices.shape())));
    }
    let values = c.ints(i)?;
    let n_rows: usize = outer.iter().product();
    let mut at = Vec::with_capacity(n_rows);
    for r in 0..n_rows {
        let row = &values[r * depth..(r + 1) * depth];
        let mut position = 0;
        for (v, d) in row.iter().zip(of.dims()) {
            let v = usize::try_from(*v).ok().filter(|v| v < d);
            let v = v.ok_or_else(|| {
                KernelError::invalid(format!("indices[{r}] = {row:?} does not index into shape {of}"))
            })?;
            position = position * d + v;
        }
        at.push(position);
    }
    Ok(Slices { at, inner: of.dims()[depth..].iter().product(), outer: outer.to_vec(), depth })
}

fn gather_nd(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let s = slices(c, x.shape(), 1)?;
    let shape = Shape::new(&[&s.outer, &x.dims()[s.depth..]].concat());
    let out = rows(c, x, shape, s.inner, &|r| s.at[r])?;
    c.set(0, out);
    Ok(())
}

/// The tensor, or a copy where others hold it too.
pub(crate) fn owned(c: &KernelContext<'_>, x: Tensor) -> Result<Tensor, KernelError> {
    fn copy<T: Element>(c: &KernelContext<'_>, x: &Tensor) -> Result<Tensor, KernelError> {
        c.filled_words::<T>(x.dtype(), x.shape().clone(), |out| {
            out.copy_from_slice(x.words::<T>()?);
            Ok(())
        })
    }
    if x.is_unique() { Ok(x) } else { by_word!(x.dtype(), copy(c, &x)) }
}

/// Adds each element of `x` to the element `to(i)` of an output of a shape; numbers of any type, summed in a wide one.
pub(crate) fn sum_into(
    c: &KernelContext<'_>,
    x: &Tensor,
    shape: Shape,
    to: &dyn Fn(usize) -> usize,
) -> Result<Tensor, KernelError> {
    fn of<T: Element>(
        c: &KernelContext<'_>,
        x: &Tensor,
        shape: Shape,
        to: &dyn Fn(usize) -> usize,
        add: fn(T, T) -> T,
    ) -> Result<Tensor, KernelError> {
        let mut out = Tensor::zeros(T::DTYPE, shape, c.allocator)?;
        let sums = super::support::unique_slice::<T>(&mut out)?;
        for (i, v) in x.slice::<T>()?.iter().enumerate() {
            let at = to(i);
            sums[at] = add(sums[at], *v);
        }
        Ok(out)
    }
    let wide = wide_of(x.dtype()).ok_or_else(|| KernelError::invalid(format!("{} cannot be summed", x.dtype())))?;
    let from = convert(x, wide, c.allocator)?;
    let sums = match wide {
        DType::F64 => of::<f64>(c, &from, shape, to, |a, b| a + b),
        DType::I64 => of::<i64>(c, &from, shape, to, i64::wrapping_add),
        DType::U64 => of::<u64>(c, &from, shape, to, u64::wrapping_add),
        _ => of::<Complex64>(c, &from, shape, to, |a, b| a + b),
    }?;
    Ok(convert(&sums, x.dtype(), c.allocator)?)
}
