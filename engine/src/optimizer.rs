//! Optimizers: nodes that move variables against their gradients, in the scope `train/`.

use std::collections::BTreeMap;

use crate::slices::{IndexedSlices, known_shape};
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, NodeId, Operand, Output, Value, Var};
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;
use engine_ops::gradients::{GradientError, gradients};

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
    /// `s = decay * s + (1 - decay) g^2; a = momentum * a + rate * g / sqrt(s + epsilon); v -= a`
    /// (Tieleman and Hinton 2012).
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

impl Training {
    /// The step of training, and `counter` counted up by one after it, as
    /// [`Variables::step_counter`](crate::layers::Variables::step_counter) is: a target in the place of [`Training::op`].
    /// What reads the counter for the training itself, as a schedule does, reads the number of the steps before.
    pub fn counted_by(&self, g: &Graph, counter: Var) -> NodeId {
        let after = g.with_control(&[self.op]);
        counter.assign_add(after.value(counter.value).number(1.0))
    }
}

/// The optimizer's own variables, next to each trained one: training steps that are given the same share them.
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
    fn slot(&mut self, name: &str, dtype: DType, shape: &Shape, value: f64) -> Var {
        if let Some(slot) = self.slots.by_name.get(name) {
            return *slot;
        }
        let slot = self.train.variable_from(name, dtype, shape, |g| g.fill(shape.dims(), g.number(dtype, value)));
        self.init.push(slot.init);
        self.slots.by_name.insert(name.to_owned(), slot);
        self.slots.all.push(slot);
        slot
    }

    /// The slot `name`, which is Adam's `beta` at first and a power of it later.
    fn power(&mut self, name: &str, beta: f32) -> Var {
        self.slot(name, DType::F32, &Shape::scalar(), f64::from(beta))
    }
}

impl Optimizer {
    /// Adds nodes that move float `variables` against the gradient of `loss` at the rate `rate`: a number, or a value such as
    /// those of [`crate::schedule`].
    ///
    /// # Errors
    /// The loss has no gradient for them, or the shape of one is not known.
    pub fn minimize(self, loss: Value<'_>, variables: &[Var], rate: impl Operand) -> Result<Training, GradientError> {
        let (g, rate) = (loss.graph(), rate.output_like(loss));
        let xs: Vec<Output> = variables.iter().map(|var| var.value).collect();
        let grads = gradients(g, &[loss.output()], &xs, &[])?;
        Ok(self.apply(g, variables, &grads, rate, &mut Slots::default())?)
    }

    /// Adds nodes that move float `variables` against `grads`, their gradients in the same order, at the rate `rate`:
    /// for gradients that come from several towers, were clipped or accumulated. Steps that are given the same `slots`
    /// share the optimizer's own variables.
    ///
    /// # Errors
    /// Types or shapes do not fit, or the shape of a variable is not known.
    pub fn apply(
        self,
        g: &Graph,
        variables: &[Var],
        grads: &[Output],
        rate: impl Into<Output>,
        slots: &mut Slots,
    ) -> Result<Training, GraphError> {
        g.check()?;
        let rate = rate.into();
        let mut step = Step { train: g.scope("train"), slots, init: Vec::new() };
        let mut updates = Vec::new();
        for (var, grad) in variables.iter().zip(grads) {
            updates.push(self.update(&mut step, *var, *grad, rate)?);
        }
        if let Optimizer::Adam { beta1, beta2, .. } = self {
            // The powers change after every variable was moved by the old ones.
            for (name, beta) in [("beta1_power", beta1), ("beta2_power", beta2)] {
                let power = step.power(name, beta);
                let at = step.train.with_control(&updates);
                updates.push(power.assign(at.value(power.value) * f64::from(beta)));
            }
        }
        let op = step.train.group("step", &updates);
        g.check()?;
        Ok(Training { op, init: step.init, gradients: grads.to_vec() })
    }

    fn update(self, step: &mut Step<'_>, var: Var, grad: Output, rate: Output) -> Result<NodeId, GraphError> {
        let train = step.train.clone();
        let name = train.node(var.handle.node)?.name.clone();
        let (dtype, shape) = (train.dtype(var.value)?, known_shape(&train, var)?);
        let slices = self.slices(&train, var, grad)?;
        let mut slot = |what: &str, value: f64| step.slot(&format!("{name}/{what}"), dtype, &shape, value).handle;
        let number = |what: &str, value: f32| {
            let value = Tensor::number(dtype, f64::from(value)).map_err(|_| GraphError::NotANumber { dtype })?;
            Ok::<_, GraphError>(train.named_constant(&format!("{name}/{what}"), value).output())
        };
        // The op of the rule, dense or of rows, with what it takes before and after the gradient.
        let add = |rule: &str, before: &[Output], after: &[Output]| {
            let op = format!("Resource{}Apply{rule}", if slices.is_some() { "Sparse" } else { "" });
            let mut node = train.add_node(&op).name(&format!("{name}/update")).input(var.handle);
            node = before.iter().fold(node, |node, input| node.input(*input));
            node = match &slices {
                Some(s) => node.input(s.values).input(s.indices),
                None => node.input(grad),
            };
            node = after.iter().fold(node, |node, input| node.input(*input));
            let is_nesterov = matches!(self, Optimizer::Nesterov { .. });
            (if is_nesterov { node.attr("use_nesterov", true) } else { node }).value().node()
        };
        Ok(match self {
            Optimizer::GradientDescent => match &slices {
                // Linear: rows may come more than once.
                Some(s) => {
                    let by = train.value(s.values) * rate;
                    let node = train.add_node("ResourceScatterSub").name(&format!("{name}/update"));
                    node.input(var.handle).input(s.indices).input(by).attr("dtype", dtype).value().node()
                }
                None => add("GradientDescent", &[rate], &[]),
            },
            Optimizer::Momentum { momentum } | Optimizer::Nesterov { momentum } => {
                add("Momentum", &[slot("momentum", 0.0), rate], &[number("mu", momentum)?])
            }
            Optimizer::Adagrad { initial } => add("Adagrad", &[slot("accumulator", f64::from(initial)), rate], &[]),
            Optimizer::RmsProp { decay, momentum, epsilon } => {
                let (square, moved) = (slot("mean_square", 1.0), slot("momentum", 0.0));
                let (decay, momentum) = (number("decay", decay)?, number("mu", momentum)?);
                add("RMSProp", &[square, moved, rate, decay, momentum, number("epsilon", epsilon)?], &[])
            }
            Optimizer::Adam { beta1, beta2, epsilon } => {
                let (mean, square) = (slot("mean", 0.0), slot("mean_square", 0.0));
                let powers = [step.power("beta1_power", beta1).value, step.power("beta2_power", beta2).value];
                let (beta1, beta2) = (number("beta1", beta1)?, number("beta2", beta2)?);
                let epsilon = number("epsilon", epsilon)?;
                add("Adam", &[mean, square, powers[0], powers[1], rate, beta1, beta2, epsilon], &[])
            }
        })
    }

    /// The rows that the gradient is of, where the rule can move those alone; `None`: the gradient is taken as it is.
    fn slices(self, g: &Graph, var: Var, grad: Output) -> Result<Option<IndexedSlices>, GraphError> {
        // Adam's means fade in every row, as TensorFlow's do, also where there is no gradient.
        if matches!(self, Optimizer::Adam { .. }) {
            return Ok(None);
        }
        let Some(slices) = IndexedSlices::of(g, grad, var)? else { return Ok(None) };
        if self == Optimizer::GradientDescent {
            return Ok(Some(slices));
        }
        // Rules that are not linear want each row once; without a way to that the dense gradient is taken.
        match engine_core::ops::lookup("Unique") {
            Some(_) => Ok(Some(slices.distinct(g))),
            None => Ok(None),
        }
    }
}
