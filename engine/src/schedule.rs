//! Schedules of learning rates, and gradients summed over several steps.

use crate::dtype::DType;
use crate::graph::{Graph, GraphError, NodeId, Output, Var};
use crate::slices::known_shape;

/// `rate * decay ^ (step / every)`: the rate of a step, of which `step` is the number.
///
/// # Errors
/// `step` is no number.
pub fn exponential_decay(g: &Graph, rate: f32, step: Output, every: f32, decay: f32) -> Result<Output, GraphError> {
    let g = g.scope("exponential_decay");
    let exponent = g.div(g.cast(step, DType::F32)?, g.constant(every)?)?;
    g.mul(g.constant(rate)?, g.pow(g.constant(decay)?, exponent)?)
}

/// `rate / (1 + decay * step / every)`.
///
/// # Errors
/// `step` is no number.
pub fn inverse_time_decay(g: &Graph, rate: f32, step: Output, every: f32, decay: f32) -> Result<Output, GraphError> {
    let g = g.scope("inverse_time_decay");
    let share = g.mul(g.cast(step, DType::F32)?, g.constant(decay / every)?)?;
    g.div(g.constant(rate)?, g.add(share, g.constant(1f32)?)?)
}

/// From `rate` down to `last` along `(1 - step / steps) ^ power`, and `last` from then on.
///
/// # Errors
/// `step` is no number.
pub fn polynomial_decay(
    g: &Graph,
    (rate, last): (f32, f32),
    step: Output,
    steps: f32,
    power: f32,
) -> Result<Output, GraphError> {
    let g = g.scope("polynomial_decay");
    let limit = g.constant(steps)?;
    let share = g.div(g.minimum(g.cast(step, DType::F32)?, limit)?, limit)?;
    let left = g.pow(g.sub(g.constant(1f32)?, share)?, g.constant(power)?)?;
    g.add(g.mul(left, g.constant(rate - last)?)?, g.constant(last)?)
}

/// Gradients summed over several steps, to be applied at once: larger batches than memory holds.
pub struct Accumulation {
    /// Adds the gradients of one step.
    pub add: NodeId,
    /// Sets the sums to zero; they begin with zero too. Run it once at first.
    pub init: Vec<NodeId>,
    /// The sums over all steps so far, divided by their number as given.
    pub means: Vec<Output>,
    zeros: Vec<(Output, Output)>,
}

impl Accumulation {
    /// Sums for `variables`, of which `gradients` are those of one step; `n_steps` go into one mean.
    ///
    /// # Errors
    /// The gradients do not fit the variables, or the shape of one is not known.
    pub fn new(g: &Graph, variables: &[Var], gradients: &[Output], n_steps: usize) -> Result<Accumulation, GraphError> {
        let g = g.scope("accumulate");
        let (mut init, mut adds, mut means, mut zeros) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (var, gradient) in variables.iter().zip(gradients) {
            let (name, dtype) = (g.node(var.handle.node)?.name.to_string(), g.dtype(var.value)?);
            let shape = known_shape(&g, *var)?;
            let dims: Vec<i32> = shape.dims().iter().map(|d| *d as i32).collect();
            let zero = g.fill(g.int_vector(&dims)?, g.number(dtype, 0.0)?)?;
            let sum = g.variable_from(&format!("{name}/sum"), dtype, &shape, |_| Ok(zero))?;
            init.push(sum.init);
            let node = g.add_node("AssignAddVariableOp").input(sum.handle).input(*gradient);
            adds.push(node.attr("dtype", dtype).build()?);
            means.push(g.mul(sum.value, g.number(dtype, 1.0 / n_steps.max(1) as f64)?)?);
            zeros.push((sum.handle, zero));
        }
        Ok(Accumulation { add: g.group("add", &adds)?, init, means, zeros })
    }

    /// Sets the sums to zero after `after`, the step of training that took them.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn reset_after(&self, g: &Graph, after: NodeId) -> Result<NodeId, GraphError> {
        let g = g.scope("accumulate").with_control(&[after]);
        let assign =
            |(handle, zero): &(Output, Output)| g.add_node("AssignVariableOp").input(*handle).input(*zero).build();
        let nodes = self.zeros.iter().map(assign).collect::<Result<Vec<_>, _>>()?;
        g.group("reset", &nodes)
    }
}
