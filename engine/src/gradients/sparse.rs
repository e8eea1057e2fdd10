//! Gradients of ops on sparse tensors: those of the values, which lie where the values lie.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static SPARSE: &[GradientSpec] = &[
    ("SparseTensorDenseMatMul", Function(matmul)),
    ("SparseAdd", Function(add)),
    ("SparseReduceSum", Function(reduce_sum)),
    ("SparseToDense", Function(to_dense)),
    ("SparseReorder", Function(reorder)),
    ("SparseSlice", Function(slice)),
    ("SparseSoftmax", Function(softmax)),
    ("SparseDenseCwiseMul", Function(mul)),
    ("SparseDenseCwiseDiv", Function(div)),
    ("SparseTensorDenseAdd", Function(add_dense)),
    ("SparseFillEmptyRows", Function(fill_empty_rows)),
    ("SparseReshape", Zero),
];

/// The elements of `dense` at coordinates.
fn gather(c: &mut GradientContext<'_>, dense: Output, at: Output) -> Added {
    c.op("GatherNd", &[dense, at])
}

/// dB = A* G; of the values: rows of G times rows of B.
fn matmul(c: &mut GradientContext<'_>) -> Done {
    let flag = |name| c.node().flag(name).copied().unwrap_or(false);
    let (adjoint_a, adjoint_b) = (flag("adjoint_a"), flag("adjoint_b"));
    let (g, at, values, shape, b) = (c.grad(0)?, c.input(0), c.input(1), c.input(2), c.input(3));
    if c.dtype(b)?.is_complex() {
        return Err(c.unsupported("of complex matrices"));
    }
    let mut of_b =
        c.op_with("SparseTensorDenseMatMul", &[at, values, shape, g], &[("adjoint_a", Attr::Bool(!adjoint_a))])?;
    let mut b = b;
    if adjoint_b {
        let perm = c.vector(&[1i32, 0])?;
        of_b = c.op("Transpose", &[of_b, perm])?;
        b = c.op("Transpose", &[b, perm])?;
    }
    let columns = c.op_with("Unpack", &[at], &[("num", Attr::Int(2)), ("axis", Attr::Int(1))])?;
    let (rows, cols) = (Output { port: 0, ..columns }, Output { port: 1, ..columns });
    let (of_g, of_other) = if adjoint_a { (cols, rows) } else { (rows, cols) };
    let first = c.constant(Tensor::scalar(0i32))?;
    let g_rows = c.op("GatherV2", &[g, of_g, first])?;
    let b_rows = c.op("GatherV2", &[b, of_other, first])?;
    let product = c.op("Mul", &[g_rows, b_rows])?;
    let axis = c.vector(&[1i32])?;
    let of_values = c.op("Sum", &[product, axis])?;
    c.set(1, of_values);
    c.set(3, of_b);
    Ok(())
}

fn add(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(1)?;
    let both = c.op("SparseAddGrad", &[g, c.input(0), c.input(3), c.output(0)])?;
    c.set(1, both);
    c.set(4, Output { port: 1, ..both });
    Ok(())
}

/// Every value gets the gradient of the sum that it went into.
fn reduce_sum(c: &mut GradientContext<'_>) -> Done {
    let (g, at, shape, axes) = (c.grad(0)?, c.input(0), c.input(2), c.input(3));
    let shape32 = c.op_with("Cast", &[shape], &[("DstT", Attr::Type(crate::DType::I32))])?;
    let rank = c.shape(at)?.dims().and_then(|dims| *dims.get(1)?);
    let Some((rank, axes)) = rank.zip(c.ints(axes)) else { return Err(c.unsupported("for axes or a rank not known")) };
    let is_reduced = |d: usize| axes.iter().any(|a| a.rem_euclid(rank as i64) == d as i64);
    let ones: Vec<i32> = (0..rank).map(|d| i32::from(is_reduced(d))).collect();
    let kept: Vec<i64> = ones.iter().map(|one| i64::from(1 - one)).collect();
    // The sums with their reduced dimensions as ones, looked up with 0 along them.
    let (mask, one) = (c.vector(&ones)?, c.vector(&vec![1i32; rank])?);
    let is_one = c.op("Equal", &[mask, one])?;
    let zeros_or_shape = c.op("SelectV2", &[is_one, one, shape32])?;
    let whole = c.op("Reshape", &[g, zeros_or_shape])?;
    let keep = c.vector(&kept)?;
    let place = c.op("Mul", &[at, keep])?;
    let of_values = gather(c, whole, place)?;
    c.set(1, of_values);
    Ok(())
}

fn to_dense(c: &mut GradientContext<'_>) -> Done {
    let (g, at, values) = (c.grad(0)?, c.input(0), c.input(2));
    let of_rank_1 = c.shape(at)?.rank().is_some_and(|rank| rank < 2);
    let mut place = at;
    if of_rank_1 {
        let column = c.vector(&[-1i32, 1])?;
        place = c.op("Reshape", &[at, column])?;
    }
    let mut of_values = gather(c, g, place)?;
    if c.shape(values)?.rank() == Some(0) {
        of_values = sum_all(c, of_values)?;
    }
    let zeros = c.op("ZerosLike", &[values])?;
    let index = c.dtype(at)?;
    let shape = c.op_with("Shape", &[g], &[("out_type", Attr::Type(index))])?;
    let one = c.scalar_like(1.0, g)?;
    let mask = c.op_with("SparseToDense", &[at, shape, zeros, one], &[("validate_indices", Attr::Bool(false))])?;
    let rest = c.op("Mul", &[g, mask])?;
    let of_default = sum_all(c, rest)?;
    c.set(2, of_values);
    c.set(3, of_default);
    Ok(())
}

fn sum_all(c: &mut GradientContext<'_>, x: Output) -> Added {
    let whole = c.vector(&[-1i32])?;
    let flat = c.op("Reshape", &[x, whole])?;
    let axis = c.vector(&[0i32])?;
    c.op("Sum", &[flat, axis])
}

/// Numbers the values, orders those alike, and scatters the gradients back.
fn reorder(c: &mut GradientContext<'_>) -> Done {
    let (g, at, values, shape) = (c.grad(1)?, c.input(0), c.input(1), c.input(2));
    let n = c.op("Size", &[values])?;
    let (zero, one) = (c.constant(Tensor::scalar(0i32))?, c.constant(Tensor::scalar(1i32))?);
    let numbers = c.op("Range", &[zero, n, one])?;
    let ordered = c.op("SparseReorder", &[at, numbers, shape])?;
    let order = Output { port: 1, ..ordered };
    let of_values = c.op_of_lists("DynamicStitch", &[&[order], &[g]])?;
    c.set(1, of_values);
    Ok(())
}

fn slice(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(1)?;
    let of_values = c.op("SparseSliceGrad", &[g, c.input(0), c.input(3), c.output(0)])?;
    c.set(1, of_values);
    Ok(())
}

/// `(g - sum(g y)) y`, the sum over each innermost row.
fn softmax(c: &mut GradientContext<'_>) -> Done {
    let (g, at, shape, y) = (c.grad(0)?, c.input(0), c.input(2), c.output(0));
    let product = c.op("Mul", &[g, y])?;
    let last = c.vector(&[-1i32])?;
    let keep = Attr::Bool(true);
    let sums = c.op_with("SparseReduceSum", &[at, product, shape, last], &[("keep_dims", keep)])?;
    let negative = c.op("Neg", &[sums])?;
    let less = c.op("SparseDenseCwiseAdd", &[at, g, shape, negative])?;
    let of_values = c.op("Mul", &[less, y])?;
    c.set(1, of_values);
    Ok(())
}

/// The gradient of a dense operand that was stretched: that of the values, made dense and summed back.
fn of_dense(c: &mut GradientContext<'_>, values: Output) -> Added {
    let (at, shape, dense) = (c.input(0), c.input(2), c.input(3));
    let whole = c.op("ScatterNd", &[at, values, shape])?;
    let index = Attr::Type(crate::DType::I64);
    let own = c.op_with("Shape", &[dense], &[("out_type", index)])?;
    let axes = c.op("BroadcastGradientArgs", &[own, shape])?;
    let sum = c.op("Sum", &[whole, axes])?;
    c.op("Reshape", &[sum, own])
}

/// What multiplies the values: the dense operand where they lie, as the op itself takes it.
fn mul(c: &mut GradientContext<'_>) -> Done {
    let (g, at, values, shape, dense) = (c.grad(0)?, c.input(0), c.input(1), c.input(2), c.input(3));
    let of_values = c.op("SparseDenseCwiseMul", &[at, g, shape, dense])?;
    let product = c.op("Mul", &[g, values])?;
    let of_dense = of_dense(c, product)?;
    c.set(1, of_values);
    c.set(3, of_dense);
    Ok(())
}

/// `g / d` and `-g v / d^2`.
fn div(c: &mut GradientContext<'_>) -> Done {
    let (g, at, shape, dense, y) = (c.grad(0)?, c.input(0), c.input(2), c.input(3), c.output(0));
    let of_values = c.op("SparseDenseCwiseDiv", &[at, g, shape, dense])?;
    let product = c.op("Mul", &[of_values, y])?;
    let negative = c.op("Neg", &[product])?;
    let of_dense = of_dense(c, negative)?;
    c.set(1, of_values);
    c.set(3, of_dense);
    Ok(())
}

fn add_dense(c: &mut GradientContext<'_>) -> Done {
    let (g, at) = (c.grad(0)?, c.input(0));
    let of_values = gather(c, g, at)?;
    c.set(1, of_values);
    c.set(3, g);
    Ok(())
}

fn fill_empty_rows(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(1)?;
    let both = c.op("SparseFillEmptyRowsGrad", &[c.output(3), g])?;
    c.set(1, both);
    c.set(3, Output { port: 1, ..both });
    Ok(())
}
