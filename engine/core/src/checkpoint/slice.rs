//! Parts of tensors: how a variable that lies on several tasks is stored, and how any part of it is read back.
//!
//! A spec is written as TensorFlow writes it, `shape` then `slice`: `"10 20 0,5:-"` are rows 0 to 4 of a 10x20 tensor
//! (`-`: the whole dimension); an empty spec is a whole tensor.

use smallvec::SmallVec;

use super::CheckpointError;
use crate::shape::Shape;

/// A box within a tensor: first index and length along each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slice {
    /// The first index along each dimension.
    pub start: SmallVec<[usize; 4]>,
    /// How many along each dimension.
    pub len: SmallVec<[usize; 4]>,
}

/// A tensor's full shape, and the part that is meant (`None`: the entire tensor).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceSpec {
    /// The shape of the whole tensor.
    pub shape: Shape,
    /// The part.
    pub slice: Slice,
}

impl Slice {
    /// All of a tensor of this shape.
    pub fn full(shape: &Shape) -> Slice {
        Slice { start: SmallVec::from_elem(0, shape.rank()), len: shape.dims().into() }
    }

    /// Whether it is all of a tensor of this shape.
    pub fn is_full(&self, shape: &Shape) -> bool {
        self.start.iter().all(|s| *s == 0) && self.len.as_slice() == shape.dims()
    }

    /// The shape of the part.
    pub fn shape(&self) -> Shape {
        Shape::new(&self.len)
    }

    /// Whether it lies within a tensor of this shape.
    pub fn fits(&self, shape: &Shape) -> bool {
        let within = |((s, l), d): ((&usize, &usize), &usize)| s.checked_add(*l).is_some_and(|end| end <= *d);
        self.start.len() == shape.rank()
            && self.len.len() == shape.rank()
            && self.start.iter().zip(&self.len).zip(shape.dims()).all(within)
    }

    /// What both have in common; `None` where that is nothing.
    pub fn intersection(&self, other: &Slice) -> Option<Slice> {
        let mut common = Slice { start: SmallVec::new(), len: SmallVec::new() };
        for i in 0..self.start.len() {
            let start = self.start[i].max(other.start[i]);
            let end = (self.start[i] + self.len[i]).min(other.start[i] + other.len[i]);
            if start >= end {
                return None;
            }
            common.start.push(start);
            common.len.push(end - start);
        }
        Some(common)
    }

    /// As TensorFlow writes it: `0,5:-`.
    pub fn text(&self, shape: &Shape) -> String {
        let dim = |i: usize| match (self.start[i], self.len[i]) {
            (0, len) if len == shape.dims()[i] => "-".to_owned(),
            (start, len) => format!("{start},{len}"),
        };
        (0..self.start.len()).map(dim).collect::<Vec<_>>().join(":")
    }

    /// The part of a tensor of `shape` that `text` (`0,5:-`) means.
    ///
    /// # Errors
    /// It is no slice, or lies outside.
    pub fn parse(text: &str, shape: &Shape) -> Result<Slice, CheckpointError> {
        let bad = |problem: String| CheckpointError::Slice { text: text.into(), problem: problem.into() };
        let parts: Vec<&str> = if text.is_empty() { Vec::new() } else { text.split(':').collect() };
        if parts.len() != shape.rank() {
            return Err(bad(format!("{} dimensions for shape {shape}", parts.len())));
        }
        let mut slice = Slice::full(shape);
        for (i, part) in parts.iter().enumerate().filter(|(_, p)| **p != "-") {
            let numbers = part.split_once(',').and_then(|(s, l)| Some((s.parse().ok()?, l.parse().ok()?)));
            (slice.start[i], slice.len[i]) = numbers.ok_or_else(|| bad(format!("{part:?} is not start,length")))?;
        }
        if !slice.fits(shape) {
            return Err(bad(format!("it lies outside of shape {shape}")));
        }
        Ok(slice)
    }
}

impl SliceSpec {
    /// The spec that `text` writes; `None` where it is empty.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Option<SliceSpec>, CheckpointError> {
        if text.is_empty() {
            return Ok(None);
        }
        let bad = |problem: String| CheckpointError::Slice { text: text.into(), problem: problem.into() };
        let (dims, slice) = text.rsplit_once(' ').unwrap_or(("", text));
        let dims: Result<Vec<usize>, _> = dims.split_ascii_whitespace().map(str::parse).collect();
        let dims = dims.map_err(|_| bad("the shape is not a list of numbers".into()))?;
        let shape = Shape::new(&dims);
        if dims.len() > Shape::MAX_RANK || shape.checked_n_elements().is_none() {
            return Err(bad("the shape is too large".into()));
        }
        let slice = Slice::parse(slice, &shape)?;
        Ok(Some(SliceSpec { shape, slice }))
    }
}

/// A row-major array, or a part of one, in a larger one.
pub struct Region<'a> {
    /// The dimensions of the array.
    pub dims: &'a [usize],
    /// Where the region begins in it.
    pub start: &'a [usize],
}

/// Copies a box of `len` from one row-major array to another; the unit is an element (or, with the last dimension
/// scaled by the caller, a byte).
pub(crate) fn copy_region<T: Clone>(dst: &mut [T], to: &Region<'_>, src: &[T], from: &Region<'_>, len: &[usize]) {
    let Some((&row, outer)) = len.split_last() else {
        dst[0] = src[0].clone();
        return;
    };
    if len.contains(&0) {
        return;
    }
    let offset = |r: &Region<'_>, at: &[usize]| {
        let position = |i: usize| r.start[i] + at.get(i).copied().unwrap_or(0);
        (0..len.len()).fold(0, |o, i| o * r.dims[i] + position(i))
    };
    let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
    loop {
        let (d, s) = (offset(to, &at), offset(from, &at));
        dst[d..d + row].clone_from_slice(&src[s..s + row]);
        let mut i = outer.len();
        loop {
            if i == 0 {
                return;
            }
            i -= 1;
            at[i] += 1;
            if at[i] < outer[i] {
                break;
            }
            at[i] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_read_as_tensorflow_writes_them() {
        let spec = SliceSpec::parse("10 20 0,5:-").unwrap().unwrap();
        assert_eq!(spec.shape, Shape::new(&[10, 20]));
        assert_eq!((spec.slice.start.as_slice(), spec.slice.len.as_slice()), (&[0, 0][..], &[5, 20][..]));
        assert_eq!(spec.slice.text(&spec.shape), "0,5:-");
        assert_eq!(SliceSpec::parse("").unwrap(), None);
        for bad in ["10 20 0,5", "10 x -:-", "4 2,3", "4 -1,2", "4 1", "99999999999 99999999999 -:-"] {
            assert!(SliceSpec::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn regions_are_copied_row_by_row() {
        let src: Vec<usize> = (0..24).collect();
        let mut dst = vec![99; 12];
        let from = Region { dims: &[2, 3, 4], start: &[0, 1, 2] };
        copy_region(&mut dst, &Region { dims: &[2, 2, 3], start: &[0, 0, 1] }, &src, &from, &[2, 2, 2]);
        assert_eq!(dst, [99, 6, 7, 99, 10, 11, 99, 18, 19, 99, 22, 23]);
    }
}
