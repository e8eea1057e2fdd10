//! Tasks: a network, the data that it learns from, and what counts as learned. `stepscope train NAME` runs them.
//!
//! Each states beforehand the quality that its default number of steps must reach: a test accuracy, or how near the
//! loss comes to the entropy of a text, which no model can go below.

mod images;
mod words;

use std::borrow::Cow;

use crate::models::Network;
use crate::tensor::Tensor;
use crate::training::TrainingOptions;

pub use images::{convnet, inception, mlp};
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

/// What counts as learned.
#[derive(Debug, Clone)]
pub enum Judge {
    /// The share of test examples that are classified rightly.
    Accuracy {
        /// At least this, 0 to 1.
        goal: f64,
    },
    /// The test loss, which no model can bring below the entropy of the text.
    Entropy {
        /// The entropy, nats per word.
        nats: f64,
        /// At most this many times the entropy.
        goal: f64,
    },
    /// The share of words whose nearest neighbour is of their kind.
    Neighbours {
        /// The variable with a vector per word.
        vectors: &'static str,
        /// Words of a kind.
        kinds: Vec<Vec<i32>>,
        /// At least this, 0 to 1.
        goal: f64,
    },
}

/// A measured quality and its goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// What it is: `test accuracy`.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: f64,
    /// What was stated beforehand.
    pub goal: f64,
    /// Whether the goal is the most that the value may be, not the least.
    pub is_limit: bool,
}

impl Quality {
    /// Whether the goal is reached.
    pub fn is_reached(&self) -> bool {
        if self.is_limit { self.value <= self.goal } else { self.value >= self.goal }
    }
}

impl Judge {
    /// The quality that a test shows: its mean loss, its accuracy where there is one, and the value of the variable that
    /// [`Judge::wants`].
    pub fn quality(&self, loss: f64, accuracy: Option<f64>, variable: Option<&Tensor>) -> Quality {
        match self {
            Judge::Accuracy { goal } => {
                let value = accuracy.unwrap_or(f64::NAN);
                Quality { name: "test accuracy".into(), value, goal: *goal, is_limit: false }
            }
            Judge::Entropy { nats, goal } => {
                Quality { name: "test loss / entropy".into(), value: loss / nats, goal: *goal, is_limit: true }
            }
            Judge::Neighbours { kinds, goal, .. } => {
                let value = variable.map_or(f64::NAN, |vectors| words::neighbours_of_kind(vectors, kinds));
                Quality { name: "neighbours of one kind".into(), value, goal: *goal, is_limit: false }
            }
        }
    }

    /// The variable whose value the judgement needs.
    pub fn wants(&self) -> Option<&'static str> {
        match self {
            Judge::Neighbours { vectors, .. } => Some(vectors),
            _ => None,
        }
    }
}
