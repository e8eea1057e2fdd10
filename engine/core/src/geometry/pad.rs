//! Tensors with more around them.

use super::{View, checked};
use crate::ops::ShapeError;
use crate::shape::Shape;

/// What is put before and behind each dimension of `x`: numbers `by` in a tensor of shape `of`.
///
/// # Errors
/// It does not list two numbers for each dimension, or a negative one.
pub fn paddings(x: &Shape, of: &Shape, by: &[i64]) -> Result<Vec<[usize; 2]>, ShapeError> {
    if of.dims() != [x.rank(), 2] {
        return Err(ShapeError(format!("paddings must have shape [{},2] for input {x}, got {of}", x.rank())));
    }
    let size = |v: i64| usize::try_from(v).map_err(|_| ShapeError(format!("padding {v} is negative")));
    by.as_chunks::<2>().0.iter().map(|[a, b]| Ok([size(*a)?, size(*b)?])).collect()
}

/// A tensor in the middle of a larger one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pad {
    /// The larger tensor's shape.
    pub shape: Shape,
    /// Where the tensor lies in the larger one.
    pub inside: View,
}

impl Pad {
    /// With these [`paddings`] around `x`.
    ///
    /// # Errors
    /// The result is too large.
    pub fn new(x: &Shape, by: &[[usize; 2]]) -> Result<Pad, ShapeError> {
        let padded = |(dim, [a, b]): (&usize, &[usize; 2])| dim.saturating_add(*a).saturating_add(*b);
        let dims: Vec<usize> = x.dims().iter().zip(by).map(padded).collect();
        let shape = checked(Shape::new(&dims))?;
        let strides = View::of(&shape).strides;
        let first = by.iter().zip(&strides).map(|([before, _], stride)| *before as isize * stride).sum();
        let inside = View { strides, first, ..View::of(x) };
        Ok(Pad { shape, inside })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_lies_behind_what_is_before_it() {
        let x = Shape::new(&[2, 3]);
        let by = paddings(&x, &[2, 2].into(), &[1, 0, 2, 1]).unwrap();
        let pad = Pad::new(&x, &by).unwrap();
        assert_eq!((pad.shape.dims(), pad.inside.first), (&[3, 6][..], 8));
        assert_eq!((&pad.inside.dims[..], &pad.inside.strides[..]), (&[2, 3][..], &[6, 1][..]));
        assert!(paddings(&x, &[2, 2].into(), &[1, 0, -2, 1]).is_err());
        assert!(paddings(&x, &[4].into(), &[1, 0, 2, 1]).is_err());
        assert!(Pad::new(&x, &[[usize::MAX, 1], [0, 0]]).is_err());
    }
}
