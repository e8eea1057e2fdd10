//! The counterparts of ONNX's operators, by kind.

mod array;
mod math;
mod nn;

use super::map::{Map, Mapped};

/// The outputs of a node's counterpart.
pub fn map(m: &Map<'_>) -> Mapped {
    if !m.node.domain.is_empty() {
        return Err(m.uncovered(&format!("of domain {}", m.node.domain)));
    }
    math::map(m).or_else(|| array::map(m)).or_else(|| nn::map(m)).unwrap_or_else(|| Err(m.uncovered("")))
}
