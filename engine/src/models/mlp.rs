//! A multi-layer perceptron: fully connected layers with rectified linear units, softmax cross entropy on top.

use super::{Input, Network, Tower};
use crate::layers::{Initial, Phase, Variables, accuracy, dense, mean_cross_entropy};
use crate::optimizer::Optimizer;
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, Output};
use engine_core::shape::PartialShape;

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
        let mut h = inputs[0];
        let sizes: Vec<usize> = self.hidden.iter().copied().chain([self.n_classes]).collect();
        for (i, n_out) in sizes.iter().enumerate() {
            let is_last = i + 1 == sizes.len();
            let name = format!("layer{}", i + 1);
            let initial = if is_last { Initial::Glorot } else { Initial::He };
            let scope = g.scope(&name);
            let sums = dense(scope.value(h), &mut variables.at(&name), *n_out, initial);
            h = if is_last { sums } else { sums.relu() }.output();
        }
        let logits = g.value(h);
        let loss = mean_cross_entropy(logits, inputs[1]).output();
        let accuracy = accuracy(logits, inputs[1]).try_output()?;
        Ok(Tower { loss, accuracy: Some(accuracy), images: Vec::new(), updates: Vec::new() })
    }
}
