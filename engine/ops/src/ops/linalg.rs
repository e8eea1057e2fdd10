//! Matrix ops on batches: products, inverses, factors, solvers, Einstein sums. The last two dimensions are a matrix's.

use super::einsum::Equation;
use super::shapes::{Inferred, broadcast_of};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;

const T: &str = "T: {half, float, double, complexes}";
const ADJOINT: &str = "adjoint: bool = false; T: {half, float, double, complexes}";
const TRIANGULAR: &str = "lower: bool = true; adjoint: bool = false; T: {floats, complexes}";
const PRODUCT: &str =
    "T: {numbers}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false";
const PRODUCT_V3: &str = "Ta: {numbers}; Tb: {numbers}; Tout: {numbers}; adj_x: bool = false; adj_y: bool = false; \
                          grad_x: bool = false; grad_y: bool = false";
const UNARY: &str = "input: T -> output: T";
const SOLVE: &str = "matrix: T, rhs: T -> output: T";

#[linkme::distributed_slice(OP_TABLES)]
static LINALG: &[OpSpec] = &[
    op("BatchMatMul", "x: T, y: T -> output: T", PRODUCT, product),
    op("BatchMatMulV2", "x: T, y: T -> output: T", PRODUCT, product),
    op("BatchMatMulV3", "x: Ta, y: Tb -> output: Tout", PRODUCT_V3, product),
    op("MatrixInverse", UNARY, ADJOINT, square),
    op("BatchMatrixInverse", UNARY, ADJOINT, square),
    op("MatrixDeterminant", UNARY, T, determinant),
    op("BatchMatrixDeterminant", UNARY, T, determinant),
    op("LogMatrixDeterminant", "input: T -> sign: T, log_abs_determinant: T", T, determinant),
    op("Cholesky", UNARY, T, square),
    op("BatchCholesky", UNARY, T, square),
    op("CholeskyGrad", "l: T, grad: T -> output: T", T, square),
    op("MatrixExponential", UNARY, T, square),
    op("MatrixSquareRoot", UNARY, T, square),
    op("MatrixLogarithm", UNARY, "T: {complexes}", square),
    // The X of A X + X B = C, the gradient of a square root.
    op("_Sylvester", "a: T, b: T, c: T -> x: T", ADJOINT, |c| {
        let shape = c.input(2);
        c.set(0, shape);
        Ok(())
    }),
    op("MatrixSolve", SOLVE, ADJOINT, solve),
    op("BatchMatrixSolve", SOLVE, ADJOINT, solve),
    op("MatrixTriangularSolve", SOLVE, TRIANGULAR, triangular_solve),
    op("BatchMatrixTriangularSolve", SOLVE, TRIANGULAR, triangular_solve),
    op(
        "MatrixSolveLs",
        "matrix: T, rhs: T, l2_regularizer: double -> output: T",
        "T: {half, float, double, complexes}; fast: bool = true",
        solve_ls,
    ),
    op("Qr", "input: T -> q: T, r: T", "full_matrices: bool = false; T: {half, float, double, complexes}", qr),
    op(
        "Svd",
        "input: T -> s: T, u: T, v: T",
        "compute_uv: bool = true; full_matrices: bool = false; T: {half, float, double, complexes}",
        svd,
    ),
    op(
        "SelfAdjointEigV2",
        "input: T -> e: T, v: T",
        "compute_v: bool = true; T: {half, float, double, complexes}",
        eigh,
    ),
    op("SelfAdjointEig", UNARY, "T: {half, float, double}", eigh_joined),
    op(
        "Lu",
        "input: T -> lu: T, p: output_idx_type",
        "T: {half, float, double, complexes}; output_idx_type: {int32, int64} = int32",
        lu,
    ),
    op("Cross", "a: T, b: T -> product: T", "T: {reals}", cross),
    op("Einsum", "inputs: N * T -> output: T", "equation: string; N: int; T: type", einsum),
];

/// The batch dimensions, rows and columns of a shape.
type Parts = (PartialShape, Option<usize>, Option<usize>);

/// Input `i` as a batch of matrices; `None` where its rank is unknown.
fn matrices(c: &InferContext<'_>, i: usize) -> Result<Option<Parts>, ShapeError> {
    let shape = c.input(i);
    match shape.dims() {
        None => Ok(None),
        Some([batch @ .., rows, cols]) => Ok(Some((PartialShape::new(batch), *rows, *cols))),
        Some(_) => Err(ShapeError(format!("input {i} must have rank 2 or more, got shape {shape}"))),
    }
}

fn joined(batch: &PartialShape, rest: &[Option<usize>]) -> PartialShape {
    match batch.dims() {
        Some(dims) => PartialShape::new(&[dims, rest].concat()),
        None => PartialShape::unknown(),
    }
}

fn same(c: &InferContext<'_>, what: &str, a: Option<usize>, b: Option<usize>) -> Result<Option<usize>, ShapeError> {
    match c.merge(&[a].into(), &[b].into()) {
        Ok(_) => Ok(a.or(b)),
        Err(_) => Err(ShapeError(format!("{what}: {} and {} differ", a.unwrap_or(0), b.unwrap_or(0)))),
    }
}

/// Input `i` as a batch of square matrices.
fn squares(c: &InferContext<'_>, i: usize) -> Result<Option<(PartialShape, Option<usize>)>, ShapeError> {
    let Some((batch, rows, cols)) = matrices(c, i)? else { return Ok(None) };
    Ok(Some((batch, same(c, "the matrices must be square", rows, cols)?)))
}

fn product(c: &mut InferContext<'_>) -> Inferred {
    let (Some(x), Some(y)) = (matrices(c, 0)?, matrices(c, 1)?) else { return Ok(()) };
    let oriented = |p: &Parts, adjoint: bool| if adjoint { (p.2, p.1) } else { (p.1, p.2) };
    let (m, k) = oriented(&x, c.flag("adj_x"));
    let (k2, n) = oriented(&y, c.flag("adj_y"));
    same(c, "inner dimensions", k, k2)?;
    let batch = broadcast_of(&x.0, &y.0)?;
    c.set(0, joined(&batch, &[m, n]));
    Ok(())
}

fn square(c: &mut InferContext<'_>) -> Inferred {
    if let Some((batch, n)) = squares(c, 0)? {
        c.set(0, joined(&batch, &[n, n]));
    }
    Ok(())
}

fn determinant(c: &mut InferContext<'_>) -> Inferred {
    if let Some((batch, _)) = squares(c, 0)? {
        c.set(0, batch.clone());
        if c.n_outputs() > 1 {
            c.set(1, batch);
        }
    }
    Ok(())
}

fn solve(c: &mut InferContext<'_>) -> Inferred {
    let (Some((batch, n)), Some(rhs)) = (squares(c, 0)?, matrices(c, 1)?) else { return Ok(()) };
    let n = same(c, "rows of matrix and right-hand side", n, rhs.1)?;
    let batch = c.merge(&batch, &rhs.0)?;
    c.set(0, joined(&batch, &[n, rhs.2]));
    Ok(())
}

fn triangular_solve(c: &mut InferContext<'_>) -> Inferred {
    let (Some((batch, n)), Some(rhs)) = (squares(c, 0)?, matrices(c, 1)?) else { return Ok(()) };
    let n = same(c, "rows of matrix and right-hand side", n, rhs.1)?;
    let batch = broadcast_of(&batch, &rhs.0)?;
    c.set(0, joined(&batch, &[n, rhs.2]));
    Ok(())
}

fn solve_ls(c: &mut InferContext<'_>) -> Inferred {
    let (Some(a), Some(rhs)) = (matrices(c, 0)?, matrices(c, 1)?) else { return Ok(()) };
    same(c, "rows of matrix and right-hand side", a.1, rhs.1)?;
    let batch = c.merge(&a.0, &rhs.0)?;
    c.set(0, joined(&batch, &[a.2, rhs.2]));
    Ok(())
}

/// The smaller one, where both are known.
fn least(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    a.zip(b).map(|(a, b)| a.min(b))
}

fn qr(c: &mut InferContext<'_>) -> Inferred {
    let Some((batch, m, n)) = matrices(c, 0)? else { return Ok(()) };
    let p = if c.flag("full_matrices") { m } else { least(m, n) };
    c.set(0, joined(&batch, &[m, p]));
    c.set(1, joined(&batch, &[p, n]));
    Ok(())
}

fn svd(c: &mut InferContext<'_>) -> Inferred {
    let Some((batch, m, n)) = matrices(c, 0)? else { return Ok(()) };
    let p = least(m, n);
    c.set(0, joined(&batch, &[p]));
    if c.flag("compute_uv") {
        let (pu, pv) = if c.flag("full_matrices") { (m, n) } else { (p, p) };
        c.set(1, joined(&batch, &[m, pu]));
        c.set(2, joined(&batch, &[n, pv]));
    } else {
        (1..3).for_each(|i| c.set(i, [0]));
    }
    Ok(())
}

fn eigh(c: &mut InferContext<'_>) -> Inferred {
    let Some((batch, n)) = squares(c, 0)? else { return Ok(()) };
    c.set(0, joined(&batch, &[n]));
    c.set(1, if c.flag("compute_v") { joined(&batch, &[n, n]) } else { [0].into() });
    Ok(())
}

fn eigh_joined(c: &mut InferContext<'_>) -> Inferred {
    if let Some((batch, n)) = squares(c, 0)? {
        c.set(0, joined(&batch, &[n.map(|n| n + 1), n]));
    }
    Ok(())
}

fn lu(c: &mut InferContext<'_>) -> Inferred {
    if let Some((batch, n)) = squares(c, 0)? {
        c.set(0, joined(&batch, &[n, n]));
        c.set(1, joined(&batch, &[n]));
    }
    Ok(())
}

fn cross(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.merge(&c.input(0), &c.input(1))?;
    match shape.dims() {
        Some([.., Some(3) | None]) | None => {}
        _ => return Err(ShapeError(format!("the last dimension must be 3, got shape {shape}"))),
    }
    c.set(0, shape);
    Ok(())
}

fn einsum(c: &mut InferContext<'_>) -> Inferred {
    let equation = match c.attr("equation") {
        Some(engine_core::ops::Attr::Str(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => return Ok(()),
    };
    let equation = Equation::parse(&equation).map_err(|e| ShapeError(e.to_string()))?;
    let shapes: Vec<PartialShape> = (0..c.n_inputs()).map(|i| c.input(i)).collect();
    let shape = equation.infer(&shapes).map_err(|e| ShapeError(e.to_string()))?;
    c.set(0, shape);
    Ok(())
}
