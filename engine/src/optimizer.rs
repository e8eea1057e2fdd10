//! Optimizers: nodes that move variables against their gradients, in the scope `train/`.

use std::collections::BTreeMap;

use crate::dtype::DType;
use crate::gradients::{GradientError, gradients};
use crate::graph::{Graph, GraphError, NodeId, Output, Var};
use crate::slices::IndexedSlices;
use crate::tensor::Tensor;

/// How variables follow their gradients `g`; all as TensorFlow's kernels of these names compute it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimizer {
    /// `v -= rate * g`.
    GradientDescent,
    /// `a = momentum * a + g; v -= rate * a`.
    Momentum {
        /// How much of the former direction is kept, in [0, 1).
        momentum: f32,
    },
    /// `a = momentum * a + g; v -= rate * (g + momentum * a)`.
    Nesterov {
        /// How much of the former direction is kept, in [0, 1).
        momentum: f32,
    },
    /// `a += g^2; v -= rate * g / sqrt(a)` (Duchi et al. 2011).
    Adagrad {
        /// What `a` begins as, above 0.
        initial: f32,
    },
    /// `s = decay * s + (1 - decay) g^2; a = momentum * a + rate * g / sqrt(s + epsilon); v -= a` (Tieleman and Hinton 2012).
    RmsProp {
        /// How much of the mean square is kept, in [0, 1).
        decay: f32,
        /// How much of the former step is kept, in [0, 1).
        momentum: f32,
        /// Keeps the divisor from 0.
        epsilon: f32,
    },
    /// `m = beta1 * m + (1 - beta1) g; s = beta2 * s + (1 - beta2) g^2`, both freed of their bias towards 0;
    /// `v -= rate * m / (sqrt(s) + epsilon)` (Kingma and Ba 2014).
    Adam {
        /// How much of the mean is kept, in [0, 1).
        beta1: f32,
        /// How much of the mean square is kept, in [0, 1).
        beta2: f32,
        /// Keeps the divisor from 0.
        epsilon: f32,
    },
}

impl Optimizer {
    /// Adam with the paper's constants.
    pub const ADAM: Optimizer = Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
    /// RMSProp with the constants of the Inception papers.
    pub const RMS_PROP: Optimizer = Optimizer::RmsProp { decay: 0.9, momentum: 0.9, epsilon: 1.0 };
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

/// The optimizer's own variables, beside each trained one: training steps that are given the same share them.
#[derive(Default)]
pub struct Slots {
    by_name: BTreeMap<String, Var>,
    all: Vec<Var>,
}

impl Slots {
    /// All of them, in the order in which they were made.
    pub fn all(&self) -> impl Iterator<Item = Var> + '_ {
        self.all.iter().copied()
    }
}

/// The nodes of one training step while they are added.
struct Step<'a> {
    train: Graph,
    slots: &'a mut Slots,
    init: Vec<NodeId>,
}

impl Step<'_> {
    /// The slot `name`, of the given type and shape, every element `value` at first.
    fn slot(&mut self, name: &str, dtype: DType, shape: &[usize], value: f64) -> Result<Var, GraphError> {
        if let Some(slot) = self.slots.by_name.get(name) {
            return Ok(*slot);
        }
        let dims: Vec<i32> = shape.iter().map(|d| i32::try_from(*d).unwrap_or(i32::MAX)).collect();
        let known: Vec<Option<usize>> = shape.iter().map(|d| Some(*d)).collect();
        let fill = |s: &Graph| s.fill(s.int_vector(&dims)?, s.number(dtype, value)?);
        let slot = self.train.variable_from(name, dtype, known.as_slice(), fill)?;
        self.init.push(slot.init);
        self.slots.by_name.insert(name.to_owned(), slot);
        self.slots.all.push(slot);
        Ok(slot)
    }

    fn number(&self, name: &str, dtype: DType, value: f32) -> Result<Output, GraphError> {
        let value = Tensor::number(dtype, f64::from(value)).map_err(|_| GraphError::NotANumber { dtype })?;
        self.train.named_constant(name, value)
    }
}

/// One trained variable, as an update needs it.
struct Target<'a> {
    var: Var,
    name: &'a str,
    dtype: DType,
    shape: &'a [usize],
    grad: Output,
    rate: Output,
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
        Ok(self.apply(g, variables, &grads, rate, &mut Slots::default())?)
    }

    /// Adds nodes that move float `variables`, of these shapes, against `grads`, their gradients in the same order,
    /// at the rate `rate`: for gradients that come from several towers, were clipped or accumulated. Steps that are given
    /// the same `slots` share the optimizer's own variables.
    ///
    /// # Errors
    /// Types or shapes do not fit.
    pub fn apply(
        self,
        g: &Graph,
        variables: &[(Var, &[usize])],
        grads: &[Output],
        rate: Output,
        slots: &mut Slots,
    ) -> Result<Training, GraphError> {
        let mut step = Step { train: g.scope("train"), slots, init: Vec::new() };
        let mut updates = Vec::new();
        for ((var, shape), grad) in variables.iter().zip(grads) {
            let name = g.node(var.handle.node)?.name.clone();
            let dtype = g.dtype(var.value)?;
            let target = Target { var: *var, name: &name, dtype, shape, grad: *grad, rate };
            updates.push(self.update(&mut step, &target)?);
        }
        if let Optimizer::Adam { beta1, beta2, .. } = self {
            // The powers change after every variable was moved by the old ones.
            for (name, beta) in [("beta1_power", beta1), ("beta2_power", beta2)] {
                let power = step.slot(name, DType::F32, &[], f64::from(beta))?;
                let at = step.train.with_control(&updates);
                let next = at.mul(power.value, at.constant(Tensor::scalar(beta))?)?;
                updates.push(at.add_node("AssignVariableOp").input(power.handle).input(next).build()?);
            }
        }
        Ok(Training { op: step.train.group("step", &updates)?, init: step.init, gradients: grads.to_vec() })
    }

    fn update(self, step: &mut Step<'_>, t: &Target<'_>) -> Result<NodeId, GraphError> {
        let name = t.name;
        let train = step.train.clone();
        let slices = t.slices(self, &train)?;
        // The op of the rule, dense or of rows, with what both take before the gradient.
        let op = |rule: &str| format!("Resource{}Apply{rule}", if slices.is_some() { "Sparse" } else { "" });
        let add = |op: &str, before: &[Output], after: &[Output], nesterov: bool| {
            let mut node = train.add_node(op).name(&format!("{name}/update")).input(t.var.handle);
            node = before.iter().fold(node, |node, input| node.input(*input));
            node = match &slices {
                Some(s) => node.input(s.values).input(s.indices),
                None => node.input(t.grad),
            };
            node = after.iter().fold(node, |node, input| node.input(*input));
            (if nesterov { node.attr("use_nesterov", true) } else { node }).build()
        };
        match self {
            Optimizer::GradientDescent => match &slices {
                // Linear: rows may come more than once.
                Some(s) => {
                    let by = train.mul(s.values, t.rate)?;
                    let node = train.add_node("ResourceScatterSub").name(&format!("{name}/update"));
                    node.input(t.var.handle).input(s.indices).input(by).attr("dtype", t.dtype).build()
                }
                None => add(&op("GradientDescent"), &[t.rate], &[], false),
            },
            Optimizer::Momentum { momentum } | Optimizer::Nesterov { momentum } => {
                let slot = step.slot(&format!("{name}/momentum"), t.dtype, t.shape, 0.0)?;
                let momentum = step.number(&format!("{name}/mu"), t.dtype, momentum)?;
                let nesterov = matches!(self, Optimizer::Nesterov { .. });
                add(&op("Momentum"), &[slot.handle, t.rate], &[momentum], nesterov)
            }
            Optimizer::Adagrad { initial } => {
                let slot = step.slot(&format!("{name}/accumulator"), t.dtype, t.shape, f64::from(initial))?;
                add(&op("Adagrad"), &[slot.handle, t.rate], &[], false)
            }
            Optimizer::RmsProp { decay, momentum, epsilon } => {
                let square = step.slot(&format!("{name}/mean_square"), t.dtype, t.shape, 1.0)?;
                let slot = step.slot(&format!("{name}/momentum"), t.dtype, t.shape, 0.0)?;
                let decay = step.number(&format!("{name}/decay"), t.dtype, decay)?;
                let momentum = step.number(&format!("{name}/mu"), t.dtype, momentum)?;
                let epsilon = step.number(&format!("{name}/epsilon"), t.dtype, epsilon)?;
                add(&op("RMSProp"), &[square.handle, slot.handle, t.rate, decay, momentum, epsilon], &[], false)
            }
            Optimizer::Adam { beta1, beta2, epsilon } => {
                let mean = step.slot(&format!("{name}/mean"), t.dtype, t.shape, 0.0)?;
                let square = step.slot(&format!("{name}/mean_square"), t.dtype, t.shape, 0.0)?;
                let powers = [
                    step.slot("beta1_power", DType::F32, &[], f64::from(beta1))?.value,
                    step.slot("beta2_power", DType::F32, &[], f64::from(beta2))?.value,
                ];
                let beta1 = step.number(&format!("{name}/beta1"), t.dtype, beta1)?;
                let beta2 = step.number(&format!("{name}/beta2"), t.dtype, beta2)?;
                let epsilon = step.number(&format!("{name}/epsilon"), t.dtype, epsilon)?;
                let before = [mean.handle, square.handle, powers[0], powers[1], t.rate, beta1, beta2, epsilon];
                add(&op("Adam"), &before, &[], false)
            }
        }
    }
}

impl Target<'_> {
    /// The rows that the gradient is of, where the rule can move those alone; `None`: the gradient is taken as it is.
    fn slices(&self, rule: Optimizer, g: &Graph) -> Result<Option<IndexedSlices>, GraphError> {
        // Adam's means fade in every row, as TensorFlow's do, also where there is no gradient.
        if self.shape.is_empty() || matches!(rule, Optimizer::Adam { .. }) {
            return Ok(None);
        }
        let Some(slices) = IndexedSlices::of(g, self.grad, &self.shape[1..])? else { return Ok(None) };
        if rule == Optimizer::GradientDescent {
            return Ok(Some(slices));
        }
        // Rules that are not linear want each row once; without a way to that the dense gradient is taken.
        match crate::ops::lookup("Unique") {
            Some(_) => slices.distinct(g).map(Some),
            None => Ok(None),
        }
    }
}
