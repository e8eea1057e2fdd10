//! What a shape function sees: the node's attributes, and what is known of its inputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attr::Attr;
use super::facts::OpKind;
use super::library::{Budget, Library};
use crate::dtype::DType;
use crate::shape::{PartialShape, Shape};
use crate::tensor::Tensor;

/// Why shapes do not fit an op.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

impl ShapeError {
    /// An error in these words.
    pub fn new(text: impl Into<String>) -> ShapeError {
        ShapeError(text.into())
    }
}

/// What is known of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// Its element type.
    pub dtype: DType,
    /// Its shape, as far as inference knows.
    pub shape: PartialShape,
}

/// A node that a value comes from.
#[derive(Clone, Copy)]
pub struct Maker<'a> {
    /// Its op.
    pub op: &'static str,
    /// The part that it plays in the graph.
    pub kind: OpKind,
    /// Its attributes.
    pub attrs: &'a BTreeMap<String, Attr>,
    /// Its outputs.
    pub outputs: &'a [Port],
}

/// What a graph knows of the values that go into a node.
pub(crate) trait InputFacts {
    /// The number of inputs.
    fn count(&self) -> usize;

    /// Type and shape of input `i`.
    fn port(&self, i: usize) -> Option<&Port>;

    /// The node that input `i` comes from.
    fn source(&self, i: usize) -> Option<Maker<'_>>;

    /// The node that made the value of input `i`, before it came into branches and, unchanging, into loops.
    fn origin(&self, i: usize) -> Option<Maker<'_>>;

    /// The value of input `i` as integers, where it is known.
    fn ints(&self, i: usize) -> Option<Vec<i64>>;
}

/// Input of a shape function, and where it puts its result.
pub struct InferContext<'a> {
    inputs: &'a dyn InputFacts,
    attrs: &'a BTreeMap<String, Attr>,
    outputs: Vec<PartialShape>,
    /// The functions that nodes may call.
    functions: &'a Arc<Library>,
    /// Where the shapes of a call are asked for: the nodes that may still be visited for it.
    budget: Option<&'a Budget>,
}

impl<'a> InferContext<'a> {
    /// For a node with `n_outputs` outputs, whose shapes are unknown before.
    pub(crate) fn new(
        inputs: &'a dyn InputFacts,
        attrs: &'a BTreeMap<String, Attr>,
        n_outputs: usize,
        functions: &'a Arc<Library>,
        budget: Option<&'a Budget>,
    ) -> InferContext<'a> {
        let outputs = vec![PartialShape::unknown(); n_outputs];
        InferContext { inputs, attrs, outputs, functions, budget }
    }

    /// The shapes of the outputs, as far as they were set.
    pub(crate) fn into_outputs(self) -> Vec<PartialShape> {
        self.outputs
    }

    /// The functions that nodes may call, and the nodes that may still be visited to infer what they give.
    pub fn functions(&self) -> (&Arc<Library>, Budget) {
        (self.functions, self.budget.cloned().unwrap_or_default())
    }

    /// Types and shapes of all inputs, where each is the output of a node.
    pub fn ports(&self) -> Option<Vec<Port>> {
        (0..self.inputs.count()).map(|i| self.inputs.port(i).cloned()).collect()
    }

    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.count()
    }

    /// The number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// What is known of the shape of input `i`; nothing where there is no such input.
    pub fn input(&self, i: usize) -> PartialShape {
        self.inputs.port(i).map(|port| port.shape.clone()).unwrap_or_default()
    }

    /// The node that made the value of input `i`, before it came into branches and, unchanging, into loops.
    pub fn origin(&self, i: usize) -> Option<Maker<'_>> {
        self.inputs.origin(i)
    }

    /// The value of input `i` where it is a constant.
    pub fn value(&self, i: usize) -> Option<Tensor> {
        let node = self.origin(i)?;
        match (node.kind, node.attrs.get("value")) {
            (OpKind::Const, Some(Attr::Tensor(t))) => (node.outputs.first()?.dtype == t.dtype()).then(|| t.clone()),
            _ => None,
        }
    }

    /// The shape of the variable that input `i` is the handle of, where it comes straight from its `VarHandleOp`.
    pub fn variable_shape(&self, i: usize) -> PartialShape {
        match self.origin(i).and_then(|n| n.attrs.get("shape")) {
            Some(Attr::Shape(s)) => s.clone(),
            _ => PartialShape::unknown(),
        }
    }

    /// The attribute `name` of the node that input `i` comes from.
    pub fn source_attr(&self, i: usize, name: &str) -> Option<&Attr> {
        self.inputs.source(i)?.attrs.get(name)
    }

    /// The op of the node that input `i` comes from.
    pub fn source_op(&self, i: usize) -> Option<&'static str> {
        Some(self.inputs.source(i)?.op)
    }

    /// The value of input `i` as integers, where it is known.
    pub fn ints(&self, i: usize) -> Option<Vec<i64>> {
        self.inputs.ints(i)
    }

    /// The attributes.
    pub fn attrs(&self) -> &BTreeMap<String, Attr> {
        self.attrs
    }

    /// An attribute.
    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.get(name)
    }

    /// A boolean attribute, false where it is missing.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.attrs.get(name), Some(Attr::Bool(true)))
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attrs.get(name) {
            Some(Attr::Int(v)) => Some(*v),
            _ => None,
        }
    }

    /// Sets the shape of output `i`.
    pub fn set(&mut self, i: usize, shape: impl Into<PartialShape>) {
        if self.outputs.len() <= i {
            self.outputs.resize(i + 1, PartialShape::unknown());
        }
        self.outputs[i] = shape.into();
    }

    /// The shape of output `i` that was set before.
    pub fn output(&self, i: usize) -> PartialShape {
        self.outputs.get(i).cloned().unwrap_or_default()
    }

    /// Input `i`, which must have this rank where it is known.
    ///
    /// # Errors
    /// It has another.
    pub fn of_rank(&self, i: usize, rank: usize) -> Result<PartialShape, ShapeError> {
        let shape = self.input(i);
        match shape.rank() {
            None => Ok(PartialShape::of_rank(rank)),
            Some(r) if r == rank => Ok(shape),
            Some(_) => Err(ShapeError(format!("input {i} must have rank {rank}, got shape {shape}"))),
        }
    }

    /// What `a` and `b` say together.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn merge(&self, a: &PartialShape, b: &PartialShape) -> Result<PartialShape, ShapeError> {
        a.merge(b).ok_or_else(|| ShapeError(format!("shapes {a} and {b} must be equal")))
    }
}

impl From<Shape> for PartialShape {
    fn from(shape: Shape) -> PartialShape {
        PartialShape::from(&shape)
    }
}
