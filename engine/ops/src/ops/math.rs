//! Math ops that are not element-wise: matrix products, reductions, ranges.

use super::shapes::{Inferred, reduce, scalar};
use engine_core::geometry::axis;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;

const FLOAT: &str = "T: {float, double}";
const REDUCE: &str = "keep_dims: bool = false; T: {numbers, quantized}; Tidx: {int32, int64} = int32";
const EXTREME: &str = "keep_dims: bool = false; T: {reals, quantized}; Tidx: {int32, int64} = int32";
const REDUCE_BOOL: &str = "keep_dims: bool = false; Tidx: {int32, int64} = int32";
const ARG: &str = "T: {reals, quantized, bool}; Tidx: {int16, int32, int64} = int32; \
                   output_type: {int16, uint16, int32, int64} = int64";
const REDUCTION: &str = "input: T, reduction_indices: Tidx -> output: T";
const MATMUL: &str = "transpose_a: bool = false; transpose_b: bool = false; T: {numbers}; \
                      grad_a: bool = false; grad_b: bool = false";

#[linkme::distributed_slice(OP_TABLES)]
static MATH: &[OpSpec] = &[
    op("MatMul", "a: T, b: T -> product: T", MATMUL, matmul),
    op("Sum", REDUCTION, REDUCE, reduce),
    op("Mean", REDUCTION, REDUCE, reduce),
    op("Prod", REDUCTION, REDUCE, reduce),
    op("Max", REDUCTION, EXTREME, reduce),
    op("Min", REDUCTION, EXTREME, reduce),
    op("EuclideanNorm", REDUCTION, REDUCE, reduce),
    op("All", "input: bool, reduction_indices: Tidx -> output: bool", REDUCE_BOOL, reduce),
    op("Any", "input: bool, reduction_indices: Tidx -> output: bool", REDUCE_BOOL, reduce),
    op("ArgMax", "input: T, dimension: Tidx -> output: output_type", ARG, arg),
    op("ArgMin", "input: T, dimension: Tidx -> output: output_type", ARG, arg),
    op("L2Loss", "t: T -> output: T", FLOAT, scalar),
    op(
        "Range",
        "start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx",
        "Tidx: {floats, ints, uint16, uint32, uint64} = int32",
        range,
    ),
];

fn matmul(c: &mut InferContext<'_>) -> Inferred {
    let (a, b) = (c.of_rank(0, 2)?, c.of_rank(1, 2)?);
    let oriented = |s: &PartialShape, transposed: bool| match s.dims() {
        Some([m, n]) if transposed => (*n, *m),
        Some([m, n]) => (*m, *n),
        _ => (None, None),
    };
    let (m, k) = oriented(&a, c.flag("transpose_a"));
    let (k2, n) = oriented(&b, c.flag("transpose_b"));
    c.merge(&[k].into(), &[k2].into())
        .map_err(|_| ShapeError(format!("inner dimensions differ: {} and {}", k.unwrap_or(0), k2.unwrap_or(0))))?;
    c.set(0, [m, n]);
    Ok(())
}

fn arg(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let mut out = dims.to_vec();
    match c.ints(1).as_deref() {
        Some([a]) => drop(out.remove(axis(*a, dims.len())?)),
        _ if dims.is_empty() => axis(0, 0).map(drop)?,
        _ => out = vec![None; dims.len() - 1],
    }
    c.set(0, PartialShape::new(&out));
    Ok(())
}

fn range(c: &mut InferContext<'_>) -> Inferred {
    let known = |i| c.ints(i).and_then(|v| v.first().copied());
    let n = match (known(0), known(1), known(2)) {
        (Some(start), Some(limit), Some(delta)) if delta != 0 => {
            let span = (i128::from(limit) - i128::from(start)) * i128::from(delta.signum());
            if span < 0 {
                return Err(ShapeError(format!("limit {limit} is not reached from {start} in steps of {delta}")));
            }
            usize::try_from((span + i128::from(delta).abs() - 1) / i128::from(delta).abs()).ok()
        }
        _ => None,
    };
    c.set(0, [n]);
    Ok(())
}
