//! Optimizers: nodes that move variables against their gradients, in the scope `train/`.

use crate::gradients::{GradientError, gradients};
use crate::graph::{Graph, GraphError, NodeId, Output, Var};
use crate::tensor::Tensor;

/// How variables follow their gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimizer {
    /// `v -= rate * g`.
    GradientDescent,
    /// `a = momentum * a + g; v -= rate * a`.
    Momentum {
        /// How much of the former direction is kept, in [0, 1).
        momentum: f32,
    },
}

/// What training needs.
pub struct Training {
    /// One step of training.
    pub op: NodeId,
    /// Initialises the optimizer's own variables; run it once.
    pub init: Vec<NodeId>,
    /// The gradients, in the order of the variables.
    pub gradients: Vec<Output>,
}

impl Optimizer {
    /// Adds nodes that move float `variables`, of these shapes, against the gradient of `loss` at the rate `rate`.
    ///
    /// # Errors
    /// The loss has no gradient for them.
    pub fn minimize(
        self,
        g: &Graph,
        loss: Output,
        variables: &[(Var, &[usize])],
        rate: Output,
    ) -> Result<Training, GradientError> {
        let xs: Vec<Output> = variables.iter().map(|(v, _)| v.value).collect();
        let grads = gradients(g, &[loss], &xs, &[])?;
        Ok(self.apply(g, variables, &grads, rate)?)
    }

    /// Adds nodes that move float `variables`, of these shapes, against `grads`, their gradients in the same order,
    /// at the rate `rate`: for gradients that come from several towers, were clipped or accumulated.
    ///
    /// # Errors
    /// Types or shapes do not fit.
    pub fn apply(
        self,
        g: &Graph,
        variables: &[(Var, &[usize])],
        grads: &[Output],
        rate: Output,
    ) -> Result<Training, GraphError> {
        let train = g.scope("train");
        let (mut updates, mut init) = (Vec::new(), Vec::new());
        for ((var, shape), grad) in variables.iter().zip(grads) {
            let name = g.node(var.handle.node)?.name.to_string();
            let update = match self {
                Optimizer::GradientDescent => {
                    let node = train.add_node("ResourceApplyGradientDescent").name(&format!("{name}/update"));
                    node.input(var.handle).input(rate).input(*grad).build()?
                }
                Optimizer::Momentum { momentum } => {
                    let dims: Vec<i32> = shape.iter().map(|d| *d as i32).collect();
                    let slot = train.variable_from(
                        &format!("{name}/momentum"),
                        g.dtype(var.value)?,
                        shape.iter().map(|d| Some(*d)).collect::<Vec<_>>().as_slice(),
                        |s| s.fill(s.int_vector(&dims)?, s.constant(Tensor::scalar(0f32))?),
                    )?;
                    init.push(slot.init);
                    let momentum = train.named_constant(&format!("{name}/mu"), Tensor::scalar(momentum))?;
                    let node = train.add_node("ResourceApplyMomentum").name(&format!("{name}/update"));
                    let node = node.input(var.handle).input(slot.handle).input(rate).input(*grad);
                    node.input(momentum).build()?
                }
            };
            updates.push(update);
        }
        Ok(Training { op: train.group("step", &updates)?, init, gradients: grads.to_vec() })
    }
}
