//! A perceptron that is fed, on one device, ready to be trained.

use super::build::build;
use super::options::TrainingOptions;
use crate::models::MlpOptions;
use engine_core::graph::{Graph, NodeId, Output};
use engine_ops::gradients::GradientError;

/// A perceptron in a graph.
#[derive(Debug, Clone)]
pub struct Mlp {
    /// Examples, fed: f32 `[batch, inputs]`.
    pub x: Output,
    /// Their classes, fed: i64 `[batch]`.
    pub labels: Output,
    /// The mean cross entropy, a scalar.
    pub loss: Output,
    /// The share of examples whose largest logit is their class, a scalar.
    pub accuracy: Output,
    /// One step of training.
    pub train_op: NodeId,
    /// Initialises all variables; run it once.
    pub init: NodeId,
    /// A string with summaries of loss, accuracy and learning rate.
    pub scalars: Output,
    /// A string with histograms of weights, biases and their gradients.
    pub histograms: Output,
}

/// Adds a perceptron to a graph, fed and on one device: scopes `layer1`, ..., `loss`, `accuracy`, `gradients`, `train`,
/// `summaries`.
///
/// # Errors
/// Names clash in a way that cannot be resolved; not for sizes, which may be any.
pub fn mlp(g: &Graph, options: &MlpOptions) -> Result<Mlp, GradientError> {
    let training = TrainingOptions {
        optimizer: options.optimizer,
        learning_rate: options.learning_rate,
        seed: options.seed,
        ..TrainingOptions::default()
    };
    let built = build(g, options, &training)?;
    let tower = &built.evaluation;
    Ok(Mlp {
        x: built.feeds[0][0],
        labels: built.feeds[0][1],
        loss: tower.loss,
        accuracy: tower.accuracy.unwrap_or(tower.loss),
        train_op: built.train_ops[0],
        init: built.init,
        scalars: built.scalars,
        histograms: built.histograms,
    })
}
