//! A convolutional net after LeNet (LeCun et al. 1998): two convolutions with pooling, two fully connected layers.

use super::{Input, Network, Tower};
use crate::layers::{Initial, Phase, Variables, accuracy, conv2d, dense, dropout, mean_cross_entropy};
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, Output, Padding};
use engine_core::shape::PartialShape;

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
        let mut h = inputs[0];
        let mut images = vec![("images".to_owned(), inputs[0])];
        for (i, n_out) in self.filters.iter().enumerate() {
            let name = format!("conv{}", i + 1);
            let (scope, mut at) = (g.scope(&name), variables.at(&name));
            let maps = conv2d(scope.value(h), &mut at, *n_out, [5, 5], [1, 1], Padding::Same, Initial::He);
            h = maps.relu().max_pool([2, 2], [2, 2], Padding::Same).output();
            let filters = format!("{name}/filters");
            if i == 0
                && let Some(w) = variables.value(&filters)
            {
                // [5, 5, 1, filters] to one image per filter.
                images.push((filters, scope.value(w).transpose([3, 0, 1, 2]).output()));
            }
        }
        let flat = g.value(h).flatten();
        let scope = g.scope("hidden");
        let hidden = dense(flat.with(&scope), &mut variables.at("hidden"), self.hidden, Initial::He).relu();
        let hidden = dropout(hidden, f64::from(self.dropout), phase, (self.seed, 17));
        let logits = dense(hidden.with(g), &mut variables.at("logits"), self.n_classes, Initial::Glorot);
        let loss = mean_cross_entropy(logits, inputs[1]).output();
        let accuracy = accuracy(logits, inputs[1]).try_output()?;
        Ok(Tower { loss, accuracy: Some(accuracy), images, updates: Vec::new() })
    }
}
