//! Functions: bodies of nodes with a name, which nodes of a graph call (`PartitionedCall`, `If`, `While`, `Case`, or a
//! node whose op is the function), as in the graphs of today's TensorFlow 2.
//!
//! A [`Library`] holds them as the `FunctionDef`s that they came as. Nothing executes a function as such: before a step
//! is planned, [`mod@lower`] puts the body in the place of each call that the step needs, conditionals become
//! `Switch` and `Merge`, loops become `Enter`, `Merge`, `Switch`, `NextIteration` and `Exit` (white paper, section 4.4).

mod body;
mod expansion;
mod library;
mod lower;
mod lower_while;
mod lowered;
mod shapes;

pub(crate) use body::{DEFAULT_DEVICE, as_call};
pub use expansion::MAX_NODES;
pub use library::{FunctionError, Library};
pub(crate) use lower::{RESULTS, lower};
pub(crate) use lowered::Lowered;
pub(crate) use shapes::{Budget, of_call as shapes_of_call};
