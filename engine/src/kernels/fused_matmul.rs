//! Matrix products with a bias and a relu, applied to each block of the product while it is in the cache, and with a
//! right matrix that was packed before.

use super::gemm::{Epilogue, Gemm, Matrix, Product, multiply_all, packed_len};
use super::support::{Built, Computed, cpu, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::DType;
use crate::graph::{Attr, Node};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// What follows a product.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Nothing,
    Bias,
    BiasRelu,
}

struct Fused {
    transposed: (bool, bool),
    then: Then,
    /// Whether input 2 is the right matrix, packed.
    is_packed: bool,
}

impl Fused {
    fn compute<T: Gemm + PartialOrd + std::ops::Add<Output = T>>(&self, ctx: &mut KernelContext<'_>) -> Computed {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        let (shape_a, shape_b) = (a.shape(), b.shape());
        let (a, b) = (Matrix::<T>::new(a, self.transposed.0, "a")?, Matrix::<T>::new(b, self.transposed.1, "b")?);
        if a.cols != b.rows {
            let text = format!("inner dimensions differ: {} and {} (inputs {shape_a}, {shape_b})", a.cols, b.rows);
            return Err(KernelError::invalid(text));
        }
        let packed = if self.is_packed { Some(ctx.slice::<T>(2)?) } else { None };
        let bias: &[T] = match self.then {
            Then::Nothing => &[],
            Then::Bias | Then::BiasRelu => bias(ctx.input(2 + usize::from(self.is_packed))?, b.cols)?,
        };
        let finish = |column: usize, row: &mut [T]| {
            row.iter_mut().zip(&bias[column..]).for_each(|(v, b)| *v = *v + *b);
            if self.then == Then::BiasRelu {
                row.iter_mut().for_each(|v| *v = if *v < T::ZERO { T::ZERO } else { *v });
            }
        };
        let then: Option<Epilogue<'_, T>> = if self.then == Then::Nothing { None } else { Some(&finish) };
        // One that was packed on a machine without tiles is empty.
        let packed = packed.filter(|packed| packed.len() == packed_len(&b) && !packed.is_empty());
        let product = Product { a: &[a], b: &[b], packed, adds: false, then };
        let out = ctx.filled::<T>(Shape::new(&[a.rows, b.cols]), |out| {
            if !out.is_empty() {
                multiply_all(ctx.sharder, &product, out);
            }
            Ok(())
        })?;
        ctx.set(0, out);
        Ok(())
    }
}

fn bias<T: Gemm>(bias: &Tensor, columns: usize) -> Result<&[T], KernelError> {
    if bias.dims() != [columns] {
        let text = format!("a bias of shape {} does not fit a product of {columns} columns", bias.shape());
        return Err(KernelError::invalid(text));
    }
    Ok(bias.slice::<T>()?)
}

fn make<T: Gemm + PartialOrd + std::ops::Add<Output = T>>(node: &Node, is_packed: bool) -> Built {
    let transposed = (*node.flag("transpose_a")?, *node.flag("transpose_b")?);
    let Some(Attr::ListStr(ops)) = node.attrs.get("fused_ops") else {
        return Err(KernelError::invalid("attribute fused_ops is missing"));
    };
    let ops: Vec<&[u8]> = ops.iter().map(Vec::as_slice).collect();
    let then = match ops.as_slice() {
        [] if is_packed => Then::Nothing,
        [b"BiasAdd"] => Then::Bias,
        [b"BiasAdd", b"Relu"] => Then::BiasRelu,
        _ => return Err(KernelError::invalid("fused_ops must be BiasAdd, or BiasAdd and Relu")),
    };
    let fused = Fused { transposed, then, is_packed };
    kernel(move |c| fused.compute::<T>(c))
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static FUSED_MATMUL: &[KernelDef] = &[
    cpu("_FusedMatMul", ("T", &[DType::F32]), |n| make::<f32>(n, false)),
    cpu("_FusedMatMul", ("T", &[DType::F64]), |n| make::<f64>(n, false)),
    cpu("_PackedMatMul", ("T", &[DType::F32]), |n| make::<f32>(n, true)),
    cpu("_PackedMatMul", ("T", &[DType::F64]), |n| make::<f64>(n, true)),
];
