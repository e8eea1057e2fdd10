//! Sparse tensors in a graph: three edges that belong together.

use super::{Graph, Output, Value};
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
    pub fn sparse(&self, indices: Tensor, values: Tensor, shape: &Shape) -> SparseTensor {
        let dims: Vec<i64> = shape.dims().iter().map(|d| *d as i64).collect();
        let [indices, values, shape] =
            [indices, values, Tensor::vector(&dims)].map(|part| self.constant(part).output());
        SparseTensor { indices, values, shape }
    }

    /// The sparse matrix times a dense one.
    pub fn sparse_matmul(&self, a: SparseTensor, b: impl Into<Output>) -> Value<'_> {
        self.on_sparse("SparseTensorDenseMatMul", a).input(b).value()
    }

    /// All elements, zeros where there is no value.
    pub fn sparse_to_dense(&self, a: SparseTensor) -> Value<'_> {
        let zero = self.value(a.values).number(0.0);
        let node = self.add_node("SparseToDense").input(a.indices).input(a.shape).input(a.values);
        node.input(zero).value()
    }

    /// The sum of two sparse tensors, with every coordinate that either has.
    pub fn sparse_add(&self, a: SparseTensor, b: SparseTensor) -> SparseTensor {
        let threshold = self.number(self.value(a.values).dtype().real(), 0.0);
        let node = self.on_sparse("SparseAdd", a).input(b.indices).input(b.values).input(b.shape).input(threshold);
        let indices = node.value();
        let [values, shape] = [1, 2].map(|port| indices.port(port).output());
        SparseTensor { indices: indices.output(), values, shape }
    }

    /// The sum along axes, dense.
    pub fn sparse_sum(&self, a: SparseTensor, axes: &[i32]) -> Value<'_> {
        let axes = self.ints(axes);
        self.on_sparse("SparseReduceSum", a).input(axes).value()
    }

    /// The same with the coordinates in row-major order.
    pub fn sparse_reorder(&self, a: SparseTensor) -> SparseTensor {
        let indices = self.on_sparse("SparseReorder", a).value();
        SparseTensor { indices: indices.output(), values: indices.port(1).output(), shape: a.shape }
    }

    fn on_sparse<'g>(&'g self, op: &'g str, a: SparseTensor) -> super::NodeBuilder<'g> {
        self.add_node(op).input(a.indices).input(a.values).input(a.shape)
    }
}
