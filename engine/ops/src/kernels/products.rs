//! Kernels of what graph passes make of several matrix products: sums of products, computed as one over all their
//! steps, and products with a matrix that was packed for several of them.

use std::sync::Arc;

use smallvec::SmallVec;

use super::gemm::{Gemm, Matrix, Product, multiply_all, pack_right, packed_len};
use super::matmul::transposed;
use super::support::{Built, Computed, cpu, cpu_any, kernel, unique_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;
use engine_core::tensor_list::TensorList;

/// Steps of products that wait until they are added up together: enough that the sum's memory is seldom touched.
const WAITING_STEPS: usize = 256;

type Matrices<'a, T> = SmallVec<[Matrix<'a, T>; 8]>;

/// The pairs of matrices that are multiplied, with the shape that all products have.
fn pairs<'a, T: Gemm>(
    all: impl Iterator<Item = (&'a Tensor, &'a Tensor)>,
    transposed: (bool, bool),
) -> Result<(Matrices<'a, T>, Matrices<'a, T>, Shape), KernelError> {
    let (mut left, mut right) = (Matrices::new(), Matrices::new());
    for (a, b) in all {
        let [a, b] = Matrix::<T>::pair(a, b, transposed)?;
        left.push(a);
        right.push(b);
    }
    let (Some(a), Some(b)) = (left.first(), right.first()) else {
        return Err(KernelError::invalid("there is nothing to multiply"));
    };
    let (m, n) = (a.rows, b.cols);
    if let Some((a, b)) = left.iter().zip(&right).find(|(a, b)| (a.rows, b.cols) != (m, n)) {
        let text = format!("products of shapes [{m},{n}] and [{},{}] cannot be added", a.rows, b.cols);
        return Err(KernelError::invalid(text));
    }
    Ok((left, right, Shape::new(&[m, n])))
}

/// The sum of the products of the first half of the inputs with the second half.
fn sum_of_products<T: Gemm>(node: &Node) -> Built {
    let transposed = transposed(node)?;
    let sum = move |c: &KernelContext<'_>| {
        let n = c.inputs.len() / 2;
        let mut all: SmallVec<[(&Tensor, &Tensor); 8]> = SmallVec::new();
        for i in 0..n {
            all.push((c.input(i)?, c.input(n + i)?));
        }
        let (a, b, shape) = pairs::<T>(all.into_iter(), transposed)?;
        c.filled::<T>(shape, |out| {
            multiply_all(c.sharder, &Product { a: &a, b: &b, packed: None, adds: false, then: None }, out);
            Ok(())
        })
    };
    kernel(move |c| {
        let out = sum(c)?;
        c.set(0, out);
        Ok(())
    })
}

/// A sum with products that wait: a list of the sum, then the two matrices of each.
fn begin_products(c: &mut KernelContext<'_>) -> Computed {
    let sum = c.take(0)?;
    let mut list = TensorList::new(sum.dtype(), engine_core::shape::PartialShape::unknown());
    list.tensors.push(Some(sum));
    c.set(0, Tensor::list(list));
    Ok(())
}

fn add_product<T: Gemm>(node: &Node) -> Built {
    let transposed = transposed(node)?;
    kernel(move |c| {
        let mut list = c.take(0)?.into_list()?;
        let (a, b) = (c.take(1)?, c.take(2)?);
        // Before they wait: an error belongs to the node that brings the product.
        let (_, _, shape) = pairs::<T>(std::iter::once((&a, &b)), transposed)?;
        let sum = list.tensors.first().and_then(Option::as_ref).ok_or_else(|| KernelError::MissingInput(0))?;
        if *sum.shape() != shape {
            return Err(KernelError::invalid(format!("a product of shape {shape} cannot be added to {}", sum.shape())));
        }
        let steps = a.len() / shape.dims()[0].max(1);
        let waiting = list.tensors.iter().skip(1).step_by(2).flatten();
        let waiting: usize = waiting.map(|a| a.len() / shape.dims()[0].max(1)).sum();
        let own = Arc::make_mut(&mut list);
        own.tensors.extend([Some(a), Some(b)]);
        if waiting + steps >= WAITING_STEPS {
            add_up::<T>(c, own, transposed)?;
        }
        c.set(0, Tensor::list(list));
        Ok(())
    })
}

/// Adds the products that wait to the sum.
fn add_up<T: Gemm>(c: &KernelContext<'_>, list: &mut TensorList, transposed: (bool, bool)) -> Computed {
    let waiting: Vec<Tensor> = list.tensors.drain(1..).flatten().collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let (a, b, shape) = pairs::<T>(waiting.chunks_exact(2).map(|pair| (&pair[0], &pair[1])), transposed)?;
    let sum = list.tensors.pop().flatten().ok_or_else(|| KernelError::MissingInput(0))?;
    let mut sum = match sum.is_unique() {
        true => sum,
        false => c.filled::<T>(shape, |out| {
            out.copy_from_slice(sum.slice::<T>()?);
            Ok(())
        })?,
    };
    let product = Product { a: &a, b: &b, packed: None, adds: true, then: None };
    multiply_all(c.sharder, &product, unique_slice::<T>(&mut sum)?);
    list.tensors.push(Some(sum));
    Ok(())
}

fn end_products<T: Gemm>(node: &Node) -> Built {
    let transposed = transposed(node)?;
    kernel(move |c| {
        let mut list = c.take(0)?.into_list()?;
        let own = Arc::make_mut(&mut list);
        add_up::<T>(c, own, transposed)?;
        let sum = own.tensors.pop().flatten().ok_or_else(|| KernelError::MissingInput(0))?;
        c.set(0, sum);
        Ok(())
    })
}

/// Packs a matrix for products with it as the right one; where the machine has no use for that, nothing.
fn pack_matrix<T: Gemm>(node: &Node) -> Built {
    let transposed = *node.flag("transpose_b")?;
    kernel(move |c| {
        let b = Matrix::<T>::new(c.input(0)?, transposed, "b")?;
        let room = c.filled::<T>(Shape::new(&[packed_len(&b)]), |room| {
            pack_right(c.sharder, &b, room);
            Ok(())
        })?;
        c.set(0, room);
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static PRODUCTS: &[KernelDef] = &[
    cpu("_SumOfProducts", ("T", &[DType::F32]), sum_of_products::<f32>),
    cpu("_SumOfProducts", ("T", &[DType::F64]), sum_of_products::<f64>),
    cpu_any("_BeginProducts", |_| kernel(begin_products)),
    cpu("_AddProduct", ("T", &[DType::F32]), add_product::<f32>),
    cpu("_AddProduct", ("T", &[DType::F64]), add_product::<f64>),
    cpu("_EndProducts", ("T", &[DType::F32]), end_products::<f32>),
    cpu("_EndProducts", ("T", &[DType::F64]), end_products::<f64>),
    cpu("_PackMatrix", ("T", &[DType::F32]), pack_matrix::<f32>),
    cpu("_PackMatrix", ("T", &[DType::F64]), pack_matrix::<f64>),
];
