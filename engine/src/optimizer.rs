//! Optimizers: nodes that move variables against their gradients, in the scope `train/`; schedules of their rates,
//! clipping, and gradients summed over several steps.

use std::collections::BTreeMap;

use crate::dtype::DType;
use crate::gradients::{GradientError, gradients};
use crate::graph::{Graph, GraphError, NodeId, Output, Var};
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
    /// `a = momentum * a + g; v -= rate * (g + momentum * a)`.
    Nesterov {
        /// How much of the former direction is kept, in [0, 1).
        momentum: f32,
    },
    /// `a += g^2; v -= rate * g / sqrt(a)` (Duchi et al. 2011).
    Adagrad {
        /// What `a` begins with, above 0.
        initial: f32,
    },
    /// `s += (g^2 - s) * (1 - decay); a = momentum * a + rate * g / sqrt(s + epsilon); v -= a` (Tieleman and Hinton).
    RmsProp {
        /// How much of the former mean square is kept.
        decay: f32,
        /// How much of the former step is kept.
        momentum: f32,
        /// Keeps the root from 0.
        epsilon: f32,
    },
    /// Adaptive moments (Kingma and Ba 2014).
    Adam {
        /// How much of the former mean is kept.
        beta1: f32,
        /// How much of the former mean square is kept.
        beta2: f32,
        /// Keeps the root from 0.
        epsilon: f32,
    },
}

impl Optimizer {
    /// Adam with the paper's constants.
    pub const ADAM: Optimizer = Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
    /// RMSProp with the constants of the Inception papers.
    pub const RMS_PROP: Optimizer = Optimizer::RmsProp { decay: 0.9, momentum: 0.9, epsilon: 1.0 };
    /// Adam with its authors' numbers.
    pub const ADAM: Optimizer = Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
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
/// The gradient of a variable of which only some rows were read: row `indices[i]` has the gradient `values[i]`, rows may
/// come more than once.
///
/// The gradient of a gather is a node that sums the slices into a dense tensor, `UnsortedSegmentSum`; whoever takes
/// slices reads that node's inputs instead, and the node itself never runs.
#[derive(Debug, Clone, Copy)]
pub struct IndexedSlices {
    /// `[n, ...]`.
    pub values: Output,
    /// `[n]`.
    pub indices: Output,
    /// The number of rows of the variable, a scalar.
    pub n_rows: Output,
}

impl IndexedSlices {
    /// The slices that `gradient`, of a variable whose rows have the dimensions `row`, is made of; `None` where it is
    /// dense. Adds nodes to `g`.
    ///
    /// # Errors
    /// The gradient is another graph's.
    pub fn of(g: &Graph, gradient: Output, row: &[usize]) -> Result<Option<IndexedSlices>, GraphError> {
        let node = g.node(gradient.node)?;
        match node.op.name {
            "UnsortedSegmentSum" => {
                let flat = g.int_vector(&[-1])?;
                let indices = g.reshape(node.inputs[1], flat)?;
                let shape: Vec<i32> = std::iter::once(-1).chain(row.iter().map(|d| *d as i32)).collect();
                let values = g.reshape(node.inputs[0], g.int_vector(&shape)?)?;
                Ok(Some(IndexedSlices { values, indices, n_rows: node.inputs[2] }))
            }
            "AddN" => {
                let parts = node.inputs.iter().map(|part| IndexedSlices::of(g, *part, row));
                let Some(parts) = parts.collect::<Result<Option<Vec<_>>, _>>()? else { return Ok(None) };
                let axis = g.constant(Tensor::scalar(0i32))?;
                let join = |of: fn(&IndexedSlices) -> Output| {
                    let all: Vec<Output> = parts.iter().map(of).collect();
                    g.add_node("ConcatV2").inputs(&all).input(axis).output()
                };
                let Some(first) = parts.first() else { return Ok(None) };
                Ok(Some(IndexedSlices {
                    values: join(|p| p.values)?,
                    indices: join(|p| p.indices)?,
                    n_rows: first.n_rows,
                }))
            }
            _ => Ok(None),
        }
    }

    /// The dense gradient.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn to_dense(&self, g: &Graph) -> Result<Output, GraphError> {
        g.add_node("UnsortedSegmentSum").input(self.values).input(self.indices).input(self.n_rows).output()
    }

    /// The same gradient with each row once, in which rules that are not linear in the gradient want it.
    fn distinct(self, g: &Graph) -> Result<IndexedSlices, GraphError> {
        let unique = g.add_node("Unique").input(self.indices).output()?;
        let places = Output { port: 1, ..unique };
        let n = g.size_of(unique)?;
        let values = g.add_node("UnsortedSegmentSum").input(self.values).input(places).input(n).output()?;
        Ok(IndexedSlices { values, indices: unique, n_rows: self.n_rows })
    }
}

/// A variable to be trained, in an optimizer's hands.
struct Trained<'a> {
    var: Var,
    shape: &'a [usize],
    name: String,
    dtype: DType,
    gradient: Output,
}

/// The optimizer's nodes while they are added.
struct Updates<'a> {
    g: &'a Graph,
    rate: Output,
    init: Vec<NodeId>,
    /// Adam's powers of its betas, shared by all variables.
    powers: Option<[Var; 2]>,
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
        self.apply(g, variables, &grads, rate)
    }

    /// Adds nodes that move `variables` against given gradients. Gradients of a few rows move those rows only.
    ///
    /// # Errors
    /// The gradients do not fit the variables.
    pub fn apply(
        self,
        g: &Graph,
        variables: &[(Var, &[usize])],
        gradients: &[Output],
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
        let add = |op: &'static str| train.add_node(op).name(&format!("{name}/update")).input(t.var.handle);
        match self {
            Optimizer::GradientDescent => add("ResourceApplyGradientDescent").input(t.rate).input(t.grad).build(),
            Optimizer::Momentum { momentum } => {
                let slot = step.slot(&format!("{name}/momentum"), t.dtype, t.shape, 0.0)?;
                let momentum = step.number(&format!("{name}/mu"), t.dtype, momentum)?;
                let node = add("ResourceApplyMomentum").input(slot.handle).input(t.rate).input(t.grad);
                node.input(momentum).build()
            }
            Optimizer::Adagrad { initial } => {
                let slot = step.slot(&format!("{name}/accumulator"), t.dtype, t.shape, f64::from(initial))?;
                add("ResourceApplyAdagrad").input(slot.handle).input(t.rate).input(t.grad).build()
            }
            Optimizer::RmsProp { decay, momentum, epsilon } => {
                let square = step.slot(&format!("{name}/mean_square"), t.dtype, t.shape, 1.0)?;
                let slot = step.slot(&format!("{name}/momentum"), t.dtype, t.shape, 0.0)?;
                let node = add("ResourceApplyRMSProp").input(square.handle).input(slot.handle).input(t.rate);
                let node = node.input(step.number(&format!("{name}/decay"), t.dtype, decay)?);
                let node = node.input(step.number(&format!("{name}/mu"), t.dtype, momentum)?);
                node.input(step.number(&format!("{name}/epsilon"), t.dtype, epsilon)?).input(t.grad).build()
            }
            Optimizer::Adam { beta1, beta2, epsilon } => {
                let mean = step.slot(&format!("{name}/mean"), t.dtype, t.shape, 0.0)?;
                let square = step.slot(&format!("{name}/mean_square"), t.dtype, t.shape, 0.0)?;
                let node = add("ResourceApplyAdam").input(mean.handle).input(square.handle);
                let node = node.input(step.slot("beta1_power", DType::F32, &[], f64::from(beta1))?.value);
                let node = node.input(step.slot("beta2_power", DType::F32, &[], f64::from(beta2))?.value).input(t.rate);
                let node = node.input(step.number(&format!("{name}/beta1"), t.dtype, beta1)?);
                let node = node.input(step.number(&format!("{name}/beta2"), t.dtype, beta2)?);
                node.input(step.number(&format!("{name}/epsilon"), t.dtype, epsilon)?).input(t.grad).build()
            }
        }
    ) -> Result<Training, GradientError> {
        if variables.len() != gradients.len() {
            return Err(GradientError::Count { ys: variables.len(), given: gradients.len() });
        }
        let train = g.scope("train");
        let mut all = Updates { g: &train, rate, init: Vec::new(), powers: None };
        let mut nodes = Vec::new();
        for ((var, shape), gradient) in variables.iter().zip(gradients) {
            let name = g.node(var.handle.node)?.name.to_string();
            let trained = Trained { var: *var, shape, name, dtype: g.dtype(var.value)?, gradient: *gradient };
            nodes.push(all.update(self, &trained)?);
        }
        if let (Some(powers), Optimizer::Adam { beta1, beta2, .. }) = (all.powers, self) {
            // All updates have read them by then.
            let after = train.with_control(&nodes);
            for (power, beta) in powers.iter().zip([beta1, beta2]) {
                let beta = after.number(g.dtype(power.value)?, f64::from(beta))?;
                let next = after.mul(power.value, beta)?;
                nodes.push(after.add_node("AssignVariableOp").input(power.handle).input(next).build()?);
            }
        }
        Ok(Training { op: train.group("step", &nodes)?, init: all.init, gradients: gradients.to_vec() })
    }
}

impl Updates<'_> {
    fn number(&self, of: &Trained<'_>, name: &str, value: f32) -> Result<Output, GraphError> {
        let tensor = match of.dtype {
            DType::F64 => Tensor::scalar(f64::from(value)),
            _ => Tensor::scalar(value),
        };
        self.g.named_constant(&format!("{}/{name}", of.name), tensor)
    }

    /// A slot: a variable of the trained one's shape that begins with `value` everywhere.
    fn slot(&mut self, of: &Trained<'_>, name: &str, value: f32) -> Result<Output, GraphError> {
        let dims: Vec<i32> = of.shape.iter().map(|d| *d as i32).collect();
        let shape: Vec<Option<usize>> = of.shape.iter().map(|d| Some(*d)).collect();
        let slot = self.g.variable_from(&format!("{}/{name}", of.name), of.dtype, shape.as_slice(), |s| {
            s.fill(s.int_vector(&dims)?, s.number(of.dtype, f64::from(value))?)
        })?;
        self.init.push(slot.init);
        Ok(slot.handle)
    }

    fn update(&mut self, rule: Optimizer, of: &Trained<'_>) -> Result<NodeId, GraphError> {
        let row = of.shape.get(1..).unwrap_or_default();
        let slices = if of.shape.is_empty() { None } else { IndexedSlices::of(self.g, of.gradient, row)? };
        let handle = of.var.handle;
        // The op, what comes before the gradient and after it (and the rows).
        let (op, before, after) = match rule {
            Optimizer::GradientDescent => match slices {
                Some(slices) => return self.descend(of, slices),
                None => ("ApplyGradientDescent", vec![handle, self.rate], vec![]),
            },
            Optimizer::Momentum { momentum } | Optimizer::Nesterov { momentum } => {
                let slot = self.slot(of, "momentum", 0.0)?;
                ("ApplyMomentum", vec![handle, slot, self.rate], vec![self.number(of, "mu", momentum)?])
            }
            Optimizer::Adagrad { initial } => {
                ("ApplyAdagrad", vec![handle, self.slot(of, "squares", initial)?, self.rate], vec![])
            }
            Optimizer::RmsProp { decay, momentum, epsilon } => {
                let slots = [self.slot(of, "mean_square", 1.0)?, self.slot(of, "momentum", 0.0)?];
                let numbers = [("decay", decay), ("mu", momentum), ("epsilon", epsilon)];
                let numbers = numbers.map(|(name, value)| self.number(of, name, value));
                let [decay, mu, epsilon] = numbers;
                ("ApplyRMSProp", vec![handle, slots[0], slots[1], self.rate, decay?, mu?, epsilon?], vec![])
            }
            Optimizer::Adam { beta1, beta2, epsilon } => return self.adam(of, slices, [beta1, beta2, epsilon]),
        };
        // Without a way to make rows distinct they are summed into a dense gradient, by the node that is there for it.
        let slices = slices.filter(|_| crate::ops::lookup("Unique").is_some());
        let slices = slices.map(|s| s.distinct(self.g)).transpose()?;
        let op = format!("Resource{}{op}", if slices.is_some() { "Sparse" } else { "" });
        let mut node = self.g.add_node(&op).name(&format!("{}/update", of.name));
        for input in before {
            node = node.input(input);
        }
        node = match slices {
            Some(slices) => node.input(slices.values).input(slices.indices),
            None => node.input(of.gradient),
        };
        for input in after {
            node = node.input(input);
        }
        if matches!(rule, Optimizer::Nesterov { .. }) {
            node = node.attr("use_nesterov", true);
        }
        node.build()
    }

    /// Gradient descent of rows: linear, so that rows may come more than once.
    fn descend(&self, of: &Trained<'_>, slices: IndexedSlices) -> Result<NodeId, GraphError> {
        let step = self.g.mul(slices.values, self.rate)?;
        let node = self.g.add_node("ResourceScatterSub").name(&format!("{}/update", of.name));
        node.input(of.var.handle).input(slices.indices).input(step).attr("dtype", of.dtype).build()
    }

    /// Adam moves every row in every step (its means fade also where there is no gradient), so that slices are summed.
    fn adam(
        &mut self,
        of: &Trained<'_>,
        slices: Option<IndexedSlices>,
        [beta1, beta2, epsilon]: [f32; 3],
    ) -> Result<NodeId, GraphError> {
        let (m, v) = (self.slot(of, "m", 0.0)?, self.slot(of, "v", 0.0)?);
        let powers = match self.powers {
            Some(powers) => powers,
            None => {
                let power = |name: &str, beta: f32| {
                    let tensor = match of.dtype {
                        DType::F64 => Tensor::scalar(f64::from(beta)),
                        _ => Tensor::scalar(beta),
                    };
                    self.g.variable(name, tensor)
                };
                let powers = [power("beta1_power", beta1)?, power("beta2_power", beta2)?];
                self.init.extend(powers.iter().map(|p| p.init));
                *self.powers.insert(powers)
            }
        };
        let gradient = slices.map_or(Ok(of.gradient), |s| s.to_dense(self.g))?;
        let mut node = self.g.add_node("ResourceApplyAdam").name(&format!("{}/update", of.name));
        node = node.input(of.var.handle).input(m).input(v).input(powers[0].value).input(powers[1].value);
        node = node.input(self.rate);
        for (name, value) in [("beta1", beta1), ("beta2", beta2), ("epsilon", epsilon)] {
            node = node.input(self.number(of, name, value)?);
        }
        node.input(gradient).build()
    }
}

/// Scales gradients of variables of these shapes so that the root of the sum of all squares is at most `limit`; gives
/// them with that root before. Slices stay slices.
///
/// # Errors
/// A gradient is no float.
pub fn clip_by_global_norm(
    g: &Graph,
    gradients: &[(Output, &[usize])],
    limit: f64,
) -> Result<(Vec<Output>, Output), GraphError> {
    let g = g.scope("clip");
    let mut parts = Vec::with_capacity(gradients.len());
    for (gradient, shape) in gradients {
        let slices = if shape.is_empty() { None } else { IndexedSlices::of(&g, *gradient, &shape[1..])? };
        parts.push((*gradient, slices));
    }
    let Some((first, _)) = parts.first() else { return Ok((Vec::new(), g.constant(0f32)?)) };
    let dtype = g.dtype(*first)?;
    let halves = parts.iter().map(|(whole, slices)| g.l2_loss(slices.as_ref().map_or(*whole, |s| s.values)));
    let halves = halves.collect::<Result<Vec<_>, _>>()?;
    let norm = g.sqrt(g.mul(g.add_n(&halves)?, g.number(dtype, 2.0)?)?)?;
    let limit = g.number(dtype, limit)?;
    let scale = g.div(limit, g.maximum(norm, limit)?)?;
    let scaled = |(whole, slices): &(Output, Option<IndexedSlices>)| match slices {
        Some(s) => IndexedSlices { values: g.mul(s.values, scale)?, ..*s }.to_dense(&g),
        None => g.mul(*whole, scale),
    };
    Ok((parts.iter().map(scaled).collect::<Result<_, _>>()?, norm))
}

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
    /// Sums for variables of these shapes, of which `gradients` are those of one step; `n_steps` go into one mean.
    ///
    /// # Errors
    /// The gradients do not fit the variables.
    pub fn new(
        g: &Graph,
        variables: &[(Var, &[usize])],
        gradients: &[Output],
        n_steps: usize,
    ) -> Result<Accumulation, GraphError> {
        let g = g.scope("accumulate");
        let (mut init, mut adds, mut means, mut zeros) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ((var, shape), gradient) in variables.iter().zip(gradients) {
            let (name, dtype) = (g.node(var.handle.node)?.name.to_string(), g.dtype(var.value)?);
            let dims: Vec<i32> = shape.iter().map(|d| *d as i32).collect();
            let known: Vec<Option<usize>> = shape.iter().map(|d| Some(*d)).collect();
            let zero = g.fill(g.int_vector(&dims)?, g.number(dtype, 0.0)?)?;
            let sum = g.variable_from(&format!("{name}/sum"), dtype, known.as_slice(), |_| Ok(zero))?;
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
