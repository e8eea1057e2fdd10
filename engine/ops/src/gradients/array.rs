//! Gradients of array ops: the elements go back to where they came from.

use std::ops::Range;

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Zero};
use engine_core::dtype::DType;
use engine_core::graph::{Output, Value};

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

pub(super) fn identity(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.grad(0));
    Ok(())
}

/// The gradients of all outputs.
pub(super) fn all_grads(c: &GradientContext<'_>) -> Vec<Output> {
    (0..c.node().outputs.len()).map(|i| c.grad(i).output()).collect()
}

/// The shape as integers of this type.
pub(super) fn shape_as(of: Value<'_>, dtype: DType) -> Value<'_> {
    of.graph().add_node("Shape").input(of).attr("out_type", dtype).value()
}

pub(super) fn as_i32(ints: Value<'_>) -> Value<'_> {
    if ints.dtype() == DType::I32 { ints } else { ints.cast(DType::I32) }
}

/// The sum of all elements.
pub(super) fn total(of: Value<'_>) -> Value<'_> {
    of.reshape([-1]).sum([0])
}

/// Cuts the gradient of a concatenation apart again; `axis` may be anything that runs.
pub(super) fn cut_apart(c: &GradientContext<'_>, values: Range<usize>, axis: Value<'_>) -> RuleResult {
    let g = c.grad(0);
    let shapes: Vec<Output> = values.clone().map(|i| c.shape_of(c.input(i)).output()).collect();
    let begins = c.add_node("ConcatOffset").input(as_i32(axis)).inputs(&shapes).value();
    for (k, (i, shape)) in values.zip(shapes).enumerate() {
        c.set(i, c.op("Slice", &[g, begins.port(k as u32), c.value(shape)]));
    }
    Ok(())
}

fn reshape(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.reshape_like(c.grad(0), c.input(0)));
    Ok(())
}

fn fill(c: &GradientContext<'_>) -> RuleResult {
    c.set(1, total(c.grad(0)));
    Ok(())
}

fn broadcast_to(c: &GradientContext<'_>) -> RuleResult {
    let (own, whole) = (c.shape_of(c.input(0)), c.shape_of(c.output(0)));
    let axes = own.op_with("BroadcastGradientArgs", whole);
    c.set(0, c.grad(0).sum(axes).reshape(own));
    Ok(())
}

fn transpose(c: &GradientContext<'_>) -> RuleResult {
    // A constant permutation is inverted now, so that shapes stay known.
    let inverse = match c.known_ints(c.input(1)) {
        Some(perm) => {
            let mut inverse = vec![0i32; perm.len()];
            for (to, &from) in perm.iter().enumerate() {
                let from = if from < 0 { from + perm.len() as i64 } else { from };
                let slot = usize::try_from(from).ok().and_then(|from| inverse.get_mut(from));
                *slot.ok_or_else(|| c.unsupported("for a permutation out of range"))? = to as i32;
            }
            c.graph().ints(&inverse)
        }
        None => c.input(1).op("InvertPermutation"),
    };
    c.set(0, c.grad(0).transpose(inverse));
    Ok(())
}

fn concat(c: &GradientContext<'_>) -> RuleResult {
    let n = c.node().inputs.len() - 1;
    cut_apart(c, 0..n, c.input(n))
}

fn pack(c: &GradientContext<'_>) -> RuleResult {
    let n = c.node().inputs.len();
    let axis = c.node().int("axis").copied().unwrap_or(0);
    let parts = c.add_node("Unpack").input(c.grad(0)).attr("num", n as i64).attr("axis", axis).value();
    (0..n).for_each(|i| c.set(i, parts.port(i as u32)));
    Ok(())
}

fn unpack(c: &GradientContext<'_>) -> RuleResult {
    let axis = c.node().int("axis").copied().unwrap_or(0);
    c.set(0, c.add_node("Pack").inputs(&all_grads(c)).attr("axis", axis).value());
    Ok(())
}

/// As a strided slice of stride one, whose gradient is an op of its own.
fn slice(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, begin, y) = (c.grad(0), c.input(0), c.input(1), c.output(0));
    let shape = shape_as(x, begin.dtype());
    let end = begin + shape_as(y, begin.dtype());
    c.set(0, c.op("StridedSliceGrad", &[shape, begin, end, begin.ones_like(), g]));
    Ok(())
}

fn strided_slice(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, begin, end, strides) = (c.grad(0), c.input(0), c.input(1), c.input(2), c.input(3));
    let shape = shape_as(x, begin.dtype());
    c.set(0, c.op_with_node_attrs("StridedSliceGrad", &[shape, begin, end, strides, g]));
    Ok(())
}

/// Linear in what it puts back: the slice of the gradient.
fn strided_slice_grad(c: &GradientContext<'_>) -> RuleResult {
    let (g, begin, end, strides) = (c.grad(0), c.input(1), c.input(2), c.input(3));
    c.set(4, c.op_with_node_attrs("StridedSlice", &[g, begin, end, strides]));
    Ok(())
}

/// Each axis of n x m elements is split into m copies of n, and the copies are summed.
fn tile(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, multiples) = (c.grad(0), c.input(0), c.input(1));
    let rank = x.shape().rank();
    if rank == Some(0) {
        c.set(0, g);
        return Ok(());
    }
    let pairs = [multiples.output(), shape_as(x, multiples.dtype()).output()];
    let split = c.add_node("Pack").inputs(&pairs).attr("axis", 1i64).value().reshape([-1]);
    let copies = g.reshape(split);
    let axes = match rank {
        Some(rank) => c.graph().ints(&(0..rank as i32).map(|i| 2 * i).collect::<Vec<_>>()),
        None => {
            let twice = copies.rank_tensor();
            c.op("Range", &[twice.number(0.0), twice, twice.number(2.0)])
        }
    };
    c.set(0, copies.sum(axes));
    Ok(())
}
