//! Sparse tensors in a graph: three edges that belong together.

use super::math::Built;
use super::{Graph, GraphError, Output};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// A sparse tensor: its values and where they lie.
#[derive(Debug, Clone, Copy)]
pub struct SparseTensor {
    /// Coordinates, int64 `[n, rank]`, in row-major order.
    pub indices: Output,
    /// Values, `[n]`.
    pub values: Output,
    /// The dense shape, int64 `[rank]`.
    pub shape: Output,
}

impl Graph {
    /// A constant sparse tensor: `indices` int64 `[n, rank]`, `values` `[n]`.
    ///
    /// # Errors
    /// The values are resources.
    pub fn sparse(&self, indices: Tensor, values: Tensor, shape: &Shape) -> Result<SparseTensor, GraphError> {
        let dims: Vec<i64> = shape.dims().iter().map(|d| *d as i64).collect();
        let (indices, values) = (self.constant(indices)?, self.constant(values)?);
        Ok(SparseTensor { indices, values, shape: self.constant(Tensor::vector(&dims))? })
    }

    /// The sparse matrix times a dense one.
    ///
    /// # Errors
    /// They do not fit.
    pub fn sparse_matmul(&self, a: SparseTensor, b: Output) -> Built {
        self.on_sparse("SparseTensorDenseMatMul", a).input(b).output()
    }

    /// All elements, zeros where there is no value.
    ///
    /// # Errors
    /// The values are no numbers.
    pub fn sparse_to_dense(&self, a: SparseTensor) -> Built {
        let zero = self.number(self.dtype(a.values)?, 0.0)?;
        let node = self.add_node("SparseToDense").input(a.indices).input(a.shape).input(a.values);
        node.input(zero).output()
    }

    /// The sum of two sparse tensors, with every coordinate that either has.
    ///
    /// # Errors
    /// They differ in type or shape.
    pub fn sparse_add(&self, a: SparseTensor, b: SparseTensor) -> Result<SparseTensor, GraphError> {
        let threshold = self.number(self.dtype(a.values)?.real(), 0.0)?;
        let node = self.on_sparse("SparseAdd", a).input(b.indices).input(b.values).input(b.shape).input(threshold);
        let indices = node.output()?;
        Ok(SparseTensor { indices, values: Output { port: 1, ..indices }, shape: Output { port: 2, ..indices } })
    }

    /// The sum along axes, dense.
    ///
    /// # Errors
    /// The values are no numbers.
    pub fn sparse_sum(&self, a: SparseTensor, axes: &[i32]) -> Built {
        let axes = self.int_vector(axes)?;
        self.on_sparse("SparseReduceSum", a).input(axes).output()
    }

    /// The same with the coordinates in row-major order.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn sparse_reorder(&self, a: SparseTensor) -> Result<SparseTensor, GraphError> {
        let indices = self.on_sparse("SparseReorder", a).output()?;
        Ok(SparseTensor { indices, values: Output { port: 1, ..indices }, shape: a.shape })
    }

    fn on_sparse<'g>(&'g self, op: &'g str, a: SparseTensor) -> super::NodeBuilder<'g> {
        self.add_node(op).input(a.indices).input(a.values).input(a.shape)
    }
}
