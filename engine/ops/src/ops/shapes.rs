//! Shape functions that many ops share.

use engine_core::geometry::axis_mask;
use engine_core::ops::{Attr, InferContext, ShapeError};
use engine_core::shape::PartialShape;

pub(crate) type Inferred = Result<(), ShapeError>;

/// No outputs, or nothing to say about them.
pub fn none(_: &mut InferContext<'_>) -> Inferred {
    Ok(())
}

/// The output has the shape of the first input.
pub fn unchanged(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.input(0);
    c.set(0, shape);
    Ok(())
}

/// All inputs have one shape, the output's.
pub(crate) fn all_equal(c: &mut InferContext<'_>) -> Inferred {
    let mut shape = c.input(0);
    for i in 1..c.n_inputs() {
        shape = c.merge(&shape, &c.input(i))?;
    }
    c.set(0, shape);
    Ok(())
}

/// The output is a scalar.
pub fn scalar(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, PartialShape::scalar());
    Ok(())
}

/// Both inputs broadcast against each other.
pub fn broadcast(c: &mut InferContext<'_>) -> Inferred {
    let shape = broadcast_of(&c.input(0), &c.input(1))?;
    c.set(0, shape);
    Ok(())
}

/// The shape that `a` and `b` broadcast to, as numpy's rules say.
pub(crate) fn broadcast_of(a: &PartialShape, b: &PartialShape) -> Result<PartialShape, ShapeError> {
    let (Some(da), Some(db)) = (a.dims(), b.dims()) else { return Ok(PartialShape::unknown()) };
    let rank = da.len().max(db.len());
    let dim = |d: &[Option<usize>], i: usize| if i + d.len() < rank { Some(1) } else { d[i + d.len() - rank] };
    let mut out = Vec::with_capacity(rank);
    for i in 0..rank {
        out.push(match (dim(da, i), dim(db, i)) {
            (Some(1), other) | (other, Some(1)) => other,
            (Some(x), Some(y)) if x == y => Some(x),
            (Some(_), Some(_)) => return Err(ShapeError(format!("shapes {a} and {b} do not broadcast"))),
            // The unknown one must be 1 or the known one; the result is the known one.
            (Some(x), None) | (None, Some(x)) => Some(x),
            (None, None) => None,
        });
    }
    Ok(PartialShape::new(&out))
}

/// Reduction of input 0 along the axes that input 1 lists; attribute `keep_dims`.
pub fn reduce(c: &mut InferContext<'_>) -> Inferred {
    let (input, keep) = (c.input(0), c.flag("keep_dims"));
    let Some(dims) = input.dims() else { return Ok(()) };
    let Some(axes) = c.ints(1) else {
        if keep {
            c.set(0, PartialShape::of_rank(dims.len()));
        }
        return Ok(());
    };
    let mask = axis_mask(&axes, dims.len())?;
    let dims = dims.iter().zip(mask).filter(|(_, is_reduced)| keep || !is_reduced);
    let dims = dims.map(|(dim, is_reduced)| if is_reduced { Some(1) } else { *dim });
    c.set(0, PartialShape::new(&dims.collect::<Vec<_>>()));
    Ok(())
}

/// The shape that input `i` lists, where its value (or at least its length) is known.
pub(crate) fn from_value(c: &InferContext<'_>, i: usize) -> Result<PartialShape, ShapeError> {
    if let Some(dims) = c.ints(i) {
        let dim = |d: &i64| match usize::try_from(*d) {
            Ok(d) => Ok(Some(d)),
            Err(_) if *d == -1 => Ok(None),
            Err(_) => Err(ShapeError(format!("{d} is not a dimension"))),
        };
        return Ok(PartialShape::new(&dims.iter().map(dim).collect::<Result<Vec<_>, _>>()?));
    }
    match c.of_rank(i, 1)?.dims() {
        Some([Some(rank)]) => Ok(PartialShape::of_rank(*rank)),
        _ => Ok(PartialShape::unknown()),
    }
}

/// The output's shape is the value of the first input.
pub(crate) fn first_input_lists(c: &mut InferContext<'_>) -> Inferred {
    let shape = from_value(c, 0)?;
    c.set(0, shape);
    Ok(())
}

/// The output's shape is the value of the second input.
pub(crate) fn second_input_lists(c: &mut InferContext<'_>) -> Inferred {
    let shape = from_value(c, 1)?;
    c.set(0, shape);
    Ok(())
}

/// The output's shape is attribute `shape`.
pub(crate) fn shape_attr(c: &mut InferContext<'_>) -> Inferred {
    if let Some(Attr::Shape(s)) = c.attr("shape") {
        let s = s.clone();
        c.set(0, s);
    }
    Ok(())
}
