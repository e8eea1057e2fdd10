//! Facts of control flow that the graph and the ops share.

use super::OpKind as K;
use crate::shape::PartialShape;

/// Attribute of an `Enter` whose variable changes its shape: what stays true of it in every iteration.
pub const SHAPE_INVARIANT: &str = "_shape_invariant";

/// Where a value comes from that a branch or a loop passes on unchanged, for whoever looks for its origin: the input
/// that this op forwards.
pub fn forwards_input(kind: K, is_constant: bool) -> bool {
    match kind {
        K::Identity | K::Switch => true,
        K::Enter => is_constant,
        _ => false,
    }
}

/// The narrowest partial shape that admits whatever one of the two admits.
pub fn common_of(a: &PartialShape, b: &PartialShape) -> PartialShape {
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            let dims: Vec<Option<usize>> = a.iter().zip(b).map(|(a, b)| if a == b { *a } else { None }).collect();
            PartialShape::new(&dims)
        }
        _ => PartialShape::unknown(),
    }
}
