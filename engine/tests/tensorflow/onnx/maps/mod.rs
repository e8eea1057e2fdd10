//! The counterparts of ONNX's operators, by kind.

mod array;
mod math;
mod nn;
mod resize;
mod rnn;

use super::map::{Map, Mapped};

/// The outputs of a node's counterpart.
pub fn map(m: &Map) -> Mapped<'_> {
    if !m.node.domain.is_empty() {
        return Err(m.uncovered(&format!("of domain {}", m.node.domain)));
    }
    let kinds = [math::map, array::map, nn::map, rnn::map, resize::map];
    kinds.iter().find_map(|map| map(m)).unwrap_or_else(|| Err(m.uncovered("")))
}
