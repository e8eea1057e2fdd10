//! Gradients of array ops: the elements go back to where they came from.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static ARRAY: &[GradientSpec] = &[
    ("Identity", Function(identity)),
    ("PlaceholderWithDefault", Function(identity)),
    ("StopGradient", Zero),
    ("ZerosLike", Zero),
    ("OnesLike", Zero),
    ("Shape", Zero),
    ("Size", Zero),
    ("Rank", Zero),
    ("BroadcastGradientArgs", Zero),
    ("Reshape", Function(reshape)),
    ("ExpandDims", Function(reshape)),
    ("Squeeze", Function(reshape)),
    ("Fill", Function(fill)),
    ("BroadcastTo", Function(broadcast_to)),
    ("Transpose", Function(transpose)),
    ("ConcatV2", Function(concat)),
    ("Pack", Function(pack)),
    ("Unpack", Function(unpack)),
    ("Slice", Function(slice)),
    ("StridedSlice", Function(strided_slice)),
    ("StridedSliceGrad", Function(strided_slice_grad)),
    ("Tile", Function(tile)),
    ("GatherV2", Function(gather)),
];

fn identity(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    c.set(0, g);
    Ok(())
}

fn reshape(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let x = c.reshape_like(g, c.input(0))?;
    c.set(0, x);
    Ok(())
}

/// The sum of all elements.
fn sum_all(c: &mut GradientContext<'_>, of: Output) -> Result<Output, GradientError> {
    let whole = c.vector(&[-1i32])?;
    let flat = c.op("Reshape", &[of, whole])?;
    let axis = c.vector(&[0i32])?;
    c.op("Sum", &[flat, axis])
}

fn fill(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let value = sum_all(c, g)?;
    c.set(1, value);
    Ok(())
}

fn broadcast_to(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let (own, whole) = (c.shape_of(c.input(0))?, c.shape_of(c.output(0))?);
    let axes = c.op("BroadcastGradientArgs", &[own, whole])?;
    let sum = c.op("Sum", &[g, axes])?;
    let x = c.op("Reshape", &[sum, own])?;
    c.set(0, x);
    Ok(())
}

fn transpose(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let Some(perm) = c.ints(c.input(1)) else { return Err(c.unsupported("for a permutation that is no constant")) };
    let mut inverse = vec![0i32; perm.len()];
    for (to, &from) in perm.iter().enumerate() {
        let slot = usize::try_from(from).ok().and_then(|from| inverse.get_mut(from));
        *slot.ok_or_else(|| c.unsupported("for a permutation out of range"))? = to as i32;
    }
    let inverse = c.vector(&inverse)?;
    let x = c.op("Transpose", &[g, inverse])?;
    c.set(0, x);
    Ok(())
}

/// The constant axis of input `i`, counted from 0, and a vector with a one there and zeros elsewhere.
fn axis_and_mask(c: &mut GradientContext<'_>, i: usize) -> Result<(usize, Output), GradientError> {
    let rank = c.shape(c.output(0))?.rank();
    let axis = c.ints(c.input(i)).and_then(|axis| axis.first().copied());
    let Some((rank, axis)) = rank.zip(axis) else {
        return Err(c.unsupported("for an axis or rank that is not known beforehand"));
    };
    let axis = if axis < 0 { axis + rank as i64 } else { axis } as usize;
    let mask: Vec<i32> = (0..rank).map(|i| i32::from(i == axis)).collect();
    Ok((axis, c.vector(&mask)?))
}

/// Cut apart again: each part begins where the ones before it end.
fn concat(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let n = c.node().inputs.len() - 1;
    let (_, mask) = axis_and_mask(c, n)?;
    let mut begin = c.op("ZerosLike", &[mask])?;
    for i in 0..n {
        let size = c.shape_of(c.input(i))?;
        let part = c.op("Slice", &[g, begin, size])?;
        c.set(i, part);
        let length = c.op("Mul", &[size, mask])?;
        begin = c.op("AddV2", &[begin, length])?;
    }
    Ok(())
}

fn pack(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let n = c.node().inputs.len();
    let axis = c.node().int("axis").copied().unwrap_or(0);
    let first = c.op_with("Unpack", &[g], &[("num", Attr::Int(n as i64)), ("axis", Attr::Int(axis))])?;
    (0..n).for_each(|i| c.set(i, Output { port: i as u32, ..first }));
    Ok(())
}

fn unpack(c: &mut GradientContext<'_>) -> Done {
    let grads = (0..c.node().outputs.len()).map(|i| c.grad(i)).collect::<Result<Vec<_>, _>>()?;
    let axis = c.node().int("axis").copied().unwrap_or(0);
    let x = c.op_of_list("Pack", &grads, &[], &[("axis", Attr::Int(axis))])?;
    c.set(0, x);
    Ok(())
}

/// As a strided slice of stride one, whose gradient is an op of its own.
fn slice(c: &mut GradientContext<'_>) -> Done {
    let (g, x, begin) = (c.grad(0)?, c.input(0), c.input(1));
    let index = Attr::Type(c.dtype(begin)?);
    let out = ("out_type", index);
    let shape = c.op_with("Shape", &[x], std::slice::from_ref(&out))?;
    let size = c.op_with("Shape", &[c.output(0)], &[out])?;
    let end = c.op("AddV2", &[begin, size])?;
    let ones = c.op("OnesLike", &[begin])?;
    let of_x = c.op("StridedSliceGrad", &[shape, begin, end, ones, g])?;
    c.set(0, of_x);
    Ok(())
}

/// The attributes that say which of the slice's bounds to ignore.
fn masks(c: &GradientContext<'_>) -> [(&'static str, Attr); 5] {
    let names = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];
    names.map(|name| (name, Attr::Int(c.node().int(name).copied().unwrap_or(0))))
}

fn strided_slice(c: &mut GradientContext<'_>) -> Done {
    let (g, x, begin, end, strides) = (c.grad(0)?, c.input(0), c.input(1), c.input(2), c.input(3));
    let index = Attr::Type(c.dtype(begin)?);
    let shape = c.op_with("Shape", &[x], &[("out_type", index)])?;
    let of_x = c.op_with("StridedSliceGrad", &[shape, begin, end, strides, g], &masks(c))?;
    c.set(0, of_x);
    Ok(())
}

/// Linear in what it puts back: the slice of the gradient.
fn strided_slice_grad(c: &mut GradientContext<'_>) -> Done {
    let (g, begin, end, strides) = (c.grad(0)?, c.input(1), c.input(2), c.input(3));
    let of_dy = c.op_with("StridedSlice", &[g, begin, end, strides], &masks(c))?;
    c.set(4, of_dy);
    Ok(())
}

/// Each axis of n x m elements is split into m copies of n, and the copies are summed.
fn tile(c: &mut GradientContext<'_>) -> Done {
    let (g, x, multiples) = (c.grad(0)?, c.input(0), c.input(1));
    let Some(rank) = c.shape(x)?.rank() else { return Err(c.unsupported("for an input of unknown rank")) };
    if rank == 0 {
        c.set(0, g);
        return Ok(());
    }
    let index = c.dtype(multiples)?;
    let shape = c.op_with("Shape", &[x], &[("out_type", Attr::Type(index))])?;
    let pairs = c.op_of_list("Pack", &[multiples, shape], &[], &[("axis", Attr::Int(1))])?;
    let whole = c.vector(&[-1i32])?;
    let split = c.op("Reshape", &[pairs, whole])?;
    let copies = c.op("Reshape", &[g, split])?;
    let axes: Vec<i32> = (0..rank as i32).map(|i| 2 * i).collect();
    let axes = c.vector(&axes)?;
    let of_x = c.op("Sum", &[copies, axes])?;
    c.set(0, of_x);
    Ok(())
}

/// Along the first axis: what was taken from a row is added up in that row.
fn gather(c: &mut GradientContext<'_>) -> Done {
    let (g, params, indices) = (c.grad(0)?, c.input(0), c.input(1));
    let first = c.ints(c.input(2)).is_some_and(|axis| axis == [0]);
    if !first || c.node().int("batch_dims").copied().unwrap_or(0) != 0 {
        return Err(c.unsupported("along another axis than the first"));
    }
    let shape = c.shape_of(params)?;
    let (zero, one) = (c.vector(&[0i32])?, c.vector(&[1i32])?);
    let row_count = c.op("Slice", &[shape, zero, one])?;
    let scalar = c.constant(Tensor::vector::<i32>(&[]))?;
    let row_count = c.op("Reshape", &[row_count, scalar])?;
    let of_params = c.op("UnsortedSegmentSum", &[g, indices, row_count])?;
    c.set(0, of_params);
    Ok(())
}
