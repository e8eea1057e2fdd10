//! numpy's slicing as TensorFlow writes it: begin, end and stride for each entry, and masks whose bit `i` speaks of entry
//! `i`.

use std::collections::BTreeMap;

use smallvec::smallvec;

use crate::geometry::View;
use crate::ops::{Attr, ShapeError};
use crate::shape::Shape;

/// Entries that a slice may have.
const MAX_ENTRIES: usize = 32;

/// The masks of a strided slice.
pub struct Masks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrink: i64,
}

impl Masks {
    /// Those of a node with these attributes; 0 where one is missing.
    pub fn of(attrs: &BTreeMap<String, Attr>) -> Masks {
        let mask = |name: &str| match attrs.get(name) {
            Some(Attr::Int(mask)) => *mask,
            _ => 0,
        };
        Masks {
            begin: mask("begin_mask"),
            end: mask("end_mask"),
            ellipsis: mask("ellipsis_mask"),
            new_axis: mask("new_axis_mask"),
            shrink: mask("shrink_axis_mask"),
        }
    }
}

/// What becomes a dimension of the output.
enum Part {
    /// All of an axis.
    Whole(usize),
    /// A new dimension of 1.
    New,
    /// What an entry takes of an axis.
    Entry { entry: usize, axis: usize },
}

fn bit(mask: i64, i: usize) -> bool {
    mask >> i & 1 == 1
}

/// What the entries of a slice mean for an input of this rank.
fn parts(rank: usize, masks: &Masks, n: usize) -> Result<Vec<Part>, ShapeError> {
    if n > MAX_ENTRIES {
        return Err(ShapeError(format!("{n} entries; there may be {MAX_ENTRIES} at most")));
    }
    if masks.ellipsis.count_ones() > 1 {
        return Err(ShapeError("more than one ellipsis".to_owned()));
    }
    let n_new = (0..n).filter(|i| bit(masks.new_axis, *i) && !bit(masks.ellipsis, *i)).count();
    let n_used = n - n_new - usize::from((0..n).any(|i| bit(masks.ellipsis, i)));
    let n_rest = rank.checked_sub(n_used);
    let n_rest = n_rest.ok_or_else(|| ShapeError(format!("{n_used} indices for {rank} dimensions")))?;
    let (mut parts, mut axis) = (Vec::new(), 0);
    for entry in 0..n {
        if bit(masks.ellipsis, entry) {
            parts.extend((axis..axis + n_rest).map(Part::Whole));
            axis += n_rest;
        } else if bit(masks.new_axis, entry) {
            parts.push(Part::New);
        } else {
            parts.push(Part::Entry { entry, axis });
            axis += 1;
        }
    }
    parts.extend((axis..rank).map(Part::Whole));
    Ok(parts)
}

/// What a slice takes of a shape; dimensions that it drops are walked as 1.
///
/// # Errors
/// The slice does not fit the shape.
pub fn resolve(of: &Shape, masks: &Masks, begin: &[i64], end: &[i64], step: &[i64]) -> Result<View, ShapeError> {
    let n = begin.len();
    if end.len() != n || step.len() != n {
        return Err(ShapeError("begin, end and strides must have one length".to_owned()));
    }
    let own = of.strides();
    let mut out = View { dims: smallvec![], strides: smallvec![], first: 0, shape: Shape::scalar() };
    let mut kept = Vec::new();
    for part in parts(of.rank(), masks, n)? {
        match part {
            Part::Whole(axis) => {
                out.dims.push(of.dims()[axis]);
                out.strides.push(own[axis] as isize);
                kept.push(of.dims()[axis]);
            }
            Part::New => kept.push(1),
            Part::Entry { entry: i, axis } => {
                let (first, len) = one_axis(of.dims()[axis], masks, i, [begin[i], end[i], step[i]])?;
                out.first += first * own[axis] as isize;
                out.dims.push(len);
                out.strides.push(step[i] as isize * own[axis] as isize);
                if !bit(masks.shrink, i) {
                    kept.push(len);
                }
            }
        }
    }
    out.shape = Shape::new(&kept);
    Ok(out)
}

/// The dimensions of a slice with `n` entries where not all is known: sizes, or begin, end and strides.
///
/// # Errors
/// The slice does not fit what is known.
pub fn shape(
    of: &[Option<usize>],
    masks: &Masks,
    n: usize,
    known: Option<&[Vec<i64>; 3]>,
) -> Result<Vec<Option<usize>>, ShapeError> {
    let mut dims = Vec::new();
    for part in parts(of.len(), masks, n)? {
        match part {
            Part::Whole(axis) => dims.push(of[axis]),
            Part::New => dims.push(Some(1)),
            Part::Entry { entry, axis } => {
                let numbers = known
                    .and_then(|[begin, end, step]| Some([*begin.get(entry)?, *end.get(entry)?, *step.get(entry)?]));
                let len = match of[axis].zip(numbers) {
                    Some((size, numbers)) => Some(one_axis(size, masks, entry, numbers)?.1),
                    None => None,
                };
                if !bit(masks.shrink, entry) {
                    dims.push(len);
                }
            }
        }
    }
    Ok(dims)
}

/// Where an axis of `size` begins to be read by entry `i`, and how many of it are.
fn one_axis(size: usize, masks: &Masks, i: usize, [begin, end, step]: [i64; 3]) -> Result<(isize, usize), ShapeError> {
    let n = size as i64;
    if bit(masks.shrink, i) {
        let at = if begin < 0 { begin.saturating_add(n) } else { begin };
        let outside = || ShapeError(format!("index {begin} is outside of [-{n}, {n})"));
        return if (0..n).contains(&at) && step > 0 { Ok((at as isize, 1)) } else { Err(outside()) };
    }
    if step == 0 {
        return Err(ShapeError("a stride must not be 0".to_owned()));
    }
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clip = |v: i64| (if v < 0 { v.saturating_add(n) } else { v }).clamp(low, high);
    let all = if step > 0 { (0, n) } else { (n - 1, -1) };
    let from = if bit(masks.begin, i) { all.0 } else { clip(begin) };
    let to = if bit(masks.end, i) { all.1 } else { clip(end) };
    let span = if step > 0 { to - from } else { from - to };
    let len = (span.max(0) as u64).div_ceil(step.unsigned_abs());
    Ok((if len == 0 { 0 } else { from as isize }, len as usize))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A shape inferred before every dimension is known agrees with the slice.
        #[test]
        fn shapes_agree_with_slices(
            dims in proptest::collection::vec(0usize..5, 0..4),
            entries in proptest::collection::vec((-6i64..6, -6i64..6, -2i64..3), 0..5),
            masks in proptest::array::uniform5(0i64..16),
            unknown in any::<u8>(),
        ) {
            let [begin, end, ellipsis, new_axis, shrink] = masks;
            let masks = Masks { begin, end, ellipsis, new_axis, shrink };
            let of = |f: fn(&(i64, i64, i64)) -> i64| entries.iter().map(f).collect::<Vec<_>>();
            let numbers = [of(|e| e.0), of(|e| e.1), of(|e| e.2)];
            let whole = Shape::new(&dims);
            let sliced = resolve(&whole, &masks, &numbers[0], &numbers[1], &numbers[2]).map(|s| s.shape);
            let known: Vec<Option<usize>> = dims.iter().copied().map(Some).collect();
            let full = shape(&known, &masks, entries.len(), Some(&numbers));
            let expected = sliced.clone().map(|s| s.dims().iter().copied().map(Some).collect::<Vec<_>>());
            prop_assert_eq!(full, expected);
            let part: Vec<_> = known.iter().enumerate().map(|(i, d)| d.filter(|_| unknown >> i & 1 == 0)).collect();
            if let Ok(sliced) = sliced {
                for numbers in [Some(&numbers), None] {
                    let inferred = shape(&part, &masks, entries.len(), numbers).unwrap();
                    prop_assert_eq!(inferred.len(), sliced.rank());
                    prop_assert!(inferred.iter().zip(sliced.dims()).all(|(a, b)| a.is_none_or(|a| a == *b)));
                }
            }
        }
    }
}
