//! Tasks: a network, the data that it learns from, and what counts as learned. `stepscope train NAME` runs them.
//!
//! Each states beforehand the quality that its default number of steps must reach: a test accuracy, or how near the
//! loss comes to the entropy of a text, which no model can go below.

mod images;
mod judge;
mod task;
mod words;

pub use images::{convnet, inception, mlp};
pub use judge::{Judge, Quality};
pub use task::{NextBatch, Task};
pub use words::{embeddings, language_model};
