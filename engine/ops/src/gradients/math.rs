//! Gradients of math ops: element-wise, matrix products, reductions.

use super::Rule::{Binary, Function, Slope, Unary, Zero};
use super::context::conjugate;
use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec};
use engine_core::graph::Value;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static MATH: &[GradientSpec] = &[
    ("Neg", Unary(|g, _, _| -g)),
    ("Abs", Unary(|g, x, _| g * x.sign())),
    ("Square", Unary(|g, x, _| 2.0 * g * conjugate(x))),
    ("Reciprocal", Unary(|g, _, y| y.op_with("ReciprocalGrad", g))),
    ("Exp", Slope(|_, y| y)),
    ("Log", Unary(|g, x, _| g / conjugate(x))),
    ("Log1p", Unary(|g, x, _| g / conjugate(1.0 + x))),
    ("Sqrt", Unary(|g, _, y| y.op_with("SqrtGrad", g))),
    ("Rsqrt", Unary(|g, _, y| y.op_with("RsqrtGrad", g))),
    // These do not conjugate the output themselves, as the ones above do.
    ("Tanh", Unary(|g, _, y| conjugate(y).op_with("TanhGrad", g))),
    ("Sigmoid", Unary(|g, _, y| conjugate(y).op_with("SigmoidGrad", g))),
    ("L2Loss", Unary(|g, x, _| x * g)),
    ("Add", Binary(|g, _, _| [g, g])),
    ("AddV2", Binary(|g, _, _| [g, g])),
    ("Sub", Binary(|g, _, _| [g, -g])),
    ("Mul", Binary(|g, [x, y], _| [g * conjugate(y), g * conjugate(x)])),
    ("Div", Binary(div)),
    ("RealDiv", Binary(div)),
    // x - y floor(x / y)
    ("FloorMod", Binary(|g, [x, y], _| [g, -1.0 * g * x.op_with("FloorDiv", y)])),
    ("Pow", Binary(pow)),
    ("Maximum", Binary(|g, [x, y], _| pick(g, x.greater_equal(y)))),
    ("Minimum", Binary(|g, [x, y], _| pick(g, x.less_equal(y)))),
    ("SquaredDifference", Binary(squared_difference)),
    ("TanhGrad", Function(tanh_grad)),
    ("SigmoidGrad", Function(sigmoid_grad)),
    ("AddN", Function(add_n)),
    ("MatMul", Function(matmul)),
    ("Sum", Function(sum)),
    ("Mean", Function(mean)),
    ("Max", Function(extreme)),
    ("Min", Function(extreme)),
    ("Cast", Function(cast)),
    ("Select", Function(select)),
    ("SelectV2", Function(select)),
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

fn div<'a>(g: Value<'a>, [_, y]: [Value<'a>; 2], z: Value<'a>) -> [Value<'a>; 2] {
    let of_x = g / conjugate(y);
    [of_x, -(of_x * conjugate(z))]
}

/// In the exponent only where x > 0, or is a complex number but 0: elsewhere the power has no slope in y.
fn pow<'a>(g: Value<'a>, xs: [Value<'a>; 2], z: Value<'a>) -> [Value<'a>; 2] {
    let [x, y] = xs.map(conjugate);
    let has_log = if x.dtype().is_complex() { x.op_with("NotEqual", 0.0) } else { x.greater(0.0) };
    let log = has_log.select(x, x.number(1.0)).log();
    [g * y * x.pow(y - 1.0), g * (conjugate(z) * log)]
}

/// To x where it wins, to y elsewhere.
fn pick<'a>(g: Value<'a>, x_wins: Value<'a>) -> [Value<'a>; 2] {
    let zero = g.number(0.0);
    [x_wins.select(g, zero), x_wins.select(zero, g)]
}

fn squared_difference<'a>(g: Value<'a>, [x, y]: [Value<'a>; 2], _: Value<'a>) -> [Value<'a>; 2] {
    let of_x = 2.0 * g * (x - y);
    [of_x, -of_x]
}

/// Of dy (1 - y^2)
fn tanh_grad(c: &GradientContext<'_>) -> RuleResult {
    let (g, y, dy) = (c.grad(0), conjugate(c.input(0)), conjugate(c.input(1)));
    c.set(0, -2.0 * (g * dy) * y);
    c.set(1, y.op_with("TanhGrad", g));
    Ok(())
}

/// Of dy y (1 - y)
fn sigmoid_grad(c: &GradientContext<'_>) -> RuleResult {
    let (g, y, dy) = (c.grad(0), conjugate(c.input(0)), conjugate(c.input(1)));
    c.set(0, g * dy * (1.0 - 2.0 * y));
    c.set(1, y.op_with("SigmoidGrad", g));
    Ok(())
}

/// The same to all inputs.
pub(super) fn add_n(c: &GradientContext<'_>) -> RuleResult {
    let g = c.grad(0);
    (0..c.node().inputs.len()).for_each(|i| c.set(i, g));
    Ok(())
}

/// With A and B as the product takes them: dA = G Bt, dB = At G; transposed again where the input was.
fn matmul(c: &GradientContext<'_>) -> RuleResult {
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    let (ta, tb) = (flag("transpose_a"), flag("transpose_b"));
    let (g, a, b) = (c.grad(0), conjugate(c.input(0)), conjugate(c.input(1)));
    let product = |x, y, tx: bool, ty: bool| {
        c.add_node("MatMul").input(x).input(y).attr("transpose_a", tx).attr("transpose_b", ty).value()
    };
    c.set(0, if ta { product(b, g, tb, true) } else { product(g, b, false, !tb) });
    c.set(1, if tb { product(g, a, true, ta) } else { product(a, g, !ta, false) });
    Ok(())
}

/// The reduced `value` (the gradient, or the output) with its reduced axes put back as ones.
pub(super) fn with_kept_axes<'a>(c: &GradientContext<'a>, value: Value<'a>) -> Value<'a> {
    if c.node().flag("keep_dims").copied().unwrap_or(false) {
        return value;
    }
    let (x, axes) = (c.input(0), c.input(1));
    let Some((axes, rank)) = c.known_ints(axes).zip(x.shape().rank()) else {
        let kept = c.add_node(c.node().op.name).input(x).input(axes).attr("keep_dims", true).value();
        return c.reshape_like(value, kept);
    };
    let mut axes: Vec<i64> = axes.iter().map(|a| if *a < 0 { a + rank as i64 } else { *a }).collect();
    axes.sort_unstable();
    axes.dedup();
    axes.iter().fold(value, |kept, axis| kept.expand_dims(c.graph().constant(Tensor::scalar(*axis as i32))))
}

/// The gradient of a sum, spread over what was summed.
pub(super) fn spread<'a>(c: &GradientContext<'a>) -> Value<'a> {
    with_kept_axes(c, c.grad(0)).broadcast_to(c.shape_of(c.input(0)))
}

fn sum(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, spread(c));
    Ok(())
}

fn mean(c: &GradientContext<'_>) -> RuleResult {
    let x = spread(c);
    let [n_in, n_out] = [c.input(0), c.output(0)].map(|value| value.size_tensor().cast(x.dtype()));
    c.set(0, x / (n_in / n_out));
    Ok(())
}

/// Max and Min: shared equally among the elements that have the extreme value.
fn extreme(c: &GradientContext<'_>) -> RuleResult {
    let (x, axes) = (c.input(0), c.input(1));
    let hits = x.equal(with_kept_axes(c, c.output(0))).cast(x.dtype());
    let n = c.add_node("Sum").input(hits).input(axes).attr("keep_dims", true).value();
    c.set(0, hits / n * with_kept_axes(c, c.grad(0)));
    Ok(())
}

fn cast(c: &GradientContext<'_>) -> RuleResult {
    let (from, to) = (c.input(0).dtype(), c.output(0).dtype());
    if from.has_gradient() && to.has_gradient() {
        c.set(0, c.grad(0).cast(from));
    }
    Ok(())
}

fn select(c: &GradientContext<'_>) -> RuleResult {
    let (g, condition) = (c.grad(0), c.input(0));
    let zeros = g.zeros_like();
    let op = c.node().op.name;
    let (chosen, other) = (c.op(op, &[condition, g, zeros]), c.op(op, &[condition, zeros, g]));
    if op == "Select" {
        c.set(1, chosen);
        c.set(2, other);
        return Ok(());
    }
    // Each branch may have been stretched to the output's shape, by the condition too.
    c.set_stretched(1, chosen);
    c.set_stretched(2, other);
    Ok(())
}
