//! What formulas compute with: elements of tensors, and C text.

use std::num::Wrapping;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

use super::text::Source;
use crate::kernels::vecmath;

/// A number: an element of floats or of integers that wrap, or the text of one.
pub(crate) trait Scalar:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// A condition: a `bool`, or the text of one.
    type Truth: Copy + BitAnd<Output = Self::Truth> + BitOr<Output = Self::Truth> + Not<Output = Self::Truth>;

    /// A constant.
    fn of(value: f64) -> Self;
    /// `self == other`
    fn equal(self, other: Self) -> Self::Truth;
    /// `self < other`
    fn less(self, other: Self) -> Self::Truth;
    /// `self <= other`
    fn at_most(self, other: Self) -> Self::Truth;
    /// One of two numbers; the other is not computed.
    fn choose(condition: Self::Truth, then: impl FnOnce() -> Self, otherwise: impl FnOnce() -> Self) -> Self;

    /// `self > other`
    #[inline(always)]
    fn greater(self, other: Self) -> Self::Truth {
        other.less(self)
    }

    /// Whether it is no number.
    #[inline(always)]
    fn is_nan(self) -> Self::Truth {
        !self.equal(self)
    }

    /// `|self|`
    #[inline(always)]
    fn abs(self) -> Self {
        Self::choose(self.less(Self::of(0.0)), || -self, || self)
    }
}

/// What elements have in common.
macro_rules! element {
    () => {
        type Truth = bool;

        #[inline(always)]
        fn equal(self, other: Self) -> bool {
            self == other
        }

        #[inline(always)]
        fn less(self, other: Self) -> bool {
            self < other
        }

        #[inline(always)]
        fn at_most(self, other: Self) -> bool {
            self <= other
        }

        #[inline(always)]
        fn choose(condition: bool, then: impl FnOnce() -> Self, otherwise: impl FnOnce() -> Self) -> Self {
            if condition { then() } else { otherwise() }
        }
    };
}

macro_rules! floats {
    ($($t:ident: $value:ident => $of:expr;)+) => { $(
        impl Scalar for $t {
            element!();

            #[inline(always)]
            fn of($value: f64) -> $t {
                $of
            }

            #[inline(always)]
            fn abs(self) -> $t {
                <$t>::abs(self)
            }
        }
    )+ };
}
floats! {
    f32: value => value as f32;
    f64: value => value;
}

macro_rules! integers {
    ($($t:ident)+) => { $(
        impl Scalar for Wrapping<$t> {
            element!();

            #[inline(always)]
            fn of(value: f64) -> Wrapping<$t> {
                Wrapping(value as $t)
            }
        }
    )+ };
}
integers! { i32 i64 }

impl Scalar for Source {
    type Truth = Source;

    fn of(value: f64) -> Source {
        Source::atom(format!("(C){value}"))
    }

    fn equal(self, other: Source) -> Source {
        self.compared("==", other)
    }

    fn less(self, other: Source) -> Source {
        self.compared("<", other)
    }

    fn at_most(self, other: Source) -> Source {
        self.compared("<=", other)
    }

    fn choose(condition: Source, then: impl FnOnce() -> Source, otherwise: impl FnOnce() -> Source) -> Source {
        Source::conditional(condition, then(), otherwise())
    }

    fn abs(self) -> Source {
        Source::atom(format!("absolute({})", self.text))
    }
}

/// Functions of one number: a line each, of f32, of f64, and what the prelude of the GPU's sources calls them.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: $f32:path, $f64:path, $c:literal;)+) => {
        /// A floating-point number.
        pub(crate) trait Real: Scalar + Div<Output = Self> {
            $(
                $(#[$doc])*
                fn $name(self) -> Self;
            )+
            /// The power of this exponent.
            fn powf(self, exponent: Self) -> Self;
        }

        functions! { @ f32 f32::powf; $($name $f32;)+ }
        functions! { @ f64 f64::powf; $($name $f64;)+ }

        impl Real for Source {
            $(
                fn $name(self) -> Source {
                    Source::atom(format!("{}({})", $c, self.text))
                }
            )+

            fn powf(self, exponent: Source) -> Source {
                Source::atom(format!("power({}, {})", self.text, exponent.text))
            }
        }
    };
    (@ $t:ident $powf:path; $($name:ident $f:path;)+) => {
        impl Real for $t {
            $(
                #[inline(always)]
                fn $name(self) -> $t {
                    $f(self)
                }
            )+

            #[inline(always)]
            fn powf(self, exponent: $t) -> $t {
                $powf(self, exponent)
            }
        }
    };
}
functions! {
    /// The square root.
    sqrt: f32::sqrt, f64::sqrt, "root";
    /// The next integer below.
    floor: f32::floor, f64::floor, "floor_of";
    /// The next integer above.
    ceil: f32::ceil, f64::ceil, "ceil_of";
    /// The nearest integer; of two, the even one.
    round_ties_even: f32::round_ties_even, f64::round_ties_even, "nearest";
    /// e^x
    exp: f32::exp, f64::exp, "e_to";
    /// e^x - 1
    exp_m1: f32::exp_m1, f64::exp_m1, "expm1_of";
    /// The natural logarithm.
    ln: f32::ln, f64::ln, "log_of";
    /// ln(1 + x)
    ln_1p: f32::ln_1p, f64::ln_1p, "log1p_of";
    /// The sine.
    sin: f32::sin, f64::sin, "sin_of";
    /// The cosine.
    cos: f32::cos, f64::cos, "cos_of";
    /// The error function.
    erf: libm::erff, libm::erf, "erf_of";
    /// e^x, of f32 in vectors: other bits than [`Real::exp`].
    vector_exp: vecmath::exp1, f64::exp, "e_to";
    /// The hyperbolic tangent, of f32 in vectors.
    vector_tanh: vecmath::tanh1, f64::tanh, "tanh_of";
    /// 1 / (1 + e^-x), of f32 in vectors.
    vector_sigmoid: vecmath::sigmoid1, sigmoid, "logistic";
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
