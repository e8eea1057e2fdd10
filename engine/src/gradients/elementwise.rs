//! Gradients of element-wise math beyond the few that [`super::math`] has.
//!
//! For complex numbers a gradient is TensorFlow's: that of the real part of the loss, so a function's slope enters
//! conjugated. [`slope`] does that; real types pass through it. TensorFlow's do not conjugate everywhere: gradients of
//! `MulNoNan`, `Xdivy`, `Xlogy`, `Xlog1py` and `Cumprod` take the slope as it is, and those of gradient ops conjugate
//! the gradient. These are as they are there, so that programs get the same numbers.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::dtype::DType;
use crate::graph::{Attr, Output};

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;
type Ctx<'a, 'b> = &'a mut GradientContext<'b>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static UNARY: &[GradientSpec] = &[
    ("Inv", Function(|c| of_output(c, "ReciprocalGrad"))),
    ("Expm1", Function(|c| slope(c, |c| c.op("Exp", &[c.input(0)])))),
    ("Sin", Function(|c| slope(c, |c| c.op("Cos", &[c.input(0)])))),
    ("Cos", Function(|c| slope(c, |c| chain(c, &["Sin", "Neg"])))),
    ("Tan", Function(|c| slope(c, |c| chain(c, &["Cos", "Reciprocal", "Square"])))),
    ("Asin", Function(|c| slope(c, |c| one_minus_square(c, &["Sqrt", "Reciprocal"])))),
    ("Acos", Function(|c| slope(c, |c| one_minus_square(c, &["Sqrt", "Reciprocal", "Neg"])))),
    ("Atan", Function(|c| slope(c, |c| one_plus_square(c, &["Reciprocal"])))),
    ("Sinh", Function(|c| slope(c, |c| c.op("Cosh", &[c.input(0)])))),
    ("Cosh", Function(|c| slope(c, |c| c.op("Sinh", &[c.input(0)])))),
    ("Asinh", Function(|c| slope(c, |c| then(c, c.output(0), &["Cosh", "Reciprocal"])))),
    ("Acosh", Function(|c| slope(c, |c| then(c, c.output(0), &["Sinh", "Reciprocal"])))),
    ("Atanh", Function(|c| slope(c, |c| one_minus_square(c, &["Reciprocal"])))),
    ("Erf", Function(|c| slope(c, |c| gaussian(c, std::f64::consts::FRAC_2_SQRT_PI)))),
    ("Erfc", Function(|c| slope(c, |c| gaussian(c, -std::f64::consts::FRAC_2_SQRT_PI)))),
    ("Erfinv", Function(|c| slope(c, |c| inverse_gaussian(c, std::f64::consts::FRAC_2_SQRT_PI.recip(), 1.0)))),
    ("Ndtri", Function(|c| slope(c, |c| inverse_gaussian(c, (2.0 * std::f64::consts::PI).sqrt(), 0.5)))),
    ("Lgamma", Function(|c| slope(c, |c| c.op("Digamma", &[c.input(0)])))),
    ("Digamma", Function(|c| slope(c, digamma))),
    ("Dawsn", Function(|c| slope(c, dawson))),
    ("Expint", Function(|c| slope(c, exp_integral))),
    ("Spence", Function(|c| slope(c, spence))),
    ("BesselI0", Function(|c| slope(c, |c| c.op("BesselI1", &[c.input(0)])))),
    ("BesselI0e", Function(|c| slope(c, bessel_i0e))),
    ("BesselI1", Function(|c| slope(c, |c| order_one(c, "BesselI0", Some(1.0))))),
    ("BesselI1e", Function(|c| slope(c, bessel_i1e))),
    ("BesselJ0", Function(|c| slope(c, |c| chain(c, &["BesselJ1", "Neg"])))),
    ("BesselJ1", Function(|c| slope(c, |c| order_one(c, "BesselJ0", Some(0.5))))),
    ("BesselY0", Function(|c| slope(c, |c| chain(c, &["BesselY1", "Neg"])))),
    ("BesselY1", Function(|c| slope(c, |c| order_one(c, "BesselY0", None)))),
    ("SqrtGrad", Function(sqrt_grad)),
    ("RsqrtGrad", Function(rsqrt_grad)),
    ("InvGrad", Function(reciprocal_grad)),
    ("ReciprocalGrad", Function(reciprocal_grad)),
    ("Conj", Function(conj)),
    ("Real", Function(real)),
    ("Imag", Function(imag)),
    ("Angle", Function(angle)),
    ("ComplexAbs", Function(complex_abs)),
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
    ("Mod", Function(truncate_mod)),
    ("TruncateMod", Function(truncate_mod)),
    ("MulNoNan", Function(mul_no_nan)),
    ("DivNoNan", Function(div_no_nan)),
    ("Atan2", Function(atan2)),
    ("Xdivy", Function(xdivy)),
    ("Xlogy", Function(xlogy)),
    ("Xlog1py", Function(xlog1py)),
    ("NextAfter", Function(next_after)),
    ("Polygamma", Function(polygamma)),
    ("Zeta", Function(zeta)),
    ("Igamma", Function(|c| igamma(c, false))),
    ("Igammac", Function(|c| igamma(c, true))),
    ("Betainc", Function(betainc)),
    ("Complex", Function(complex)),
    ("ClipByValue", Function(clip)),
    ("AccumulateNV2", Function(accumulate)),
    ("TruncateDiv", Zero),
    ("ApproximateEqual", Zero),
    ("BitwiseAnd", Zero),
    ("BitwiseOr", Zero),
    ("BitwiseXor", Zero),
    ("LeftShift", Zero),
    ("RightShift", Zero),
];

/// `value`, conjugated where it is complex.
pub(super) fn conjugate(c: Ctx<'_, '_>, value: Output) -> Added {
    if c.dtype(value)?.is_complex() { c.op("Conj", &[value]) } else { Ok(value) }
}

/// The gradient of a function of one input whose slope is `of`.
fn slope(c: Ctx<'_, '_>, of: impl FnOnce(Ctx<'_, '_>) -> Added) -> Done {
    let g = c.grad(0)?;
    let d = of(c)?;
    let d = conjugate(c, d)?;
    let x = c.op("Mul", &[g, d])?;
    c.set(0, x);
    Ok(())
}

/// By an op of the output and its gradient.
fn of_output(c: Ctx<'_, '_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let x = c.op(op, &[c.output(0), g])?;
    c.set(0, x);
    Ok(())
}

/// Unary ops one after the other.
fn then(c: Ctx<'_, '_>, mut value: Output, ops: &[&str]) -> Added {
    for op in ops {
        value = c.op(op, &[value])?;
    }
    Ok(value)
}

fn chain(c: Ctx<'_, '_>, ops: &[&str]) -> Added {
    then(c, c.input(0), ops)
}

/// `k op value`, or `value op k`: the scalar comes first.
fn scalar_op(c: Ctx<'_, '_>, op: &str, k: f64, value: Output) -> Added {
    let k = c.scalar_like(k, value)?;
    c.op(op, &[k, value])
}

fn one_minus_square(c: Ctx<'_, '_>, ops: &[&str]) -> Added {
    let square = c.op("Square", &[c.input(0)])?;
    let rest = scalar_op(c, "Sub", 1.0, square)?;
    then(c, rest, ops)
}

fn one_plus_square(c: Ctx<'_, '_>, ops: &[&str]) -> Added {
    let square = c.op("Square", &[c.input(0)])?;
    let sum = scalar_op(c, "AddV2", 1.0, square)?;
    then(c, sum, ops)
}

/// `k e^(-x^2)`
fn gaussian(c: Ctx<'_, '_>, k: f64) -> Added {
    let e = chain(c, &["Square", "Neg", "Exp"])?;
    scalar_op(c, "Mul", k, e)
}

/// `k e^(scale y^2)`
fn inverse_gaussian(c: Ctx<'_, '_>, k: f64, scale: f64) -> Added {
    let square = c.op("Square", &[c.output(0)])?;
    let scaled = scalar_op(c, "Mul", scale, square)?;
    let e = c.op("Exp", &[scaled])?;
    scalar_op(c, "Mul", k, e)
}

fn digamma(c: Ctx<'_, '_>) -> Added {
    let one = c.scalar_like(1.0, c.input(0))?;
    if matches!(c.dtype(one)?, DType::F32 | DType::F64) {
        return c.op("Polygamma", &[one, c.input(0)]);
    }
    Err(c.unsupported("for 16-bit floats, of which there is no Polygamma"))
}

/// `1 - 2 x y`
fn dawson(c: Ctx<'_, '_>) -> Added {
    let xy = c.op("Mul", &[c.input(0), c.output(0)])?;
    let twice = scalar_op(c, "Mul", 2.0, xy)?;
    scalar_op(c, "Sub", 1.0, twice)
}

/// `e^x / x`
fn exp_integral(c: Ctx<'_, '_>) -> Added {
    let e = c.op("Exp", &[c.input(0)])?;
    c.op("RealDiv", &[e, c.input(0)])
}

/// `ln x / (1 - x)`, -1 at 1.
fn spence(c: Ctx<'_, '_>) -> Added {
    let x = c.input(0);
    let log = c.op("Log", &[x])?;
    let rest = scalar_op(c, "Sub", 1.0, x)?;
    let d = c.op("RealDiv", &[log, rest])?;
    let (one, minus) = (c.scalar_like(1.0, x)?, c.scalar_like(-1.0, x)?);
    let at_one = c.op("Equal", &[x, one])?;
    c.op("SelectV2", &[at_one, minus, d])
}

/// `I1e - sign(x) I0e`
fn bessel_i0e(c: Ctx<'_, '_>) -> Added {
    let (one, sign) = (c.op("BesselI1e", &[c.input(0)])?, c.op("Sign", &[c.input(0)])?);
    let own = c.op("Mul", &[sign, c.output(0)])?;
    c.op("Sub", &[one, own])
}

/// `slope`, but `k` where x is 0.
fn but_at_zero(c: Ctx<'_, '_>, k: f64, slope: Output) -> Added {
    let (zero, k) = (c.scalar_like(0.0, slope)?, c.scalar_like(k, slope)?);
    let at_zero = c.op("Equal", &[c.input(0), zero])?;
    c.op("SelectV2", &[at_zero, k, slope])
}

/// For functions f1 with f1' = f0 - f1 / x, whose slope at 0 the formula does not give.
fn order_one(c: Ctx<'_, '_>, zeroth: &str, at_zero: Option<f64>) -> Added {
    let zeroth = c.op(zeroth, &[c.input(0)])?;
    let own = c.op("RealDiv", &[c.output(0), c.input(0)])?;
    let slope = c.op("Sub", &[zeroth, own])?;
    at_zero.map_or(Ok(slope), |k| but_at_zero(c, k, slope))
}

/// `I0e - I1e (sign(x) + 1 / x)`, 1/2 at 0.
fn bessel_i1e(c: Ctx<'_, '_>) -> Added {
    let (zeroth, sign) = (c.op("BesselI0e", &[c.input(0)])?, c.op("Sign", &[c.input(0)])?);
    let inverse = c.op("Reciprocal", &[c.input(0)])?;
    let sum = c.op("AddV2", &[sign, inverse])?;
    let own = c.op("Mul", &[c.output(0), sum])?;
    let slope = c.op("Sub", &[zeroth, own])?;
    but_at_zero(c, 0.5, slope)
}

/// `k a b`
fn product(c: Ctx<'_, '_>, k: f64, a: Output, b: Output) -> Added {
    let ab = c.op("Mul", &[a, b])?;
    scalar_op(c, "Mul", k, ab)
}

/// z = dy / (2 conj(y))
fn sqrt_grad(c: Ctx<'_, '_>) -> Done {
    let (g, y, z) = (c.grad(0)?, c.input(0), c.output(0));
    let ratio = c.op("RealDiv", &[g, y])?;
    let of_dy = scalar_op(c, "Mul", 0.5, ratio)?;
    let ratio = conjugate(c, ratio)?;
    let of_y = product(c, -1.0, ratio, z)?;
    c.set(0, of_y);
    c.set(1, of_dy);
    Ok(())
}

/// z = -dy conj(y)^3 / 2
fn rsqrt_grad(c: Ctx<'_, '_>) -> Done {
    let (g, dy) = (c.grad(0)?, c.input(1));
    let y = conjugate(c, c.input(0))?;
    let y2 = c.op("Square", &[y])?;
    let cg = conjugate(c, g)?;
    let gy2 = c.op("Mul", &[cg, y2])?;
    let of_y = product(c, -1.5, gy2, dy)?;
    let of_dy = c.op("RsqrtGrad", &[y, g])?;
    c.set(0, of_y);
    c.set(1, of_dy);
    Ok(())
}

/// z = -dy conj(y)^2
fn reciprocal_grad(c: Ctx<'_, '_>) -> Done {
    let (g, dy) = (c.grad(0)?, c.input(1));
    let y = conjugate(c, c.input(0))?;
    let cg = conjugate(c, g)?;
    let gy = c.op("Mul", &[cg, y])?;
    let of_y = product(c, -2.0, gy, dy)?;
    let of_dy = c.op("ReciprocalGrad", &[y, g])?;
    c.set(0, of_y);
    c.set(1, of_dy);
    Ok(())
}

fn conj(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let x = c.op("Conj", &[g])?;
    c.set(0, x);
    Ok(())
}

/// A complex number of two parts, of the type of input 0.
fn make_complex(c: Ctx<'_, '_>, re: Output, im: Output) -> Added {
    let dtype = c.dtype(c.input(0))?;
    c.op_with("Complex", &[re, im], &[("Tout", Attr::Type(dtype))])
}

/// The real type of a complex output, as an attribute.
fn real_type(c: Ctx<'_, '_>, of: Output) -> Result<[(&'static str, Attr); 1], GradientError> {
    Ok([("Tout", Attr::Type(c.dtype(of)?.real()))])
}

fn real(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let zero = c.scalar_like(0.0, g)?;
    let x = make_complex(c, g, zero)?;
    c.set(0, x);
    Ok(())
}

fn imag(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let zero = c.scalar_like(0.0, g)?;
    let x = make_complex(c, zero, g)?;
    c.set(0, x);
    Ok(())
}

/// `g (-im, re) / |z|^2`
fn angle(c: Ctx<'_, '_>) -> Done {
    let (g, z) = (c.grad(0)?, c.input(0));
    let tout = real_type(c, z)?;
    let (re, im) = (c.op_with("Real", &[z], &tout)?, c.op_with("Imag", &[z], &tout)?);
    let (re2, im2) = (c.op("Square", &[re])?, c.op("Square", &[im])?);
    let norm = c.op("AddV2", &[re2, im2])?;
    let share = c.op("RealDiv", &[g, norm])?;
    let of_re = product(c, -1.0, share, im)?;
    let of_im = c.op("Mul", &[share, re])?;
    let x = make_complex(c, of_re, of_im)?;
    c.set(0, x);
    Ok(())
}

/// `g z / |z|`
fn complex_abs(c: Ctx<'_, '_>) -> Done {
    let (g, z) = (c.grad(0)?, c.input(0));
    let share = c.op("DivNoNan", &[g, c.output(0)])?;
    let tout = real_type(c, z)?;
    let (re, im) = (c.op_with("Real", &[z], &tout)?, c.op_with("Imag", &[z], &tout)?);
    let (of_re, of_im) = (c.op("Mul", &[share, re])?, c.op("Mul", &[share, im])?);
    let x = make_complex(c, of_re, of_im)?;
    c.set(0, x);
    Ok(())
}

fn complex(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let tout = real_type(c, g)?;
    let (re, im) = (c.op_with("Real", &[g], &tout)?, c.op_with("Imag", &[g], &tout)?);
    c.set_broadcast([(0, re), (1, im)])
}

/// z = x - y trunc(x / y)
fn truncate_mod(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let whole = c.op("TruncateDiv", &[c.input(0), c.input(1)])?;
    let of_y = product(c, -1.0, g, whole)?;
    c.set_broadcast([(0, g), (1, of_y)])
}

fn mul_no_nan(c: Ctx<'_, '_>) -> Done {
    let (g, x, y) = (c.grad(0)?, c.input(0), c.input(1));
    let of_x = c.op("MulNoNan", &[g, y])?;
    let of_y = c.op("MulNoNan", &[x, g])?;
    c.set_broadcast([(0, of_x), (1, of_y)])
}

fn div_no_nan(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let (x, y) = (conjugate(c, c.input(0))?, conjugate(c, c.input(1))?);
    let of_x = c.op("DivNoNan", &[g, y])?;
    let minus = c.op("Neg", &[x])?;
    let once = c.op("DivNoNan", &[minus, y])?;
    let twice = c.op("DivNoNan", &[once, y])?;
    let of_y = c.op("Mul", &[g, twice])?;
    c.set_broadcast([(0, of_x), (1, of_y)])
}

/// `g x / (x^2 + y^2)` and `-g y / (x^2 + y^2)`; y comes first.
fn atan2(c: Ctx<'_, '_>) -> Done {
    let (g, y, x) = (c.grad(0)?, c.input(0), c.input(1));
    let (x2, y2) = (c.op("Square", &[x])?, c.op("Square", &[y])?);
    let norm = c.op("AddV2", &[x2, y2])?;
    let share = c.op("RealDiv", &[g, norm])?;
    let of_y = c.op("Mul", &[share, x])?;
    let of_x = product(c, -1.0, share, y)?;
    c.set_broadcast([(0, of_y), (1, of_x)])
}

/// One where x is not zero.
fn not_zero(c: Ctx<'_, '_>, x: Output) -> Added {
    let zero = c.scalar_like(0.0, x)?;
    let differs = c.op("NotEqual", &[x, zero])?;
    let dtype = c.dtype(x)?;
    c.op_with("Cast", &[differs], &[("DstT", Attr::Type(dtype))])
}

fn xdivy(c: Ctx<'_, '_>) -> Done {
    let (g, x, y) = (c.grad(0)?, c.input(0), c.input(1));
    let some = not_zero(c, x)?;
    let of_x = c.op("Xdivy", &[some, y])?;
    let minus = c.op("Neg", &[x])?;
    let square = c.op("Square", &[y])?;
    let of_y = c.op("Xdivy", &[minus, square])?;
    finish_pair(c, g, of_x, of_y)
}

fn xlogy(c: Ctx<'_, '_>) -> Done {
    let (g, x, y) = (c.grad(0)?, c.input(0), c.input(1));
    let some = not_zero(c, x)?;
    let of_x = c.op("Xlogy", &[some, y])?;
    let of_y = c.op("Xdivy", &[x, y])?;
    finish_pair(c, g, of_x, of_y)
}

fn xlog1py(c: Ctx<'_, '_>) -> Done {
    let (g, x, y) = (c.grad(0)?, c.input(0), c.input(1));
    let some = not_zero(c, x)?;
    let of_x = c.op("Xlog1py", &[some, y])?;
    let next = scalar_op(c, "AddV2", 1.0, y)?;
    let of_y = c.op("Xdivy", &[x, next])?;
    finish_pair(c, g, of_x, of_y)
}

/// Slopes times the gradient, for both inputs.
fn finish_pair(c: Ctx<'_, '_>, g: Output, of_x: Output, of_y: Output) -> Done {
    let (of_x, of_y) = (c.op("Mul", &[g, of_x])?, c.op("Mul", &[g, of_y])?);
    c.set_broadcast([(0, of_x), (1, of_y)])
}

/// All of it to the first input, as TensorFlow's.
fn next_after(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    let zero = c.op("ZerosLike", &[g])?;
    c.set_broadcast([(0, g), (1, zero)])
}

/// By x only: n is a whole number.
fn polygamma(c: Ctx<'_, '_>) -> Done {
    let (g, n, x) = (c.grad(0)?, c.input(0), c.input(1));
    let next = scalar_op(c, "AddV2", 1.0, n)?;
    let d = c.op("Polygamma", &[next, x])?;
    let of_x = c.op("Mul", &[g, d])?;
    set_one_of_two(c, 1, of_x)
}

/// By q only: `-x zeta(x + 1, q)`
fn zeta(c: Ctx<'_, '_>) -> Done {
    let (g, x, q) = (c.grad(0)?, c.input(0), c.input(1));
    let next = scalar_op(c, "AddV2", 1.0, x)?;
    let d = c.op("Zeta", &[next, q])?;
    let minus = c.op("Neg", &[x])?;
    let d = c.op("Mul", &[minus, d])?;
    let of_q = c.op("Mul", &[g, d])?;
    set_one_of_two(c, 1, of_q)
}

/// Sets the gradient of one of two inputs that were broadcast; the other has none.
fn set_one_of_two(c: Ctx<'_, '_>, i: usize, grad: Output) -> Done {
    let (own, whole) = (c.shape_of(c.input(i))?, c.shape_of(c.output(0))?);
    let axes = c.op("BroadcastGradientArgs", &[own, whole])?;
    let sum = c.op("Sum", &[grad, axes])?;
    let grad = c.op("Reshape", &[sum, own])?;
    c.set(i, grad);
    Ok(())
}

/// dP/dx is the density e^(-x) x^(a-1) / Gamma(a).
fn igamma(c: Ctx<'_, '_>, upper: bool) -> Done {
    let (mut g, a, x) = (c.grad(0)?, c.input(0), c.input(1));
    if !matches!(c.dtype(a)?, DType::F32 | DType::F64) {
        return Err(c.unsupported("for 16-bit floats, of which there is no IgammaGradA"));
    }
    if upper {
        g = c.op("Neg", &[g])?;
    }
    let of_a = c.op("IgammaGradA", &[a, x])?;
    let minus_one = c.scalar_like(-1.0, a)?;
    let less = c.op("AddV2", &[a, minus_one])?;
    let log = c.op("Xlogy", &[less, x])?;
    let rest = c.op("Sub", &[log, x])?;
    let gamma = c.op("Lgamma", &[a])?;
    let exponent = c.op("Sub", &[rest, gamma])?;
    let of_x = c.op("Exp", &[exponent])?;
    let (of_a, of_x) = (c.op("Mul", &[g, of_a])?, c.op("Mul", &[g, of_x])?);
    c.set_broadcast([(0, of_a), (1, of_x)])
}

/// By x only, as TensorFlow's: x^(a-1) (1-x)^(b-1) / B(a, b)
fn betainc(c: Ctx<'_, '_>) -> Done {
    let (g, a, b, x) = (c.grad(0)?, c.input(0), c.input(1), c.input(2));
    let sum = c.op("AddV2", &[a, b])?;
    let (la, lb, lsum) = (c.op("Lgamma", &[a])?, c.op("Lgamma", &[b])?, c.op("Lgamma", &[sum])?);
    let lbeta = c.op("AddV2", &[la, lb])?;
    let lbeta = c.op("Sub", &[lbeta, lsum])?;
    let minus_one = c.scalar_like(-1.0, a)?;
    let (a1, b1) = (c.op("AddV2", &[a, minus_one])?, c.op("AddV2", &[b, minus_one])?);
    let minus_x = c.op("Neg", &[x])?;
    let (left, right) = (c.op("Xlog1py", &[b1, minus_x])?, c.op("Xlogy", &[a1, x])?);
    let exponent = c.op("AddV2", &[left, right])?;
    let exponent = c.op("Sub", &[exponent, lbeta])?;
    let d = c.op("Exp", &[exponent])?;
    let of_x = c.op("Mul", &[g, d])?;
    set_one_of_two(c, 2, of_x)
}

/// To x where it lies between the bounds, to the bound that it was set to elsewhere.
fn clip(c: Ctx<'_, '_>) -> Done {
    let (g, x, low, high) = (c.grad(0)?, c.input(0), c.input(1), c.input(2));
    let zeros = c.op("ZerosLike", &[g])?;
    let (below, above) = (c.op("Less", &[x, low])?, c.op("Greater", &[x, high])?);
    let outside = c.op("LogicalOr", &[below, above])?;
    let of_x = c.op("SelectV2", &[outside, zeros, g])?;
    c.set(0, of_x);
    for (i, hit) in [(1, below), (2, above)] {
        let grad = c.op("SelectV2", &[hit, g, zeros])?;
        set_one_of_two(c, i, grad)?;
    }
    Ok(())
}

fn accumulate(c: Ctx<'_, '_>) -> Done {
    let g = c.grad(0)?;
    (0..c.node().inputs.len()).for_each(|i| c.set(i, g));
    Ok(())
}
