//! Kernels that move elements: transpose, concatenate, slice, tile, broadcast, gather.
//!
//! Most are one walk: an output of some shape whose element at an index lies in the input at an offset that is linear
//! in the index ([`strided`]).

use std::ops::Range;

use super::broadcast::Broadcast;
use super::reduce::axis;
use super::support::{Built, Computed, by_word, cpu_any, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::{Complex32, Complex64, DType, Element};
use crate::graph::Node;
use crate::memory;
use crate::shape::Shape;
use crate::strided::{Masks, Sliced, resolve};
use crate::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static LAYOUT: &[KernelDef] = &[
    cpu_any("Transpose", |_| kernel(transpose)),
    cpu_any("BroadcastTo", |_| kernel(broadcast_to)),
    cpu_any("Slice", |_| kernel(slice)),
    cpu_any("StridedSlice", strided_slice),
    cpu_any("StridedSliceGrad", strided_slice_grad),
    cpu_any("Tile", |_| kernel(tile)),
    cpu_any("ConcatV2", |_| kernel(concat)),
    cpu_any("Pack", pack),
    cpu_any("Unpack", unpack),
    cpu_any("Concat", |_| kernel(concat_first)),
    cpu_any("Split", |_| kernel(split)),
    cpu_any("SplitV", |_| kernel(split_v)),
    cpu_any("ConjugateTranspose", |_| kernel(conjugate_transpose)),
];

/// Calls `f(output position, input offset)` for each element of an output of these dimensions, in order, where moving
/// along dimension `i` moves the input by `strides[i]`.
pub(super) fn walk(dims: &[usize], strides: &[isize], first: isize, mut f: impl FnMut(usize, isize)) {
    let n: usize = dims.iter().product();
    let mut index = vec![0usize; dims.len()];
    let mut at = first;
    for i in 0..n {
        f(i, at);
        for d in (0..dims.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < dims[d] {
                break;
            }
            at -= strides[d] * dims[d] as isize;
            index[d] = 0;
        }
    }
}

/// Dimensions and strides with ones left out and neighbours that run together merged; at least one.
fn merged(dims: &[usize], strides: &[isize]) -> (Vec<usize>, Vec<isize>) {
    let (mut out, mut steps): (Vec<usize>, Vec<isize>) = (Vec::new(), Vec::new());
    for (d, s) in dims.iter().zip(strides).filter(|(d, _)| **d != 1) {
        match (out.last_mut(), steps.last_mut()) {
            (Some(last), Some(step)) if *step == *s * *d as isize => {
                *last *= d;
                *step = *s;
            }
            _ => {
                out.push(*d);
                steps.push(*s);
            }
        }
    }
    if out.is_empty() {
        out.push(1);
        steps.push(1);
    }
    (out, steps)
}

/// Where each row of a strided walk begins, from some row on.
struct Rows<'a> {
    dims: &'a [usize],
    strides: &'a [isize],
    index: Vec<usize>,
    at: isize,
}

impl<'a> Rows<'a> {
    fn new(dims: &'a [usize], strides: &'a [isize], first: isize, row: usize) -> Rows<'a> {
        let mut index = vec![0; dims.len()];
        let (mut rest, mut at) = (row, first);
        for k in (0..dims.len()).rev() {
            index[k] = rest % dims[k].max(1);
            rest /= dims[k].max(1);
            at += index[k] as isize * strides[k];
        }
        Rows { dims, strides, index, at }
    }

    fn next_offset(&mut self) -> isize {
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

/// An output whose element at an index is the input's at `first + index * strides`.
pub(crate) fn strided(
    c: &KernelContext<'_>,
    x: &Tensor,
    shape: Shape,
    strides: &[isize],
    first: isize,
) -> Result<Tensor, KernelError> {
    fn of<T: Element>(
        c: &KernelContext<'_>,
        x: &Tensor,
        shape: Shape,
        strides: &[isize],
        first: isize,
    ) -> Result<Tensor, KernelError> {
        let from = x.words::<T>()?;
        let (dims, strides) = merged(shape.dims(), strides);
        let (outer, [inner]) = dims.split_at(dims.len() - 1) else { return Err(KernelError::invalid("no dimensions")) };
        let (outer_strides, step) = strides.split_at(dims.len() - 1);
        let (inner, step) = (*inner, step[0]);
        c.filled_words::<T>(x.dtype(), shape, |out| {
            shard_slice(c.sharder, out, inner, if step == 1 { 200 } else { 1000 }, |at, part| {
                let mut rows = Rows::new(outer, outer_strides, first, at / inner.max(1));
                for row in part.chunks_exact_mut(inner.max(1)) {
                    let at = rows.next_offset();
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
    if x.dtype() == DType::String {
        let from = x.strings()?;
        let mut out = memory::vec(shape.n_elements())?;
        walk(shape.dims(), strides, first, |_, at| out.push(from[at as usize].clone()));
        return Ok(Tensor::from_strings(shape, out)?);
    }
    by_word!(x.dtype(), of(c, x, shape, strides, first))
}

pub(crate) fn signed(strides: &[usize]) -> Vec<isize> {
    strides.iter().map(|s| *s as isize).collect()
}

fn transpose(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let rank = x.shape().rank();
    let perm = c.ints(1)?.iter().map(|p| axis(*p, rank)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = vec![false; rank];
    perm.iter().for_each(|p| seen[*p] = true);
    if perm.len() != rank || seen.contains(&false) {
        return Err(KernelError::invalid(format!("{perm:?} is not a permutation of the axes of {}", x.shape())));
    }
    let own = x.shape().strides();
    let dims: Vec<usize> = perm.iter().map(|p| x.dims()[*p]).collect();
    let strides: Vec<isize> = perm.iter().map(|p| own[*p] as isize).collect();
    let out = strided(c, x, Shape::new(&dims), &strides, 0)?;
    c.set(0, out);
    Ok(())
}

fn broadcast_to(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let shape = c.shape_input(1)?;
    let along = Broadcast::new(x.shape(), &shape)?;
    if along.shape != shape {
        return Err(KernelError::invalid(format!("shape {} does not broadcast to {shape}", x.shape())));
    }
    let out = if x.shape() == &shape {
        x.clone()
    } else {
        let reshaped = strided(c, x, Shape::new(&along.dims), &signed(&along.strides[0]), 0)?;
        reshaped.into_shape(shape)?
    };
    c.set(0, out);
    Ok(())
}

fn slice(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let (begin, size) = (c.ints(1)?, c.ints(2)?);
    let rank = x.shape().rank();
    if begin.len() != rank || size.len() != rank {
        return Err(KernelError::invalid(format!("begin and size must have {rank} numbers for shape {}", x.shape())));
    }
    let own = x.shape().strides();
    let (mut first, mut dims) = (0, Vec::with_capacity(rank));
    for (i, d) in x.dims().iter().enumerate() {
        let (b, d) = (begin[i], *d as i64);
        let s = if size[i] == -1 { d.saturating_sub(b) } else { size[i] };
        if b < 0 || s < 0 || b.checked_add(s).is_none_or(|end| end > d) {
            let text = format!("begin {begin:?} and size {size:?} lie outside of shape {}", x.shape());
            return Err(KernelError::invalid(text));
        }
        first += b as isize * own[i] as isize;
        dims.push(s as usize);
    }
    let out = strided(c, x, Shape::new(&dims), &signed(&own), first)?;
    c.set(0, out);
    Ok(())
}

fn strided_slice(node: &Node) -> Built {
    let masks = Masks::of(&node.attrs);
    kernel(move |c| {
        let x = c.input(0)?;
        let s = resolve(x.shape(), &masks, &c.ints(1)?, &c.ints(2)?, &c.ints(3)?)?;
        let out = strided(c, x, Shape::new(&s.dims), &s.strides, s.first)?.into_shape(s.shape)?;
        c.set(0, out);
        Ok(())
    })
}

/// Zeros of the given shape with `dy` where the slice was taken.
fn strided_slice_grad(node: &Node) -> Built {
    let masks = Masks::of(&node.attrs);
    kernel(move |c| {
        let shape = c.shape_input(0)?;
        let s = resolve(&shape, &masks, &c.ints(1)?, &c.ints(2)?, &c.ints(3)?)?;
        let dy = c.input(4)?;
        if dy.shape() != &s.shape {
            return Err(KernelError::invalid(format!("dy has shape {}, the slice {}", dy.shape(), s.shape)));
        }
        fn of<T: Element>(c: &KernelContext<'_>, shape: Shape, s: &Sliced) -> Result<Tensor, KernelError> {
            let dy = c.words::<T>(4)?;
            let mut zeros = Tensor::zeros(c.input(4)?.dtype(), shape, c.allocator)?;
            if let Some(out) = zeros.words_mut::<T>()? {
                walk(&s.dims, &s.strides, s.first, |i, at| out[at as usize] = dy[i]);
            }
            Ok(zeros)
        }
        let out = by_word!(dy.dtype(), of(c, shape, &s))?;
        c.set(0, out);
        Ok(())
    })
}

fn tile(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let multiples = c.shape_input(1)?;
    if multiples.rank() != x.shape().rank() {
        return Err(KernelError::invalid(format!("{multiples} does not have one multiple per axis of {}", x.shape())));
    }
    // An axis repeated m times is two: the repetition (stride 0), and itself.
    let own = x.shape().strides();
    let (mut dims, mut strides, mut full) = (vec![], vec![], vec![]);
    for (i, d) in x.dims().iter().enumerate() {
        let m = multiples.dims()[i];
        dims.extend([m, *d]);
        strides.extend([0, own[i] as isize]);
        full.push(m.checked_mul(*d).ok_or_else(|| KernelError::invalid("the result is too large"))?);
    }
    let out = strided(c, x, Shape::new(&dims), &strides, 0)?.into_shape(Shape::new(&full))?;
    c.set(0, out);
    Ok(())
}

/// Joins parts along axis `at`; all other dimensions are equal.
fn join(c: &KernelContext<'_>, parts: Range<usize>, at: usize) -> Result<Tensor, KernelError> {
    fn of<T: Element>(
        c: &KernelContext<'_>,
        ports: Range<usize>,
        shape: Shape,
        at: usize,
    ) -> Result<Tensor, KernelError> {
        let inner: usize = shape.dims()[at + 1..].iter().product();
        let outer: usize = shape.dims()[..at].iter().product();
        let parts = ports
            .clone()
            .map(|i| Ok((c.input(i)?.dims()[at] * inner, c.words::<T>(i)?)))
            .collect::<Result<Vec<_>, KernelError>>()?;
        c.filled_words::<T>(c.input(ports.start)?.dtype(), shape, |out| {
            let mut to = 0;
            for o in 0..outer {
                for (row, values) in &parts {
                    out[to..to + row].copy_from_slice(&values[o * row..(o + 1) * row]);
                    to += row;
                }
            }
            Ok(())
        })
    }
    let first = c.input(parts.start)?;
    let mut dims = first.dims().to_vec();
    dims[at] = 0;
    for i in parts.clone() {
        let part = c.input(i)?.shape();
        let equal = |d: usize| d == at || part.dims()[d] == first.dims()[d];
        if part.rank() != dims.len() || !(0..dims.len()).all(equal) {
            let text = format!("input {i} has shape {part}, input {} {}", parts.start, first.shape());
            return Err(KernelError::invalid(text));
        }
        dims[at] += part.dims()[at];
    }
    let shape = Shape::new(&dims);
    if first.dtype() == DType::String {
        let inner: usize = dims[at + 1..].iter().product();
        let outer: usize = dims[..at].iter().product();
        let mut out = memory::vec(shape.n_elements())?;
        for o in 0..outer {
            for i in parts.clone() {
                let part = c.input(i)?;
                let row = part.dims()[at] * inner;
                out.extend_from_slice(&part.strings()?[o * row..(o + 1) * row]);
            }
        }
        return Ok(Tensor::from_strings(shape, out)?);
    }
    by_word!(first.dtype(), of(c, parts, shape, at))
}

/// One integer that input `i` holds.
fn one_axis_input(c: &KernelContext<'_>, i: usize, rank: usize) -> Result<usize, KernelError> {
    match c.ints(i)?.as_slice() {
        [at] => axis(*at, rank),
        more => Err(KernelError::invalid(format!("the axis must be one integer, got {more:?}"))),
    }
}

fn concat(c: &mut KernelContext<'_>) -> Computed {
    let n = c.inputs.len() - 1;
    let out = join(c, 0..n, one_axis_input(c, n, c.input(0)?.shape().rank())?)?;
    c.set(0, out);
    Ok(())
}

/// As [`concat()`], the axis first.
fn concat_first(c: &mut KernelContext<'_>) -> Computed {
    let out = join(c, 1..c.inputs.len(), one_axis_input(c, 0, c.input(1)?.shape().rank())?)?;
    c.set(0, out);
    Ok(())
}

/// Cuts input `i` along an axis into parts of these sizes.
fn cut(c: &mut KernelContext<'_>, i: usize, at: usize, sizes: &[usize]) -> Computed {
    let x = c.input(i)?;
    let own = x.shape().strides();
    let strides = signed(&own);
    let (mut first, mut parts) = (0, Vec::with_capacity(sizes.len()));
    for size in sizes {
        let mut dims = x.dims().to_vec();
        dims[at] = *size;
        parts.push(strided(c, x, Shape::new(&dims), &strides, (first * own[at]) as isize)?);
        first += size;
    }
    parts.into_iter().enumerate().for_each(|(i, part)| c.set(i, part));
    Ok(())
}

fn split(c: &mut KernelContext<'_>) -> Computed {
    let (n, x) = (c.outputs.len(), c.input(1)?);
    let at = one_axis_input(c, 0, x.shape().rank())?;
    let d = x.dims()[at];
    if n == 0 || !d.is_multiple_of(n) {
        return Err(KernelError::invalid(format!("axis {at} of {} does not split into {n} equal parts", x.shape())));
    }
    cut(c, 1, at, &vec![d / n; n])
}

fn split_v(c: &mut KernelContext<'_>) -> Computed {
    let (x, sizes) = (c.input(0)?, c.ints(1)?);
    let at = one_axis_input(c, 2, x.shape().rank())?;
    let d = x.dims()[at] as i64;
    let known: i64 = sizes.iter().filter(|s| **s != -1).fold(0, |sum, s| sum.saturating_add(*s));
    let n_free = sizes.iter().filter(|s| **s == -1).count();
    let fits = if n_free == 0 { known == d } else { n_free == 1 && known <= d };
    if !fits || sizes.iter().any(|s| *s < -1) || sizes.len() != c.outputs.len() {
        return Err(KernelError::invalid(format!("axis {at} of {} does not split into {sizes:?}", x.shape())));
    }
    let sizes: Vec<usize> = sizes.iter().map(|s| if *s == -1 { d - known } else { *s } as usize).collect();
    cut(c, 0, at, &sizes)
}

/// The transpose, of complex numbers conjugated.
fn conjugate_transpose(c: &mut KernelContext<'_>) -> Computed {
    transpose(c)?;
    if !c.input(0)?.dtype().is_complex() {
        return Ok(());
    }
    let out = c.outputs[0].take().ok_or(KernelError::MissingInput(0))?;
    let mut out = super::index::owned(c, out)?;
    if out.dtype() == DType::C64 {
        super::support::unique_slice::<Complex32>(&mut out)?.iter_mut().for_each(|v| v.im = -v.im);
    } else {
        super::support::unique_slice::<Complex64>(&mut out)?.iter_mut().for_each(|v| v.im = -v.im);
    }
    c.set(0, out);
    Ok(())
}

fn pack(node: &Node) -> Built {
    let at = *node.int("axis")?;
    kernel(move |c| {
        let n = c.inputs.len();
        let at = axis(at, c.input(0)?.shape().rank() + 1)?;
        for slot in c.inputs.iter_mut() {
            let part = slot.take().ok_or(KernelError::MissingInput(0))?;
            let mut dims = part.dims().to_vec();
            dims.insert(at.min(dims.len()), 1);
            *slot = Some(part.into_shape(Shape::new(&dims))?);
        }
        let out = join(c, 0..n, at)?;
        c.set(0, out);
        Ok(())
    })
}

fn unpack(node: &Node) -> Built {
    let at = *node.int("axis")?;
    kernel(move |c| {
        let x = c.input(0)?;
        let at = axis(at, x.shape().rank())?;
        let n = c.outputs.len();
        if x.dims()[at] != n {
            return Err(KernelError::invalid(format!("axis {at} of {} does not have {n}", x.shape())));
        }
        let own = x.shape().strides();
        let rest = |v: &[usize]| -> Vec<usize> { v[..at].iter().chain(&v[at + 1..]).copied().collect() };
        let (dims, strides) = (rest(x.dims()), signed(&rest(&own)));
        let parts = (0..n)
            .map(|i| strided(c, x, Shape::new(&dims), &strides, (i * own[at]) as isize))
            .collect::<Result<Vec<_>, _>>()?;
        parts.into_iter().enumerate().for_each(|(i, part)| c.set(i, part));
        Ok(())
    })
}
