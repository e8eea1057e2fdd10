//! Shapes: of tensors ([`Shape`], every dimension known) and of graph edges ([`PartialShape`], known in part).

use std::fmt;

use smallvec::SmallVec;

/// The dimensions of a tensor, row-major, slowest first. Rank 0 is a scalar.
#[derive(Clone, Eq, Hash, Default)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "the same equality, compiled to other instructions")]
pub struct Shape(SmallVec<[usize; 4]>);

impl PartialEq for Shape {
    /// Each small kernel compares its inputs' shapes, for which a call of `memcmp` would take longer than the loop.
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        self.rank() == other.rank() && self.0.iter().zip(&other.0).all(|(a, b)| a == b)
    }
}

impl Shape {
    /// The largest rank this engine handles (as TensorFlow's).
    pub const MAX_RANK: usize = 8;

    /// A shape of these dimensions.
    pub fn new(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }

    /// The shape of a scalar.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// The dimensions.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of elements.
    ///
    /// Shapes of tensors never overflow: [`Shape::checked_n_elements`] stands at the door.
    #[inline]
    pub fn n_elements(&self) -> usize {
        self.0.iter().product()
    }

    /// The number of elements, `None` when it does not fit (the product of the non-zero dimensions counts, so that
    /// strides can be computed too).
    pub fn checked_n_elements(&self) -> Option<usize> {
        let mut nonzero = self.0.iter().filter(|d| **d != 0);
        let n = nonzero.try_fold(1usize, |n, d| n.checked_mul(*d).filter(|n| *n <= isize::MAX as usize))?;
        Some(if self.0.contains(&0) { 0 } else { n })
    }

    /// Row-major strides, in elements.
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, self.rank());
        for i in (1..self.rank()).rev() {
            strides[i - 1] = strides[i] * self.0[i];
        }
        strides
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape::new(dims)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape::new(&dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is known of a shape when the graph is built: nothing, the rank, some dimensions, or all.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PartialShape(Option<SmallVec<[Option<usize>; 4]>>);

impl PartialShape {
    /// Nothing known.
    pub fn unknown() -> PartialShape {
        PartialShape(None)
    }

    /// The rank and the dimensions that are `Some`.
    pub fn new(dims: &[Option<usize>]) -> PartialShape {
        PartialShape(Some(SmallVec::from_slice(dims)))
    }

    /// A scalar.
    pub fn scalar() -> PartialShape {
        PartialShape::new(&[])
    }

    /// Of this rank, the dimensions unknown.
    pub fn of_rank(rank: usize) -> PartialShape {
        PartialShape(Some(SmallVec::from_elem(None, rank)))
    }

    /// The dimensions, where at least the rank is known.
    pub fn dims(&self) -> Option<&[Option<usize>]> {
        self.0.as_deref()
    }

    /// The rank, where known.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(SmallVec::len)
    }

    /// The shape, where every dimension is known.
    pub fn known(&self) -> Option<Shape> {
        let dims: Option<SmallVec<[usize; 4]>> = self.0.as_ref()?.iter().copied().collect();
        dims.map(Shape)
    }

    /// Whether a tensor of shape `shape` fits.
    pub fn admits(&self, shape: &Shape) -> bool {
        match &self.0 {
            None => true,
            Some(dims) => {
                dims.len() == shape.rank() && dims.iter().zip(shape.dims()).all(|(a, b)| a.is_none_or(|a| a == *b))
            }
        }
    }

    /// What both say together; `None` where they contradict each other.
    pub fn merge(&self, other: &PartialShape) -> Option<PartialShape> {
        let (a, b) = match (&self.0, &other.0) {
            (None, _) => return Some(other.clone()),
            (_, None) => return Some(self.clone()),
            (Some(a), Some(b)) => (a, b),
        };
        if a.len() != b.len() {
            return None;
        }
        let mut dims = SmallVec::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            dims.push(match (a, b) {
                (Some(a), Some(b)) if a != b => return None,
                (Some(a), _) => Some(*a),
                (None, b) => *b,
            });
        }
        Some(PartialShape(Some(dims)))
    }
}

impl From<&Shape> for PartialShape {
    fn from(shape: &Shape) -> PartialShape {
        PartialShape(Some(shape.dims().iter().map(|d| Some(*d)).collect()))
    }
}

impl<const N: usize> From<[Option<usize>; N]> for PartialShape {
    fn from(dims: [Option<usize>; N]) -> PartialShape {
        PartialShape::new(&dims)
    }
}

impl From<&[Option<usize>]> for PartialShape {
    fn from(dims: &[Option<usize>]) -> PartialShape {
        PartialShape::new(dims)
    }
}

impl<const N: usize> From<[usize; N]> for PartialShape {
    fn from(dims: [usize; N]) -> PartialShape {
        PartialShape::from(&Shape::from(dims))
    }
}

impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = &self.0 else { return f.write_str("<unknown>") };
        f.write_str("[")?;
        for (i, d) in dims.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { "," })?;
            match d {
                Some(d) => write!(f, "{d}")?,
                None => f.write_str("?")?,
            }
        }
        f.write_str("]")
    }
}

impl fmt::Debug for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_seen_even_behind_a_zero() {
        assert_eq!(Shape::new(&[usize::MAX, 2]).checked_n_elements(), None);
        assert_eq!(Shape::new(&[0, usize::MAX, 2]).checked_n_elements(), None);
        assert_eq!(Shape::new(&[0, 5]).checked_n_elements(), Some(0));
        assert_eq!(Shape::scalar().checked_n_elements(), Some(1));
    }

    #[test]
    fn merge_keeps_what_is_known_and_finds_contradictions() {
        let a = PartialShape::new(&[None, Some(3)]);
        assert_eq!(a.merge(&[Some(2), None].into()), Some([2, 3].into()));
        assert_eq!(a.merge(&[Some(2), Some(4)].into()), None);
        assert_eq!(a.merge(&PartialShape::unknown()), Some(a.clone()));
        assert!(a.admits(&[7, 3].into()) && !a.admits(&[7, 4].into()) && !a.admits(&[3].into()));
    }
}
