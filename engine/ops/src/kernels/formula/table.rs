//! The table of formulas, and what follows from it.

use std::num::Wrapping;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::scalar::{Real, Scalar};
use super::step::{Blocks, FusedOp, Operands, one, two};
use super::text::Source;
use crate::kernels::elementwise::{call1, call2, each_compare, each1, each2};
use crate::kernels::support::{cpu, cpu_any};
use crate::kernels::{KERNEL_TABLES, KernelDef, KernelError};
use engine_core::dtype::Element;

/// What an op's results are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbers of the operands' type.
    Number,
    /// Truths.
    Predicate,
}

/// What an op's operands are, of attribute `T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Floating-point numbers.
    Real,
    /// Floating-point numbers and integers.
    Scalar,
    /// Truths; there is no attribute.
    Truth,
}

/// An element-wise op.
pub struct Formula {
    /// TensorFlow's name.
    pub op: &'static str,
    /// Its results.
    pub kind: Kind,
    /// Its operands' type.
    pub numbers: Numbers,
    /// Which operands it takes.
    pub operands: Operands,
    source: fn() -> Source,
}

/// The formula of an op as a C expression of the operands `a` and `b`, computed in type `C`, with the functions of the
/// prelude of the GPU's sources. `None`: no formula of the op is in the table.
pub fn source(op: &str) -> Option<&'static str> {
    static TEXTS: LazyLock<FxHashMap<&str, &str>> =
        LazyLock::new(|| FORMULAS.iter().map(|formula| (formula.op, (formula.source)().text)).collect());
    TEXTS.get(op).copied()
}

/// The op of this name, where it can be fused.
pub fn fused_op(name: &str) -> Option<&'static FusedOp> {
    FUSED_OPS.iter().find(|op| op.name == name)
}

/// The function of a line.
macro_rules! define {
    (Number $op:ident ($($x:ident),+) $bound:ident $formula:expr) => {
        define! { @ $op $bound ($($x: T),+) T, $formula }

        impl Blocks for $op {
            const N_OPERANDS: usize = [$(stringify!($x)),+].len();

            #[inline(always)]
            fn compute<T: Real>(a: &[T], b: &[T], out: &mut [T]) {
                define!(@loop ($($x),+) a b out Self::of::<T>);
            }
        }
    };
    (Predicate $op:ident ($($x:ident),+) Scalar $formula:expr) => {
        define! { @ $op Scalar ($($x: T),+) T::Truth, $formula }
    };
    (Predicate $op:ident ($($x:ident),+) Truth $formula:expr) => {
        define! { @ $op Scalar ($($x: T::Truth),+) T::Truth, $formula }
    };
    (@ $op:ident $bound:ident ($($x:ident: $of:ty),+) $to:ty, $formula:expr) => {
        enum $op {}

        impl $op {
            #[inline(always)]
            fn of<T: $bound>($($x: $of),+) -> $to {
                $formula
            }
        }
    };
    (@loop ($x:ident) $a:ident $b:ident $out:ident $f:expr) => {{
        let _ = $b;
        one($a, $out, $f);
    }};
    (@loop ($x:ident, $y:ident) $a:ident $b:ident $out:ident $f:expr) => { two($a, $b, $out, $f) };
}

/// The text of a line.
macro_rules! text {
    ($op:ident ($x:ident)) => {
        $op::of::<Source>(Source::atom("a".to_owned()))
    };
    ($op:ident ($x:ident, $y:ident)) => {
        $op::of::<Source>(Source::atom("a".to_owned()), Source::atom("b".to_owned()))
    };
}

/// The kernels of a line on CPUs: of each element type its own loop, or one that calls the function.
macro_rules! on_cpu {
    (Number $op:ident ($x:ident) $of:ident each $ps:literal) => { on_cpu!(each each1 $op $of $ps $ps) };
    (Number $op:ident ($x:ident, $y:ident) $of:ident each $ps:literal) => { on_cpu!(each each2 $op $of $ps $ps) };
    (Number $op:ident ($x:ident) $of:ident called $f32:literal $f64:literal) => { on_cpu!(called call1 $op $of $f32 $f64) };
    (Number $op:ident ($x:ident, $y:ident) $of:ident called $f32:literal $f64:literal) => {
        on_cpu!(called call2 $op $of $f32 $f64)
    };
    (Predicate $op:ident ($x:ident, $y:ident) Scalar each $ps:literal) => { on_cpu!(each each_compare $op Scalar $ps $ps) };
    (Predicate $op:ident ($x:ident) Truth each $ps:literal) => {
        cpu_any(stringify!($op), |_| each1::<$ps, bool>($op::of::<f32>))
    };
    (Predicate $op:ident ($x:ident, $y:ident) Truth each $ps:literal) => {
        cpu_any(stringify!($op), |_| each2::<$ps, bool>($op::of::<f32>))
    };
    ($how:ident $make:ident $op:ident Real $f32:literal $f64:literal) => {
        on_cpu!(@ $how $make $op f32, $f32; f64, $f64;)
    };
    ($how:ident $make:ident $op:ident Scalar $f32:literal $f64:literal) => {
        on_cpu!(@ $how $make $op f32, $f32; f64, $f64; Wrapping<i32>, $f32; Wrapping<i64>, $f64;)
    };
    (@ each $make:ident $op:ident $t:ty, $ps:literal) => { $make::<$ps, $t>($op::of::<$t>) };
    (@ called $make:ident $op:ident $t:ty, $ps:literal) => { $make::<$t>($ps, $op::of::<$t>) };
    (@ $how:ident $make:ident $op:ident $($t:ty, $ps:literal;)+) => {
        cpu(stringify!($op), ("T", &[$(<$t as Element>::DTYPE),+]), |node| match *node.dtype("T")? {
            $(<$t as Element>::DTYPE => on_cpu!(@ $how $make $op $t, $ps),)+
            other => Err(KernelError::invalid(format!("there is no formula for {other}"))),
        })
    };
}

macro_rules! operands {
    () => {
        Operands::Broadcast
    };
    ($operands:ident) => {
        Operands::$operands
    };
}

macro_rules! formulas {
    ($($kind:ident { $(
        $op:ident $xs:tt $of:ident $($how:ident $($ps:literal)+)? $(, fused $step:literal $($operands:ident)?)?
            => $formula:expr;
    )+ })+) => {
        $($(define! { $kind $op $xs $of $formula })+)+

        /// All element-wise ops whose formulas are written here.
        pub const FORMULAS: &[Formula] = &[$($(Formula {
            op: stringify!($op),
            kind: Kind::$kind,
            numbers: Numbers::$of,
            operands: operands!($($($operands)?)?),
            source: || text!($op $xs),
        },)+)+];

        /// Those of them that can be fused.
        pub const FUSED_OPS: &[FusedOp] =
            &[$($($(FusedOp::new::<$op>(stringify!($op), operands!($($operands)?), $step),)?)+)+];

        #[linkme::distributed_slice(KERNEL_TABLES)]
        static KERNELS: &[KernelDef] = &[$($($(on_cpu!($kind $op $xs $of $how $($ps)+),)?)+)+];
    };
}

/// Of the self-normalising rectifier: what outputs are multiplied by, and the limit at minus infinity.
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_LIMIT: f64 = 1.758_099_340_847_376_9;

// A line: the op, its operands and their type; how the CPU computes an element, and in how many picoseconds (`called`: of
// f32, and of f64), where its kernels are not elsewhere; the picoseconds in a fused step, where it can be one, and which
// operands it takes, where not any that broadcast; the formula.
formulas! {
    Number {
        Neg (x) Scalar each 300, fused 50 => -x;
        Abs (x) Scalar each 300, fused 50 => x.abs();
        Sign (x) Scalar each 500 => T::choose(
            x.greater(T::of(0.0)), || T::of(1.0), || T::choose(x.less(T::of(0.0)), || T::of(-1.0), || x)
        );
        Square (x) Scalar each 300, fused 50 => x * x;
        Reciprocal (x) Real each 500, fused 200 => T::of(1.0) / x;
        Inv (x) Real each 500 => T::of(1.0) / x;
        Sqrt (x) Real each 700, fused 300 => x.sqrt();
        Rsqrt (x) Real each 1000, fused 400 => T::of(1.0) / x.sqrt();
        Floor (x) Real each 500 => x.floor();
        Ceil (x) Real each 500 => x.ceil();
        Rint (x) Real each 500 => x.round_ties_even();
        Round (x) Real each 500 => x.round_ties_even();
        Exp (x) Real, fused 500 => x.vector_exp();
        Expm1 (x) Real called 6000 6000 => x.exp_m1();
        Log (x) Real called 4000 4000 => x.ln();
        Log1p (x) Real called 6000 6000 => x.ln_1p();
        Sin (x) Real called 6000 8000 => x.sin();
        Cos (x) Real called 6000 8000 => x.cos();
        Tanh (x) Real, fused 700 => x.vector_tanh();
        Sigmoid (x) Real, fused 700 => x.vector_sigmoid();
        Erf (x) Real called 8000 10_000 => x.erf();
        Relu (x) Scalar each 300, fused 50 => T::choose(x.less(T::of(0.0)), || T::of(0.0), || x);
        Relu6 (x) Scalar each 300 => T::choose(
            x.less(T::of(0.0)), || T::of(0.0), || T::choose(x.greater(T::of(6.0)), || T::of(6.0), || x)
        );
        Elu (x) Real each 4000 => T::choose(x.less(T::of(0.0)), || x.exp_m1(), || x);
        Selu (x) Real each 4000 => T::choose(
            x.less(T::of(0.0)), || T::of(SELU_LIMIT) * x.exp_m1(), || T::of(SELU_SCALE) * x
        );
        // max(x, 0) + ln(1 + e^-|x|) does not overflow.
        Softplus (x) Real each 8000 => T::choose(x.greater(T::of(0.0)), || x, || T::of(0.0))
            + T::choose(x.greater(T::of(0.0)), || -x, || x).exp().ln_1p();
        Softsign (x) Real each 500 => x / (x.abs() + T::of(1.0));

        Add (x, y) Scalar each 300, fused 50 => x + y;
        AddV2 (x, y) Scalar each 300, fused 50 => x + y;
        AddN (x, y) Scalar, fused 50 Several => x + y;
        BiasAdd (x, y) Real, fused 50 Bias => x + y;
        Sub (x, y) Scalar each 300, fused 50 => x - y;
        Mul (x, y) Scalar each 300, fused 50 => x * y;
        Div (x, y) Real each 500, fused 200 => x / y;
        RealDiv (x, y) Real each 500, fused 200 => x / y;
        FloorDiv (x, y) Real each 1000 => (x / y).floor();
        Maximum (x, y) Scalar each 300, fused 50 => T::choose(x.greater(y) | x.is_nan(), || x, || y);
        Minimum (x, y) Scalar each 300, fused 50 => T::choose(x.less(y) | x.is_nan(), || x, || y);
        SquaredDifference (x, y) Scalar each 300, fused 50 => (x - y) * (x - y);
        DivNoNan (x, y) Real each 500 => T::choose(y.equal(T::of(0.0)), || T::of(0.0), || x / y);
        MulNoNan (x, y) Real each 300 => T::choose(y.equal(T::of(0.0)), || T::of(0.0), || x * y);
        Xdivy (x, y) Real called 1000 1000 => T::choose(x.equal(T::of(0.0)), || T::of(0.0), || x / y);
        Xlogy (x, y) Real called 5000 5000 => T::choose(x.equal(T::of(0.0)), || T::of(0.0), || x * y.ln());
        Pow (x, y) Real called 8000 8000 => x.powf(y);

        TanhGrad (y, dy) Real each 400, fused 100 OneShape => dy * (T::of(1.0) - y * y);
        SigmoidGrad (y, dy) Real each 400, fused 100 OneShape => dy * y * (T::of(1.0) - y);
        // No gradient stays none, whatever the slope is.
        SqrtGrad (y, dy) Real each 500 => T::choose(
            dy.equal(T::of(0.0)), || T::of(0.0), || T::of(0.5) * dy / y
        );
        RsqrtGrad (y, dy) Real each 500 => T::choose(
            dy.equal(T::of(0.0)), || T::of(0.0), || T::of(-0.5) * dy * (y * y * y)
        );
        InvGrad (y, dy) Real each 400 => T::choose(dy.equal(T::of(0.0)), || T::of(0.0), || -dy * y * y);
        ReciprocalGrad (y, dy) Real each 400 => T::choose(dy.equal(T::of(0.0)), || T::of(0.0), || -dy * y * y);
        ReluGrad (dy, x) Real each 300, fused 50 OneShape => T::choose(x.greater(T::of(0.0)), || dy, || T::of(0.0));
        Relu6Grad (dy, x) Scalar each 300 => T::choose(
            x.greater(T::of(0.0)) & x.less(T::of(6.0)), || dy, || T::of(0.0)
        );
        EluGrad (dy, y) Real each 300 => T::choose(y.less(T::of(0.0)), || dy * (y + T::of(1.0)), || dy);
        SeluGrad (dy, y) Real each 300 => T::choose(
            y.less(T::of(0.0)), || dy * (y + T::of(SELU_LIMIT)), || dy * T::of(SELU_SCALE)
        );
        SoftplusGrad (dy, x) Real each 4000 => dy / ((-x).exp() + T::of(1.0));
        SoftsignGrad (dy, x) Real each 500 => dy / ((T::of(1.0) + x.abs()) * (T::of(1.0) + x.abs()));
    }
    Predicate {
        Equal (x, y) Scalar each 300 => x.equal(y);
        NotEqual (x, y) Scalar each 300 => !x.equal(y);
        Less (x, y) Scalar each 300 => x.less(y);
        LessEqual (x, y) Scalar each 300 => x.at_most(y);
        Greater (x, y) Scalar each 300 => x.greater(y);
        GreaterEqual (x, y) Scalar each 300 => y.at_most(x);
        LogicalAnd (x, y) Truth each 300 => x & y;
        LogicalOr (x, y) Truth each 300 => x | y;
        LogicalNot (x) Truth each 300 => !x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_c_expressions() {
        let expected = [
            ("AddN", "a + b"),
            ("Sqrt", "root(a)"),
            ("Pow", "power(a, b)"),
            ("TanhGrad", "b * ((C)1 - a * a)"),
            ("RsqrtGrad", "(b == (C)0 ? (C)0 : (C)-0.5 * b * (a * a * a))"),
            ("Relu6", "(a < (C)0 ? (C)0 : ((C)6 < a ? (C)6 : a))"),
            ("Maximum", "(b < a || !(a == a) ? a : b)"),
            ("Softsign", "a / (absolute(a) + (C)1)"),
            ("GreaterEqual", "b <= a"),
            ("LogicalAnd", "a && b"),
        ];
        for (op, text) in expected {
            assert_eq!(source(op), Some(text), "{op}");
        }
        assert_eq!(source("MatMul"), None);
    }

    #[test]
    fn every_name_is_there_once() {
        let names: std::collections::BTreeSet<&str> = FORMULAS.iter().map(|formula| formula.op).collect();
        assert_eq!(names.len(), FORMULAS.len());
    }

    #[test]
    fn integers_wrap() {
        let least = Wrapping(i32::MIN);
        assert_eq!((Abs::of(least), Neg::of(least), Square::of(least)), (least, least, Wrapping(0)));
        assert_eq!([-7i32, 0, 9].map(|x| Sign::of(Wrapping(x)).0), [-1, 0, 1]);
        assert_eq!([-7i32, 3, 9].map(|x| Relu6::of(Wrapping(x)).0), [0, 3, 6]);
    }
}
