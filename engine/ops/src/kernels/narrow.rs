//! Which ops compute narrow element types in wider ones: see [`super::widen`].

use super::widen::{in_f64, widened};
use super::{KERNEL_TABLES, KernelDef};
use engine_core::dtype::DType;

const FLOATS: &[DType] = DType::NARROW_FLOATS;
const REALS: &[DType] = DType::NARROW_REAL;
const ALL: &[DType] = DType::NARROW;
/// All, with uint64 where wrapping arithmetic in int64 gives the same bits.
pub(super) const WRAPPING: &[DType] =
    &[DType::F16, DType::BF16, DType::I8, DType::I16, DType::U8, DType::U16, DType::U32, DType::U64, DType::C64];
const FLOATS_COMPLEX: &[DType] = &[DType::F16, DType::BF16, DType::C64];
const BITS: &[DType] = &[DType::I8, DType::I16, DType::U8, DType::U16, DType::U32, DType::U64];
const EQUALITY: &[DType] = &[
    DType::F16,
    DType::BF16,
    DType::I8,
    DType::I16,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::C64,
    DType::QI8,
    DType::QU8,
    DType::QI16,
    DType::QU16,
    DType::QI32,
];

macro_rules! table {
    ($line:ident; $($dtypes:ident: $($op:literal)+;)+) => { &[ $( $( $line($op, ("T", $dtypes)), )+ )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static NARROW: &[KernelDef] = table! { widened;
    WRAPPING: "Neg" "Square" "Add" "AddV2" "Sub" "Mul" "SquaredDifference" "AddN" "AccumulateNV2";
    ALL: "Sign" "Div" "RealDiv" "Pow";
    REALS: "Abs" "FloorDiv" "FloorMod" "TruncateDiv" "Mod" "TruncateMod" "Maximum" "Minimum" "ClipByValue"
        "Less" "LessEqual" "Greater" "GreaterEqual" "ApproximateEqual" "Relu" "ReluGrad" "Relu6" "Relu6Grad";
    FLOATS_COMPLEX: "Round" "Reciprocal" "Inv" "Exp" "Expm1" "Log" "Log1p" "Sqrt" "Rsqrt" "Sin" "Cos" "Tan" "Asin" "Acos" "Atan"
        "Sinh" "Cosh" "Tanh" "Asinh" "Acosh" "Atanh" "Sigmoid" "MulNoNan" "DivNoNan" "Xdivy" "Xlogy" "Xlog1py" "Conj"
        "TanhGrad" "SigmoidGrad" "SqrtGrad" "RsqrtGrad" "InvGrad" "ReciprocalGrad";
    FLOATS: "Floor" "Ceil" "Rint" "Erf" "Erfc" "Atan2" "IsNan" "IsInf" "IsFinite" "LeakyRelu" "LeakyReluGrad" "Elu" "EluGrad"
        "Selu" "SeluGrad" "Softplus" "SoftplusGrad" "Softsign" "SoftsignGrad";
    BITS: "Invert" "BitwiseAnd" "BitwiseOr" "BitwiseXor";
    EQUALITY: "Equal" "NotEqual";
};

const BELOW_F64: &[DType] = &[DType::F16, DType::BF16, DType::F32];

#[linkme::distributed_slice(KERNEL_TABLES)]
static IN_F64: &[KernelDef] = table! { in_f64;
    BELOW_F64: "Erfinv" "Ndtri" "Lgamma" "Digamma" "Dawsn" "Expint" "Spence" "Polygamma" "Zeta" "Igamma" "Igammac"
        "IgammaGradA" "RandomGammaGrad" "Betainc" "BesselI0" "BesselI0e" "BesselI1" "BesselI1e" "BesselJ0" "BesselJ1"
        "BesselY0" "BesselY1";
};
