//! What a network is.

use crate::layers::{Phase, Variables};
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, NodeId, Output};
use engine_core::shape::PartialShape;

/// One part of a batch.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its name.
    pub name: &'static str,
    /// Its element type.
    pub dtype: DType,
    /// Its shape, the batch included.
    pub shape: PartialShape,
}

/// What a network computes from a batch.
#[derive(Debug, Clone)]
pub struct Tower {
    /// The mean loss, a scalar.
    pub loss: Output,
    /// The share of examples that are classified rightly, a scalar, where the network classifies.
    pub accuracy: Option<Output>,
    /// Images worth looking at, f32 `[n, height, width, channels]`, by tag.
    pub images: Vec<(String, Output)>,
    /// What a training step must run besides the optimizer: moving averages, carried state.
    pub updates: Vec<NodeId>,
}

/// A network that can be trained.
pub trait Network: Send + Sync {
    /// Its name: `convnet`.
    fn name(&self) -> &'static str;

    /// What a batch consists of, in the order in which it is fed.
    fn inputs(&self) -> Vec<Input>;

    /// Whether evaluation computes other things than training does.
    fn has_phases(&self) -> bool {
        false
    }

    /// Adds one tower to the graph, whose scope and device are the handle's.
    ///
    /// # Errors
    /// The inputs are not those of [`Network::inputs`].
    fn tower(&self, g: &Graph, variables: &mut Variables, inputs: &[Output], phase: Phase)
    -> Result<Tower, GraphError>;
}
