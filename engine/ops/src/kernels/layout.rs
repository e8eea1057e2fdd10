//! Kernels that move elements: what lies where is measured ([`super::measure`]), here elements are copied, whole rows where they
//! lie one behind the other.

use super::support::{Built, by_word, cpu_any, kernel, shard_slice, unique_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, measure};
use engine_core::dtype::{Complex32, Complex64, DType, Element};
use engine_core::geometry::{Partition, View};
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static LAYOUT: &[KernelDef] = &[
    cpu_any("Transpose", view),
    cpu_any("BroadcastTo", view),
    cpu_any("Slice", view),
    cpu_any("StridedSlice", view),
    cpu_any("StridedSliceGrad", strided_slice_grad),
    cpu_any("Tile", view),
    cpu_any("Reverse", view),
    cpu_any("ReverseV2", view),
    cpu_any("Concat", join),
    cpu_any("ConcatV2", join),
    cpu_any("Pack", join),
    cpu_any("Split", split),
    cpu_any("SplitV", split),
    cpu_any("Unpack", split),
    cpu_any("ConjugateTranspose", conjugate_transpose),
];

/// Calls `f(output position, input offset)` for each element of an output of these dimensions, in order, where moving
/// along dimension `i` moves the input by `strides[i]`.
pub(super) fn walk(dims: &[usize], strides: &[isize], first: isize, mut f: impl FnMut(usize, isize)) {
    let mut offsets = Offsets::new(dims, strides, first, 0);
    (0..dims.iter().product::<usize>()).for_each(|i| f(i, offsets.step()));
}

/// The offset of each index of a strided walk, from some index on.
struct Offsets<'a> {
    dims: &'a [usize],
    strides: &'a [isize],
    index: Vec<usize>,
    at: isize,
}

impl<'a> Offsets<'a> {
    fn new(dims: &'a [usize], strides: &'a [isize], first: isize, begin: usize) -> Offsets<'a> {
        let mut index = vec![0; dims.len()];
        let (mut rest, mut at) = (begin, first);
        for k in (0..dims.len()).rev() {
            index[k] = rest % dims[k].max(1);
            rest /= dims[k].max(1);
            at += index[k] as isize * strides[k];
        }
        Offsets { dims, strides, index, at }
    }

    /// The offset of this index; goes on to the next.
    #[inline]
    fn step(&mut self) -> isize {
        let now = self.at;
        for k in (0..self.dims.len()).rev() {
            self.index[k] += 1;
            self.at += self.strides[k];
            if self.index[k] < self.dims[k] {
                break;
            }
            self.at -= self.strides[k] * self.dims[k] as isize;
            self.index[k] = 0;
        }
        now
    }
}

/// A tensor that is a view of another.
pub(crate) fn viewed(c: &KernelContext<'_>, x: &Tensor, view: &View) -> Result<Tensor, KernelError> {
    fn of<T: Element>(c: &KernelContext<'_>, x: &Tensor, view: &View) -> Result<Tensor, KernelError> {
        let from = x.words::<T>()?;
        let (dims, strides) = view.coalesced();
        let (outer, inner) = (dims.len() - 1, dims[dims.len() - 1]);
        let step = strides[outer];
        c.filled_words::<T>(x.dtype(), view.shape.clone(), |out| {
            shard_slice(c.sharder, out, inner, if step == 1 { 200 } else { 1000 }, |at, part| {
                let mut rows = Offsets::new(&dims[..outer], &strides[..outer], view.first, at / inner.max(1));
                for row in part.chunks_exact_mut(inner.max(1)) {
                    let at = rows.step();
                    match step {
                        1 => row.copy_from_slice(&from[at as usize..at as usize + inner]),
                        0 => row.fill(from[at as usize]),
                        _ => row.iter_mut().zip(0..).for_each(|(o, k)| *o = from[(at + k * step) as usize]),
                    }
                }
            });
            Ok(())
        })
    }
    if view.is_all_of(x.shape()) {
        return Ok(x.clone());
    }
    if x.dtype() == DType::String {
        let from = x.strings()?;
        let mut out = memory::vec(view.shape.n_elements())?;
        walk(&view.dims, &view.strides, view.first, |_, at| out.push(from[at as usize].clone()));
        return Ok(Tensor::from_strings(view.shape.clone(), out)?);
    }
    by_word!(x.dtype(), of(c, x, view))
}

/// Writes elements to where a view of `out` says.
pub(super) fn place<T: Clone>(values: &[T], view: &View, out: &mut [T]) {
    let (dims, strides) = view.coalesced();
    let (outer, inner) = (dims.len() - 1, dims[dims.len() - 1]);
    let step = strides[outer];
    let mut rows = Offsets::new(&dims[..outer], &strides[..outer], view.first, 0);
    for row in values.chunks_exact(inner.max(1)) {
        let at = rows.step();
        match step {
            1 => out[at as usize..at as usize + inner].clone_from_slice(row),
            _ => row.iter().zip(0..).for_each(|(v, k)| out[(at + k * step) as usize] = v.clone()),
        }
    }
}

fn view(node: &Node) -> Built {
    let view = measure::view(node)?;
    kernel(move |c| {
        let out = viewed(c, c.input(0)?, &view(c)?)?;
        c.set(0, out);
        Ok(())
    })
}

/// The transpose, of complex numbers conjugated.
fn conjugate_transpose(node: &Node) -> Built {
    let view = measure::view(node)?;
    kernel(move |c| {
        let mut out = viewed(c, c.input(0)?, &view(c)?)?;
        if out.dtype().is_complex() {
            out = super::index::owned(c, out)?;
            if out.dtype() == DType::C64 {
                unique_slice::<Complex32>(&mut out)?.iter_mut().for_each(|v| v.im = -v.im);
            } else {
                unique_slice::<Complex64>(&mut out)?.iter_mut().for_each(|v| v.im = -v.im);
            }
        }
        c.set(0, out);
        Ok(())
    })
}

/// Zeros of the given shape with `dy` where the slice was taken.
fn strided_slice_grad(node: &Node) -> Built {
    fn of<T: Element>(c: &KernelContext<'_>, shape: Shape, view: &View) -> Result<Tensor, KernelError> {
        let dy = c.words::<T>(4)?;
        let mut zeros = Tensor::zeros(c.input(4)?.dtype(), shape, c.allocator)?;
        if let Some(out) = zeros.words_mut::<T>()? {
            place(dy, view, out);
        }
        Ok(zeros)
    }
    let geometry = measure::strided_slice_grad(node);
    kernel(move |c| {
        let (shape, view) = geometry(c)?;
        let out = by_word!(c.input(4)?.dtype(), of(c, shape, &view))?;
        c.set(0, out);
        Ok(())
    })
}

/// The inputs from `first` on as parts of a larger tensor.
fn joined(c: &KernelContext<'_>, first: usize, partition: &Partition) -> Result<Tensor, KernelError> {
    /// Calls `put` on each row of each part, in the order in which they are in the larger tensor.
    fn each_row<T>(partition: &Partition, parts: &[&[T]], mut put: impl FnMut(&[T])) {
        for o in 0..partition.outer {
            partition.rows.iter().zip(parts).for_each(|(row, part)| put(&part[o * row..(o + 1) * row]));
        }
    }
    fn of<T: Element>(c: &KernelContext<'_>, first: usize, partition: &Partition) -> Result<Tensor, KernelError> {
        let parts = (0..partition.rows.len()).map(|i| c.words::<T>(first + i)).collect::<Result<Vec<_>, _>>()?;
        c.filled_words::<T>(c.input(first)?.dtype(), partition.shape.clone(), |out| {
            let mut at = 0;
            each_row(partition, &parts, |row| {
                out[at..at + row.len()].copy_from_slice(row);
                at += row.len();
            });
            Ok(())
        })
    }
    if c.input(first)?.dtype() == DType::String {
        let strings = |i: usize| Ok::<_, KernelError>(c.input(first + i)?.strings()?);
        let parts = (0..partition.rows.len()).map(strings).collect::<Result<Vec<_>, _>>()?;
        let mut out = memory::vec(partition.shape.n_elements())?;
        each_row(partition, &parts, |row| out.extend_from_slice(row));
        return Ok(Tensor::from_strings(partition.shape.clone(), out)?);
    }
    by_word!(c.input(first)?.dtype(), of(c, first, partition))
}

fn join(node: &Node) -> Built {
    let geometry = measure::join(node)?;
    kernel(move |c| {
        let (first, partition) = geometry(c)?;
        let out = joined(c, first, &partition)?;
        c.set(0, out);
        Ok(())
    })
}

fn split(node: &Node) -> Built {
    let geometry = measure::split(node)?;
    kernel(move |c| {
        let (input, partition) = geometry(c)?;
        let x = c.input(input)?;
        let parts = partition.views().map(|view| viewed(c, x, &view)).collect::<Result<Vec<_>, _>>()?;
        parts.into_iter().enumerate().for_each(|(i, part)| c.set(i, part));
        Ok(())
    })
}
