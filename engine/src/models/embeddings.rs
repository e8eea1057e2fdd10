//! Word embeddings: skip-gram with negative sampling (Mikolov et al. 2013). A word's vector learns to distinguish the
//! words around it from words drawn at random.

use super::{Input, Network, Tower};
use crate::layers::{Initial, Phase, Variables, embedding};
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, Output};
use engine_core::shape::PartialShape;

/// The sizes.
#[derive(Debug, Clone)]
pub struct SkipGram {
    /// Different words.
    pub n_words: usize,
    /// Numbers of a vector.
    pub size: usize,
    /// Words drawn at random per batch, from which all its pairs are to be distinguished.
    pub negatives: usize,
}

/// The vectors' variable, of the layer `embedding`.
pub(crate) const VECTORS: &str = "embedding/vectors";

impl Network for SkipGram {
    fn name(&self) -> &'static str {
        "embeddings"
    }

    fn inputs(&self) -> Vec<Input> {
        let any = PartialShape::from([None]);
        vec![
            Input { name: "words", dtype: DType::I32, shape: any.clone() },
            Input { name: "neighbours", dtype: DType::I32, shape: any },
            Input { name: "negatives", dtype: DType::I32, shape: PartialShape::from([self.negatives]) },
        ]
    }

    fn tower(&self, g: &Graph, variables: &mut Variables, inputs: &[Output], _: Phase) -> Result<Tower, GraphError> {
        let (scope, mut at) = (g.scope("embedding"), variables.at("embedding"));
        let initial = Initial::Normal(0.5 / (self.size as f32).sqrt());
        let words = embedding(scope.value(inputs[0]), &mut at, self.n_words, self.size, initial).output();
        let contexts = at.get("contexts", &[self.n_words, self.size], Initial::Constant(0.0));
        let contexts = scope.value(contexts.value);
        let (neighbours, negatives) = (contexts.embedding_lookup(inputs[1]), contexts.embedding_lookup(inputs[2]));
        let scope = g.scope("loss");
        let words = scope.value(words);
        // -ln sigmoid(x) is softplus(-x).
        let right = (-(words * neighbours).sum([1])).softplus().mean_all();
        let wrong = words.matmul_with(negatives, false, true).softplus().sum([1]);
        let loss = (right + wrong.mean_all()).try_output()?;
        Ok(Tower { loss, accuracy: None, images: Vec::new(), updates: Vec::new() })
    }
}
