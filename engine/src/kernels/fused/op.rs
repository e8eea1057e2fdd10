//! The ops that programs are made of, and their steps on blocks of elements.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::dtype::Element;
use crate::kernels::vecmath;

/// An op that programs are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedOp {
    /// `-x`
    Neg,
    /// `|x|`
    Abs,
    /// `x * x`
    Square,
    /// `1 / x`
    Reciprocal,
    /// The square root.
    Sqrt,
    /// `1 / sqrt(x)`
    Rsqrt,
    /// e^x
    Exp,
    /// The hyperbolic tangent.
    Tanh,
    /// The logistic function.
    Sigmoid,
    /// 0 where x < 0.
    Relu,
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `x * y`
    Mul,
    /// `x / y`
    Div,
    /// The larger one; NaN where either is.
    Maximum,
    /// The smaller one; NaN where either is.
    Minimum,
    /// `(x - y)^2`
    SquaredDifference,
    /// `dy * (1 - y^2)` of y, dy
    TanhGrad,
    /// `dy * y * (1 - y)` of y, dy
    SigmoidGrad,
    /// dy where x > 0, of dy, x
    ReluGrad,
    /// `x + y` of one shape
    AddN,
    /// `x + y`, y along the last dimension
    BiasAdd,
}

/// How an op may be fused.
pub struct FusedOpDef {
    /// TensorFlow's name.
    pub name: &'static str,
    /// What it does.
    pub op: FusedOp,
    /// How many operands a step of it has. (`AddN` becomes several.)
    pub n_operands: usize,
    /// What an element costs, in picoseconds.
    pub(super) ps: u64,
}

const fn def(name: &'static str, op: FusedOp, n_operands: usize, ps: u64) -> FusedOpDef {
    FusedOpDef { name, op, n_operands, ps }
}

/// The ops that can be fused.
pub const FUSED_OPS: &[FusedOpDef] = &[
    def("Neg", FusedOp::Neg, 1, 50),
    def("Abs", FusedOp::Abs, 1, 50),
    def("Square", FusedOp::Square, 1, 50),
    def("Reciprocal", FusedOp::Reciprocal, 1, 200),
    def("Sqrt", FusedOp::Sqrt, 1, 300),
    def("Rsqrt", FusedOp::Rsqrt, 1, 400),
    def("Exp", FusedOp::Exp, 1, 500),
    def("Tanh", FusedOp::Tanh, 1, 700),
    def("Sigmoid", FusedOp::Sigmoid, 1, 700),
    def("Relu", FusedOp::Relu, 1, 50),
    def("Add", FusedOp::Add, 2, 50),
    def("AddV2", FusedOp::Add, 2, 50),
    def("Sub", FusedOp::Sub, 2, 50),
    def("Mul", FusedOp::Mul, 2, 50),
    def("Div", FusedOp::Div, 2, 200),
    def("RealDiv", FusedOp::Div, 2, 200),
    def("Maximum", FusedOp::Maximum, 2, 50),
    def("Minimum", FusedOp::Minimum, 2, 50),
    def("SquaredDifference", FusedOp::SquaredDifference, 2, 50),
    def("TanhGrad", FusedOp::TanhGrad, 2, 100),
    def("SigmoidGrad", FusedOp::SigmoidGrad, 2, 100),
    def("ReluGrad", FusedOp::ReluGrad, 2, 50),
    def("AddN", FusedOp::AddN, 2, 50),
    def("BiasAdd", FusedOp::BiasAdd, 2, 50),
];

/// The op of this name, where it can be fused.
pub fn fused_op(name: &str) -> Option<&'static FusedOpDef> {
    FUSED_OPS.iter().find(|def| def.name == name)
}

impl FusedOp {
    /// Whether operands are never broadcast.
    pub(super) fn wants_one_shape(self) -> bool {
        matches!(self, FusedOp::AddN | FusedOp::TanhGrad | FusedOp::SigmoidGrad | FusedOp::ReluGrad)
    }
}

/// A floating-point type that programs compute with.
pub(super) trait Float:
    Element
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn is_nan(self) -> bool;
    fn exp_all(values: &mut [Self]);
    fn tanh_all(values: &mut [Self]);
    fn sigmoid_all(values: &mut [Self]);
    /// One step on a block, compiled for the vector units that the machine has.
    fn step(op: FusedOp, a: &[Self], b: &[Self], out: &mut [Self]);
    /// Calls `f` with `n` numbers of this thread's, of any values.
    fn with_scratch<R>(n: usize, f: impl FnOnce(&mut [Self]) -> R) -> R;
}

macro_rules! float {
    ($t:ty, $exp:expr, $tanh:expr, $sigmoid:expr) => {
        impl Float for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            #[inline(always)]
            fn abs(self) -> $t {
                <$t>::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
            fn exp_all(values: &mut [$t]) {
                $exp(values);
            }
            fn tanh_all(values: &mut [$t]) {
                $tanh(values);
            }
            fn sigmoid_all(values: &mut [$t]) {
                $sigmoid(values);
            }
            fn with_scratch<R>(n: usize, f: impl FnOnce(&mut [$t]) -> R) -> R {
                thread_local! {
                    static SCRATCH: RefCell<Vec<$t>> = const { RefCell::new(Vec::new()) };
                }
                SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
                    Ok(mut scratch) => {
                        let longer = scratch.len().max(n);
                        scratch.resize(longer, 0.0);
                        f(&mut scratch[..n])
                    }
                    Err(_) => f(&mut vec![0.0; n]),
                })
            }
            fn step(op: FusedOp, a: &[$t], b: &[$t], out: &mut [$t]) {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                    fn avx512(op: FusedOp, a: &[$t], b: &[$t], out: &mut [$t]) {
                        step(op, a, b, out);
                    }
                    #[target_feature(enable = "avx2,fma")]
                    fn avx2(op: FusedOp, a: &[$t], b: &[$t], out: &mut [$t]) {
                        step(op, a, b, out);
                    }
                    let wide = is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512dq")
                        && is_x86_feature_detected!("avx512vl");
                    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        // SAFETY: the features that each function is compiled for were just found.
                        return unsafe { if wide { avx512(op, a, b, out) } else { avx2(op, a, b, out) } };
                    }
                }
                step(op, a, b, out);
            }
        }
    };
}

fn each(values: &mut [f64], f: impl Fn(f64) -> f64) {
    values.iter_mut().for_each(|v| *v = f(*v));
}

float!(f32, vecmath::exp, vecmath::tanh, vecmath::sigmoid);
float!(f64, |v: &mut [f64]| each(v, f64::exp), |v: &mut [f64]| each(v, f64::tanh), |v: &mut [f64]| each(v, |x| 1.0
    / (1.0 + (-x).exp())));

#[inline(always)]
fn one<T: Float>(a: &[T], out: &mut [T], f: impl Fn(T) -> T) {
    out.iter_mut().zip(a).for_each(|(o, a)| *o = f(*a));
}

#[inline(always)]
fn two<T: Float>(a: &[T], b: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    out.iter_mut().zip(a).zip(b).for_each(|((o, a), b)| *o = f(*a, *b));
}

/// One step on a block. The functions are those of the ops' own kernels, so results are too (tests hold that).
#[inline(always)]
fn step<T: Float>(op: FusedOp, a: &[T], b: &[T], out: &mut [T]) {
    match op {
        FusedOp::Neg => one(a, out, |x| -x),
        FusedOp::Abs => one(a, out, Float::abs),
        FusedOp::Square => one(a, out, |x| x * x),
        FusedOp::Reciprocal => one(a, out, |x| T::ONE / x),
        FusedOp::Sqrt => one(a, out, Float::sqrt),
        FusedOp::Rsqrt => one(a, out, |x| T::ONE / x.sqrt()),
        FusedOp::Relu => one(a, out, |x| if x < T::ZERO { T::ZERO } else { x }),
        FusedOp::Exp | FusedOp::Tanh | FusedOp::Sigmoid => {
            out.copy_from_slice(a);
            match op {
                FusedOp::Exp => T::exp_all(out),
                FusedOp::Tanh => T::tanh_all(out),
                _ => T::sigmoid_all(out),
            }
        }
        FusedOp::Add | FusedOp::AddN | FusedOp::BiasAdd => two(a, b, out, |x, y| x + y),
        FusedOp::Sub => two(a, b, out, |x, y| x - y),
        FusedOp::Mul => two(a, b, out, |x, y| x * y),
        FusedOp::Div => two(a, b, out, |x, y| x / y),
        FusedOp::Maximum => two(a, b, out, |x, y| if x > y || x.is_nan() { x } else { y }),
        FusedOp::Minimum => two(a, b, out, |x, y| if x < y || x.is_nan() { x } else { y }),
        FusedOp::SquaredDifference => two(a, b, out, |x, y| (x - y) * (x - y)),
        FusedOp::TanhGrad => two(a, b, out, |y, dy| dy * (T::ONE - y * y)),
        FusedOp::SigmoidGrad => two(a, b, out, |y, dy| dy * y * (T::ONE - y)),
        FusedOp::ReluGrad => two(a, b, out, |dy, x| if x > T::ZERO { dy } else { T::ZERO }),
    }
}
