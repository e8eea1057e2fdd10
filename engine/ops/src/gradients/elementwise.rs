//! Gradients of element-wise math beyond the few that [`super::math`] has.
//!
//! For complex numbers a gradient is TensorFlow's: that of the real part of the loss, so a function's slope enters
//! conjugated; [`Slope`] does that. TensorFlow's do not conjugate everywhere: gradients of `MulNoNan`, `Xdivy`, `Xlogy`,
//! `Xlog1py` and `Cumprod` take the slope as it is, and those of gradient ops conjugate the gradient. These are as they
//! are there, so that programs get the same numbers.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use super::Rule::{Binary, Function, Slope, Unary, Zero};
use super::context::conjugate;
use super::math::add_n;
use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec};
use engine_core::dtype::DType;
use engine_core::graph::Value;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static UNARY: &[GradientSpec] = &[
    ("Inv", Unary(|g, _, y| y.op_with("ReciprocalGrad", g))),
    ("Expm1", Slope(|x, _| x.exp())),
    ("Sin", Slope(|x, _| x.cos())),
    ("Cos", Slope(|x, _| -x.sin())),
    ("Tan", Slope(|x, _| x.cos().reciprocal().square())),
    ("Asin", Slope(|x, _| (1.0 - x.square()).sqrt().reciprocal())),
    ("Acos", Slope(|x, _| -(1.0 - x.square()).sqrt().reciprocal())),
    ("Atan", Slope(|x, _| (1.0 + x.square()).reciprocal())),
    ("Sinh", Slope(|x, _| x.cosh())),
    ("Cosh", Slope(|x, _| x.sinh())),
    ("Asinh", Slope(|_, y| y.cosh().reciprocal())),
    ("Acosh", Slope(|_, y| y.sinh().reciprocal())),
    ("Atanh", Slope(|x, _| (1.0 - x.square()).reciprocal())),
    ("Erf", Slope(|x, _| FRAC_2_SQRT_PI * (-x.square()).exp())),
    ("Erfc", Slope(|x, _| -FRAC_2_SQRT_PI * (-x.square()).exp())),
    ("Erfinv", Slope(|_, y| FRAC_2_SQRT_PI.recip() * (1.0 * y.square()).exp())),
    ("Ndtri", Slope(|_, y| (2.0 * PI).sqrt() * (0.5 * y.square()).exp())),
    ("Lgamma", Slope(|x, _| x.op("Digamma"))),
    ("Digamma", Function(digamma)),
    ("Dawsn", Slope(|x, y| 1.0 - 2.0 * (x * y))),
    ("Expint", Slope(|x, _| x.exp() / x)),
    ("Spence", Slope(spence)),
    ("BesselI0", Slope(|x, _| x.op("BesselI1"))),
    ("BesselI0e", Slope(|x, y| x.op("BesselI1e") - x.sign() * y)),
    ("BesselI1", Slope(|x, y| at_zero(x, 1.0, x.op("BesselI0") - y / x))),
    ("BesselI1e", Slope(|x, y| at_zero(x, 0.5, x.op("BesselI0e") - y * (x.sign() + x.reciprocal())))),
    ("BesselJ0", Slope(|x, _| -x.op("BesselJ1"))),
    ("BesselJ1", Slope(|x, y| at_zero(x, 0.5, x.op("BesselJ0") - y / x))),
    ("BesselY0", Slope(|x, _| -x.op("BesselY1"))),
    ("BesselY1", Slope(|x, y| x.op("BesselY0") - y / x)),
    ("SqrtGrad", Function(sqrt_grad)),
    ("RsqrtGrad", Function(rsqrt_grad)),
    ("InvGrad", Function(reciprocal_grad)),
    ("ReciprocalGrad", Function(reciprocal_grad)),
    ("Conj", Unary(|g, _, _| g.op("Conj"))),
    ("Real", Unary(|g, z, _| complex_like(z, g, g.number(0.0)))),
    ("Imag", Unary(|g, z, _| complex_like(z, g.number(0.0), g))),
    ("Angle", Unary(angle)),
    ("ComplexAbs", Unary(complex_abs)),
    ("Rint", Zero),
    ("Round", Zero),
    ("Ceil", Zero),
    ("IsNan", Zero),
    ("IsInf", Zero),
    ("IsFinite", Zero),
    ("Bucketize", Zero),
    ("Invert", Zero),
    ("PopulationCount", Zero),
];

#[linkme::distributed_slice(GRADIENT_TABLES)]
static BINARY: &[GradientSpec] = &[
    // x - y trunc(x / y)
    ("Mod", Binary(|g, [x, y], _| [g, -1.0 * (g * x.op_with("TruncateDiv", y))])),
    ("TruncateMod", Binary(|g, [x, y], _| [g, -1.0 * (g * x.op_with("TruncateDiv", y))])),
    ("MulNoNan", Binary(|g, [x, y], _| [g.op_with("MulNoNan", y), x.op_with("MulNoNan", g)])),
    ("DivNoNan", Binary(div_no_nan)),
    ("Atan2", Binary(atan2)),
    ("Xdivy", Binary(|g, [x, y], _| [g * not_zero(x).op_with("Xdivy", y), g * (-x).op_with("Xdivy", y.square())])),
    ("Xlogy", Binary(|g, [x, y], _| [g * not_zero(x).op_with("Xlogy", y), g * x.op_with("Xdivy", y)])),
    ("Xlog1py", Binary(|g, [x, y], _| [g * not_zero(x).op_with("Xlog1py", y), g * x.op_with("Xdivy", 1.0 + y)])),
    // Everything to the first input, as TensorFlow's.
    ("NextAfter", Binary(|g, _, _| [g, g.zeros_like()])),
    ("Complex", Binary(|g, _, _| [real_part(g), imaginary_part(g)])),
    ("Polygamma", Function(polygamma)),
    ("Zeta", Function(zeta)),
    ("Igamma", Function(|c| igamma(c, c.grad(0)))),
    ("Igammac", Function(|c| igamma(c, -c.grad(0)))),
    ("Betainc", Function(betainc)),
    ("ClipByValue", Function(clip)),
    ("AccumulateNV2", Function(add_n)),
    ("TruncateDiv", Zero),
    ("ApproximateEqual", Zero),
    ("BitwiseAnd", Zero),
    ("BitwiseOr", Zero),
    ("BitwiseXor", Zero),
    ("LeftShift", Zero),
    ("RightShift", Zero),
];

fn digamma(c: &GradientContext<'_>) -> RuleResult {
    let x = c.input(0);
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        return Err(c.unsupported("for 16-bit floats, of which there is no Polygamma"));
    }
    c.set(0, c.grad(0) * x.number(1.0).op_with("Polygamma", x));
    Ok(())
}

/// -1 at 1, where the formula gives nothing.
fn spence<'a>(x: Value<'a>, _: Value<'a>) -> Value<'a> {
    x.equal(1.0).select(x.number(-1.0), x.log() / (1.0 - x))
}

/// `slope`, but `k` where x is 0: the formulas of functions f1 with f1' = f0 - f1 / x do not give the slope there.
fn at_zero<'a>(x: Value<'a>, k: f64, slope: Value<'a>) -> Value<'a> {
    x.equal(0.0).select(slope.number(k), slope)
}

/// Of dy / (2 conj(y))
fn sqrt_grad(c: &GradientContext<'_>) -> RuleResult {
    let ratio = c.grad(0) / c.input(0);
    c.set(0, -1.0 * (conjugate(ratio) * c.output(0)));
    c.set(1, 0.5 * ratio);
    Ok(())
}

/// Of -dy conj(y)^3 / 2
fn rsqrt_grad(c: &GradientContext<'_>) -> RuleResult {
    let (g, y, dy) = (c.grad(0), conjugate(c.input(0)), c.input(1));
    c.set(0, -1.5 * (conjugate(g) * y.square() * dy));
    c.set(1, y.op_with("RsqrtGrad", g));
    Ok(())
}

/// Of -dy conj(y)^2
fn reciprocal_grad(c: &GradientContext<'_>) -> RuleResult {
    let (g, y, dy) = (c.grad(0), conjugate(c.input(0)), c.input(1));
    c.set(0, -2.0 * (conjugate(g) * y * dy));
    c.set(1, y.op_with("ReciprocalGrad", g));
    Ok(())
}

/// A complex number of two parts, of the type of `z`.
fn complex_like<'a>(z: Value<'a>, re: Value<'a>, im: Value<'a>) -> Value<'a> {
    z.graph().add_node("Complex").input(re).input(im).attr("Tout", z.dtype()).value()
}

fn real_part(z: Value<'_>) -> Value<'_> {
    z.graph().add_node("Real").input(z).attr("Tout", z.dtype().real()).value()
}

fn imaginary_part(z: Value<'_>) -> Value<'_> {
    z.graph().add_node("Imag").input(z).attr("Tout", z.dtype().real()).value()
}

/// `g (-im, re) / |z|^2`
fn angle<'a>(g: Value<'a>, z: Value<'a>, _: Value<'a>) -> Value<'a> {
    let (re, im) = (real_part(z), imaginary_part(z));
    let share = g / (re.square() + im.square());
    complex_like(z, -1.0 * (share * im), share * re)
}

/// `g z / |z|`
fn complex_abs<'a>(g: Value<'a>, z: Value<'a>, y: Value<'a>) -> Value<'a> {
    let share = g.op_with("DivNoNan", y);
    complex_like(z, share * real_part(z), share * imaginary_part(z))
}

fn div_no_nan<'a>(g: Value<'a>, xs: [Value<'a>; 2], _: Value<'a>) -> [Value<'a>; 2] {
    let [x, y] = xs.map(conjugate);
    [g.op_with("DivNoNan", y), g * (-x).op_with("DivNoNan", y).op_with("DivNoNan", y)]
}

/// y comes first.
fn atan2<'a>(g: Value<'a>, [y, x]: [Value<'a>; 2], _: Value<'a>) -> [Value<'a>; 2] {
    let share = g / (x.square() + y.square());
    [share * x, -1.0 * (share * y)]
}

/// One where x is not zero.
fn not_zero(x: Value<'_>) -> Value<'_> {
    x.op_with("NotEqual", 0.0).cast(x.dtype())
}

/// By x only: n is a whole number.
fn polygamma(c: &GradientContext<'_>) -> RuleResult {
    let (n, x) = (c.input(0), c.input(1));
    c.set_stretched(1, c.grad(0) * (1.0 + n).op_with("Polygamma", x));
    Ok(())
}

/// By q only, as TensorFlow's.
fn zeta(c: &GradientContext<'_>) -> RuleResult {
    let (x, q) = (c.input(0), c.input(1));
    let slope = (1.0 + x).op_with("Zeta", q);
    c.set_stretched(1, c.grad(0) * (-x * slope));
    Ok(())
}

/// dP/dx is the density e^(-x) x^(a-1) / Gamma(a).
fn igamma<'a>(c: &GradientContext<'a>, g: Value<'a>) -> RuleResult {
    let (a, x) = (c.input(0), c.input(1));
    if !matches!(a.dtype(), DType::F32 | DType::F64) {
        return Err(c.unsupported("for 16-bit floats, of which there is no IgammaGradA"));
    }
    let density = ((a + -1.0).op_with("Xlogy", x) - x - a.op("Lgamma")).exp();
    c.set_broadcast([(0, g * a.op_with("IgammaGradA", x)), (1, g * density)]);
    Ok(())
}

/// By x only, as TensorFlow's: x^(a-1) (1-x)^(b-1) / B(a, b)
fn betainc(c: &GradientContext<'_>) -> RuleResult {
    let (a, b, x) = (c.input(0), c.input(1), c.input(2));
    let log_beta = a.op("Lgamma") + b.op("Lgamma") - (a + b).op("Lgamma");
    let minus_one = a.number(-1.0);
    let exponent = (b + minus_one).op_with("Xlog1py", -x) + (a + minus_one).op_with("Xlogy", x) - log_beta;
    c.set_stretched(2, c.grad(0) * exponent.exp());
    Ok(())
}

/// To x where it lies between the bounds, to the bound that it was set to elsewhere.
fn clip(c: &GradientContext<'_>) -> RuleResult {
    let (g, x, low, high) = (c.grad(0), c.input(0), c.input(1), c.input(2));
    let zeros = g.zeros_like();
    let (below, above) = (x.op_with("Less", low), x.greater(high));
    c.set(0, below.op_with("LogicalOr", above).select(zeros, g));
    c.set_stretched(1, below.select(g, zeros));
    c.set_stretched(2, above.select(g, zeros));
    Ok(())
}
