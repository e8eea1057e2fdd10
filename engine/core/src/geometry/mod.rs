//! The geometry of ops: axes resolved, sizes checked, the output's shape, and where its elements lie in the inputs.
//!
//! Shape inference and the kernels of every device use the same, so that what fits, and the message where something does not,
//! are written once; which inputs and attributes an op takes its numbers from is in `engine_ops::kernels::measure`.

mod gather;
mod pad;
mod partition;
mod reduction;
mod rows;
mod view;

pub use gather::{Gather, Indexing, OneHot, Places};
pub use pad::{Pad, paddings};
pub use partition::Partition;
pub use reduction::{Along, Reduction, axis_mask};
pub use rows::Rows;
pub use view::View;

use crate::ops::ShapeError;
use crate::shape::Shape;

/// The axis that `axis` means in a shape of this rank; negative ones count from the end.
///
/// # Errors
/// There is no such axis.
pub fn axis(axis: i64, rank: usize) -> Result<usize, ShapeError> {
    let from_start = if axis < 0 { axis + rank as i64 } else { axis };
    let found = usize::try_from(from_start).ok().filter(|axis| *axis < rank);
    found.ok_or_else(|| ShapeError(format!("axis {axis} is outside of [-{rank}, {rank})")))
}

/// The axes in the order of a permutation.
///
/// # Errors
/// Not each axis of a shape of this rank is there once.
pub fn permutation(axes: &[i64], rank: usize) -> Result<Vec<usize>, ShapeError> {
    let order = axes.iter().map(|a| axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
    if order.len() != rank || (0..rank).any(|axis| !order.contains(&axis)) {
        return Err(ShapeError(format!("{axes:?} is not a permutation of {rank} axes")));
    }
    Ok(order)
}

/// The only one of `values`, which the error calls `name`.
///
/// # Errors
/// There are none, or more.
pub fn one(name: &str, values: &[i64]) -> Result<i64, ShapeError> {
    match values {
        [value] => Ok(*value),
        _ => Err(ShapeError(format!("{name} must be one integer, got {values:?}"))),
    }
}

/// The shape `wanted` for the elements of another; one dimension may be -1: what the others leave.
///
/// # Errors
/// It is no shape, or one of more or fewer elements.
pub fn reshaped(of: &Shape, wanted: &[i64]) -> Result<Shape, ShapeError> {
    let mut dims: Vec<usize> = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (i, size) in wanted.iter().enumerate() {
        match usize::try_from(*size) {
            Ok(size) => dims.push(size),
            Err(_) if *size == -1 && open.is_none() => {
                open = Some(i);
                dims.push(1);
            }
            Err(_) => return Err(ShapeError(format!("{wanted:?} is not a shape (at most one -1)"))),
        }
    }
    let (n, known) = (of.n_elements(), Shape::new(&dims).checked_n_elements());
    let fits = match (open, known) {
        (None, known) => known == Some(n),
        (Some(_), None | Some(0)) => false,
        (Some(i), Some(known)) => {
            dims[i] = n / known;
            n.is_multiple_of(known)
        }
    };
    if fits { Ok(Shape::new(&dims)) } else { Err(ShapeError(format!("{n} elements do not fit shape {wanted:?}"))) }
}

/// The shape, where a tensor may be so large.
///
/// # Errors
/// It has too many elements.
pub fn checked(shape: Shape) -> Result<Shape, ShapeError> {
    match shape.checked_n_elements() {
        Some(_) => Ok(shape),
        None => Err(ShapeError(format!("shape {shape} is too large"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!([0, 2, -1, -3].map(|a| axis(a, 3).ok()), [Some(0), Some(2), Some(2), Some(0)]);
        assert_eq!([3, -4, i64::MIN, i64::MAX].map(|a| axis(a, 3).ok()), [None; 4]);
        assert!(axis(0, 0).is_err());
    }

    #[test]
    fn one_size_may_be_left_open() {
        let of = Shape::new(&[2, 6]);
        assert_eq!(reshaped(&of, &[3, -1, 2]).unwrap().dims(), [3, 2, 2]);
        assert_eq!(reshaped(&of, &[12]).unwrap().dims(), [12]);
        assert_eq!(reshaped(&[0, 3].into(), &[3, -1]).unwrap().dims(), [3, 0]);
        assert_eq!(reshaped(&[1].into(), &[]).unwrap(), Shape::scalar());
        for wrong in [&[5, -1][..], &[-1, -1], &[-2, -6], &[0, -1], &[11], &[i64::MAX, i64::MAX]] {
            assert!(reshaped(&of, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn permutations_have_each_axis_once() {
        assert_eq!(permutation(&[2, 0, -2], 3).unwrap(), [2, 0, 1]);
        assert_eq!(permutation(&[], 0).unwrap(), [0usize; 0]);
        for wrong in [&[0, 1][..], &[0, 0, 1], &[0, 1, 3], &[0, 1, 2, 0]] {
            assert!(permutation(wrong, 3).is_err(), "{wrong:?}");
        }
    }
}
