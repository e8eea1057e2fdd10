//! Tensors side by side along an axis of a larger one.

use smallvec::{SmallVec, smallvec};

use super::{View, axis, checked};
use crate::ops::ShapeError;
use crate::shape::Shape;

/// Tensors side by side along an axis of a larger one: what is concatenated or packed, split or unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The larger tensor's shape.
    pub shape: Shape,
    /// The shape of each part.
    pub parts: SmallVec<[Shape; 4]>,
    /// The product of the dimensions before the axis. In each of these rows of the larger tensor, the parts' own rows lie one
    /// behind the other.
    pub outer: usize,
    /// The elements of each part's rows.
    pub rows: SmallVec<[usize; 8]>,
}

impl Partition {
    /// Parts of these sizes along axis `at`, which they have (`keeps_axis`) or, each of size 1, lack.
    fn new(shape: Shape, at: usize, sizes: &[usize], keeps_axis: bool) -> Result<Partition, ShapeError> {
        let shape = checked(shape)?;
        let inner: usize = shape.dims()[at + 1..].iter().product();
        let part = |size: &usize| {
            let (before, after) = (&shape.dims()[..at], &shape.dims()[at + 1..]);
            let own: &[usize] = if keeps_axis { std::slice::from_ref(size) } else { &[] };
            Shape::new(&[before, own, after].concat())
        };
        let parts = sizes.iter().map(part).collect();
        let rows = sizes.iter().map(|size| size * inner).collect();
        Ok(Partition { outer: shape.dims()[..at].iter().product(), shape, parts, rows })
    }

    /// Parts joined along one of their axes.
    ///
    /// # Errors
    /// There are none, they differ elsewhere, or the result is too large.
    pub fn concat(parts: &[&Shape], along: i64) -> Result<Partition, ShapeError> {
        let first = *parts.first().ok_or_else(|| ShapeError::new("there is nothing to join"))?;
        let at = axis(along, first.rank())?;
        let fits = |part: &Shape| {
            let is_same = |d: usize| d == at || part.dims()[d] == first.dims()[d];
            part.rank() == first.rank() && (0..first.rank()).all(is_same)
        };
        if let Some(i) = parts.iter().position(|part| !fits(part)) {
            let text =
                format!("part {i} has shape {}, part 0 {first}: they cannot be joined along axis {at}", parts[i]);
            return Err(ShapeError(text));
        }
        let sizes: SmallVec<[usize; 8]> = parts.iter().map(|part| part.dims()[at]).collect();
        let mut dims: SmallVec<[usize; 8]> = first.dims().into();
        dims[at] = sizes.iter().fold(0, |sum: usize, size| sum.saturating_add(*size));
        Partition::new(Shape::new(&dims), at, &sizes, true)
    }

    /// Parts of one shape joined along a new axis.
    ///
    /// # Errors
    /// There are none, their shapes differ, or the result is too large.
    pub fn pack(parts: &[&Shape], along: i64) -> Result<Partition, ShapeError> {
        let first = *parts.first().ok_or_else(|| ShapeError::new("there is nothing to join"))?;
        let at = axis(along, first.rank() + 1)?;
        if let Some(i) = parts.iter().position(|part| *part != first) {
            return Err(ShapeError(format!("part {i} has shape {}, part 0 {first}", parts[i])));
        }
        let mut dims: SmallVec<[usize; 8]> = first.dims().into();
        dims.insert(at, parts.len());
        Partition::new(Shape::new(&dims), at, &vec![1; parts.len()], false)
    }

    /// `n` equal parts.
    ///
    /// # Errors
    /// The axis is not there, or its size is no multiple of `n`.
    pub fn split(of: &Shape, along: i64, n: usize) -> Result<Partition, ShapeError> {
        let at = axis(along, of.rank())?;
        let size = of.dims()[at];
        if n == 0 || !size.is_multiple_of(n) {
            return Err(ShapeError(format!("axis {at} of {of} does not split into {n} equal parts")));
        }
        Partition::new(of.clone(), at, &vec![size / n; n], true)
    }

    /// `n` parts of these sizes, of which one may be -1: what the others leave.
    ///
    /// # Errors
    /// The axis is not there, or the sizes do not add up to its own.
    pub fn split_into(of: &Shape, along: i64, sizes: &[i64], n: usize) -> Result<Partition, ShapeError> {
        let at = axis(along, of.rank())?;
        let size = of.dims()[at] as i64;
        let known = sizes.iter().filter(|s| **s != -1).fold(0i64, |sum, s| sum.saturating_add(*s));
        let n_open = sizes.iter().filter(|s| **s == -1).count();
        let fits = if n_open == 0 { known == size } else { n_open == 1 && known <= size };
        if !fits || sizes.iter().any(|s| *s < -1) || sizes.len() != n {
            return Err(ShapeError(format!("axis {at} of {of} does not split into {sizes:?}")));
        }
        let sizes: SmallVec<[usize; 8]> =
            sizes.iter().map(|s| if *s == -1 { size - known } else { *s } as usize).collect();
        Partition::new(of.clone(), at, &sizes, true)
    }

    /// `n` parts without the axis.
    ///
    /// # Errors
    /// The axis is not there, or of another size.
    pub fn unpack(of: &Shape, along: i64, n: usize) -> Result<Partition, ShapeError> {
        let at = axis(along, of.rank())?;
        if of.dims()[at] != n {
            return Err(ShapeError(format!("axis {at} of {of} does not have {n}")));
        }
        Partition::new(of.clone(), at, &vec![1; n], false)
    }

    /// Each part as a view of the larger tensor.
    pub fn views(&self) -> impl Iterator<Item = View> {
        let row: usize = self.rows.iter().sum();
        let firsts = self.rows.iter().scan(0, |next: &mut usize, n| {
            *next += n;
            Some(*next - n)
        });
        self.parts.iter().zip(&self.rows).zip(firsts).map(move |((shape, n), first)| View {
            dims: smallvec![self.outer, *n],
            strides: smallvec![row as isize, 1],
            first: first as isize,
            shape: shape.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shape, first element, elements of a row, and of a row of the larger tensor.
    fn views(of: &Partition) -> Vec<(Vec<usize>, isize, usize, isize)> {
        of.views().map(|v| (v.shape.dims().to_vec(), v.first, v.dims[1], v.strides[0])).collect()
    }

    #[test]
    fn parts_lie_side_by_side() {
        let [a, b] = [[2usize, 1, 4], [2, 3, 4]].map(Shape::from);
        let joined = Partition::concat(&[&a, &b], -2).unwrap();
        assert_eq!((joined.shape.dims(), joined.outer, &joined.rows[..]), (&[2, 4, 4][..], 2, &[4, 12][..]));
        assert_eq!(views(&joined), [(vec![2, 1, 4], 0, 4, 16), (vec![2, 3, 4], 4, 12, 16)]);
        assert_eq!(Partition::split_into(&joined.shape, 1, &[1, -1], 2).unwrap(), joined);
        let packed = Partition::pack(&[&a, &a], 3).unwrap();
        assert_eq!(views(&packed), [(vec![2, 1, 4], 0, 1, 2), (vec![2, 1, 4], 1, 1, 2)]);
        assert_eq!(Partition::unpack(&packed.shape, -1, 2).unwrap(), packed);
        let halves = Partition::split(&b, 2, 2).unwrap();
        assert_eq!(views(&halves), [(vec![2, 3, 2], 0, 2, 4), (vec![2, 3, 2], 2, 2, 4)]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let [a, b, scalar] = [&[2, 1][..], &[3, 2], &[]].map(Shape::new);
        assert!(Partition::concat(&[], 0).is_err() && Partition::pack(&[], 0).is_err());
        assert!(Partition::concat(&[&a, &b], 0).is_err() && Partition::concat(&[&a, &scalar], 0).is_err());
        assert!(Partition::concat(&[&scalar], 0).is_err() && Partition::pack(&[&a, &b], 0).is_err());
        assert!(Partition::split(&b, 0, 2).is_err() && Partition::split(&b, 0, 0).is_err());
        for sizes in [&[1, 1][..], &[1, 3], &[4, -1], &[-1, -1], &[5, -2], &[3]] {
            assert!(Partition::split_into(&b, 0, sizes, 2).is_err(), "{sizes:?}");
        }
        assert!(Partition::unpack(&b, 0, 2).is_err());
        let large = Shape::new(&[0, isize::MAX as usize]);
        assert!(Partition::concat(&[&large, &large, &large], 1).is_err());
    }
}
