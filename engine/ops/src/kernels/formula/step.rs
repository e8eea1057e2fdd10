//! Formulas as steps of fused nodes: loops over blocks of elements.

use super::scalar::Real;
use crate::kernels::wide::vectorised;

/// A loop over blocks of one length: of the operands (a single one comes twice), and of the result.
pub(in crate::kernels) type Step<T> = fn(&[T], &[T], &mut [T]);

/// Which operands an op takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// Values that are broadcast against each other.
    Broadcast,
    /// Values of one shape.
    OneShape,
    /// Any number of values of one shape.
    Several,
    /// A value, and a vector along its channels.
    Bias,
}

/// An op that can be a step of a fused node.
pub struct FusedOp {
    /// TensorFlow's name.
    pub name: &'static str,
    /// How many operands a step of it has. (An op of several becomes several steps.)
    pub n_operands: usize,
    /// What they may be.
    pub operands: Operands,
    /// What an element costs, in picoseconds.
    pub(in crate::kernels) ps: u64,
    pub(in crate::kernels) f32: Step<f32>,
    pub(in crate::kernels) f64: Step<f64>,
}

impl FusedOp {
    pub(super) const fn new<F: Blocks>(name: &'static str, operands: Operands, ps: u64) -> FusedOp {
        FusedOp { name, n_operands: F::N_OPERANDS, operands, ps, f32: step::<F, f32>, f64: step::<F, f64> }
    }
}

/// A formula of floating-point numbers, on blocks of them.
pub(super) trait Blocks {
    const N_OPERANDS: usize;

    /// As [`Step`]. It is inlined where it is compiled for some vector units.
    fn compute<T: Real>(a: &[T], b: &[T], out: &mut [T]);
}

#[inline(always)]
pub(super) fn one<T: Copy>(a: &[T], out: &mut [T], f: impl Fn(T) -> T) {
    out.iter_mut().zip(a).for_each(|(o, a)| *o = f(*a));
}

#[inline(always)]
pub(super) fn two<T: Copy>(a: &[T], b: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    out.iter_mut().zip(a).zip(b).for_each(|((o, a), b)| *o = f(*a, *b));
}

vectorised! {
    /// A step.
    fn step<F: Blocks, T: Real>(a: &[T], b: &[T], out: &mut [T]) {
        F::compute(a, b, out);
    }
}
