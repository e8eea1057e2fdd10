//! Gradients of matrix ops. Formulas: Giles, "Collected matrix derivative results for forward and reverse mode
//! algorithmic differentiation" (2008); Walter and Lehmann for QR; the complex ones are of real losses.

use super::context::conjugate;
use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use engine_core::graph::{Output, Value};
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static LINALG: &[GradientSpec] = &[
    ("BatchMatMul", Function(batch_matmul)),
    ("BatchMatMulV2", Function(batch_matmul)),
    ("BatchMatMulV3", Function(batch_matmul)),
    ("MatrixInverse", Function(inverse)),
    ("BatchMatrixInverse", Function(inverse)),
    ("MatrixDeterminant", Function(determinant)),
    ("BatchMatrixDeterminant", Function(determinant)),
    ("LogMatrixDeterminant", Function(log_determinant)),
    ("MatrixSquareRoot", Function(square_root)),
    ("_Sylvester", Function(sylvester)),
    ("Cholesky", Function(cholesky)),
    ("BatchCholesky", Function(cholesky)),
    ("MatrixSolve", Function(solve)),
    ("BatchMatrixSolve", Function(solve)),
    ("MatrixTriangularSolve", Function(triangular_solve)),
    ("BatchMatrixTriangularSolve", Function(triangular_solve)),
    ("MatrixSolveLs", Function(solve_ls)),
    ("Qr", Function(qr)),
    ("SelfAdjointEigV2", Function(eigh)),
    ("Svd", Function(svd)),
    ("Cross", Function(cross)),
    ("Einsum", Function(einsum)),
    ("Lu", Zero),
];

/// A factor of a product of matrices, and whether its adjoint is meant.
struct Factor<'a>(Value<'a>, bool);

impl<'a> From<Value<'a>> for Factor<'a> {
    fn from(value: Value<'a>) -> Factor<'a> {
        Factor(value, false)
    }
}

/// `x`, as a factor, taken as its adjoint.
fn adj(x: Value<'_>) -> Factor<'_> {
    Factor(x, true)
}

/// `a b`
fn product<'a>(a: impl Into<Factor<'a>>, b: impl Into<Factor<'a>>) -> Value<'a> {
    let (Factor(a, adj_a), Factor(b, adj_b)) = (a.into(), b.into());
    a.graph().add_node("BatchMatMulV2").input(a).input(b).attr("adj_x", adj_a).attr("adj_y", adj_b).value()
}

/// The boolean attribute `name` of the node.
fn flag(c: &GradientContext<'_>, name: &str) -> bool {
    c.node().flag(name).copied().unwrap_or(false)
}

/// The sum of `grad` over the dimensions along which `x` was stretched to it.
fn summed_to<'a>(c: &GradientContext<'a>, grad: Value<'a>, x: Value<'a>) -> Value<'a> {
    let shape = c.shape_of(x);
    let axes = shape.op_with("BroadcastGradientArgs", c.shape_of(grad));
    grad.sum(axes).reshape(shape)
}

/// Sets the gradient of input `i`, whose batch dimensions were stretched to those of `grad`.
fn set_summed<'a>(c: &GradientContext<'a>, i: usize, grad: Value<'a>) {
    let x = c.input(i);
    let (own, whole) = (x.shape().known(), grad.shape().known());
    let is_same = own.is_some() && own == whole;
    c.set(i, if is_same { grad } else { summed_to(c, grad, x) });
}

fn batch_matmul(c: &GradientContext<'_>) -> RuleResult {
    let (ax, ay) = (flag(c, "adj_x"), flag(c, "adj_y"));
    let (g, x, y) = (c.grad(0), c.input(0), c.input(1));
    set_summed(c, 0, if ax { product(Factor(y, ay), adj(g)) } else { product(g, Factor(y, !ay)) });
    set_summed(c, 1, if ay { product(adj(g), Factor(x, ax)) } else { product(Factor(x, !ax), g) });
    Ok(())
}

fn inverse(c: &GradientContext<'_>) -> RuleResult {
    let (g, y) = (c.grad(0), c.output(0));
    let adjoint = flag(c, "adjoint");
    // With Y = A^-*: dA = -(Y* G Y*)* = -Y G* Y.
    let minus = if adjoint { product(y, product(adj(g), y)) } else { product(adj(y), product(g, adj(y))) };
    c.set(0, -minus);
    Ok(())
}

/// `x` with a dimension of 1 inserted at `axis`.
fn expanded(x: Value<'_>, axis: i32) -> Value<'_> {
    x.expand_dims(x.graph().constant(Tensor::scalar(axis)))
}

/// `value` of each matrix, with two dimensions of 1 behind it.
fn per_matrix(value: Value<'_>) -> Value<'_> {
    expanded(expanded(value, -1), -1)
}

fn adjoint_inverse<'a>(c: &GradientContext<'a>) -> Value<'a> {
    c.add_node("MatrixInverse").input(c.input(0)).attr("adjoint", true).value()
}

fn determinant(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, per_matrix(c.grad(0) * conjugate(c.output(0))) * adjoint_inverse(c));
    Ok(())
}

fn log_determinant(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, per_matrix(c.grad(1)) * adjoint_inverse(c));
    Ok(())
}

/// `Y Y = A`, so that `dY Y + Y dY = dA`: the gradient solves the adjoint equation.
fn square_root(c: &GradientContext<'_>) -> RuleResult {
    let (g, y) = (c.grad(0), c.output(0));
    c.set(0, c.add_node("_Sylvester").input(y).input(y).input(g).attr("adjoint", true).value());
    Ok(())
}

/// The gradient of the right side solves the adjoint equation.
fn sylvester(c: &GradientContext<'_>) -> RuleResult {
    let (g, a, b, x) = (c.grad(0), c.input(0), c.input(1), c.output(0));
    let adjoint = flag(c, "adjoint");
    let y = c.add_node("_Sylvester").input(a).input(b).input(g).attr("adjoint", !adjoint).value();
    c.set(0, -if adjoint { product(x, adj(y)) } else { product(y, adj(x)) });
    c.set(1, -if adjoint { product(adj(y), x) } else { product(adj(x), y) });
    c.set(2, y);
    Ok(())
}

fn cholesky(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.output(0).op_with("CholeskyGrad", c.grad(0)));
    Ok(())
}

/// The gradient of the right side solves the adjoint equation.
fn solve(c: &GradientContext<'_>) -> RuleResult {
    let (g, a, x) = (c.grad(0), c.input(0), c.output(0));
    let adjoint = flag(c, "adjoint");
    let of_b = c.add_node("MatrixSolve").input(a).input(g).attr("adjoint", !adjoint).value();
    c.set(0, -if adjoint { product(x, adj(of_b)) } else { product(of_b, adj(x)) });
    c.set(1, of_b);
    Ok(())
}

/// Of each matrix the diagonal with `below` and `above` more diagonals, all where that is -1.
fn band(x: Value<'_>, below: i64, above: i64) -> Value<'_> {
    let (below, above) = (x.graph().constant(below), x.graph().constant(above));
    x.graph().add_node("MatrixBandPart").input(x).input(below).input(above).value()
}

/// `a^-1 b`, or `a^-* b`, of a triangle a.
fn solved_triangle<'a>(a: Value<'a>, b: Value<'a>, lower: bool, adjoint: bool) -> Value<'a> {
    let node = a.graph().add_node("MatrixTriangularSolve").input(a).input(b);
    node.attr("lower", lower).attr("adjoint", adjoint).value()
}

fn triangular_solve(c: &GradientContext<'_>) -> RuleResult {
    let (g, a, x) = (c.grad(0), c.input(0), c.output(0));
    let (lower, adjoint) = (flag(c, "lower"), flag(c, "adjoint"));
    let of_b = solved_triangle(a, g, lower, !adjoint);
    let of_a = -if adjoint { product(x, adj(of_b)) } else { product(of_b, adj(x)) };
    set_summed(c, 0, if lower { band(of_a, -1, 0) } else { band(of_a, 0, -1) });
    set_summed(c, 1, of_b);
    Ok(())
}

/// Of the normal equations: `(A* A + l I) X = A* B` for tall matrices, for wide ones `X = A* Y` with
/// `(A A* + l I) Y = B`.
fn solve_ls(c: &GradientContext<'_>) -> RuleResult {
    let (g, a, b, x) = (c.grad(0), c.input(0), c.input(1), c.output(0));
    let shape = a.shape();
    let Some([.., Some(m), Some(n)]) = shape.dims() else {
        return Err(c.unsupported("for matrices of unknown size"));
    };
    let is_tall = m >= n;
    let l2 = c.input(2).cast(a.dtype());
    let eye = c.graph().constant(Tensor::vector(&vec![1.0f64; *m.min(n)])).cast(a.dtype()).op("MatrixDiag");
    let gram = product(Factor(a, is_tall), Factor(a, !is_tall)) + l2 * eye;
    if is_tall {
        let z = gram.op_with("MatrixSolve", g);
        c.set(0, product(b, adj(z)) - product(a, product(z, adj(x)) + product(x, adj(z))));
        c.set(1, product(a, z));
        return Ok(());
    }
    let w = gram.op_with("MatrixSolve", product(a, g));
    let y = gram.op_with("MatrixSolve", b);
    c.set(0, product(y, adj(g)) - (product(w, adj(x)) + product(y, adj(product(adj(a), w)))));
    c.set(1, w);
    Ok(())
}

/// For A of at least as many rows as columns, thin.
fn qr(c: &GradientContext<'_>) -> RuleResult {
    let shape = c.input(0).shape();
    let full = flag(c, "full_matrices");
    match shape.dims() {
        Some([.., Some(m), Some(n)]) if m >= n && (!full || m == n) => {}
        _ => return Err(c.unsupported("for wide, full or unknown shapes")),
    }
    let (dq, dr, q, r) = (c.grad(0), c.grad(1), c.output(0), c.output(1));
    let m = product(r, adj(dr)) - product(adj(dq), q);
    // The lower triangle, mirrored as its adjoint.
    let diagonal = band(m, 0, 0);
    let below = band(m, -1, 0) - diagonal;
    let sym = below + adjoint(c, below)? + diagonal;
    // dA R^* = left, so R dA* = left*.
    let left = dq + product(q, sym);
    c.set(0, adjoint(c, solved_triangle(r, adjoint(c, left)?, false, false))?);
    Ok(())
}

/// The conjugate transpose of each matrix.
fn adjoint<'a>(c: &GradientContext<'a>, x: Value<'a>) -> Result<Value<'a>, GradientError> {
    let Some(rank) = x.shape().rank().or(c.input(0).shape().rank()) else {
        return Err(c.unsupported("for matrices of unknown rank"));
    };
    let mut perm: Vec<i32> = (0..rank as i32).collect();
    perm.swap(rank - 1, rank - 2);
    Ok(conjugate(x).transpose(c.graph().ints(&perm)))
}

/// `1 / (v_j - v_i)` for i, j along the last dimension, 0 where they are equal (on the diagonal).
fn inverse_gaps(v: Value<'_>) -> Value<'_> {
    let gaps = expanded(v, -2) - expanded(v, -1);
    let zeros = gaps.zeros_like();
    let equal = gaps.equal(zeros);
    let safe = equal.select(gaps.ones_like(), gaps);
    equal.select(zeros, safe.reciprocal())
}

/// dA = V (diag(de) + F o (V* dV)) V*, its lower triangle taking the upper's share, since only that is read.
fn eigh(c: &GradientContext<'_>) -> RuleResult {
    let (de, e) = (c.grad(0), c.output(0));
    let has_vectors = c.node().flag("compute_v").copied().unwrap_or(true);
    let v = if has_vectors { c.output(1) } else { c.input(0).op("SelfAdjointEigV2").port(1) };
    let mut inner = de.op("MatrixDiag");
    if let Some(dv) = c.arrived(1).filter(|_| has_vectors) {
        inner = inner + inverse_gaps(e) * product(adj(v), dv);
    }
    let of_a = product(product(v, inner), adj(v));
    let both = of_a + adjoint(c, of_a)?;
    c.set(0, band(both, -1, 0) - band(of_a, 0, 0));
    Ok(())
}

/// Real matrices. With E = 1 / (s_j^2 - s_i^2) off the diagonal:
/// dA = U (diag(ds) + 2 sym(E o U* dU) S + 2 S sym(E o V* dV)) V* and, where A is not square, what of dU and dV lies
/// outside of the span of U and V.
fn svd(c: &GradientContext<'_>) -> RuleResult {
    let a = c.input(0);
    let shape = a.shape();
    let Some([.., Some(m), Some(n)]) = shape.dims() else { return Err(c.unsupported("for unknown shapes")) };
    if a.dtype().is_complex() {
        return Err(c.unsupported("of complex matrices"));
    }
    if flag(c, "full_matrices") && m != n {
        return Err(c.unsupported("with full matrices that are not square"));
    }
    let (ds, s) = (c.grad(0), c.output(0));
    let has_vectors = c.node().flag("compute_uv").copied().unwrap_or(true);
    let (u, v) = if has_vectors {
        (c.output(1), c.output(2))
    } else {
        let again = a.op("Svd");
        (again.port(1), again.port(2))
    };
    let arrived = |i| c.arrived(i).filter(|_| has_vectors);
    let (du, dv) = (arrived(1), arrived(2));
    let mut inner = ds.op("MatrixDiag");
    let mut beyond = None;
    if du.is_some() || dv.is_some() {
        let (gaps, diagonal) = (inverse_gaps(s.square()), s.op("MatrixDiag"));
        if let Some(du) = du {
            let own = product(adj(u), du);
            inner = inner + product(with_adjoint(c, gaps * own)?, diagonal);
            beyond = (m > n).then(|| product(outside(s, du, u, own), adj(v)));
        }
        if let Some(dv) = dv {
            let own = product(adj(v), dv);
            inner = inner + product(diagonal, with_adjoint(c, gaps * own)?);
            beyond = beyond.or_else(|| (n > m).then(|| product(u, adj(outside(s, dv, v, own)))));
        }
    }
    let of_a = product(product(u, inner), adj(v));
    c.set(0, beyond.map_or(of_a, |beyond| of_a + beyond));
    Ok(())
}

/// Twice the symmetric part of each matrix.
fn with_adjoint<'a>(c: &GradientContext<'a>, x: Value<'a>) -> Result<Value<'a>, GradientError> {
    Ok(x + adjoint(c, x)?)
}

/// `(I - U U*) dU S^-1`, where `own` is `U* dU`.
fn outside<'a>(s: Value<'a>, du: Value<'a>, u: Value<'a>, own: Value<'a>) -> Value<'a> {
    product(du - product(u, own), s.reciprocal().op("MatrixDiag"))
}

fn cross(c: &GradientContext<'_>) -> RuleResult {
    let (g, a, b) = (c.grad(0), c.input(0), c.input(1));
    c.set(0, b.op_with("Cross", g));
    c.set(1, g.op_with("Cross", a));
    Ok(())
}

/// Of one input: the output's gradient and the other input, summed to the labels that the input shares with them, then
/// repeated along those that it alone has.
fn einsum(c: &GradientContext<'_>) -> RuleResult {
    let equation = c.node().text("equation").map_err(|_| c.unsupported("without an equation"))?;
    let Some((inputs, output)) = equation.split_once("->") else { return Err(c.unsupported("of this equation")) };
    let subscripts: Vec<String> = inputs.split(',').map(|s| s.replace(' ', "")).collect();
    let output = output.replace(' ', "");
    let g = c.grad(0);
    for i in 0..subscripts.len().min(2) {
        let other = (subscripts.len() == 2).then(|| (c.input(1 - i), subscripts[1 - i].as_str()));
        c.set(i, einsum_of_input(c, g, i, (&subscripts[i], &output), other)?);
    }
    Ok(())
}

/// The labels of a subscript, each once, an ellipsis as a whole.
fn labels_of(subscript: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut rest = subscript;
    while let Some(first) = rest.chars().next() {
        let label = if rest.starts_with("...") { "...".to_owned() } else { first.to_string() };
        rest = &rest[label.len()..];
        if !out.contains(&label) {
            out.push(label);
        }
    }
    out
}

/// The einsum `from->to`.
fn contracted<'a>(c: &GradientContext<'a>, inputs: &[Output], from: &str, to: &str) -> Value<'a> {
    let equation = format!("{from}->{to}");
    c.add_node("Einsum").inputs(inputs).attr("equation", equation.as_str()).value()
}

/// `x`, repeated along new dimensions of these sizes behind its own.
fn repeated<'a>(c: &GradientContext<'a>, x: Value<'a>, sizes: &[i32]) -> Value<'a> {
    let (own, axis) = (c.shape_of(x).output(), c.graph().constant(Tensor::scalar(0i32)));
    let and = |dims: &[i32]| c.add_node("ConcatV2").inputs(&[own, c.graph().ints(dims).output()]).input(axis).value();
    x.reshape(and(&vec![1; sizes.len()])).broadcast_to(and(sizes))
}

fn einsum_of_input<'a>(
    c: &GradientContext<'a>,
    g: Value<'a>,
    i: usize,
    (own, output): (&str, &str),
    other: Option<(Value<'a>, &str)>,
) -> Result<Value<'a>, GradientError> {
    let labels = labels_of(own);
    let has = |label: &str| output.contains(label) || other.is_some_and(|(_, subscript)| subscript.contains(label));
    let (kept, alone): (Vec<&str>, Vec<&str>) = labels.iter().map(String::as_str).partition(|label| has(label));
    let spreads = own.contains("...") || other.is_some_and(|(_, s)| s.contains("...")) && output.contains("...");
    // The batch dimensions of the whole stay until the end, where those that the input lacks are summed.
    let lead = if spreads && !own.contains("...") { "..." } else { "" };
    let target = format!("{lead}{}", kept.concat());
    let mut grad = match other {
        Some((y, subscript)) => {
            contracted(c, &[g.output(), conjugate(y).output()], &format!("{output},{subscript}"), &target)
        }
        None => contracted(c, &[g.output()], output, &target),
    };
    let x = c.input(i);
    if !alone.is_empty() {
        let Some(shape) = x.shape().known() else { return Err(c.unsupported("for shapes that are not known")) };
        let ellipsis = shape.rank() + 3 - own.len();
        let size_of = |label: &str| {
            own.find(label).map(|at| match own.find("...") {
                Some(dots) if dots < at => shape.dims()[at - 3 + ellipsis],
                _ => shape.dims()[at],
            })
        };
        if alone.contains(&"...") {
            return Err(c.unsupported("of a sum over an ellipsis"));
        }
        // New dimensions behind, then in their places by another sum of one input.
        let sizes: Vec<i32> = alone.iter().filter_map(|l| size_of(l)).map(|s| s as i32).collect();
        grad = repeated(c, grad, &sizes);
    }
    let now = kept.concat() + &alone.concat();
    let repeats = own.chars().filter(|l| *l != '.').count() != labels.iter().filter(|l| *l != "...").count();
    if now != own || repeats || !alone.is_empty() {
        grad = contracted(c, &[grad.output()], &format!("{lead}{now}"), &format!("{lead}{own}"));
    }
    Ok(if spreads { summed_to(c, grad, x) } else { grad })
}
