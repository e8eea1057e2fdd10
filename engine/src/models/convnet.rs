//! A convolutional net after LeNet (LeCun et al. 1998): two convolutions with pooling, two fully connected layers.

use super::layers::{Padding, accuracy, conv, dense, dropout, max_pool, mean_cross_entropy, reshape};
use super::{Initial, Input, Network, Phase, Tower, Variables};
use crate::dtype::DType;
use crate::graph::{Graph, GraphError, Output};
use crate::shape::PartialShape;

/// The net's sizes: 5x5 convolutions over square images of one channel.
#[derive(Debug, Clone)]
pub struct Convnet {
    /// Pixels along an edge; halved twice.
    pub edge: usize,
    /// Filters of the two convolutions.
    pub filters: [usize; 2],
    /// Units of the hidden layer.
    pub hidden: usize,
    /// Classes.
    pub n_classes: usize,
    /// The share of the hidden units that a training step drops.
    pub dropout: f32,
    /// Seed of what is dropped.
    pub seed: i64,
}

impl Default for Convnet {
    fn default() -> Convnet {
        Convnet { edge: 28, filters: [32, 64], hidden: 1024, n_classes: 10, dropout: 0.4, seed: 1 }
    }
}

impl Network for Convnet {
    fn name(&self) -> &'static str {
        "convnet"
    }

    fn inputs(&self) -> Vec<Input> {
        let shape = PartialShape::from([None, Some(self.edge), Some(self.edge), Some(1)]);
        vec![
            Input { name: "images", dtype: DType::F32, shape },
            Input { name: "labels", dtype: DType::I64, shape: PartialShape::from([None]) },
        ]
    }

    fn has_phases(&self) -> bool {
        self.dropout > 0.0
    }

    fn tower(
        &self,
        g: &Graph,
        variables: &mut Variables,
        inputs: &[Output],
        phase: Phase,
    ) -> Result<Tower, GraphError> {
        let (mut h, mut n_in) = (inputs[0], 1);
        let mut images = vec![("images".to_owned(), inputs[0])];
        for (i, n_out) in self.filters.iter().enumerate() {
            let name = format!("conv{}", i + 1);
            let w = variables.get(&format!("{name}/filters"), &[5, 5, n_in, *n_out], Initial::he(25 * n_in))?;
            let b = variables.get(&format!("{name}/biases"), &[*n_out], Initial::Constant(0.0))?;
            let scope = g.scope(&name);
            h = scope.relu(scope.bias_add(conv(&scope, h, w.value, 1, Padding::Same)?, b.value)?)?;
            h = max_pool(&scope, h, 2, 2, Padding::Same)?;
            if i == 0 {
                // [5, 5, 1, filters] to one image per filter.
                let picture = scope.transpose(w.value, scope.int_vector(&[3, 0, 1, 2])?)?;
                images.push((format!("{name}/filters"), picture));
            }
            n_in = *n_out;
        }
        let edge = self.edge.div_ceil(2).div_ceil(2);
        let n_flat = edge * edge * n_in;
        let flat = reshape(g, h, &[-1, i32::try_from(n_flat).unwrap_or(i32::MAX)])?;
        let scope = g.scope("hidden");
        let mut h =
            scope.relu(dense(&scope, variables, flat, "hidden", (n_flat, self.hidden), Initial::he(n_flat))?)?;
        if phase == Phase::Training && self.dropout > 0.0 {
            h = dropout(&scope, h, self.dropout, self.seed)?;
        }
        let scope = g.scope("logits");
        let sizes = (self.hidden, self.n_classes);
        let logits = dense(&scope, variables, h, "logits", sizes, Initial::glorot(sizes.0, sizes.1))?;
        let loss = mean_cross_entropy(g, logits, inputs[1])?;
        let accuracy = accuracy(g, logits, inputs[1])?;
        Ok(Tower { loss, accuracy: Some(accuracy), images, updates: Vec::new() })
    }
}
