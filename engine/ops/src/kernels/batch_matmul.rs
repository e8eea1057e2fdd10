//! Products of matrices, and of batches of them, broadcast against each other.
//!
//! Many small products are spread over the workers as they are; few large ones are each split.

use super::gemm::{Gemm, Matrix, multiply, multiply_int};
use super::matmul::{MatMulGeometry, transposed};
use super::support::{Built, cpu, kernel, shard_slice};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelDef, KernelError, Serial, Sharder};
use engine_core::dtype::{Complex32, Complex64, DType, Element};
use engine_core::graph::Node;
use engine_core::shape::Shape;

/// A type that has matrix products.
pub(super) trait Product: Element {
    const ZERO: Self;
    fn plus(a: Self, b: Self) -> Self;
    /// `out = a * b`.
    fn product(sharder: &dyn Sharder, a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: &mut [Self]);
}

macro_rules! fields {
    ($($t:ty),+) => { $(
        impl Product for $t {
            const ZERO: $t = <$t as Gemm>::ZERO;
            fn plus(a: $t, b: $t) -> $t {
                a + b
            }
            fn product(sharder: &dyn Sharder, a: Matrix<'_, $t>, b: Matrix<'_, $t>, out: &mut [$t]) {
                multiply(sharder, a, b, out);
            }
        }
    )+ };
}
fields!(f32, f64, Complex32, Complex64);

macro_rules! integers {
    ($($t:ty),+) => { $(
        impl Product for $t {
            const ZERO: $t = 0;
            fn plus(a: $t, b: $t) -> $t {
                a.wrapping_add(b)
            }
            fn product(_: &dyn Sharder, a: Matrix<'_, $t>, b: Matrix<'_, $t>, out: &mut [$t]) {
                multiply_int(a, b, out, 0, |sum, x, y| sum.wrapping_add(x.wrapping_mul(y)));
            }
        }
    )+ };
}
integers!(i32, i64, u64);

/// `out = x * y` for each pair of matrices of the broadcast batches; either taken as its conjugate transpose.
pub(super) fn product_of<T: Product>(
    sharder: &dyn Sharder,
    g: &MatMulGeometry,
    (x, y): (&[T], &[T]),
    adjoint: (bool, bool),
    out: &mut [T],
) -> Result<(), KernelError> {
    if out.is_empty() {
        return Ok(());
    }
    let (m, k, n, pairs) = (g.m, g.k, g.n, g.pairs()?);
    let size = m * n;
    let one = |sharder: &dyn Sharder, i: usize, out: &mut [T]| {
        let [at_x, at_y] = pairs[i];
        let a = oriented(&x[at_x * m * k..(at_x + 1) * m * k], (m, k), adjoint.0);
        let b = oriented(&y[at_y * k * n..(at_y + 1) * k * n], (k, n), adjoint.1);
        T::product(sharder, a, b, out);
    };
    let is_small = size * k < 1 << 20;
    if pairs.len() >= sharder.n_workers() && is_small {
        let ps = (k as u64).saturating_mul(10).max(1);
        shard_slice(sharder, out, size, ps, |at, part| {
            for (i, out) in part.chunks_exact_mut(size).enumerate() {
                one(&Serial, at / size + i, out);
            }
        });
    } else {
        out.chunks_exact_mut(size).enumerate().for_each(|(i, out)| one(sharder, i, out));
    }
    Ok(())
}

/// A view of `rows` x `cols`, of the transpose of what lies in memory if `adjoint`.
fn oriented<T>(data: &[T], (rows, cols): (usize, usize), adjoint: bool) -> Matrix<'_, T> {
    let (row_stride, col_stride) = if adjoint { (1, rows) } else { (cols, 1) };
    Matrix { data, rows, cols, row_stride, col_stride, conjugate: adjoint }
}

fn matmul<T: Product>(node: &Node) -> Built {
    let transposed = transposed(node)?;
    kernel(move |c| {
        let [a, b] = Matrix::<T>::pair(c.input(0)?, c.input(1)?, transposed)?;
        let out = c.filled::<T>(Shape::new(&[a.rows, b.cols]), |out| {
            if !out.is_empty() {
                T::product(c.sharder, a, b, out);
            }
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

fn batch_matmul<T: Product>(node: &Node) -> Built {
    let adjoint = (*node.flag("adj_x")?, *node.flag("adj_y")?);
    kernel(move |c| {
        let (x, y) = (c.input(0)?, c.input(1)?);
        let g = MatMulGeometry::new(x.dims(), y.dims(), adjoint)?;
        let both = (x.slice::<T>()?, y.slice::<T>()?);
        let out = c.filled::<T>(g.output(), |out| product_of(c.sharder, &g, both, adjoint, out))?;
        c.set(0, out);
        Ok(())
    })
}

/// Products of 8-bit integers in 32 bits, and of equal types: the inputs are converted to the output's type.
fn batch_matmul_v3(node: &Node) -> Built {
    let to = *node.dtype("Tout")?;
    let wide = to.computes_as().unwrap_or(to);
    let product = match wide {
        DType::F32 => batch_matmul::<f32>(node)?,
        DType::F64 => batch_matmul::<f64>(node)?,
        DType::I32 => batch_matmul::<i32>(node)?,
        DType::I64 => batch_matmul::<i64>(node)?,
        DType::U64 => batch_matmul::<u64>(node)?,
        DType::C128 => batch_matmul::<Complex64>(node)?,
        other => return Err(KernelError::invalid(format!("no product of {other}"))),
    };
    kernel(move |c| {
        for i in 0..2 {
            let input = engine_core::convert::convert(c.input(i)?, wide, c.allocator)?;
            c.inputs[i] = Some(input);
        }
        product.compute(c)?;
        if let Some(out) = c.outputs[0].take() {
            c.set(0, engine_core::convert::convert(&out, to, c.allocator)?);
        }
        Ok(())
    })
}

macro_rules! products {
    ($($op:literal $product:ident),+) => { &[ $(
        cpu($op, ("T", &[DType::F32]), $product::<f32>),
        cpu($op, ("T", &[DType::F64]), $product::<f64>),
        cpu($op, ("T", &[DType::I32]), $product::<i32>),
        cpu($op, ("T", &[DType::I64]), $product::<i64>),
        cpu($op, ("T", &[DType::U64]), $product::<u64>),
        cpu($op, ("T", &[DType::C64]), $product::<Complex32>),
        cpu($op, ("T", &[DType::C128]), $product::<Complex64>),
        widened($op, ("T", DType::NARROW_REAL)),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static PRODUCTS: &[KernelDef] = products!("MatMul" matmul, "BatchMatMul" batch_matmul, "BatchMatMulV2" batch_matmul);

#[linkme::distributed_slice(KERNEL_TABLES)]
static PRODUCTS_V3: &[KernelDef] = &[super::support::cpu_any("BatchMatMulV3", batch_matmul_v3)];
