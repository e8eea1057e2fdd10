//! Kernels that read rows by indices, and sums of elements by position.

use super::support::{Built, Computed, by_word, cpu_any, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::{convert, wide_of};
use engine_core::dtype::{Complex64, DType, Element};
use engine_core::geometry::{Gather, Indexing, Places};
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static GATHERS: &[KernelDef] =
    &[cpu_any("Gather", gather), cpu_any("GatherV2", gather), cpu_any("GatherNd", |_| kernel(gather_nd))];

/// Rows of input 0 along an axis, chosen by the indices of input 1.
fn gather(node: &Node) -> Built {
    let geometry = super::measure::gather(node);
    kernel(move |c| {
        let Gather { shape, n_rows, inner, outer, n_indices } = geometry(c)?;
        let indices = c.ints(1)?;
        if let Some(i) = indices.iter().find(|i| !(0..n_rows as i64).contains(*i)) {
            return Err(KernelError::invalid(format!("index {i} is outside of [0, {n_rows})")));
        }
        // Where row `r` of the output is in params.
        let offset = |r: usize| {
            let (o, k) = (r / n_indices, r % n_indices);
            (o * n_rows + indices[o / outer * n_indices + k] as usize) * inner
        };
        let out = rows(c, c.input(0)?, shape, inner, &offset)?;
        c.set(0, out);
        Ok(())
    })
}

/// An output of rows of `inner` elements, each from an offset of `x` on.
fn rows(
    c: &KernelContext<'_>,
    x: &Tensor,
    shape: Shape,
    inner: usize,
    offset: &(dyn Fn(usize) -> usize + Sync),
) -> Result<Tensor, KernelError> {
    fn of<T: Element>(
        c: &KernelContext<'_>,
        x: &Tensor,
        shape: Shape,
        inner: usize,
        offset: &(dyn Fn(usize) -> usize + Sync),
    ) -> Result<Tensor, KernelError> {
        let from = x.words::<T>()?;
        c.filled_words::<T>(x.dtype(), shape, |out| {
            shard_slice(c.sharder, out, inner, 300 + 4000 / inner.max(1) as u64, |at, part| {
                let first = at / inner.max(1);
                for (i, row) in part.chunks_exact_mut(inner.max(1)).enumerate() {
                    let at = offset(first + i);
                    row.copy_from_slice(&from[at..at + inner]);
                }
            });
            Ok(())
        })
    }
    if x.dtype() == DType::String {
        let from = x.strings()?;
        let n = shape.n_elements();
        let one = |i: usize| from[offset(i / inner.max(1)) + i % inner.max(1)].clone();
        let mut out = memory::vec(n)?;
        out.extend((0..n).map(one));
        return Ok(Tensor::from_strings(shape, out)?);
    }
    by_word!(x.dtype(), of(c, x, shape, inner, offset))
}

fn gather_nd(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let Places { offsets, len, shape } = Places::new(x.shape(), c.input(1)?.shape(), &c.ints(1)?, Indexing::Nd)?;
    let out = rows(c, x, shape, len, &|r| offsets[r])?;
    c.set(0, out);
    Ok(())
}

/// The tensor, or a copy where others hold it too.
pub(crate) fn owned(c: &KernelContext<'_>, x: Tensor) -> Result<Tensor, KernelError> {
    if x.is_unique() { Ok(x) } else { super::variables::copied(c, &x) }
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
