//! What a shape function sees: the node's attributes, and what is known of its inputs.

use std::collections::BTreeMap;

use super::{Attr, FuncRef, Node, Nodes, Output, ShapeError, constant};
use crate::ops::OpKind;
use crate::shape::{PartialShape, Shape};
use crate::tensor::Tensor;

/// Input of a shape function, and where it puts its result.
pub struct InferContext<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) inputs: &'a [Output],
    pub(super) attrs: &'a BTreeMap<String, Attr>,
    pub(super) outputs: Vec<PartialShape>,
}

impl InferContext<'_> {
    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// What is known of the shape of input `i`; nothing where there is no such input.
    pub fn input(&self, i: usize) -> PartialShape {
        self.inputs.get(i).map(|o| self.nodes.shape_of(*o)).unwrap_or_default()
    }

    /// The node that made the value of input `i`, before it came into branches and, unchanging, into loops.
    pub fn origin(&self, i: usize) -> Option<&Node> {
        constant::origin(self.nodes, *self.inputs.get(i)?)
    }

    /// The value of input `i` where it is a constant.
    pub fn value(&self, i: usize) -> Option<Tensor> {
        let node = self.origin(i)?;
        match (node.op.kind, node.attrs.get("value")) {
            (OpKind::Const, Some(Attr::Tensor(t))) => (node.outputs.first()?.dtype == t.dtype()).then(|| t.clone()),
            _ => None,
        }
    }

    /// The shapes that the function `f` gives for the inputs, where they are told.
    ///
    /// # Errors
    /// The inputs do not fit a node of its body.
    pub(crate) fn shapes_of_call(&self, f: &FuncRef) -> Result<Option<Vec<PartialShape>>, ShapeError> {
        let port = |input: &Output| self.nodes.get(input.node)?.outputs.get(input.port as usize).cloned();
        let Some(args) = self.inputs.iter().map(port).collect::<Option<Vec<_>>>() else { return Ok(None) };
        self.nodes.shapes_of_call(f, &args).map_err(|error| ShapeError(error.to_string()))
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
        self.nodes.get(self.inputs.get(i)?.node)?.attrs.get(name)
    }

    /// The op of the node that input `i` comes from.
    pub fn source_op(&self, i: usize) -> Option<&'static str> {
        Some(self.nodes.get(self.inputs.get(i)?.node)?.op.name)
    }

    /// The value of input `i` as integers, where it is known.
    pub fn ints(&self, i: usize) -> Option<Vec<i64>> {
        constant::ints(self.nodes, *self.inputs.get(i)?)
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
