//! Tasks: a network, the data that it learns from, and what counts as learned. `stepscope train NAME` runs them.
//!
//! Each states beforehand the quality that its default number of steps must reach: a test accuracy, or how near the
//! loss comes to the entropy of a text, which no model can go below.

mod images;
mod judge;
mod words;

use crate::models::Network;
use crate::tensor::Tensor;
use crate::training::TrainingOptions;

pub use images::{convnet, inception, mlp};
pub use judge::{Judge, Quality};
pub use words::{embeddings, language_model};

/// Makes the next batch, in the order of [`Network::inputs`].
pub type NextBatch = Box<dyn FnMut() -> Vec<Tensor> + Send>;

/// Something to learn.
pub struct Task {
    /// The network.
    pub network: Box<dyn Network>,
    /// How it is trained by default.
    pub training: TrainingOptions,
    /// Training steps by default.
    pub steps: u64,
    /// Examples (images, words, pairs of words) of a batch.
    pub batch_size: usize,
    /// Gives the next batch, in the order of [`Network::inputs`].
    pub next_batch: NextBatch,
    /// Batches to be judged by, in order.
    pub test: Vec<Vec<Tensor>>,
    /// What counts as learned.
    pub judge: Judge,
}
