//! Schedules of learning rates, and gradients summed over several steps.
//!
//! ```
//! use engine::prelude::*;
//! use engine::schedule::exponential_decay;
//!
//! # fn main() -> Result<(), Error> {
//! let g = Graph::new();
//! let mut variables = Variables::new(&g, 1);
//! let x = g.placeholder("x", DType::F32, [None, Some(2)]);
//! let loss = dense(x, &mut variables.at("out"), 1, Initial::Glorot).square().mean_all();
//! let step = variables.step_counter();
//! let rate = exponential_decay(g.value(step.value), 0.1, 1.0, 0.5);
//! let training = Optimizer::ADAM.minimize(loss, &variables.trained(), rate)?;
//! let train = training.counted_by(&g, step);
//!
//! let session = Session::new(&g, SessionOptions::default())?;
//! session.step().targets(&variables.init()).targets(&training.init).run()?;
//! for expected in [0.1, 0.05, 0.025] {
//!     let fetched = session.step().feed(x, Tensor::from_vec([1, 2], vec![1f32, 2.0])?).fetch(rate).target(train).run()?;
//!     assert!((fetched[0].item::<f32>()? - expected).abs() < 1e-6);
//! }
//! assert_eq!(session.step().fetch(step.value).run()?[0].item::<i64>()?, 3);
//! # Ok(())
//! # }
//! ```

use crate::slices::known_shape;
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, NodeId, Output, Value, Var};

/// `rate * decay ^ (step / every)`: the rate of a step, of which `step` is the number.
pub fn exponential_decay(step: Value<'_>, rate: f32, every: f32, decay: f32) -> Value<'_> {
    step.in_scope("exponential_decay", |step| {
        let exponent = step.cast(DType::F32) / f64::from(every);
        let g = step.graph();
        g.constant(rate) * g.constant(decay).pow(exponent)
    })
}

/// `rate / (1 + decay * step / every)`.
pub fn inverse_time_decay(step: Value<'_>, rate: f32, every: f32, decay: f32) -> Value<'_> {
    step.in_scope("inverse_time_decay", |step| {
        let share = step.cast(DType::F32) * f64::from(decay / every);
        f64::from(rate) / (share + 1.0)
    })
}

/// From `rate` down to `last` along `(1 - step / steps) ^ power`, and `last` from then on.
pub fn polynomial_decay(step: Value<'_>, (rate, last): (f32, f32), steps: f32, power: f32) -> Value<'_> {
    step.in_scope("polynomial_decay", |step| {
        let share = step.cast(DType::F32).minimum(f64::from(steps)) / f64::from(steps);
        (1.0 - share).pow(f64::from(power)) * f64::from(rate - last) + f64::from(last)
    })
}

/// Gradients summed over several steps, to be applied at once: larger batches than memory holds.
pub struct Accumulation {
    /// Adds the gradients of one step.
    pub add: NodeId,
    /// Sets the sums to zero; they begin with zero too. Run it once at first.
    pub init: Vec<NodeId>,
    /// The sums over all steps so far, divided by their number as given.
    pub means: Vec<Output>,
    zeros: Vec<(Var, Output)>,
}

impl Accumulation {
    /// Sums for `variables`, of which `gradients` are those of one step; `n_steps` go into one mean.
    ///
    /// # Errors
    /// The gradients do not fit the variables, or the shape of one is not known.
    pub fn new(g: &Graph, variables: &[Var], gradients: &[Output], n_steps: usize) -> Result<Accumulation, GraphError> {
        g.check()?;
        let g = g.scope("accumulate");
        let (mut init, mut adds, mut means, mut zeros) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (var, gradient) in variables.iter().zip(gradients) {
            let (name, dtype) = (g.node(var.handle.node)?.name.to_string(), g.dtype(var.value)?);
            let shape = known_shape(&g, *var)?;
            let zero = g.fill(shape.dims(), g.number(dtype, 0.0)).output();
            let sum = g.variable_from(&format!("{name}/sum"), dtype, &shape, |g| g.value(zero));
            init.push(sum.init);
            adds.push(sum.assign_add(g.value(*gradient)));
            means.push((g.value(sum.value) * (1.0 / n_steps.max(1) as f64)).output());
            zeros.push((sum, zero));
        }
        let add = g.group("add", &adds);
        g.check()?;
        Ok(Accumulation { add, init, means, zeros })
    }

    /// Sets the sums to zero after `after`, the step of training that took them.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn reset_after(&self, g: &Graph, after: NodeId) -> Result<NodeId, GraphError> {
        let g = g.scope("accumulate").with_control(&[after]);
        let nodes: Vec<NodeId> = self.zeros.iter().map(|(sum, zero)| sum.assign(g.value(*zero))).collect();
        let reset = g.group("reset", &nodes);
        g.check()?;
        Ok(reset)
    }
}
