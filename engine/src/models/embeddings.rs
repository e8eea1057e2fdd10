//! Word embeddings: skip-gram with negative sampling (Mikolov et al. 2013). A word's vector learns to tell the words
//! around it from words drawn at random.

use super::{Initial, Input, Network, Phase, Tower, Variables};
use crate::dtype::DType;
use crate::graph::{Built, Graph, GraphError, Output};
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// The sizes.
#[derive(Debug, Clone)]
pub struct SkipGram {
    /// Different words.
    pub n_words: usize,
    /// Numbers of a vector.
    pub size: usize,
    /// Words drawn at random per batch, which all its pairs are told from.
    pub negatives: usize,
}

/// The vectors' variable.
pub(crate) const VECTORS: &str = "embedding/vectors";

fn lookup(g: &Graph, table: Output, rows: Output) -> Built {
    g.add_node("GatherV2").input(table).input(rows).input(g.constant(Tensor::scalar(0i32))?).output()
}

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
        let shape = [self.n_words, self.size];
        let vectors = variables.get(VECTORS, &shape, Initial::Normal(0.5 / (self.size as f32).sqrt()))?;
        let contexts = variables.get("embedding/contexts", &shape, Initial::Constant(0.0))?;
        let scope = g.scope("embedding");
        let words = lookup(&scope, vectors.value, inputs[0])?;
        let neighbours = lookup(&scope, contexts.value, inputs[1])?;
        let negatives = lookup(&scope, contexts.value, inputs[2])?;
        let scope = g.scope("loss");
        // -ln sigmoid(x) is softplus(-x).
        let right = scope.sum(scope.mul(words, neighbours)?, scope.int_vector(&[1])?)?;
        let right = scope.mean_all(scope.add_node("Softplus").input(scope.neg(right)?).output()?)?;
        let wrong = scope.matmul_with(words, negatives, false, true)?;
        let wrong = scope.sum(scope.add_node("Softplus").input(wrong).output()?, scope.int_vector(&[1])?)?;
        let loss = scope.add(right, scope.mean_all(wrong)?)?;
        Ok(Tower { loss, accuracy: None, images: Vec::new(), updates: Vec::new() })
    }
}
