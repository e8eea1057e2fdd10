//! Queues: rows of tensors that steps hand to each other, waiting where there is no room or no row (white paper,
//! section 4.6).
//!
//! A [`Queue`] is an object of a device's container, made by its op's node and shared by name. Enqueues and dequeues that
//! must wait hold no thread (`attempts`); rows come out as they came, at random, or by priority (`store`). The graph's side
//! are the ops `FIFOQueueV2`, `QueueEnqueueV2`, ... ([`crate::ops`]); [`Coordinator`] and [`QueueRunner`] are the threads that keep
//! a queue filled, and [`batch`], [`shuffle_batch`], ... build whole input pipelines.

mod attempts;
mod pipeline;
mod queue;
mod rows;
mod runner;
mod store;
mod sync;

pub(crate) use attempts::Amount;
pub use pipeline::{BatchOptions, Batches, batch, batch_join, bucket_by_sequence_length, shuffle_batch};
pub use queue::{Queue, QueueConfig, QueueOrder};
pub use rows::Row;
pub(crate) use rows::{stack, unstack};
pub use runner::{Coordinator, QueueRunner};
