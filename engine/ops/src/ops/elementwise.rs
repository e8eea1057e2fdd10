//! Element-wise math: functions of one tensor, and of several that broadcast against each other.

use super::shapes::{Inferred, all_equal, broadcast, broadcast_of, unchanged};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;

const FLOAT: &str = "T: {floats}";
const FLOAT_COMPLEX: &str = "T: {floats, complexes}";
const SIGNED: &str = "T: {floats, ints}";
const SIGNED_COMPLEX: &str = "T: {floats, ints, complexes}";
const NUMBER: &str = "T: {numbers}";
const REAL: &str = "T: {reals}";
const INTEGER: &str = "T: {integers}";
const F32_F64: &str = "T: {float, double}";
const MODULO: &str = "T: {floats, int32, int64}";
const EQUAL: &str = "T: type; incompatible_shape_error: bool = true";
const PART: &str = "T: {complexes} = complex64; Tout: {float, double} = float";
const UNARY: &str = "x: T -> y: T";
const BINARY: &str = "x: T, y: T -> z: T";
const COMPARE: &str = "x: T, y: T -> z: bool";
const TEST: &str = "x: T -> y: bool";
const GRAD: &str = "y: T, dy: T -> z: T";

#[linkme::distributed_slice(OP_TABLES)]
static UNARY_OPS: &[OpSpec] = &[
    op("Abs", UNARY, SIGNED, unchanged),
    op("Neg", UNARY, SIGNED_COMPLEX, unchanged),
    op("Sign", UNARY, SIGNED_COMPLEX, unchanged),
    op("Square", UNARY, NUMBER, unchanged),
    op("Reciprocal", UNARY, SIGNED_COMPLEX, unchanged),
    op("Inv", UNARY, SIGNED_COMPLEX, unchanged),
    op("Exp", UNARY, FLOAT_COMPLEX, unchanged),
    op("Expm1", UNARY, FLOAT_COMPLEX, unchanged),
    op("Log", UNARY, FLOAT_COMPLEX, unchanged),
    op("Log1p", UNARY, FLOAT_COMPLEX, unchanged),
    op("Sqrt", UNARY, FLOAT_COMPLEX, unchanged),
    op("Rsqrt", UNARY, FLOAT_COMPLEX, unchanged),
    op("Sin", UNARY, FLOAT_COMPLEX, unchanged),
    op("Cos", UNARY, FLOAT_COMPLEX, unchanged),
    op("Tan", UNARY, FLOAT_COMPLEX, unchanged),
    op("Asin", UNARY, FLOAT_COMPLEX, unchanged),
    op("Acos", UNARY, FLOAT_COMPLEX, unchanged),
    op("Atan", UNARY, FLOAT_COMPLEX, unchanged),
    op("Sinh", UNARY, FLOAT_COMPLEX, unchanged),
    op("Cosh", UNARY, FLOAT_COMPLEX, unchanged),
    op("Tanh", UNARY, FLOAT_COMPLEX, unchanged),
    op("Asinh", UNARY, FLOAT_COMPLEX, unchanged),
    op("Acosh", UNARY, FLOAT_COMPLEX, unchanged),
    op("Atanh", UNARY, FLOAT_COMPLEX, unchanged),
    op("Sigmoid", UNARY, FLOAT_COMPLEX, unchanged),
    op("Erf", UNARY, FLOAT, unchanged),
    op("Erfc", UNARY, FLOAT, unchanged),
    op("Erfinv", UNARY, FLOAT, unchanged),
    op("Ndtri", UNARY, FLOAT, unchanged),
    op("Lgamma", UNARY, FLOAT, unchanged),
    op("Digamma", UNARY, FLOAT, unchanged),
    op("Dawsn", UNARY, FLOAT, unchanged),
    op("Expint", UNARY, FLOAT, unchanged),
    op("Spence", UNARY, FLOAT, unchanged),
    op("BesselI0", UNARY, FLOAT, unchanged),
    op("BesselI0e", UNARY, FLOAT, unchanged),
    op("BesselI1", UNARY, FLOAT, unchanged),
    op("BesselI1e", UNARY, FLOAT, unchanged),
    op("BesselJ0", UNARY, FLOAT, unchanged),
    op("BesselJ1", UNARY, FLOAT, unchanged),
    op("BesselY0", UNARY, FLOAT, unchanged),
    op("BesselY1", UNARY, FLOAT, unchanged),
    op("Rint", UNARY, FLOAT, unchanged),
    op("Round", UNARY, SIGNED_COMPLEX, unchanged),
    op("Ceil", UNARY, FLOAT, unchanged),
    op("Floor", UNARY, FLOAT, unchanged),
    op("IsNan", TEST, FLOAT, unchanged),
    op("IsInf", TEST, FLOAT, unchanged),
    op("IsFinite", TEST, FLOAT, unchanged),
    op("Invert", UNARY, INTEGER, unchanged),
    op("PopulationCount", "x: T -> y: uint8", INTEGER, unchanged),
    op("LogicalNot", "x: bool -> y: bool", "", unchanged),
    op("Real", "input: T -> output: Tout", PART, unchanged),
    op("Imag", "input: T -> output: Tout", PART, unchanged),
    op("Angle", "input: T -> output: Tout", PART, unchanged),
    op("ComplexAbs", "x: T -> y: Tout", PART, unchanged),
    op("Conj", "input: T -> output: T", "T: {complexes, variant} = complex64", unchanged),
    op("TanhGrad", GRAD, FLOAT_COMPLEX, all_equal),
    op("SigmoidGrad", GRAD, FLOAT_COMPLEX, all_equal),
    op("SqrtGrad", GRAD, FLOAT_COMPLEX, all_equal),
    op("RsqrtGrad", GRAD, FLOAT_COMPLEX, all_equal),
    op("InvGrad", GRAD, FLOAT_COMPLEX, all_equal),
    op("ReciprocalGrad", GRAD, FLOAT_COMPLEX, all_equal),
    op("Cast", "x: SrcT -> y: DstT", "SrcT: type; DstT: type; Truncate: bool = false", unchanged),
    op(
        "Bucketize",
        "input: T -> output: int32",
        "T: {int32, int64, float, double}; boundaries: list(float)",
        unchanged,
    ),
];

#[linkme::distributed_slice(OP_TABLES)]
static BINARY_OPS: &[OpSpec] = &[
    op("Add", BINARY, "T: {floats, ints, complexes, uint8, string}", broadcast),
    op("AddV2", BINARY, NUMBER, broadcast).commutes(),
    op("Sub", BINARY, NUMBER, broadcast),
    op("Mul", BINARY, NUMBER, broadcast).commutes(),
    op("MulNoNan", BINARY, FLOAT_COMPLEX, broadcast),
    op("Div", BINARY, NUMBER, broadcast),
    op("RealDiv", BINARY, NUMBER, broadcast),
    op("FloorDiv", BINARY, NUMBER, broadcast),
    op("TruncateDiv", BINARY, NUMBER, broadcast),
    op("DivNoNan", BINARY, FLOAT_COMPLEX, broadcast),
    op("Mod", BINARY, MODULO, broadcast),
    op("FloorMod", BINARY, REAL, broadcast),
    op("TruncateMod", BINARY, MODULO, broadcast),
    op("Pow", BINARY, SIGNED_COMPLEX, broadcast),
    op("Maximum", BINARY, REAL, broadcast),
    op("Minimum", BINARY, REAL, broadcast),
    op("SquaredDifference", BINARY, "T: {floats, complexes, int32, int64}", broadcast).commutes(),
    op("Atan2", "y: T, x: T -> z: T", FLOAT, broadcast),
    op("Xdivy", BINARY, FLOAT_COMPLEX, broadcast),
    op("Xlogy", BINARY, FLOAT_COMPLEX, broadcast),
    op("Xlog1py", BINARY, FLOAT_COMPLEX, broadcast),
    op("NextAfter", "x1: T, x2: T -> output: T", "T: {double, float} = float", broadcast),
    op("Polygamma", "a: T, x: T -> z: T", F32_F64, broadcast),
    op("Zeta", "x: T, q: T -> z: T", F32_F64, broadcast),
    op("Igamma", "a: T, x: T -> z: T", FLOAT, broadcast),
    op("Igammac", "a: T, x: T -> z: T", FLOAT, broadcast),
    op("IgammaGradA", "a: T, x: T -> z: T", F32_F64, broadcast),
    op("RandomGammaGrad", "alpha: T, sample: T -> output: T", F32_F64, broadcast),
    op("Betainc", "a: T, b: T, x: T -> z: T", F32_F64, betainc),
    op("BitwiseAnd", BINARY, INTEGER, broadcast).commutes(),
    op("BitwiseOr", BINARY, INTEGER, broadcast).commutes(),
    op("BitwiseXor", BINARY, INTEGER, broadcast).commutes(),
    op("LeftShift", BINARY, INTEGER, broadcast),
    op("RightShift", BINARY, INTEGER, broadcast),
    op("LogicalAnd", "x: bool, y: bool -> z: bool", "", broadcast).commutes(),
    op("LogicalOr", "x: bool, y: bool -> z: bool", "", broadcast).commutes(),
    op("Equal", COMPARE, EQUAL, equality).commutes(),
    op("NotEqual", COMPARE, EQUAL, equality).commutes(),
    op("Less", COMPARE, REAL, broadcast),
    op("LessEqual", COMPARE, REAL, broadcast),
    op("Greater", COMPARE, REAL, broadcast),
    op("GreaterEqual", COMPARE, REAL, broadcast),
    op("ApproximateEqual", COMPARE, "T: {numbers, quantized}; tolerance: float = 1e-5", all_equal).commutes(),
    op(
        "Complex",
        "real: T, imag: T -> out: Tout",
        "T: {float, double} = float; Tout: {complexes} = complex64",
        broadcast,
    ),
    op("ClipByValue", "t: T, clip_value_min: T, clip_value_max: T -> output: T", "T: {numbers, quantized}", unchanged),
    op("Select", "condition: bool, t: T, e: T -> output: T", "T: type", select),
    op("SelectV2", "condition: bool, t: T, e: T -> output: T", "T: type", select_v2),
    op("AddN", "inputs: N * T -> sum: T", "N: int; T: {numbers, quantized, variant}", all_equal),
    op("AccumulateNV2", "inputs: N * T -> sum: T", "N: int; T: {numbers, quantized}; shape: shape", accumulate),
];

fn betainc(c: &mut InferContext<'_>) -> Inferred {
    // Each is a scalar or has the shape of all others.
    let mut shape = PartialShape::scalar();
    for i in 0..3 {
        shape = match (shape.rank(), c.input(i).rank()) {
            (Some(0), _) => c.input(i),
            (_, Some(0)) => shape,
            _ => c.merge(&shape, &c.input(i))?,
        };
    }
    c.set(0, shape);
    Ok(())
}

/// Where shapes may be incompatible, the answer is one bool then.
fn equality(c: &mut InferContext<'_>) -> Inferred {
    if c.flag("incompatible_shape_error") {
        return broadcast(c);
    }
    let known = c.input(0).known().is_some() && c.input(1).known().is_some();
    match broadcast_of(&c.input(0), &c.input(1)) {
        Ok(shape) if known => c.set(0, shape),
        Err(_) if known => c.set(0, PartialShape::scalar()),
        _ => {}
    }
    Ok(())
}

fn select(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.merge(&c.input(1), &c.input(2))?;
    let condition = c.input(0);
    if let (Some(cond), Some(values)) = (condition.dims(), shape.dims()) {
        // One condition for all, one per row, or one per element.
        let rows = cond.len() == 1 && values.len() > 1;
        let fits = match cond {
            [] => true,
            [n] if rows => n.is_none() || values[0].is_none() || *n == values[0],
            _ => condition.merge(&shape).is_some(),
        };
        if !fits {
            return Err(ShapeError(format!("condition {condition} does not fit values of shape {shape}")));
        }
    }
    c.set(0, shape);
    Ok(())
}

fn select_v2(c: &mut InferContext<'_>) -> Inferred {
    let shape = broadcast_of(&c.input(0), &broadcast_of(&c.input(1), &c.input(2))?)?;
    c.set(0, shape);
    Ok(())
}

fn accumulate(c: &mut InferContext<'_>) -> Inferred {
    all_equal(c)?;
    if let Some(Attr::Shape(shape)) = c.attr("shape") {
        let shape = shape.merge(&c.input(0)).unwrap_or_default();
        c.set(0, shape);
    }
    Ok(())
}
