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
    // A constant permutation is inverted now, so that shapes stay known.
    let inverse = match c.ints(c.input(1)) {
        Some(perm) => {
            let mut inverse = vec![0i32; perm.len()];
            for (to, &from) in perm.iter().enumerate() {
                let from = if from < 0 { from + perm.len() as i64 } else { from };
                let slot = usize::try_from(from).ok().and_then(|from| inverse.get_mut(from));
                *slot.ok_or_else(|| c.unsupported("for a permutation out of range"))? = to as i32;
            }
            c.vector(&inverse)?
        }
        None => c.op("InvertPermutation", &[c.input(1)])?,
    };
    let x = c.op("Transpose", &[g, inverse])?;
    c.set(0, x);
    Ok(())
}

/// Cut apart again: each part begins where the ones before it end.
fn concat(c: &mut GradientContext<'_>) -> Done {
    let n = c.node().inputs.len() - 1;
    let axis = c.input(n);
    super::layout::cut_apart(c, 0..n, axis)
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
    let rank = c.shape(x)?.rank();
    if rank == Some(0) {
        c.set(0, g);
        return Ok(());
    }
    let index = c.dtype(multiples)?;
    let shape = c.op_with("Shape", &[x], &[("out_type", Attr::Type(index))])?;
    let pairs = c.op_of_list("Pack", &[multiples, shape], &[], &[("axis", Attr::Int(1))])?;
    let whole = c.vector(&[-1i32])?;
    let split = c.op("Reshape", &[pairs, whole])?;
    let copies = c.op("Reshape", &[g, split])?;
    let axes = match rank {
        Some(rank) => {
            let axes: Vec<i32> = (0..rank as i32).map(|i| 2 * i).collect();
            c.vector(&axes)?
        }
        None => {
            let twice = c.op("Rank", &[copies])?;
            let (zero, two) = (c.constant(Tensor::scalar(0i32))?, c.constant(Tensor::scalar(2i32))?);
            c.op("Range", &[zero, twice, two])?
        }
    };
    let of_x = c.op("Sum", &[copies, axes])?;
    c.set(0, of_x);
    Ok(())
}
