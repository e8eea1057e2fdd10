//! Axes that many elements become one along.

use smallvec::SmallVec;

use super::axis;
use crate::ops::ShapeError;
use crate::shape::Shape;

/// The axes that `axes` mean, in a mask.
///
/// # Errors
/// One is not there.
pub fn axis_mask(axes: &[i64], rank: usize) -> Result<SmallVec<[bool; 8]>, ShapeError> {
    let mut mask = SmallVec::from_elem(false, rank);
    for a in axes {
        mask[axis(*a, rank)?] = true;
    }
    Ok(mask)
}

/// A tensor reduced along some of its axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reduction {
    /// The result's shape.
    pub shape: Shape,
    /// The input's dimensions, outermost first, and whether each is reduced; neighbours of a kind are one.
    pub dims: SmallVec<[(usize, bool); 4]>,
    /// How many elements go into one.
    pub n_reduced: usize,
}

impl Reduction {
    /// Along the axes of the mask, which stay as dimensions of 1 where `keeps` is set.
    pub fn new(of: &[usize], mask: &[bool], keeps: bool) -> Reduction {
        let mut dims: SmallVec<[(usize, bool); 4]> = SmallVec::new();
        let mut out: SmallVec<[usize; 4]> = SmallVec::new();
        for (dim, is_reduced) in of.iter().zip(mask) {
            match dims.last_mut() {
                Some(last) if last.1 == *is_reduced => last.0 *= dim,
                _ => dims.push((*dim, *is_reduced)),
            }
            if !is_reduced || keeps {
                out.push(if *is_reduced { 1 } else { *dim });
            }
        }
        let n_reduced = dims.iter().filter(|dim| dim.1).map(|dim| dim.0).product();
        Reduction { shape: Shape::new(&out), dims, n_reduced }
    }

    /// Along all axes but one.
    pub fn all_but(of: &[usize], axis: usize) -> Reduction {
        let mask: SmallVec<[bool; 8]> = (0..of.len()).map(|d| d != axis).collect();
        Reduction::new(of, &mask, false)
    }
}

/// A shape as one of its axes divides it: `outer` blocks of `n` rows of `inner` elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Along {
    /// The axis.
    pub axis: usize,
    /// The product of the dimensions before it.
    pub outer: usize,
    /// Its size.
    pub n: usize,
    /// The product of the dimensions behind it.
    pub inner: usize,
}

impl Along {
    /// A shape seen from this axis.
    ///
    /// # Errors
    /// There is no such axis.
    pub fn new(of: &Shape, along: i64) -> Result<Along, ShapeError> {
        let at = axis(along, of.rank())?;
        let (before, after) = (&of.dims()[..at], &of.dims()[at + 1..]);
        Ok(Along { axis: at, outer: before.iter().product(), n: of.dims()[at], inner: after.iter().product() })
    }

    /// The shape `of` with dimensions `by` in place of the axis.
    pub fn replaced(&self, of: &Shape, by: &[usize]) -> Shape {
        Shape::new(&[&of.dims()[..self.axis], by, &of.dims()[self.axis + 1..]].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_dimensions_of_a_kind_are_one() {
        let of = |dims: &[usize], axes: &[i64], keeps: bool| {
            let r = Reduction::new(dims, &axis_mask(axes, dims.len()).unwrap(), keeps);
            (r.shape.dims().to_vec(), r.dims.to_vec(), r.n_reduced)
        };
        assert_eq!(of(&[2, 3, 4, 5], &[2, -1], false), (vec![2, 3], vec![(6, false), (20, true)], 20));
        assert_eq!(of(&[2, 3, 4], &[0, 2], true), (vec![1, 3, 1], vec![(2, true), (3, false), (4, true)], 8));
        assert_eq!(of(&[2, 3], &[], false), (vec![2, 3], vec![(6, false)], 1));
        assert_eq!(of(&[], &[], false), (vec![], vec![], 1));
        assert_eq!(Reduction::all_but(&[2, 3, 4], 1).dims[..], [(2, true), (3, false), (4, true)]);
        assert!(axis_mask(&[1], 1).is_err());
    }

    #[test]
    fn an_axis_divides_a_shape() {
        let of = Shape::new(&[2, 3, 4, 5]);
        let along = Along::new(&of, -3).unwrap();
        assert_eq!(along, Along { axis: 1, outer: 2, n: 3, inner: 20 });
        assert_eq!(along.replaced(&of, &[7, 8]).dims(), [2, 7, 8, 4, 5]);
        assert!(Along::new(&Shape::scalar(), 0).is_err());
    }
}
