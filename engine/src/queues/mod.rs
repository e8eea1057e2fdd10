//! Queues and what keeps them filled: [`Coordinator`] and [`QueueRunner`] are threads, and [`batch`], [`shuffle_batch`], ... build
//! whole input pipelines (white paper, section 4.6). A queue itself is [`engine_core::queues`]', whose items are here too.

mod pipeline;
mod runner;

pub use engine_core::queues::*;
pub use pipeline::{BatchOptions, Batches, batch, batch_join, bucket_by_sequence_length, shuffle_batch};
pub use runner::{Coordinator, QueueRunner};
