//! Tensors whose elements are those of another one, in an order that strides describe.

use smallvec::{SmallVec, smallvec};

use super::{axis_mask, checked, permutation};
use crate::ops::ShapeError;
use crate::shape::Shape;

type Dims = SmallVec<[usize; 8]>;
type Strides = SmallVec<[isize; 8]>;

/// What a tensor reads (or writes) of another one: its element at `index` of `dims` is the other's at
/// `first + index * strides`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The dimensions that are walked: the elements of `shape`, in its order.
    pub dims: Dims,
    /// How far apart the other tensor's elements lie along each of them.
    pub strides: Strides,
    /// The other tensor's element that is the first.
    pub first: isize,
    /// The tensor's shape.
    pub shape: Shape,
}

impl View {
    /// All elements of a tensor, as they lie.
    pub fn of(shape: &Shape) -> View {
        let strides = shape.strides().iter().map(|stride| *stride as isize).collect();
        View { dims: shape.dims().into(), strides, first: 0, shape: shape.clone() }
    }

    /// A tensor's only element at every position of a shape.
    pub fn repeated(shape: &Shape) -> View {
        View { dims: shape.dims().into(), strides: smallvec![0; shape.rank()], first: 0, shape: shape.clone() }
    }

    /// Whether these are all elements of a tensor of this shape, as they lie.
    pub fn is_all_of(&self, shape: &Shape) -> bool {
        self.shape == *shape && *self == View::of(shape)
    }

    /// The axes in another order.
    pub fn permuted(of: &Shape, order: &[usize]) -> View {
        let own = of.strides();
        let dims: Dims = order.iter().map(|axis| of.dims()[*axis]).collect();
        let strides = order.iter().map(|axis| own[*axis] as isize).collect();
        View { shape: Shape::new(&dims), dims, strides, first: 0 }
    }

    /// As [`View::permuted`], axes as an op takes them.
    ///
    /// # Errors
    /// They are no permutation.
    pub fn transposed(of: &Shape, axes: &[i64]) -> Result<View, ShapeError> {
        Ok(View::permuted(of, &permutation(axes, of.rank())?))
    }

    /// Repeated along dimensions of 1 and such as it lacks.
    ///
    /// # Errors
    /// The shape does not broadcast to `to`, or that is too large.
    pub fn broadcast(of: &Shape, to: &Shape) -> Result<View, ShapeError> {
        let mut view = View::repeated(&checked(to.clone())?);
        let fits = |new: &usize| of.dims().iter().zip(&to.dims()[*new..]).all(|(from, to)| from == to || *from == 1);
        let Some(new) = to.rank().checked_sub(of.rank()).filter(fits) else {
            return Err(ShapeError(format!("shape {of} does not broadcast to {to}")));
        };
        for (i, (dim, stride)) in of.dims().iter().zip(of.strides()).enumerate() {
            view.strides[new + i] = if *dim == 1 { 0 } else { stride as isize };
        }
        Ok(view)
    }

    /// `size` elements from `begin` on of each axis; a size of -1 is all that follow.
    ///
    /// # Errors
    /// They do not lie in the shape.
    pub fn slice(of: &Shape, begin: &[i64], size: &[i64]) -> Result<View, ShapeError> {
        let rank = of.rank();
        if begin.len() != rank || size.len() != rank {
            return Err(ShapeError(format!("begin and size must have {rank} numbers for shape {of}")));
        }
        let mut view = View::of(of);
        for (i, (begin_here, size_here)) in begin.iter().zip(size).enumerate() {
            let dim = view.dims[i] as i64;
            let n = if *size_here == -1 { dim.saturating_sub(*begin_here) } else { *size_here };
            if *begin_here < 0 || n < 0 || begin_here.checked_add(n).is_none_or(|end| end > dim) {
                return Err(ShapeError(format!("begin {begin:?} and size {size:?} lie outside of shape {of}")));
            }
            view.first += *begin_here as isize * view.strides[i];
            view.dims[i] = n as usize;
        }
        view.shape = Shape::new(&view.dims);
        Ok(view)
    }

    /// Each axis as often as `multiples` says, one copy behind the other.
    ///
    /// # Errors
    /// There is not one multiple for each axis, or the result is too large.
    pub fn tiled(of: &Shape, multiples: &Shape) -> Result<View, ShapeError> {
        if multiples.rank() != of.rank() {
            return Err(ShapeError(format!("{multiples} does not have one multiple per axis of {of}")));
        }
        // An axis repeated m times is two: the repetition (stride 0), and itself.
        let pairs = || of.dims().iter().copied().zip(multiples.dims().iter().copied());
        let full: Dims = pairs().map(|(dim, m)| dim.saturating_mul(m)).collect();
        let shape = checked(Shape::new(&full))?;
        let dims = pairs().flat_map(|(dim, m)| [m, dim]).collect();
        let strides = of.strides().iter().flat_map(|stride| [0, *stride as isize]).collect();
        Ok(View { dims, strides, first: 0, shape })
    }

    /// The axes of the mask backwards.
    ///
    /// # Errors
    /// The mask has not one truth value for each axis.
    pub fn reversed(of: &Shape, mask: &[bool]) -> Result<View, ShapeError> {
        if mask.len() != of.rank() {
            return Err(ShapeError(format!("{} truth values for shape {of}", mask.len())));
        }
        let mut view = View::of(of);
        for axis in (0..mask.len()).filter(|axis| mask[*axis]) {
            view.first += view.strides[axis] * view.dims[axis].saturating_sub(1) as isize;
            view.strides[axis] = -view.strides[axis];
        }
        Ok(view)
    }

    /// As [`View::reversed`], the axes listed.
    ///
    /// # Errors
    /// One is not there, or is listed twice.
    pub fn reversed_axes(of: &Shape, axes: &[i64]) -> Result<View, ShapeError> {
        let mask = axis_mask(axes, of.rank())?;
        if mask.iter().filter(|reversed| **reversed).count() != axes.len() {
            return Err(ShapeError(format!("axes {axes:?} name one twice")));
        }
        View::reversed(of, &mask)
    }

    /// Dimensions and strides with ones left out and neighbours that run together merged; at least one.
    pub fn coalesced(&self) -> (Dims, Strides) {
        let (mut dims, mut strides) = (Dims::new(), Strides::new());
        for (dim, stride) in self.dims.iter().zip(&self.strides).filter(|(dim, _)| **dim != 1) {
            match (dims.last_mut(), strides.last_mut()) {
                (Some(outer), Some(step)) if *step == *stride * *dim as isize => {
                    *outer *= dim;
                    *step = *stride;
                }
                _ => {
                    dims.push(*dim);
                    strides.push(*stride);
                }
            }
        }
        if dims.is_empty() {
            dims.push(1);
            strides.push(1);
        }
        (dims, strides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(view: &View) -> (&[usize], &[isize], isize, &[usize]) {
        (&view.dims[..], &view.strides[..], view.first, view.shape.dims())
    }

    #[test]
    fn views_say_where_elements_lie() {
        let of = Shape::new(&[2, 3, 4]);
        let view = View::transposed(&of, &[2, 0, -2]).unwrap();
        assert_eq!(parts(&view), (&[4, 2, 3][..], &[1, 12, 4][..], 0, &[4, 2, 3][..]));
        let view = View::slice(&of, &[1, 0, 2], &[1, -1, 1]).unwrap();
        assert_eq!(parts(&view), (&[1, 3, 1][..], &[12, 4, 1][..], 14, &[1, 3, 1][..]));
        let view = View::tiled(&of, &[1, 2, 1].into()).unwrap();
        assert_eq!(parts(&view), (&[1, 2, 2, 3, 1, 4][..], &[0, 12, 0, 4, 0, 1][..], 0, &[2, 6, 4][..]));
        let view = View::broadcast(&[3, 1].into(), &of).unwrap();
        assert_eq!(parts(&view), (&[2, 3, 4][..], &[0, 1, 0][..], 0, &[2, 3, 4][..]));
        let view = View::reversed_axes(&of, &[0, -1]).unwrap();
        assert_eq!(parts(&view), (&[2, 3, 4][..], &[-12, 4, -1][..], 15, &[2, 3, 4][..]));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let of = Shape::new(&[2, 3]);
        assert!(View::slice(&of, &[0, 1], &[2, 3]).is_err());
        assert!(View::slice(&of, &[0, i64::MAX], &[2, 1]).is_err());
        assert!(View::slice(&of, &[0], &[2]).is_err());
        assert!(View::tiled(&of, &[2].into()).is_err());
        assert!(View::tiled(&of, &[usize::MAX, 2].into()).is_err());
        assert!(View::broadcast(&of, &[3].into()).is_err());
        assert!(View::broadcast(&of, &[2, 1].into()).is_err());
        assert!(View::broadcast(&[1].into(), &[1 << 40, 1 << 40].into()).is_err());
        assert!(View::reversed_axes(&of, &[0, -2]).is_err());
        assert!(View::reversed(&of, &[true]).is_err());
    }

    #[test]
    fn neighbours_that_run_together_are_one_dimension() {
        let of = Shape::new(&[2, 3, 4]);
        let coalesced = |view: View| {
            let (dims, strides) = view.coalesced();
            (dims.to_vec(), strides.to_vec())
        };
        assert_eq!(coalesced(View::of(&of)), (vec![24], vec![1]));
        assert_eq!(coalesced(View::repeated(&of)), (vec![24], vec![0]));
        assert_eq!(coalesced(View::of(&Shape::scalar())), (vec![1], vec![1]));
        assert_eq!(coalesced(View::permuted(&of, &[1, 2, 0])), (vec![12, 2], vec![1, 12]));
        assert_eq!(coalesced(View::slice(&of, &[0, 1, 0], &[2, 2, 4]).unwrap()), (vec![2, 8], vec![12, 1]));
        assert!(View::permuted(&of, &[0, 1, 2]).is_all_of(&of) && !View::permuted(&of, &[0, 2, 1]).is_all_of(&of));
    }
}
