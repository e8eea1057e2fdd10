//! A multi-layer perceptron: fully connected layers with rectified linear units, softmax cross entropy on top.

use super::layers::{accuracy, dense, mean_cross_entropy};
use super::{Initial, Input, Network, Phase, Tower, Variables};
use crate::dtype::DType;
use crate::gradients::GradientError;
use crate::graph::{Graph, GraphError, NodeId, Output};
use crate::optimizer::Optimizer;
use crate::shape::PartialShape;
use crate::training::{TrainingOptions, build};

/// The shape of a perceptron and of its training.
#[derive(Debug, Clone)]
pub struct MlpOptions {
    /// Numbers per example.
    pub n_inputs: usize,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// Classes.
    pub n_classes: usize,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// Its rate.
    pub learning_rate: f32,
    /// Seed of the initial weights.
    pub seed: i64,
}

impl Default for MlpOptions {
    fn default() -> MlpOptions {
        MlpOptions {
            n_inputs: 64,
            hidden: vec![512, 512],
            n_classes: 10,
            optimizer: Optimizer::Momentum { momentum: 0.9 },
            learning_rate: 0.02,
            seed: 1,
        }
    }
}

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

impl Network for MlpOptions {
    fn name(&self) -> &'static str {
        "mlp"
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input { name: "x", dtype: DType::F32, shape: PartialShape::from([None, Some(self.n_inputs)]) },
            Input { name: "labels", dtype: DType::I64, shape: PartialShape::from([None]) },
        ]
    }

    fn tower(&self, g: &Graph, variables: &mut Variables, inputs: &[Output], _: Phase) -> Result<Tower, GraphError> {
        let (mut h, mut n_in) = (inputs[0], self.n_inputs);
        let sizes: Vec<usize> = self.hidden.iter().copied().chain([self.n_classes]).collect();
        for (i, n_out) in sizes.iter().enumerate() {
            let is_last = i + 1 == sizes.len();
            let name = format!("layer{}", i + 1);
            let initial = if is_last { Initial::glorot(n_in, *n_out) } else { Initial::he(n_in) };
            let scope = g.scope(&name);
            h = dense(&scope, variables, h, &name, (n_in, *n_out), initial)?;
            if !is_last {
                h = scope.relu(h)?;
            }
            n_in = *n_out;
        }
        let loss = mean_cross_entropy(g, h, inputs[1])?;
        let accuracy = accuracy(g, h, inputs[1])?;
        Ok(Tower { loss, accuracy: Some(accuracy), images: Vec::new(), updates: Vec::new() })
    }
}
