//! Collectives: the executions of collectives on each rank, and which of them are one exchange.
//!
//! 1. [`kind`]: the kinds, their bus factors and what their message is; [`args`]: what PyTorch says of one;
//!    [`group`]: the ranks that take part.
//! 2. [`calls`]: the executions on all ranks. [`sequence`]: how the sequences of two ranks lie to each other.
//! 3. [`exchanges`]: the executions that are one exchange, and the rank that came last.

mod args;
mod calls;
mod exchanges;
mod group;
mod kind;
mod sequence;

pub(crate) use calls::{Call, Signature};
pub(crate) use exchanges::Exchanges;
pub use group::ProcessGroup;
pub use kind::CollectiveKind;
