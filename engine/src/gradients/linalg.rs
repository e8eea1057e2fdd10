//! Gradients of matrix ops. Formulas: Giles, "Collected matrix derivative results for forward and reverse mode
//! algorithmic differentiation" (2008); Walter and Lehmann for QR; the complex ones are of real losses.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;

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

/// `a b`, either taken as its adjoint.
fn product(c: &mut GradientContext<'_>, a: Output, b: Output, adj_a: bool, adj_b: bool) -> Added {
    c.op_with("BatchMatMulV2", &[a, b], &[("adj_x", Attr::Bool(adj_a)), ("adj_y", Attr::Bool(adj_b))])
}

/// The sum of `grad` over the batch dimensions along which input `i` was stretched to it.
fn unbroadcast(c: &mut GradientContext<'_>, i: usize, grad: Output) -> Added {
    let x = c.input(i);
    let own = c.shape_of(x)?;
    if c.shape(x)?.known().is_some() && c.shape(x)?.known() == c.shape(grad)?.known() {
        return Ok(grad);
    }
    let whole = c.shape_of(grad)?;
    let axes = c.op("BroadcastGradientArgs", &[own, whole])?;
    let sum = c.op("Sum", &[grad, axes])?;
    c.op("Reshape", &[sum, own])
}

fn batch_matmul(c: &mut GradientContext<'_>) -> Done {
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    let (ax, ay) = (flag("adj_x"), flag("adj_y"));
    let (g, x, y) = (c.grad(0)?, c.input(0), c.input(1));
    let of_x = if ax { product(c, y, g, ay, true)? } else { product(c, g, y, false, !ay)? };
    let of_y = if ay { product(c, g, x, true, ax)? } else { product(c, x, g, !ax, false)? };
    for (i, grad) in [of_x, of_y].into_iter().enumerate() {
        let grad = unbroadcast(c, i, grad)?;
        c.set(i, grad);
    }
    Ok(())
}

/// `-Y* G Y*`, of the adjoint's inverse its adjoint.
fn inverse(c: &mut GradientContext<'_>) -> Done {
    let (g, y) = (c.grad(0)?, c.output(0));
    let adjoint = c.node().flag("adjoint").copied().unwrap_or(false);
    let right = product(c, g, y, adjoint, true)?;
    let of_x = if adjoint {
        // Y = A^-*: dA = -(Y* G Y*)* = -Y G* Y.
        let gy = product(c, g, y, true, false)?;
        product(c, y, gy, false, false)?
    } else {
        product(c, y, right, true, false)?
    };
    let of_x = c.op("Neg", &[of_x])?;
    c.set(0, of_x);
    Ok(())
}

/// `value` of each matrix, with two dimensions of 1 behind it.
fn per_matrix(c: &mut GradientContext<'_>, value: Output) -> Added {
    let last = c.constant(Tensor::scalar(-1i32))?;
    let one = c.op("ExpandDims", &[value, last])?;
    c.op("ExpandDims", &[one, last])
}

fn adjoint_inverse(c: &mut GradientContext<'_>) -> Added {
    c.op_with("MatrixInverse", &[c.input(0)], &[("adjoint", Attr::Bool(true))])
}

fn conjugate(c: &mut GradientContext<'_>, x: Output) -> Added {
    if c.dtype(x)?.is_complex() { c.op("Conj", &[x]) } else { Ok(x) }
}

fn determinant(c: &mut GradientContext<'_>) -> Done {
    let (g, inverse) = (c.grad(0)?, adjoint_inverse(c)?);
    let y = conjugate(c, c.output(0))?;
    let scale = c.op("Mul", &[g, y])?;
    let scale = per_matrix(c, scale)?;
    let of_x = c.op("Mul", &[scale, inverse])?;
    c.set(0, of_x);
    Ok(())
}

fn log_determinant(c: &mut GradientContext<'_>) -> Done {
    let (g, inverse) = (c.grad(1)?, adjoint_inverse(c)?);
    let scale = per_matrix(c, g)?;
    let of_x = c.op("Mul", &[scale, inverse])?;
    c.set(0, of_x);
    Ok(())
}

/// `Y Y = A`, so that `dY Y + Y dY = dA`: the gradient solves the adjoint equation.
fn square_root(c: &mut GradientContext<'_>) -> Done {
    let (g, y) = (c.grad(0)?, c.output(0));
    let of_x = c.op_with("_Sylvester", &[y, y, g], &[("adjoint", Attr::Bool(true))])?;
    c.set(0, of_x);
    Ok(())
}

/// With the solution Y of the adjoint equation: dC = Y, dA = -Y X*, dB = -X* Y, those of adjoints turned round.
fn sylvester(c: &mut GradientContext<'_>) -> Done {
    let (g, a, b, x) = (c.grad(0)?, c.input(0), c.input(1), c.output(0));
    let adjoint = c.node().flag("adjoint").copied().unwrap_or(false);
    let y = c.op_with("_Sylvester", &[a, b, g], &[("adjoint", Attr::Bool(!adjoint))])?;
    let of_a = if adjoint { product(c, x, y, false, true)? } else { product(c, y, x, false, true)? };
    let of_b = if adjoint { product(c, y, x, true, false)? } else { product(c, x, y, true, false)? };
    for (i, grad) in [of_a, of_b].into_iter().enumerate() {
        let negative = c.op("Neg", &[grad])?;
        c.set(i, negative);
    }
    c.set(2, y);
    Ok(())
}

fn cholesky(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let of_x = c.op("CholeskyGrad", &[c.output(0), g])?;
    c.set(0, of_x);
    Ok(())
}

/// With B' = A^-* G: dB = B', dA = -B' X*, of the adjoint's equation -X B'*.
fn solve(c: &mut GradientContext<'_>) -> Done {
    let (g, a, x) = (c.grad(0)?, c.input(0), c.output(0));
    let adjoint = c.node().flag("adjoint").copied().unwrap_or(false);
    let of_b = c.op_with("MatrixSolve", &[a, g], &[("adjoint", Attr::Bool(!adjoint))])?;
    let of_a = if adjoint { product(c, x, of_b, false, true)? } else { product(c, of_b, x, false, true)? };
    let of_a = c.op("Neg", &[of_a])?;
    c.set(0, of_a);
    c.set(1, of_b);
    Ok(())
}

/// The triangle of each matrix, its diagonal included.
fn triangle(c: &mut GradientContext<'_>, x: Output, lower: bool) -> Added {
    let (all, none) = (c.constant(Tensor::scalar(-1i64))?, c.constant(Tensor::scalar(0i64))?);
    let (below, above) = if lower { (all, none) } else { (none, all) };
    c.op("MatrixBandPart", &[x, below, above])
}

fn triangular_solve(c: &mut GradientContext<'_>) -> Done {
    let (g, a, x) = (c.grad(0)?, c.input(0), c.output(0));
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    let (lower, adjoint) = (flag("lower"), flag("adjoint"));
    let attrs = [("lower", Attr::Bool(lower)), ("adjoint", Attr::Bool(!adjoint))];
    let of_b = c.op_with("MatrixTriangularSolve", &[a, g], &attrs)?;
    let of_a = if adjoint { product(c, x, of_b, false, true)? } else { product(c, of_b, x, false, true)? };
    let of_a = c.op("Neg", &[of_a])?;
    let of_a = triangle(c, of_a, lower)?;
    for (i, grad) in [of_a, of_b].into_iter().enumerate() {
        let grad = unbroadcast(c, i, grad)?;
        c.set(i, grad);
    }
    Ok(())
}

/// Of the normal equations: with Z = (A* A + l I)^-1 G: dB = A Z, dA = B Z* - A (Z X* + X Z*); for wide matrices with
/// Z = (A A* + l I)^-1 A G': see the body.
fn solve_ls(c: &mut GradientContext<'_>) -> Done {
    let (g, a, b, x) = (c.grad(0)?, c.input(0), c.input(1), c.output(0));
    let shape = c.shape(a)?;
    let Some([.., Some(m), Some(n)]) = shape.dims() else {
        return Err(c.unsupported("for matrices of unknown size"));
    };
    let l2 = c.input(2);
    let dtype = c.dtype(a)?;
    let l2 = c.op_with("Cast", &[l2], &[("DstT", Attr::Type(dtype))])?;
    let is_tall = m >= n;
    let gram = product(c, a, a, is_tall, !is_tall)?;
    let size = c.constant(Tensor::vector(&vec![1.0f64; *m.min(n)]))?;
    let ones = c.op_with("Cast", &[size], &[("DstT", Attr::Type(dtype))])?;
    let eye = c.op("MatrixDiag", &[ones])?;
    let ridge = c.op("Mul", &[l2, eye])?;
    let gram = c.op("AddV2", &[gram, ridge])?;
    if is_tall {
        let z = c.op("MatrixSolve", &[gram, g])?;
        let of_b = product(c, a, z, false, false)?;
        let bz = product(c, b, z, false, true)?;
        let (zx, xz) = (product(c, z, x, false, true)?, product(c, x, z, false, true)?);
        let both = c.op("AddV2", &[zx, xz])?;
        let less = product(c, a, both, false, false)?;
        let of_a = c.op("Sub", &[bz, less])?;
        c.set(0, of_a);
        c.set(1, of_b);
        return Ok(());
    }
    // X = A* Y with (A A* + l I) Y = B: dB = W = gram^-1 A G, dA = Y G* - W X* - Y (A* W)*.
    let ag = product(c, a, g, false, false)?;
    let w = c.op("MatrixSolve", &[gram, ag])?;
    let y = c.op("MatrixSolve", &[gram, b])?;
    let yg = product(c, y, g, false, true)?;
    let wx = product(c, w, x, false, true)?;
    let aw = product(c, a, w, true, false)?;
    let yaw = product(c, y, aw, false, true)?;
    let less = c.op("AddV2", &[wx, yaw])?;
    let of_a = c.op("Sub", &[yg, less])?;
    c.set(0, of_a);
    c.set(1, w);
    Ok(())
}

/// For A of at least as many rows as columns, thin: with M = R dR* - dQ* Q, dA = (dQ + Q copyltu(M)) R^-*.
fn qr(c: &mut GradientContext<'_>) -> Done {
    let shape = c.shape(c.input(0))?;
    let full = c.node().flag("full_matrices").copied().unwrap_or(false);
    match shape.dims() {
        Some([.., Some(m), Some(n)]) if m >= n && (!full || m == n) => {}
        _ => return Err(c.unsupported("for wide, full or unknown shapes")),
    }
    let (dq, dr, q, r) = (c.grad(0)?, c.grad(1)?, c.output(0), c.output(1));
    let rdr = product(c, r, dr, false, true)?;
    let dqq = product(c, dq, q, true, false)?;
    let m = c.op("Sub", &[rdr, dqq])?;
    // copyltu: the lower triangle, mirrored as its adjoint.
    let below = strict_lower(c, m)?;
    let zero = c.constant(Tensor::scalar(0i64))?;
    let diagonal = c.op("MatrixBandPart", &[m, zero, zero])?;
    let mirrored = adjoint(c, below)?;
    let sum = c.op("AddV2", &[below, mirrored])?;
    let sym = c.op("AddV2", &[sum, diagonal])?;
    let qs = product(c, q, sym, false, false)?;
    let left = c.op("AddV2", &[dq, qs])?;
    // X R^* = left, so R X* = left*.
    let left = adjoint(c, left)?;
    let attrs = [("lower", Attr::Bool(false)), ("adjoint", Attr::Bool(false))];
    let x = c.op_with("MatrixTriangularSolve", &[r, left], &attrs)?;
    let of_a = adjoint(c, x)?;
    c.set(0, of_a);
    Ok(())
}

fn strict_lower(c: &mut GradientContext<'_>, x: Output) -> Added {
    let zero = c.constant(Tensor::scalar(0i64))?;
    let lower = triangle(c, x, true)?;
    let diagonal = c.op("MatrixBandPart", &[x, zero, zero])?;
    c.op("Sub", &[lower, diagonal])
}

/// The conjugate transpose of each matrix.
fn adjoint(c: &mut GradientContext<'_>, x: Output) -> Added {
    let Some(rank) = c.shape(x)?.rank().or(c.shape(c.input(0))?.rank()) else {
        return Err(c.unsupported("for matrices of unknown rank"));
    };
    let mut perm: Vec<i32> = (0..rank as i32).collect();
    perm.swap(rank - 1, rank - 2);
    let perm = c.vector(&perm)?;
    let x = conjugate(c, x)?;
    c.op("Transpose", &[x, perm])
}

/// `1 / (v_j - v_i)` for i, j along the last dimension, 0 where they are equal (on the diagonal).
fn inverse_gaps(c: &mut GradientContext<'_>, values: Output) -> Added {
    let (last, before) = (c.constant(Tensor::scalar(-1i32))?, c.constant(Tensor::scalar(-2i32))?);
    let (of_i, of_j) = (c.op("ExpandDims", &[values, last])?, c.op("ExpandDims", &[values, before])?);
    let gaps = c.op("Sub", &[of_j, of_i])?;
    let zeros = c.op("ZerosLike", &[gaps])?;
    let ones = c.op("OnesLike", &[gaps])?;
    let equal = c.op("Equal", &[gaps, zeros])?;
    let safe = c.op("SelectV2", &[equal, ones, gaps])?;
    let inverse = c.op("Reciprocal", &[safe])?;
    c.op("SelectV2", &[equal, zeros, inverse])
}

/// dA = V (diag(de) + F o (V* dV)) V*, its lower triangle taking the upper's share, since only that is read.
fn eigh(c: &mut GradientContext<'_>) -> Done {
    let (de, e) = (c.grad(0)?, c.output(0));
    let has_vectors = c.node().flag("compute_v").copied().unwrap_or(true);
    let v = match has_vectors {
        true => c.output(1),
        false => {
            let again = c.op("SelfAdjointEigV2", &[c.input(0)])?;
            Output { port: 1, ..again }
        }
    };
    let mut inner = c.op("MatrixDiag", &[de])?;
    if let Some(dv) = c.arrived(1).filter(|_| has_vectors) {
        let gaps = inverse_gaps(c, e)?;
        let vdv = product(c, v, dv, true, false)?;
        let turned = c.op("Mul", &[gaps, vdv])?;
        inner = c.op("AddV2", &[inner, turned])?;
    }
    let left = product(c, v, inner, false, false)?;
    let of_a = product(c, left, v, false, true)?;
    let mirrored = adjoint(c, of_a)?;
    let sum = c.op("AddV2", &[of_a, mirrored])?;
    let zero = c.constant(Tensor::scalar(0i64))?;
    let lower = triangle(c, sum, true)?;
    let diagonal = c.op("MatrixBandPart", &[of_a, zero, zero])?;
    let of_a = c.op("Sub", &[lower, diagonal])?;
    c.set(0, of_a);
    Ok(())
}

/// Real matrices. With E = 1 / (s_j^2 - s_i^2) off the diagonal:
/// dA = U (diag(ds) + 2 sym(E o U* dU) S + 2 S sym(E o V* dV)) V* and, where A is not square, what of dU and dV lies
/// outside of the span of U and V.
fn svd(c: &mut GradientContext<'_>) -> Done {
    let shape = c.shape(c.input(0))?;
    let Some([.., Some(m), Some(n)]) = shape.dims() else { return Err(c.unsupported("for unknown shapes")) };
    let (m, n) = (*m, *n);
    if c.dtype(c.input(0))?.is_complex() {
        return Err(c.unsupported("of complex matrices"));
    }
    if c.node().flag("full_matrices").copied().unwrap_or(false) && m != n {
        return Err(c.unsupported("with full matrices that are not square"));
    }
    let (ds, s) = (c.grad(0)?, c.output(0));
    let has_vectors = c.node().flag("compute_uv").copied().unwrap_or(true);
    let (u, v) = match has_vectors {
        true => (c.output(1), c.output(2)),
        false => {
            let again = c.op("Svd", &[c.input(0)])?;
            (Output { port: 1, ..again }, Output { port: 2, ..again })
        }
    };
    let mut inner = c.op("MatrixDiag", &[ds])?;
    let arrived = |i: usize| c.arrived(i).filter(|_| has_vectors);
    let (du, dv) = (arrived(1), arrived(2));
    if du.is_none() && dv.is_none() {
        let left = product(c, u, inner, false, false)?;
        let of_a = product(c, left, v, false, true)?;
        c.set(0, of_a);
        return Ok(());
    }
    let s2 = c.op("Square", &[s])?;
    let gaps = inverse_gaps(c, s2)?;
    let diagonal = c.op("MatrixDiag", &[s])?;
    let mut outside = Vec::new();
    for (i, (vectors, grad)) in [(u, du), (v, dv)].into_iter().enumerate() {
        let Some(grad) = grad else { continue };
        let own = product(c, vectors, grad, true, false)?;
        let turned = c.op("Mul", &[gaps, own])?;
        let mirrored = adjoint(c, turned)?;
        let both = c.op("AddV2", &[turned, mirrored])?;
        let scaled =
            if i == 0 { product(c, both, diagonal, false, false)? } else { product(c, diagonal, both, false, false)? };
        inner = c.op("AddV2", &[inner, scaled])?;
        let is_thin = if i == 0 { m > n } else { n > m };
        if is_thin {
            // (I - U U*) dU S^-1 V*, and the same of V, transposed.
            let within = product(c, vectors, own, false, false)?;
            let rest = c.op("Sub", &[grad, within])?;
            let inverse = c.op("Reciprocal", &[s])?;
            let inverse = c.op("MatrixDiag", &[inverse])?;
            let rest = product(c, rest, inverse, false, false)?;
            outside.push(if i == 0 { product(c, rest, v, false, true)? } else { product(c, u, rest, false, true)? });
        }
    }
    let left = product(c, u, inner, false, false)?;
    let mut of_a = product(c, left, v, false, true)?;
    for rest in outside {
        of_a = c.op("AddV2", &[of_a, rest])?;
    }
    c.set(0, of_a);
    Ok(())
}

/// dA = B x G, dB = G x A.
fn cross(c: &mut GradientContext<'_>) -> Done {
    let (g, a, b) = (c.grad(0)?, c.input(0), c.input(1));
    let of_a = c.op("Cross", &[b, g])?;
    let of_b = c.op("Cross", &[g, a])?;
    c.set(0, of_a);
    c.set(1, of_b);
    Ok(())
}

/// Of one input: the output's gradient and the other input, summed to the labels that the input shares with them, then
/// repeated along those that it alone has.
fn einsum(c: &mut GradientContext<'_>) -> Done {
    let equation = c.node().text("equation").map_err(|_| c.unsupported("without an equation"))?;
    let Some((inputs, output)) = equation.split_once("->") else { return Err(c.unsupported("of this equation")) };
    let subscripts: Vec<String> = inputs.split(',').map(|s| s.replace(' ', "")).collect();
    let output = output.replace(' ', "");
    let g = c.grad(0)?;
    for i in 0..subscripts.len().min(2) {
        let other = (subscripts.len() == 2).then(|| (c.input(1 - i), subscripts[1 - i].as_str()));
        let of_input = einsum_of_input(c, g, i, (&subscripts[i], &output), other)?;
        c.set(i, of_input);
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

fn einsum_of_input(
    c: &mut GradientContext<'_>,
    g: Output,
    i: usize,
    (own, output): (&str, &str),
    other: Option<(Output, &str)>,
) -> Added {
    let labels = labels_of(own);
    let has = |label: &str| output.contains(label) || other.is_some_and(|(_, subscript)| subscript.contains(label));
    let kept: Vec<&String> = labels.iter().filter(|l| has(l)).collect();
    let alone: Vec<&String> = labels.iter().filter(|l| !has(l)).collect();
    let spreads = own.contains("...") || other.is_some_and(|(_, s)| s.contains("...")) && output.contains("...");
    let kept_text: String = kept.iter().map(|l| l.as_str()).collect();
    // The batch dimensions of the whole stay for now; those that the input lacks are summed at the end.
    let lead = if spreads && !own.contains("...") { "..." } else { "" };
    let target = format!("{lead}{kept_text}");
    let mut grad = match other {
        Some((y, subscript)) => {
            let y = conjugate(c, y)?;
            let equation = format!("{output},{subscript}->{target}");
            c.op_of_list("Einsum", &[g, y], &[], &[("equation", Attr::from(equation.as_str()))])?
        }
        None => {
            c.op_of_list("Einsum", &[g], &[], &[("equation", Attr::from(format!("{output}->{target}").as_str()))])?
        }
    };
    let x = c.input(i);
    let repeats = own.chars().filter(|l| *l != '.').count() != labels.iter().filter(|l| *l != "...").count();
    if !alone.is_empty() {
        let Some(shape) = c.shape(x)?.known() else { return Err(c.unsupported("for shapes that are not known")) };
        let ellipsis = shape.rank() + 3 - own.len();
        let size_of = |label: &str| {
            own.find(label).map(|at| match own.find("...") {
                Some(dots) if dots < at => shape.dims()[at - 3 + ellipsis],
                _ => shape.dims()[at],
            })
        };
        if own.contains("...") && alone.iter().any(|l| *l == "...") {
            return Err(c.unsupported("of a sum over an ellipsis"));
        }
        // New dimensions behind, then in their places by another sum of one input.
        let n_kept = c.shape_of(grad)?;
        let ones = c.vector(&vec![1i32; alone.len()])?;
        let axis = c.constant(Tensor::scalar(0i32))?;
        let widened = c.op_of_list("ConcatV2", &[n_kept, ones], &[axis], &[])?;
        let sizes: Vec<i32> = alone.iter().filter_map(|l| size_of(l)).map(|s| s as i32).collect();
        let sizes = c.vector(&sizes)?;
        let whole = c.op_of_list("ConcatV2", &[n_kept, sizes], &[axis], &[])?;
        let stood = c.op("Reshape", &[grad, widened])?;
        grad = c.op("BroadcastTo", &[stood, whole])?;
    }
    let now: String = kept.iter().chain(&alone).map(|l| l.as_str()).collect();
    if now != own || repeats || !alone.is_empty() {
        let equation = format!("{lead}{now}->{lead}{own}");
        grad = c.op_of_list("Einsum", &[grad], &[], &[("equation", Attr::from(equation.as_str()))])?;
    }
    if spreads {
        let (shape, whole) = (c.shape_of(x)?, c.shape_of(grad)?);
        let axes = c.op("BroadcastGradientArgs", &[shape, whole])?;
        let sum = c.op("Sum", &[grad, axes])?;
        grad = c.op("Reshape", &[sum, shape])?;
    }
    Ok(grad)
}
