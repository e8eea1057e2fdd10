//! Queues: rows of tensors that steps hand to each other, waiting where there is no room or no row (white paper,
//! section 4.6).
//!
//! A [`Queue`] is an object of a device's container, made by its op's node and shared by name. Enqueues and dequeues that
//! must wait hold no thread (`attempts`); rows come out as they came, at random, or by priority (`store`). The graph's side
//! are the ops `FIFOQueueV2`, `QueueEnqueueV2`, ... ([`crate::ops`]).

mod attempts;
mod queue;
mod rows;
mod store;
mod sync;

pub use attempts::Amount;
pub use queue::{Queue, QueueConfig, QueueOrder};
pub use rows::Row;
pub use rows::{stack, unstack};
