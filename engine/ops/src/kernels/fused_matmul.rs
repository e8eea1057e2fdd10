//! Matrix products with a bias and a relu, applied to each block of the product while it is in the cache, and with a
//! right matrix that was packed before.

use super::gemm::{Epilogue, Gemm, Matrix, Product, multiply_all, packed_len};
use super::matmul::{FusedOps, transposed};
use super::support::{Built, Computed, cpu, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

struct Fused {
    transposed: (bool, bool),
    ops: FusedOps,
    /// Whether input 2 is the right matrix, packed.
    is_packed: bool,
}

impl Fused {
    fn compute<T: Gemm + PartialOrd + std::ops::Add<Output = T>>(&self, ctx: &mut KernelContext<'_>) -> Computed {
        let [a, b] = Matrix::<T>::pair(ctx.input(0)?, ctx.input(1)?, self.transposed)?;
        let packed = if self.is_packed { Some(ctx.slice::<T>(2)?) } else { None };
        let bias: &[T] = match self.ops {
            FusedOps::Nothing => &[],
            FusedOps::Bias | FusedOps::BiasRelu => bias(ctx.input(2 + usize::from(self.is_packed))?, b.cols)?,
        };
        let finish = |column: usize, row: &mut [T]| {
            row.iter_mut().zip(&bias[column..]).for_each(|(v, b)| *v = *v + *b);
            if self.ops == FusedOps::BiasRelu {
                row.iter_mut().for_each(|v| *v = if *v < T::ZERO { T::ZERO } else { *v });
            }
        };
        let then: Option<Epilogue<'_, T>> = if self.ops == FusedOps::Nothing { None } else { Some(&finish) };
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
    let fused = Fused { transposed: transposed(node)?, ops: FusedOps::of(node)?, is_packed };
    kernel(move |c| fused.compute::<T>(c))
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static FUSED_MATMUL: &[KernelDef] = &[
    cpu("_FusedMatMul", ("T", &[DType::F32]), |n| make::<f32>(n, false)),
    cpu("_FusedMatMul", ("T", &[DType::F64]), |n| make::<f64>(n, false)),
    cpu("_PackedMatMul", ("T", &[DType::F32]), |n| make::<f32>(n, true)),
    cpu("_PackedMatMul", ("T", &[DType::F64]), |n| make::<f64>(n, true)),
];
