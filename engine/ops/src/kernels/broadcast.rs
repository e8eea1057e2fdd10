//! Broadcasting as numpy defines it, with neighbouring dimensions merged where possible.

use smallvec::SmallVec;

use super::KernelError;
use engine_core::buffer::AllocError;
use engine_core::memory;
use engine_core::shape::Shape;

/// How two operands run along an output.
#[derive(Debug)]
pub struct Broadcast {
    /// The output's shape.
    pub shape: Shape,
    /// The output's dimensions, merged, outermost first; at least one.
    pub dims: SmallVec<[usize; 4]>,
    /// For each of them how far each operand moves, in elements; 0 where it repeats.
    pub strides: [SmallVec<[usize; 4]>; 2],
}

/// The shape that `a` and `b` broadcast to.
pub(crate) fn broadcast_shape(a: &Shape, b: &Shape) -> Result<Shape, KernelError> {
    let rank = a.rank().max(b.rank());
    let dim = |s: &Shape, i: usize| if i + s.rank() < rank { 1 } else { s.dims()[i + s.rank() - rank] };
    let mut dims: SmallVec<[usize; 8]> = SmallVec::with_capacity(rank);
    for i in 0..rank {
        dims.push(match (dim(a, i), dim(b, i)) {
            (1, d) | (d, 1) => d,
            (x, y) if x == y => x,
            _ => return Err(KernelError::invalid(format!("shapes {a} and {b} do not broadcast"))),
        });
    }
    Ok(Shape::new(&dims))
}

impl Broadcast {
    /// For each element of the output the elements of both operands.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn positions(&self) -> Result<Vec<[usize; 2]>, AllocError> {
        let n = self.shape.n_elements();
        let mut at = memory::vec(n)?;
        let mut index = vec![0usize; self.dims.len()];
        let mut now = [0usize; 2];
        for _ in 0..n {
            at.push(now);
            for d in (0..self.dims.len()).rev() {
                index[d] += 1;
                (0..2).for_each(|i| now[i] += self.strides[i][d]);
                if index[d] < self.dims[d] {
                    break;
                }
                (0..2).for_each(|i| now[i] -= self.strides[i][d] * self.dims[d]);
                index[d] = 0;
            }
        }
        Ok(at)
    }

    pub fn new(a: &Shape, b: &Shape) -> Result<Broadcast, KernelError> {
        let shape = broadcast_shape(a, b)?;
        let rank = shape.rank();
        let full = |s: &Shape| -> SmallVec<[usize; 4]> {
            let own = s.strides();
            let stride = |i: usize| match (i + s.rank()).checked_sub(rank) {
                Some(j) if s.dims()[j] != 1 => own[j],
                _ => 0,
            };
            (0..rank).map(stride).collect()
        };
        let (sa, sb) = (full(a), full(b));
        let mut merged = Broadcast { dims: SmallVec::new(), strides: [SmallVec::new(), SmallVec::new()], shape };
        for i in 0..rank {
            let d = merged.shape.dims()[i];
            if d == 1 {
                continue;
            }
            let fits = |acc: &SmallVec<[usize; 4]>, s: usize| acc.last().is_some_and(|outer| *outer == s * d);
            if fits(&merged.strides[0], sa[i]) && fits(&merged.strides[1], sb[i]) {
                let last = merged.dims.len() - 1;
                merged.dims[last] *= d;
                merged.strides[0][last] = sa[i];
                merged.strides[1][last] = sb[i];
            } else {
                merged.dims.push(d);
                merged.strides[0].push(sa[i]);
                merged.strides[1].push(sb[i]);
            }
        }
        if merged.dims.is_empty() {
            merged.dims.push(1);
            merged.strides.iter_mut().for_each(|s| s.push(0));
        }
        Ok(merged)
    }

    /// The length of the innermost merged dimension: along it each operand moves by 0 or 1.
    pub fn inner(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// The operands' offsets at the start of each innermost row, from row `first` on.
    pub fn rows(&self, first: usize) -> Rows<'_> {
        let outer = self.dims.len() - 1;
        let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer);
        let mut rest = first;
        for i in (0..outer).rev() {
            index[i] = rest % self.dims[i].max(1);
            rest /= self.dims[i].max(1);
        }
        let offset = |k: usize| index.iter().zip(&self.strides[k]).map(|(i, s)| i * s).sum();
        let offsets = [offset(0), offset(1)];
        Rows { of: self, index, offsets }
    }
}

/// An endless walk over rows; the caller knows how many there are.
pub struct Rows<'a> {
    of: &'a Broadcast,
    index: SmallVec<[usize; 4]>,
    offsets: [usize; 2],
}

impl Iterator for Rows<'_> {
    type Item = [usize; 2];

    fn next(&mut self) -> Option<[usize; 2]> {
        let now = self.offsets;
        for i in (0..self.index.len()).rev() {
            self.index[i] += 1;
            for k in 0..2 {
                self.offsets[k] += self.of.strides[k][i];
            }
            if self.index[i] < self.of.dims[i] {
                break;
            }
            for k in 0..2 {
                self.offsets[k] -= self.of.strides[k][i] * self.of.dims[i];
            }
            self.index[i] = 0;
        }
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_shapes_are_one_row() {
        let b = Broadcast::new(&[3, 4, 5].into(), &[3, 4, 5].into()).unwrap();
        assert_eq!((b.inner(), b.dims.len()), (60, 1));
        let b = Broadcast::new(&[3, 4, 5].into(), &[4, 5].into()).unwrap();
        assert_eq!((b.inner(), b.dims.len()), (20, 2));
    }

    proptest! {
        /// ndarray's own broadcasting is the oracle.
        #[test]
        fn rows_read_what_ndarray_broadcasts(
            dims in prop::collection::vec((1usize..4, any::<bool>(), any::<bool>()), 0..5),
            drop_a in 0usize..3, drop_b in 0usize..3,
        ) {
            let of = |which: usize, drop: usize| -> Vec<usize> {
                let all = dims.iter().map(|(d, a, b)| if [*a, *b][which] { 1 } else { *d });
                all.skip(drop.min(dims.len())).collect()
            };
            let (a, b) = (of(0, drop_a), of(1, drop_b));
            let bc = Broadcast::new(&Shape::new(&a), &Shape::new(&b)).unwrap();
            let n = bc.shape.n_elements();
            for (k, dims) in [&a, &b].into_iter().enumerate() {
                let values = ndarray::ArrayD::from_shape_vec(dims.clone(), (0..dims.iter().product::<usize>()).collect()).unwrap();
                let want: Vec<usize> = values.broadcast(bc.shape.dims().to_vec()).unwrap().iter().copied().collect();
                let step = bc.strides[k][bc.dims.len() - 1];
                let rows = bc.rows(0).take(n / bc.inner());
                let got: Vec<usize> = rows.flat_map(|o| (0..bc.inner()).map(move |j| o[k] + j * step)).collect();
                prop_assert_eq!(got, want);
            }
            let middle = n / bc.inner() / 2;
            prop_assert_eq!(bc.rows(0).nth(middle), bc.rows(middle).next());
        }
    }
}
