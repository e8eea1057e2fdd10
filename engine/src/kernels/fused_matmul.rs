//! Matrix products with a bias and a relu, applied to each block of the product while it is in the cache.

use super::gemm::{Gemm, Matrix, multiply_then};
use super::support::{Built, Computed, cpu, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::DType;
use crate::graph::{Attr, Node};
use crate::shape::Shape;

fn compute<T: Gemm + PartialOrd + std::ops::Add<Output = T>>(
    ctx: &mut KernelContext<'_>,
    (transpose_a, transpose_b): (bool, bool),
    with_relu: bool,
) -> Computed {
    let (a, b, bias) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    let (shape_a, shape_b) = (a.shape(), b.shape());
    let (a, b) = (Matrix::<T>::new(a, transpose_a, "a")?, Matrix::<T>::new(b, transpose_b, "b")?);
    if a.cols != b.rows {
        let text = format!("inner dimensions differ: {} and {} (inputs {shape_a}, {shape_b})", a.cols, b.rows);
        return Err(KernelError::invalid(text));
    }
    if bias.dims() != [b.cols] {
        let text = format!("a bias of shape {} does not fit a product of {} columns", bias.shape(), b.cols);
        return Err(KernelError::invalid(text));
    }
    let bias = bias.slice::<T>()?;
    let finish = |column: usize, row: &mut [T]| {
        row.iter_mut().zip(&bias[column..]).for_each(|(v, b)| *v = *v + *b);
        if with_relu {
            row.iter_mut().for_each(|v| *v = if *v < T::ZERO { T::ZERO } else { *v });
        }
    };
    let out = ctx.filled::<T>(Shape::new(&[a.rows, b.cols]), |out| {
        if !out.is_empty() {
            multiply_then(ctx.sharder, a, b, out, Some(&finish));
        }
        Ok(())
    })?;
    ctx.set(0, out);
    Ok(())
}

fn make<T: Gemm + PartialOrd + std::ops::Add<Output = T>>(node: &Node) -> Built {
    let transposed = (*node.flag("transpose_a")?, *node.flag("transpose_b")?);
    let Some(Attr::ListStr(ops)) = node.attrs.get("fused_ops") else {
        return Err(KernelError::invalid("attribute fused_ops is missing"));
    };
    let ops: Vec<&[u8]> = ops.iter().map(Vec::as_slice).collect();
    let with_relu = match ops.as_slice() {
        [b"BiasAdd"] => false,
        [b"BiasAdd", b"Relu"] => true,
        _ => return Err(KernelError::invalid("fused_ops must be BiasAdd, or BiasAdd and Relu")),
    };
    kernel(move |c| compute::<T>(c, transposed, with_relu))
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static FUSED_MATMUL: &[KernelDef] =
    &[cpu("_FusedMatMul", ("T", &[DType::F32]), make::<f32>), cpu("_FusedMatMul", ("T", &[DType::F64]), make::<f64>)];
