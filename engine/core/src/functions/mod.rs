//! Functions: bodies of nodes with a name, which nodes of a graph call (`PartitionedCall`, `If`, `While`, `Case`, or a
//! node whose op is the function), as in the graphs of today's TensorFlow 2.
//!
//! A [`Library`] holds them as the `FunctionDef`s that they came as. Nothing executes a function as such: before a step
//! is planned, [`mod@lower`] puts the body in the place of each call that the step needs, conditionals become
//! `Switch` and `Merge`, loops become `Enter`, `Merge`, `Switch`, `NextIteration` and `Exit` (white paper, section 4.4).

mod body;
mod expansion;
mod lower;
mod lower_while;
mod shapes;

pub use crate::graph::FunctionError;
pub use crate::ops::Library;
pub use body::DEFAULT_DEVICE;
pub use expansion::MAX_NODES;
pub use lower::{Gradients, RESULTS, lower};

/// Where less of the stack is left than this, the body of a call gets a new piece.
const STACK_LEFT: usize = 128 << 10;
/// How large a new piece is.
const STACK_PIECE: usize = 2 << 20;
