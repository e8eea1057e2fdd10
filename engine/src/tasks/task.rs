//! What a task is.

use super::judge::Judge;
use crate::models::Network;
use crate::training::TrainingOptions;
use engine_core::tensor::Tensor;

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
