//! Elements chosen by indices.

use super::{Along, axis, checked};
use crate::ops::ShapeError;
use crate::shape::Shape;

/// Rows of a tensor along an axis, chosen by indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gather {
    /// The output's shape: the tensor's with the indices' in place of the axis.
    pub shape: Shape,
    /// The size of the axis: indices are below.
    pub n_rows: usize,
    /// The elements of a row.
    pub inner: usize,
    /// The product of the tensor's dimensions between the batch and the axis, each of which is gathered by the same indices.
    pub outer: usize,
    /// The indices of each batch.
    pub n_indices: usize,
}

impl Gather {
    /// The first `batch` dimensions of both run together.
    ///
    /// # Errors
    /// There is no such axis or batch, the batches differ, or the result is too large.
    pub fn new(params: &Shape, indices: &Shape, along: i64, batch: i64) -> Result<Gather, ShapeError> {
        let rank = indices.rank();
        let batch = usize::try_from(if batch < 0 { batch + rank as i64 } else { batch }).ok().filter(|b| *b <= rank);
        let batch = batch.ok_or_else(|| ShapeError::new("batch_dims is outside of the rank of indices"))?;
        let Along { axis: at, n, inner, .. } = Along::new(params, along)?;
        let dims = params.dims();
        if at < batch || dims[..batch] != indices.dims()[..batch] {
            let text = format!("{batch} batch dimensions of params {params} and indices {indices}, axis {at}");
            return Err(ShapeError(text));
        }
        let shape = Shape::new(&[&dims[..at], &indices.dims()[batch..], &dims[at + 1..]].concat());
        Ok(Gather {
            shape: checked(shape)?,
            n_rows: n,
            inner,
            outer: dims[batch..at].iter().product(),
            n_indices: indices.dims()[batch..].iter().product(),
        })
    }
}

/// A vector for each index, with one value where it points and another elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneHot {
    /// The output's shape: the indices' with a new axis.
    pub shape: Shape,
    /// The size of that axis.
    pub depth: usize,
    /// The product of the dimensions behind it.
    pub inner: usize,
}

impl OneHot {
    /// Of `depth` classes along a new axis.
    ///
    /// # Errors
    /// The depth is negative, there is no such axis, or the result is too large.
    pub fn new(indices: &Shape, depth: i64, along: i64) -> Result<OneHot, ShapeError> {
        let depth = usize::try_from(depth).map_err(|_| ShapeError(format!("depth {depth} is negative")))?;
        let at = axis(along, indices.rank() + 1)?;
        let (before, after) = indices.dims().split_at(at);
        let shape = checked(Shape::new(&[before, &[depth], after].concat()))?;
        Ok(OneHot { shape, depth, inner: after.iter().product() })
    }
}

/// How indices name slices of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// Each index is a row.
    Rows,
    /// The last dimension of the indices goes into the tensor's first ones.
    Nd,
}

/// Slices of a tensor that indices name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The first element of each.
    pub offsets: Vec<usize>,
    /// The elements of each.
    pub len: usize,
    /// The shape of all of them: what is gathered, or updates them.
    pub shape: Shape,
}

impl Places {
    /// Of a tensor of shape `of`; `values` are the indices, in a tensor of shape `indices`.
    ///
    /// # Errors
    /// The indices go deeper than the tensor, or out of it.
    pub fn new(of: &Shape, indices: &Shape, values: &[i64], how: Indexing) -> Result<Places, ShapeError> {
        let strides = of.strides();
        let (depth, outer) = match (how, indices.dims()) {
            (Indexing::Rows, dims) => (1, dims),
            (Indexing::Nd, [outer @ .., depth]) => (*depth, outer),
            (Indexing::Nd, []) => return Err(ShapeError::new("the indices must have at least one dimension")),
        };
        let inner = of.dims().get(depth..);
        let inner =
            inner.ok_or_else(|| ShapeError(format!("indices of shape {indices} are deeper than shape {of}")))?;
        let shape = checked(Shape::new(&[outer, inner].concat()))?;
        let len = inner.iter().product();
        // Empty indices have no memory that bounds how many they are; where nothing lies at a place either, none is needed.
        let n: usize = if depth == 0 && len == 0 { 0 } else { outer.iter().product() };
        let mut offsets = crate::memory::vec(n).map_err(|error| ShapeError(error.to_string()))?;
        for i in 0..n {
            let mut offset = 0;
            for ((index, size), stride) in values[i * depth..(i + 1) * depth].iter().zip(of.dims()).zip(&strides) {
                let at = usize::try_from(*index).ok().filter(|at| at < size);
                offset += stride
                    * at.ok_or_else(|| {
                        ShapeError(format!("index {index} at position {i} is outside of [0, {size}) of shape {of}"))
                    })?;
            }
            offsets.push(offset);
        }
        Ok(Places { offsets, len, shape })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_take_the_place_of_the_axis() {
        let [params, indices] = [&[2, 3, 4, 5][..], &[2, 6, 7]].map(Shape::new);
        let plain = Gather::new(&params, &indices, 1, 0).unwrap();
        assert_eq!(plain.shape.dims(), [2, 2, 6, 7, 4, 5]);
        assert_eq!((plain.n_rows, plain.inner, plain.outer, plain.n_indices), (3, 20, 2, 84));
        let batch = Gather::new(&params, &indices, -2, -2).unwrap();
        assert_eq!(batch.shape.dims(), [2, 3, 6, 7, 5]);
        assert_eq!((batch.n_rows, batch.inner, batch.outer, batch.n_indices), (4, 5, 3, 42));
        for (along, batch) in [(4, 0), (0, 1), (2, 2), (2, 4), (2, -4)] {
            assert!(Gather::new(&params, &indices, along, batch).is_err(), "{along} {batch}");
        }
    }

    #[test]
    fn a_new_axis_holds_the_classes() {
        let one_hot = OneHot::new(&[2, 3].into(), 4, -1).unwrap();
        assert_eq!((one_hot.shape.dims(), one_hot.inner), (&[2, 3, 4][..], 1));
        let one_hot = OneHot::new(&[2, 3].into(), 4, 0).unwrap();
        assert_eq!((one_hot.shape.dims(), one_hot.inner), (&[4, 2, 3][..], 6));
        assert!(OneHot::new(&[2].into(), -1, 0).is_err() && OneHot::new(&[2].into(), 1, 2).is_err());
    }

    #[test]
    fn places_are_where_indices_point() {
        let of = Shape::new(&[4, 3, 2]);
        let nd = Places::new(&of, &[2, 2].into(), &[3, 1, 0, 2], Indexing::Nd).unwrap();
        assert_eq!(nd, Places { offsets: vec![20, 4], len: 2, shape: Shape::new(&[2, 2]) });
        let rows = Places::new(&of, &[2].into(), &[3, 1], Indexing::Rows).unwrap();
        assert_eq!(rows, Places { offsets: vec![18, 6], len: 6, shape: Shape::new(&[2, 3, 2]) });
        let all = Places::new(&of, &[2, 0].into(), &[], Indexing::Nd).unwrap();
        assert_eq!((all.offsets, all.len), (vec![0, 0], 24));
        assert!(Places::new(&of, &[1, 2].into(), &[0, 3], Indexing::Nd).is_err());
        let absurd: Shape = [1 << 40, 0].into();
        assert!(Places::new(&of, &absurd, &[], Indexing::Nd).is_err(), "no memory for so many places");
        let nothing = Places::new(&[0].into(), &absurd, &[], Indexing::Nd).unwrap();
        assert_eq!((nothing.offsets.len(), nothing.shape.dims()), (0, &[1 << 40, 0][..]));
        assert!(Places::new(&of, &[1].into(), &[-1], Indexing::Rows).is_err());
        assert!(Places::new(&of, &[1, 4].into(), &[0; 4], Indexing::Nd).is_err());
        assert!(Places::new(&of, &Shape::scalar(), &[0], Indexing::Nd).is_err());
    }
}
