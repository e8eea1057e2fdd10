//! The sizes of matrix products and what follows them, the same for the kernels of all devices.

use super::KernelError;
use super::broadcast::Broadcast;
use engine_core::graph::{Attr, Node};
use engine_core::shape::Shape;

/// The sizes of products of batches of matrices, `[.., m, k]` by `[.., k, n]`, whose batches are broadcast against each
/// other.
#[derive(Debug)]
pub struct MatMulGeometry {
    /// Rows of the left matrices and of the products.
    pub m: usize,
    /// Columns of the left matrices, rows of the right ones.
    pub k: usize,
    /// Columns of the right matrices and of the products.
    pub n: usize,
    batches: Broadcast,
}

impl MatMulGeometry {
    /// Of operands of these dimensions, the last two of which are exchanged in memory where they are `transposed`.
    ///
    /// # Errors
    /// They are no matrices, their inner dimensions differ, or their batches do not broadcast.
    pub fn new(x: &[usize], y: &[usize], transposed: (bool, bool)) -> Result<MatMulGeometry, KernelError> {
        let (batch_x, [m, k]) = matrices(x, transposed.0)?;
        let (batch_y, [inner, n]) = matrices(y, transposed.1)?;
        check_inner((k, inner), &Shape::new(x), &Shape::new(y))?;
        Ok(MatMulGeometry { m, k, n, batches: Broadcast::new(&Shape::new(batch_x), &Shape::new(batch_y))? })
    }

    /// The shape of the products.
    pub fn output(&self) -> Shape {
        Shape::new(&[self.batches.shape.dims(), &[self.m, self.n]].concat())
    }

    /// The number of products, and how many matrices each operand moves from one to the next, where that is always the
    /// same.
    pub fn strided(&self) -> Option<(usize, [usize; 2])> {
        let [n] = self.batches.dims[..] else { return None };
        Some((n, self.batches.strides.each_ref().map(|steps| steps[0])))
    }

    /// Of each product the numbers of the two matrices.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn pairs(&self) -> Result<Vec<[usize; 2]>, KernelError> {
        Ok(self.batches.positions()?)
    }
}

/// The dimensions of the batch, rows and columns.
fn matrices(dims: &[usize], transposed: bool) -> Result<(&[usize], [usize; 2]), KernelError> {
    match dims {
        [batch @ .., rows, columns] if transposed => Ok((batch, [*columns, *rows])),
        [batch @ .., rows, columns] => Ok((batch, [*rows, *columns])),
        _ => Err(KernelError::invalid(format!("the inputs must be matrices, got shape {}", Shape::new(dims)))),
    }
}

/// That the columns of the left factor are as many as the rows of the right one.
pub(super) fn check_inner((k, rows): (usize, usize), x: &Shape, y: &Shape) -> Result<(), KernelError> {
    if k == rows {
        return Ok(());
    }
    Err(KernelError::invalid(format!("inner dimensions differ: {k} and {rows} (inputs {x}, {y})")))
}

/// What follows a product within its kernel: attribute `fused_ops`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedOps {
    /// Nothing.
    Nothing,
    /// A bias is added to each row.
    Bias,
    /// A bias is added, and what is less than 0 becomes 0.
    BiasRelu,
}

impl FusedOps {
    /// Those of a node.
    ///
    /// # Errors
    /// The attribute is missing, or lists others.
    pub fn of(node: &Node) -> Result<FusedOps, KernelError> {
        let Some(Attr::ListStr(ops)) = node.attrs.get("fused_ops") else {
            return Err(KernelError::invalid("attribute fused_ops is missing"));
        };
        match ops.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
            [] => Ok(FusedOps::Nothing),
            [b"BiasAdd"] => Ok(FusedOps::Bias),
            [b"BiasAdd", b"Relu"] => Ok(FusedOps::BiasRelu),
            _ => Err(KernelError::invalid("fused_ops must be BiasAdd, or BiasAdd and Relu")),
        }
    }
}

/// Whether the factors of a product are transposed in memory: attributes `transpose_a` and `transpose_b`.
///
/// # Errors
/// One is missing.
pub(super) fn transposed(node: &Node) -> Result<(bool, bool), KernelError> {
    Ok((*node.flag("transpose_a")?, *node.flag("transpose_b")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_walked_evenly_or_by_pairs() {
        let of = |x: &[usize], y: &[usize]| MatMulGeometry::new(x, y, (false, true)).unwrap();
        let plain = of(&[2, 3], &[4, 3]);
        assert_eq!((plain.m, plain.k, plain.n), (2, 3, 4));
        assert_eq!((plain.output(), plain.strided()), (Shape::new(&[2, 4]), Some((1, [0, 0]))));
        assert_eq!(of(&[5, 6, 2, 3], &[5, 6, 4, 3]).strided(), Some((30, [1, 1])));
        assert_eq!(of(&[5, 2, 3], &[1, 4, 3]).strided(), Some((5, [1, 0])));
        let mixed = of(&[2, 1, 2, 3], &[2, 4, 3]);
        assert_eq!((mixed.output(), mixed.strided()), (Shape::new(&[2, 2, 2, 4]), None));
        assert_eq!(mixed.pairs().unwrap(), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert!(MatMulGeometry::new(&[2, 3], &[4, 3], (false, false)).is_err());
        assert!(MatMulGeometry::new(&[3], &[4, 3], (false, true)).is_err());
    }
}
