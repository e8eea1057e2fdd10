//! Gradients of math ops: element-wise, matrix products, reductions.

use super::elementwise::conjugate;
use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static MATH: &[GradientSpec] = &[
    ("Neg", Function(|c| unary(c, |c, g| c.op("Neg", &[g])))),
    ("Abs", Function(|c| unary(c, |c, g| times(c, g, "Sign")))),
    ("Square", Function(|c| unary(c, square))),
    ("Reciprocal", Function(|c| unary(c, |c, g| c.op("ReciprocalGrad", &[c.output(0), g])))),
    ("Exp", Function(|c| unary(c, |c, g| with_conjugate(c, "Mul", g, c.output(0))))),
    ("Log", Function(|c| unary(c, |c, g| with_conjugate(c, "RealDiv", g, c.input(0))))),
    ("Log1p", Function(|c| unary(c, log1p))),
    ("Sqrt", Function(|c| unary(c, |c, g| c.op("SqrtGrad", &[c.output(0), g])))),
    ("Rsqrt", Function(|c| unary(c, |c, g| c.op("RsqrtGrad", &[c.output(0), g])))),
    ("Tanh", Function(|c| unary(c, |c, g| by_conjugate(c, "TanhGrad", g)))),
    ("Sigmoid", Function(|c| unary(c, |c, g| by_conjugate(c, "SigmoidGrad", g)))),
    ("TanhGrad", Function(tanh_grad)),
    ("SigmoidGrad", Function(sigmoid_grad)),
    ("Add", Function(add)),
    ("AddV2", Function(add)),
    ("Sub", Function(sub)),
    ("Mul", Function(mul)),
    ("Div", Function(div)),
    ("RealDiv", Function(div)),
    ("FloorMod", Function(floor_mod)),
    ("Pow", Function(pow)),
    ("Maximum", Function(|c| pick(c, "GreaterEqual"))),
    ("Minimum", Function(|c| pick(c, "LessEqual"))),
    ("SquaredDifference", Function(squared_difference)),
    ("AddN", Function(add_n)),
    ("MatMul", Function(matmul)),
    ("Sum", Function(sum)),
    ("Mean", Function(mean)),
    ("Max", Function(extreme)),
    ("Min", Function(extreme)),
    ("Cast", Function(cast)),
    ("Select", Function(select)),
    ("SelectV2", Function(select)),
    ("L2Loss", Function(|c| unary(c, |c, g| c.op("Mul", &[c.input(0), g])))),
    ("Sign", Zero),
    ("Floor", Zero),
    ("FloorDiv", Zero),
    ("Equal", Zero),
    ("NotEqual", Zero),
    ("Less", Zero),
    ("LessEqual", Zero),
    ("Greater", Zero),
    ("GreaterEqual", Zero),
    ("LogicalAnd", Zero),
    ("LogicalOr", Zero),
    ("LogicalNot", Zero),
    ("ArgMax", Zero),
    ("ArgMin", Zero),
    ("All", Zero),
    ("Any", Zero),
    ("Range", Zero),
];

fn unary(c: &mut GradientContext<'_>, f: fn(&mut GradientContext<'_>, Output) -> Added) -> Done {
    let g = c.grad(0)?;
    let x = f(c, g)?;
    c.set(0, x);
    Ok(())
}

/// `g * op(x)`
fn times(c: &mut GradientContext<'_>, g: Output, op: &str) -> Added {
    let of_x = c.op(op, &[c.input(0)])?;
    c.op("Mul", &[g, of_x])
}

/// `k * a * b`
fn scaled(c: &mut GradientContext<'_>, k: f64, a: Output, b: Output) -> Added {
    let k = c.scalar_like(k, a)?;
    let ka = c.op("Mul", &[k, a])?;
    c.op("Mul", &[ka, b])
}

fn square(c: &mut GradientContext<'_>, g: Output) -> Added {
    let x = conjugate(c, c.input(0))?;
    scaled(c, 2.0, g, x)
}

/// `op(g, value)`, where value is conjugated if it is complex.
fn with_conjugate(c: &mut GradientContext<'_>, op: &str, g: Output, value: Output) -> Added {
    let value = conjugate(c, value)?;
    c.op(op, &[g, value])
}

/// `op(y, g)` of an op that does not conjugate the output y itself, as some do.
fn by_conjugate(c: &mut GradientContext<'_>, op: &str, g: Output) -> Added {
    let y = conjugate(c, c.output(0))?;
    c.op(op, &[y, g])
}

fn log1p(c: &mut GradientContext<'_>, g: Output) -> Added {
    let one = c.scalar_like(1.0, g)?;
    let next = c.op("AddV2", &[one, c.input(0)])?;
    with_conjugate(c, "RealDiv", g, next)
}

/// z = dy (1 - y^2)
fn tanh_grad(c: &mut GradientContext<'_>) -> Done {
    let (g, y, dy) = (c.grad(0)?, conjugate(c, c.input(0))?, conjugate(c, c.input(1))?);
    let gy = c.op("Mul", &[g, dy])?;
    let of_y = scaled(c, -2.0, gy, y)?;
    c.set(0, of_y);
    let of_dy = c.op("TanhGrad", &[y, g])?;
    c.set(1, of_dy);
    Ok(())
}

/// z = dy y (1 - y)
fn sigmoid_grad(c: &mut GradientContext<'_>) -> Done {
    let (g, y, dy) = (c.grad(0)?, conjugate(c, c.input(0))?, conjugate(c, c.input(1))?);
    let gdy = c.op("Mul", &[g, dy])?;
    let one = c.scalar_like(1.0, g)?;
    let two = c.scalar_like(2.0, g)?;
    let twice = c.op("Mul", &[two, y])?;
    let slope = c.op("Sub", &[one, twice])?;
    let of_y = c.op("Mul", &[gdy, slope])?;
    c.set(0, of_y);
    let of_dy = c.op("SigmoidGrad", &[y, g])?;
    c.set(1, of_dy);
    Ok(())
}

fn add(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    c.set_broadcast([(0, g), (1, g)])
}

fn sub(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let negative = c.op("Neg", &[g])?;
    c.set_broadcast([(0, g), (1, negative)])
}

fn mul(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let of_x = with_conjugate(c, "Mul", g, c.input(1))?;
    let of_y = with_conjugate(c, "Mul", g, c.input(0))?;
    c.set_broadcast([(0, of_x), (1, of_y)])
}

/// `g / y` and `-g z / y`
fn div(c: &mut GradientContext<'_>) -> Done {
    let (g, y) = (c.grad(0)?, c.input(1));
    let of_x = with_conjugate(c, "RealDiv", g, y)?;
    let z = with_conjugate(c, "Mul", of_x, c.output(0))?;
    let of_y = c.op("Neg", &[z])?;
    c.set_broadcast([(0, of_x), (1, of_y)])
}

/// z = x - y floor(x / y)
fn floor_mod(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let floor = c.op("FloorDiv", &[c.input(0), c.input(1)])?;
    let of_y = scaled(c, -1.0, g, floor)?;
    c.set_broadcast([(0, g), (1, of_y)])
}

/// `g y x^(y-1)`, and `g z log(x)` where x > 0, or is a complex number but 0: elsewhere the power has no slope in y.
fn pow(c: &mut GradientContext<'_>) -> Done {
    let (g, x, y) = (c.grad(0)?, conjugate(c, c.input(0))?, conjugate(c, c.input(1))?);
    let z = conjugate(c, c.output(0))?;
    let one = c.scalar_like(1.0, y)?;
    let less = c.op("Sub", &[y, one])?;
    let power = c.op("Pow", &[x, less])?;
    let gy = c.op("Mul", &[g, y])?;
    let of_x = c.op("Mul", &[gy, power])?;
    let zero = c.scalar_like(0.0, x)?;
    let one_x = c.scalar_like(1.0, x)?;
    let has_log = if c.dtype(x)?.is_complex() { "NotEqual" } else { "Greater" };
    let has_log = c.op(has_log, &[x, zero])?;
    let safe = c.op("SelectV2", &[has_log, x, one_x])?;
    let log = c.op("Log", &[safe])?;
    let zlog = c.op("Mul", &[z, log])?;
    let of_y = c.op("Mul", &[g, zlog])?;
    c.set_broadcast([(0, of_x), (1, of_y)])
}

/// To x where `op(x, y)`, to y elsewhere.
fn pick(c: &mut GradientContext<'_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let zero = c.scalar_like(0.0, g)?;
    let x_wins = c.op(op, &[c.input(0), c.input(1)])?;
    let of_x = c.op("SelectV2", &[x_wins, g, zero])?;
    let of_y = c.op("SelectV2", &[x_wins, zero, g])?;
    c.set_broadcast([(0, of_x), (1, of_y)])
}

fn squared_difference(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let difference = c.op("Sub", &[c.input(0), c.input(1)])?;
    let of_x = scaled(c, 2.0, g, difference)?;
    let of_y = c.op("Neg", &[of_x])?;
    c.set_broadcast([(0, of_x), (1, of_y)])
}

fn add_n(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    (0..c.node().inputs.len()).for_each(|i| c.set(i, g));
    Ok(())
}

/// With A and B as the product takes them: dA = G Bt, dB = At G; transposed again where the input was.
fn matmul(c: &mut GradientContext<'_>) -> Done {
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    let (ta, tb) = (flag("transpose_a"), flag("transpose_b"));
    let (g, mut a, mut b) = (c.grad(0)?, c.input(0), c.input(1));
    if c.dtype(a)?.is_complex() {
        (a, b) = (c.op("Conj", &[a])?, c.op("Conj", &[b])?);
    }
    let product = |c: &mut GradientContext<'_>, x, y, tx: bool, ty: bool| {
        c.op_with("MatMul", &[x, y], &[("transpose_a", Attr::Bool(tx)), ("transpose_b", Attr::Bool(ty))])
    };
    let of_a = if ta { product(c, b, g, tb, true)? } else { product(c, g, b, false, !tb)? };
    let of_b = if tb { product(c, g, a, true, ta)? } else { product(c, a, g, !ta, false)? };
    c.set(0, of_a);
    c.set(1, of_b);
    Ok(())
}

/// The reduced `value` (the gradient, or the output) with its reduced axes put back as ones.
pub(super) fn with_kept_axes(c: &mut GradientContext<'_>, value: Output) -> Added {
    if c.node().flag("keep_dims").copied().unwrap_or(false) {
        return Ok(value);
    }
    let (x, axes) = (c.input(0), c.input(1));
    let rank = c.shape(x)?.rank();
    let Some((axes, rank)) = c.ints(axes).zip(rank) else {
        let kept = c.op_with(c.node().op.name, &[x, axes], &[("keep_dims", Attr::Bool(true))])?;
        return c.reshape_like(value, kept);
    };
    let mut axes: Vec<i64> = axes.iter().map(|a| if *a < 0 { a + rank as i64 } else { *a }).collect();
    axes.sort_unstable();
    axes.dedup();
    let mut kept = value;
    for axis in axes {
        let axis = c.constant(Tensor::scalar(axis as i32))?;
        kept = c.op("ExpandDims", &[kept, axis])?;
    }
    Ok(kept)
}

/// The gradient of a sum, spread over what was summed.
pub(super) fn spread(c: &mut GradientContext<'_>) -> Added {
    let g = c.grad(0)?;
    let kept = with_kept_axes(c, g)?;
    let shape = c.shape_of(c.input(0))?;
    c.op("BroadcastTo", &[kept, shape])
}

fn sum(c: &mut GradientContext<'_>) -> Done {
    let x = spread(c)?;
    c.set(0, x);
    Ok(())
}

fn mean(c: &mut GradientContext<'_>) -> Done {
    let x = spread(c)?;
    let n_in = c.op("Size", &[c.input(0)])?;
    let n_out = c.op("Size", &[c.output(0)])?;
    let dtype = Attr::Type(c.dtype(x)?);
    let [n_in, n_out] = [n_in, n_out].map(|n| c.op_with("Cast", &[n], &[("DstT", dtype.clone())]));
    let n = c.op("RealDiv", &[n_in?, n_out?])?;
    let x = c.op("RealDiv", &[x, n])?;
    c.set(0, x);
    Ok(())
}

/// Max and Min: shared equally among the elements that have the extreme value.
fn extreme(c: &mut GradientContext<'_>) -> Done {
    let (x, y, axes, g) = (c.input(0), c.output(0), c.input(1), c.grad(0)?);
    let kept = with_kept_axes(c, y)?;
    let hit = c.op("Equal", &[x, kept])?;
    let dtype = c.dtype(x)?;
    let hits = c.op_with("Cast", &[hit], &[("DstT", Attr::Type(dtype))])?;
    let n = c.op_with("Sum", &[hits, axes], &[("keep_dims", Attr::Bool(true))])?;
    let share = c.op("RealDiv", &[hits, n])?;
    let grad = with_kept_axes(c, g)?;
    let of_x = c.op("Mul", &[share, grad])?;
    c.set(0, of_x);
    Ok(())
}

fn cast(c: &mut GradientContext<'_>) -> Done {
    let from = c.dtype(c.input(0))?;
    let to = c.dtype(c.output(0))?;
    if from.has_gradient() && to.has_gradient() {
        let g = c.grad(0)?;
        let x = c.op_with("Cast", &[g], &[("DstT", Attr::Type(from))])?;
        c.set(0, x);
    }
    Ok(())
}

fn select(c: &mut GradientContext<'_>) -> Done {
    let (g, condition) = (c.grad(0)?, c.input(0));
    let zeros = c.op("ZerosLike", &[g])?;
    let op = c.node().op.name;
    let chosen = c.op(op, &[condition, g, zeros])?;
    let other = c.op(op, &[condition, zeros, g])?;
    if op == "Select" {
        c.set(1, chosen);
        c.set(2, other);
        return Ok(());
    }
    // Each branch may have been stretched to the output's shape, by the condition too.
    for (input, grad) in [(1, chosen), (2, other)] {
        let (own, whole) = (c.shape_of(c.input(input))?, c.shape_of(c.output(0))?);
        let axes = c.op("BroadcastGradientArgs", &[own, whole])?;
        let sum = c.op("Sum", &[grad, axes])?;
        let grad = c.op("Reshape", &[sum, own])?;
        c.set(input, grad);
    }
    Ok(())
}
