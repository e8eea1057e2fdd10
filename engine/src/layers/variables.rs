//! A model's variables, made where they are first asked for and shared by all towers.

use std::collections::BTreeMap;

use engine_core::dtype::DType;
use engine_core::graph::{Graph, NodeId, Output, Value, Var};
use engine_core::shape::{PartialShape, Shape};

/// How a variable begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initial {
    /// Every element this.
    Constant(f32),
    /// Truncated normal numbers of this deviation.
    Normal(f32),
    /// For weights before a rectified linear unit (He et al. 2015): normal, by the number of values that go into one.
    He,
    /// For weights between layers (Glorot and Bengio 2010): normal, by the numbers of values that go in and come out.
    Glorot,
}

impl Initial {
    /// The deviation of random weights `[.., n_out]`; `None` where they are not random.
    fn deviation(self, shape: &[usize]) -> Option<f32> {
        let (n_out, before) = shape.split_last().map_or((1, shape), |(last, before)| (*last, before));
        let n_in: usize = before.iter().product();
        match self {
            Initial::Constant(_) => None,
            Initial::Normal(deviation) => Some(deviation),
            Initial::He => Some((2.0 / n_in.max(1) as f32).sqrt()),
            Initial::Glorot => Some((2.0 / (n_in + n_out).max(1) as f32).sqrt()),
        }
    }

    /// The values of this shape that a variable begins with.
    fn build<'g>(self, g: &'g Graph, shape: &[usize], seeds: (i64, i64)) -> Value<'g> {
        match (self, self.deviation(shape)) {
            (_, Some(deviation)) => {
                let normal = g.truncated_normal(shape, DType::F32, seeds.0, seeds.1);
                normal * g.named_constant("stddev", deviation)
            }
            (Initial::Constant(value), _) => g.fill(shape, g.constant(value)),
            _ => g.constant(0f32),
        }
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

/// A part of the variables: those whose names begin with a path.
pub struct VariableScope<'v> {
    variables: &'v mut Variables,
    path: String,
}

impl<'v> VariableScope<'v> {
    /// The part of this part whose names go on with `name`.
    pub fn at(&mut self, name: &str) -> VariableScope<'_> {
        VariableScope { path: format!("{}/{name}", self.path), variables: self.variables }
    }

    /// As [`Variables::get`], below the path.
    pub fn get(&mut self, name: &str, shape: &[usize], initial: Initial) -> Var {
        self.variables.get(&format!("{}/{name}", self.path), shape, initial)
    }

    /// As [`Variables::state`], below the path.
    pub fn state(&mut self, name: &str, shape: &[usize], initial: Initial) -> Var {
        self.variables.state(&format!("{}/{name}", self.path), shape, initial)
    }

    /// What `build` makes of `x`, its nodes in a scope of the path's name, so that an error of theirs says which layer
    /// it is; where `x` adds to a scope of that name already, there.
    pub(super) fn layer<'g>(
        &mut self,
        x: Value<'g>,
        build: impl for<'s> FnOnce(Value<'s>, &mut VariableScope<'v>) -> Value<'s>,
    ) -> Value<'g> {
        let outer = x.graph().scope_name().strip_suffix(&*self.path);
        if outer.is_some_and(|outer| outer.is_empty() || outer.ends_with('/')) {
            return build(x, self);
        }
        let path = self.path.clone();
        x.in_scope(&path, |x| build(x, self))
    }
}

impl Variables {
    /// No variables yet; they will lie in the scope and on the device of `graph`, their initial values drawn from `seed`.
    pub fn new(graph: &Graph, seed: i64) -> Variables {
        Variables { graph: graph.clone(), seed, all: Vec::new(), by_name: BTreeMap::new() }
    }

    /// The variables whose names begin with `path/`.
    pub fn at(&mut self, path: &str) -> VariableScope<'_> {
        VariableScope { variables: self, path: path.to_owned() }
    }

    /// The trained variable `name` (scopes included), of f32; made if there is none of this name.
    pub fn get(&mut self, name: &str, shape: &[usize], initial: Initial) -> Var {
        self.get_or_make(name, (DType::F32, shape), true, |g, seeds| initial.build(g, shape, seeds))
    }

    /// As [`Variables::get`], of a variable that the optimizer does not move.
    pub fn state(&mut self, name: &str, shape: &[usize], initial: Initial) -> Var {
        self.get_or_make(name, (DType::F32, shape), false, |g, seeds| initial.build(g, shape, seeds))
    }

    /// The number of training steps so far, which the optimizer does not move: `global_step`, an int64 scalar, 0 at first.
    /// A training step counts it with [`Training::counted_by`](crate::optimizer::Training::counted_by).
    pub fn step_counter(&mut self) -> Var {
        self.get_or_make("global_step", (DType::I64, &[]), false, |g, _| g.constant(0i64))
    }

    fn get_or_make(
        &mut self,
        name: &str,
        (dtype, shape): (DType, &[usize]),
        is_trained: bool,
        initial: impl for<'s> FnOnce(&'s Graph, (i64, i64)) -> Value<'s>,
    ) -> Var {
        if let Some(i) = self.by_name.get(name) {
            return self.all[*i].var;
        }
        let seeds = (self.seed, self.all.len() as i64 + 1);
        let known = PartialShape::from(&Shape::new(shape));
        let var = self.graph.variable_from(name, dtype, known, |g| initial(g, seeds));
        self.by_name.insert(name.to_owned(), self.all.len());
        let full = self.graph.node(var.handle.node).map_or_else(|_| name.to_owned(), |node| node.name.to_string());
        self.all.push(Variable { name: full, var, is_trained });
        var
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
}
