//! Kernels that move elements: transpose, concatenate, slice, tile, broadcast, gather.
//!
//! Most are one walk: an output of some shape whose element at an index lies in the input at an offset that is linear
//! in the index ([`strided`]).

use super::broadcast::Broadcast;
use super::reduce::axis;
use super::support::{Built, Computed, by_word, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::{DType, Element};
use crate::graph::Node;
use crate::shape::Shape;
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
    cpu_any("GatherV2", gather),
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

/// An output whose element at an index is the input's at `first + index * strides`.
fn strided(
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
        let dims = shape.clone();
        c.filled_words::<T>(x.dtype(), shape, |out| {
            walk(dims.dims(), strides, first, |i, at| out[i] = from[at as usize]);
            Ok(())
        })
    }
    if x.dtype() == DType::String {
        let from = x.strings()?;
        let mut out = Vec::with_capacity(shape.n_elements());
        walk(shape.dims(), strides, first, |_, at| out.push(from[at as usize].clone()));
        return Ok(Tensor::from_strings(shape, out)?);
    }
    by_word!(x.dtype(), of(c, x, shape, strides, first))
}

fn signed(strides: &[usize]) -> Vec<isize> {
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

/// The masks of a strided slice.
pub(super) struct Masks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrink: i64,
}

impl Masks {
    pub(super) fn of(node: &Node) -> Result<Masks, KernelError> {
        Ok(Masks {
            begin: *node.int("begin_mask")?,
            end: *node.int("end_mask")?,
            ellipsis: *node.int("ellipsis_mask")?,
            new_axis: *node.int("new_axis_mask")?,
            shrink: *node.int("shrink_axis_mask")?,
        })
    }
}

/// A strided slice of a shape, resolved.
pub(super) struct Sliced {
    /// The output's dimensions, those that are dropped included as 1, and the input's strides along them.
    pub(super) dims: Vec<usize>,
    pub(super) strides: Vec<isize>,
    pub(super) first: isize,
    /// The output's dimensions.
    pub(super) shape: Shape,
}

/// numpy's slicing as TensorFlow's masks write it: bit `i` speaks of entry `i` of begin, end and strides.
pub(super) fn resolve(
    of: &Shape,
    masks: &Masks,
    begin: &[i64],
    end: &[i64],
    step: &[i64],
) -> Result<Sliced, KernelError> {
    let n = begin.len();
    if end.len() != n || step.len() != n || n > 32 {
        return Err(KernelError::invalid("begin, end and strides must have one length, at most 32"));
    }
    let bit = |mask: i64, i: usize| mask >> i & 1 == 1;
    if masks.ellipsis.count_ones() > 1 {
        return Err(KernelError::invalid("more than one ellipsis"));
    }
    let n_new = (0..n).filter(|i| bit(masks.new_axis, *i) && !bit(masks.ellipsis, *i)).count();
    let n_used = n - n_new - usize::from((0..n).any(|i| bit(masks.ellipsis, i)));
    let too_many = || KernelError::invalid(format!("{n_used} indices for shape {of}"));
    let n_rest = of.rank().checked_sub(n_used).ok_or_else(too_many)?;
    let own = of.strides();
    let mut out = Sliced { dims: vec![], strides: vec![], first: 0, shape: Shape::scalar() };
    let mut kept = Vec::new();
    let mut d = 0;
    let whole = |out: &mut Sliced, kept: &mut Vec<usize>, d: usize| {
        out.dims.push(of.dims()[d]);
        out.strides.push(own[d] as isize);
        kept.push(of.dims()[d]);
    };
    for i in 0..n {
        if bit(masks.ellipsis, i) {
            (d..d + n_rest).for_each(|d| whole(&mut out, &mut kept, d));
            d += n_rest;
        } else if bit(masks.new_axis, i) {
            kept.push(1);
        } else {
            let flags = (bit(masks.begin, i), bit(masks.end, i), bit(masks.shrink, i));
            let (first, len) = one_axis(of.dims()[d], begin[i], end[i], step[i], flags)?;
            out.first += first * own[d] as isize;
            out.dims.push(len);
            out.strides.push(step[i] as isize * own[d] as isize);
            if !flags.2 {
                kept.push(len);
            }
            d += 1;
        }
    }
    (d..of.rank()).for_each(|d| whole(&mut out, &mut kept, d));
    out.shape = Shape::new(&kept);
    Ok(out)
}

/// Where an axis of `size` begins to be read, and how many of it are.
fn one_axis(
    size: usize,
    begin: i64,
    end: i64,
    step: i64,
    (open_begin, open_end, shrink): (bool, bool, bool),
) -> Result<(isize, usize), KernelError> {
    let n = size as i64;
    if shrink {
        let at = if begin < 0 { begin.saturating_add(n) } else { begin };
        let outside = || KernelError::invalid(format!("index {begin} is outside of [-{n}, {n})"));
        return if (0..n).contains(&at) && step > 0 { Ok((at as isize, 1)) } else { Err(outside()) };
    }
    if step == 0 {
        return Err(KernelError::invalid("a stride must not be 0"));
    }
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clip = |v: i64| (if v < 0 { v.saturating_add(n) } else { v }).clamp(low, high);
    let from = if open_begin { if step > 0 { 0 } else { n - 1 } } else { clip(begin) };
    let to = if open_end { if step > 0 { n } else { -1 } } else { clip(end) };
    let span = if step > 0 { to - from } else { from - to };
    let len = (span.max(0) as u64).div_ceil(step.unsigned_abs());
    Ok((if len == 0 { 0 } else { from as isize }, len as usize))
}

fn strided_slice(node: &Node) -> Built {
    let masks = Masks::of(node)?;
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
    let masks = Masks::of(node)?;
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
fn join(c: &KernelContext<'_>, n: usize, at: usize) -> Result<Tensor, KernelError> {
    fn of<T: Element>(c: &KernelContext<'_>, n: usize, shape: Shape, at: usize) -> Result<Tensor, KernelError> {
        let parts =
            (0..n).map(|i| Ok((c.input(i)?.dims()[at], c.words::<T>(i)?))).collect::<Result<Vec<_>, KernelError>>()?;
        let inner: usize = shape.dims()[at + 1..].iter().product();
        let outer: usize = shape.dims()[..at].iter().product();
        c.filled_words::<T>(c.input(0)?.dtype(), shape, |out| {
            let mut to = 0;
            for o in 0..outer {
                for (d, values) in &parts {
                    let row = d * inner;
                    out[to..to + row].copy_from_slice(&values[o * row..(o + 1) * row]);
                    to += row;
                }
            }
            Ok(())
        })
    }
    let first = c.input(0)?;
    let mut dims = first.dims().to_vec();
    dims[at] = 0;
    for i in 0..n {
        let part = c.input(i)?.shape();
        let equal = |d: usize| d == at || part.dims()[d] == first.dims()[d];
        if part.rank() != dims.len() || !(0..dims.len()).all(equal) {
            return Err(KernelError::invalid(format!("input {i} has shape {part}, input 0 {}", first.shape())));
        }
        dims[at] += part.dims()[at];
    }
    let shape = Shape::new(&dims);
    if first.dtype() == DType::String {
        let inner: usize = dims[at + 1..].iter().product();
        let outer: usize = dims[..at].iter().product();
        let mut out = Vec::with_capacity(shape.n_elements());
        for o in 0..outer {
            for i in 0..n {
                let part = c.input(i)?;
                let row = part.dims()[at] * inner;
                out.extend_from_slice(&part.strings()?[o * row..(o + 1) * row]);
            }
        }
        return Ok(Tensor::from_strings(shape, out)?);
    }
    by_word!(first.dtype(), of(c, n, shape, at))
}

fn concat(c: &mut KernelContext<'_>) -> Computed {
    let n = c.inputs.len() - 1;
    let &[at] = c.ints(n)?.as_slice() else {
        return Err(KernelError::invalid("the axis must be one integer"));
    };
    let out = join(c, n, axis(at, c.input(0)?.shape().rank())?)?;
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
        let out = join(c, n, at)?;
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

/// Rows of `params` along an axis, chosen by indices.
fn gather(node: &Node) -> Built {
    if *node.int("batch_dims")? != 0 {
        return Err(KernelError::invalid("batch_dims other than 0 is not supported"));
    }
    kernel(|c| {
        let &[at] = c.ints(2)?.as_slice() else {
            return Err(KernelError::invalid("the axis must be one integer"));
        };
        let (params, indices) = (c.input(0)?, c.ints(1)?);
        let at = axis(at, params.shape().rank())?;
        let size = params.dims()[at];
        if let Some(i) = indices.iter().find(|i| !(0..size as i64).contains(*i)) {
            return Err(KernelError::invalid(format!("index {i} is outside of [0, {size})")));
        }
        let dims: Vec<usize> =
            params.dims()[..at].iter().chain(c.input(1)?.dims()).chain(&params.dims()[at + 1..]).copied().collect();
        let inner: usize = params.dims()[at + 1..].iter().product();
        let outer: usize = params.dims()[..at].iter().product();
        fn of<T: Element>(
            c: &KernelContext<'_>,
            shape: Shape,
            (outer, size, inner): (usize, usize, usize),
            indices: &[i64],
        ) -> Result<Tensor, KernelError> {
            let from = c.words::<T>(0)?;
            c.filled_words::<T>(c.input(0)?.dtype(), shape, |out| {
                let mut rows = out.chunks_exact_mut(inner.max(1));
                for o in 0..outer {
                    for i in indices {
                        let at = (o * size + *i as usize) * inner;
                        if let Some(row) = rows.next() {
                            row.copy_from_slice(&from[at..at + inner]);
                        }
                    }
                }
                Ok(())
            })
        }
        let out = by_word!(params.dtype(), of(c, Shape::new(&dims), (outer, size, inner), &indices))?;
        c.set(0, out);
        Ok(())
    })
}
