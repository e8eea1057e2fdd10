//! A model's variables, made where they are first asked for and shared by all towers.

use std::collections::BTreeMap;

use crate::dtype::DType;
use crate::graph::{Graph, GraphError, NodeId, Output, Var};
use crate::shape::{PartialShape, Shape};
use crate::tensor::Tensor;

/// How a variable begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initial {
    /// Every element this.
    Constant(f32),
    /// Truncated normal numbers of this deviation.
    Normal(f32),
}

impl Initial {
    /// For weights that `n_in` numbers go into, before a rectified linear unit (He et al. 2015).
    pub fn he(n_in: usize) -> Initial {
        Initial::Normal((2.0 / n_in.max(1) as f32).sqrt())
    }

    /// For weights between `n_in` and `n_out` numbers (Glorot and Bengio 2010).
    pub fn glorot(n_in: usize, n_out: usize) -> Initial {
        Initial::Normal((2.0 / (n_in + n_out).max(1) as f32).sqrt())
    }
}

/// One variable of a model.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its full name.
    pub name: String,
    /// Its nodes.
    pub var: Var,
    /// Whether the optimizer moves it; moving averages and carried state are not trained.
    pub is_trained: bool,
}

/// The variables of a model, in the order in which they were made.
pub struct Variables {
    graph: Graph,
    seed: i64,
    all: Vec<Variable>,
    by_name: BTreeMap<String, usize>,
}

impl Variables {
    /// No variables yet; they will lie in the scope and on the device of `graph`, their initial values drawn from `seed`.
    pub fn new(graph: &Graph, seed: i64) -> Variables {
        Variables { graph: graph.clone(), seed, all: Vec::new(), by_name: BTreeMap::new() }
    }

    /// The trained variable `name` (scopes included), of f32; made if there is none of this name.
    ///
    /// # Errors
    /// The name is not one.
    pub fn get(&mut self, name: &str, shape: &[usize], initial: Initial) -> Result<Var, GraphError> {
        self.get_or_make(name, shape, initial, true)
    }

    /// As [`Variables::get`], of a variable that the optimizer does not move.
    ///
    /// # Errors
    /// As [`Variables::get`].
    pub fn state(&mut self, name: &str, shape: &[usize], initial: Initial) -> Result<Var, GraphError> {
        self.get_or_make(name, shape, initial, false)
    }

    fn get_or_make(
        &mut self,
        name: &str,
        shape: &[usize],
        initial: Initial,
        is_trained: bool,
    ) -> Result<Var, GraphError> {
        if let Some(i) = self.by_name.get(name) {
            return Ok(self.all[*i].var);
        }
        let number = self.all.len() as i64 + 1;
        let seed = self.seed;
        let var =
            self.graph.variable_from(name, DType::F32, PartialShape::from(&Shape::new(shape)), |g| match initial {
                Initial::Constant(value) => {
                    let dims: Vec<i32> = shape.iter().map(|d| i32::try_from(*d).unwrap_or(i32::MAX)).collect();
                    g.fill(g.int_vector(&dims)?, g.constant(value)?)
                }
                Initial::Normal(deviation) => {
                    let normal = g.truncated_normal(shape, DType::F32, seed, number)?;
                    g.mul(normal, g.named_constant("stddev", deviation)?)
                }
            })?;
        self.by_name.insert(name.to_owned(), self.all.len());
        let full = self.graph.node(var.handle.node)?.name.to_string();
        self.all.push(Variable { name: full, var, is_trained });
        Ok(var)
    }

    /// All of them, in the order in which they were made.
    pub fn all(&self) -> &[Variable] {
        &self.all
    }

    /// Those that the optimizer moves.
    pub fn trained(&self) -> Vec<Var> {
        self.all.iter().filter(|v| v.is_trained).map(|v| v.var).collect()
    }

    /// The nodes that give all of them their first values.
    pub fn init(&self) -> Vec<NodeId> {
        self.all.iter().map(|v| v.var.init).collect()
    }

    /// The value of the variable of this name, if there is one.
    pub fn value(&self, name: &str) -> Option<Output> {
        self.by_name.get(name).map(|i| self.all[*i].var.value)
    }

    /// Sets a variable to `value` when the step comes to it, on the variable's device.
    ///
    /// # Errors
    /// The types differ.
    pub fn assign(g: &Graph, var: Var, value: Output) -> Result<NodeId, GraphError> {
        let home = g.node(var.handle.node)?.device.clone();
        g.add_node("AssignVariableOp").input(var.handle).input(value).device(&home).build()
    }

    /// Moves a variable towards `value`: `var -= (1 - decay) (var - value)`.
    ///
    /// # Errors
    /// The types or shapes differ.
    pub fn average(g: &Graph, var: Var, value: Output, decay: f32) -> Result<NodeId, GraphError> {
        let away = g.sub(var.value, value)?;
        let step = g.mul(away, g.constant(Tensor::scalar(1.0 - decay))?)?;
        let home = g.node(var.handle.node)?.device.clone();
        g.add_node("AssignSubVariableOp").input(var.handle).input(step).device(&home).build()
    }
}
