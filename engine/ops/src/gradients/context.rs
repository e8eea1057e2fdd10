//! What a gradient function sees of its node, and the nodes that it adds.

use std::cell::RefCell;

use super::back_loop::stack_of;
use super::error::GradientError;
use super::place::GradientLocation;
use engine_core::graph::{Graph, Node, NodeBuilder, Output, Value};
use engine_core::ops::{self, OpKind};

/// A node, the gradients of its outputs, and where those of its inputs go.
///
/// Rules add nodes as [`Value`]s: a node that does not fit is reported when the rule returns.
pub struct GradientContext<'a> {
    place: &'a GradientLocation,
    graph: &'a Graph,
    node: &'a Node,
    grads: &'a [Option<Output>],
    inputs: RefCell<Vec<Option<Output>>>,
}

impl<'a> GradientContext<'a> {
    pub(super) fn new(place: &'a GradientLocation, node: &'a Node, grads: &'a [Option<Output>]) -> GradientContext<'a> {
        let inputs = RefCell::new(vec![None; node.inputs.len()]);
        GradientContext { place, graph: &place.graph, node, grads, inputs }
    }

    /// The inputs that got a gradient, with it.
    pub(super) fn finish(self) -> impl Iterator<Item = (Output, Output)> {
        let pairs: Vec<_> = self.node.inputs.iter().copied().zip(self.inputs.into_inner()).collect();
        pairs.into_iter().filter_map(|(input, grad)| grad.map(|grad| (input, grad)))
    }

    /// The node.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// The handle by which the rule adds nodes.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Begins a node.
    pub fn add_node(&self, op: &'a str) -> NodeBuilder<'a> {
        self.graph.add_node(op)
    }

    /// Adds a node of `op` whose inputs are single outputs.
    pub fn op(&self, op: &str, inputs: &[Value<'_>]) -> Value<'a> {
        let node = inputs.iter().fold(self.graph.add_node(op), |node, input| node.input(*input));
        self.value(node.value().output())
    }

    /// As [`GradientContext::op`], with those of the node's attributes that `op` has too, and that do not follow from its inputs.
    pub fn op_with_node_attrs(&self, op: &str, inputs: &[Value<'_>]) -> Value<'a> {
        let def = ops::lookup(op);
        let is_inferred = |name: &str| def.is_some_and(|def| def.inputs.iter().any(|input| input.ty.determines(name)));
        let shared = def.into_iter().flat_map(|def| &def.attrs).filter(|attr| !is_inferred(attr.name));
        let shared = shared.filter_map(|attr| Some((attr.name, self.node.attrs.get(attr.name)?)));
        let node = shared.fold(self.graph.add_node(op), |node, (name, value)| node.attr(name, value.clone()));
        let node = inputs.iter().fold(node, |node, input| node.input(*input));
        self.value(node.value().output())
    }

    /// An output, as a value of the rule.
    pub fn value(&self, output: impl Into<Output>) -> Value<'a> {
        self.graph.value(output)
    }

    /// The gradient of output `i`; zeros where none arrived.
    pub fn grad(&self, i: usize) -> Value<'a> {
        self.arrived(i).unwrap_or_else(|| self.zeros(self.output(i)))
    }

    /// The gradient of output `i`, where one arrived.
    pub fn arrived(&self, i: usize) -> Option<Value<'a>> {
        self.grads.get(i).copied().flatten().map(|grad| self.value(grad))
    }

    /// What input `i` reads.
    ///
    /// # Panics
    /// The op has fewer inputs: the graph checked their number when the node was added.
    pub fn input(&self, i: usize) -> Value<'a> {
        self.value(self.node.inputs[i])
    }

    /// Output `i`.
    pub fn output(&self, i: usize) -> Value<'a> {
        self.value(Output { node: self.node.id, port: i as u32 })
    }

    /// Says that `grad` is the gradient of input `i`.
    pub fn set(&self, i: usize, grad: impl Into<Output>) {
        self.inputs.borrow_mut()[i] = Some(grad.into());
    }

    /// Zeros in the shape of an output of the forward pass.
    pub fn zeros(&self, of: Value<'_>) -> Value<'a> {
        self.place.zeros(of.output())
    }

    /// The shape of an output of the forward pass as an i32 vector, when it runs.
    pub fn shape_of(&self, of: Value<'_>) -> Value<'a> {
        self.place.shape_of(of.output())
    }

    /// `value`, reshaped to the shape of `like`.
    pub fn reshape_like(&self, value: Value<'a>, like: Value<'_>) -> Value<'a> {
        value.reshape(self.shape_of(like))
    }

    /// Says that `grad`, whose shape inference may not know, has the shape of `like`.
    ///
    /// # Errors
    /// Either is another graph's.
    pub fn set_shape_of(&self, grad: Value<'a>, like: Value<'_>) -> Result<(), GradientError> {
        self.graph.check()?;
        Ok(self.graph.set_shape(grad.output(), like.shape())?)
    }

    /// `value`, once the node of `before` ran.
    pub fn after(&self, value: Value<'_>, before: Value<'_>) -> Value<'a> {
        self.add_node("Identity").input(value).after(&[before.node()]).value()
    }

    /// Of a node that pops from a stack: keeps its gradient for the loop that pushed.
    pub(super) fn push_gradient(&self, grad: Value<'_>) -> Result<(), GradientError> {
        self.graph.check()?;
        let stack = stack_of(&self.graph.nodes(), self.node.inputs[0]);
        match (stack, &self.place.back) {
            (Some(stack), Some(back)) => Ok(back.push_gradient(&self.place.mirrors, stack, grad.output())?),
            _ => Err(self.unsupported("outside of a loop")),
        }
    }

    /// Names the call of [`super::gradients`] that this is part of.
    pub fn source(&self) -> String {
        self.place.source.to_string()
    }

    /// Of a node with two inputs, which are the sides of one conditional: its predicate, and the side of the first.
    pub fn sides_of_inputs(&self) -> Option<(Value<'a>, u32)> {
        let [first, second] = self.node.inputs[..] else { return None };
        let nodes = self.graph.nodes();
        let joined = nodes.context_of(self.node.id);
        let (first, second) = (nodes.side_within(first, joined)?, nodes.side_within(second, joined)?);
        let is_one = first.pred == second.pred && first.branch != second.branch;
        is_one.then_some((self.value(first.pred), u32::from(first.branch)))
    }

    /// The value of `of` as integers, where it is a constant, or what a loop or branch is given of one.
    pub fn known_ints(&self, of: Value<'_>) -> Option<Vec<i64>> {
        let mut of = of.output();
        let node = loop {
            let node = self.graph.node(of.node).ok()?;
            let is_constant = node.flag("is_constant").is_ok_and(|c| *c);
            match node.op.kind {
                OpKind::Const => break node,
                OpKind::Identity | OpKind::Switch => of = node.inputs[0],
                OpKind::IdentityN => of = *node.inputs.get(of.port as usize)?,
                OpKind::Enter if is_constant => of = node.inputs[0],
                _ => return None,
            }
        };
        let value = node.tensor("value").ok()?;
        let ints = value.slice::<i32>().map(|ints| ints.iter().map(|&i| i64::from(i)).collect());
        ints.or_else(|_| value.slice::<i64>().map(<[i64]>::to_vec)).ok()
    }

    /// Sets the gradients of two inputs that were broadcast against each other: each summed over the axes along which
    /// its input was stretched.
    pub fn set_broadcast(&self, grads: [(usize, Value<'a>); 2]) {
        let [(i, gi), (j, gj)] = grads;
        let shapes = (self.input(i).shape().known(), self.input(j).shape().known());
        if matches!(&shapes, (Some(a), Some(b)) if a == b) {
            self.set(i, gi);
            self.set(j, gj);
            return;
        }
        let (si, sj) = (self.shape_of(self.input(i)), self.shape_of(self.input(j)));
        let axes = si.op_with("BroadcastGradientArgs", sj);
        for (input, grad, shape, port) in [(i, gi, si, 0), (j, gj, sj, 1)] {
            self.set(input, grad.sum(axes.port(port)).reshape(shape));
        }
    }

    /// Sets the gradient of an input that was broadcast to the shape of output 0: `grad`, summed over the axes along which
    /// the input was stretched.
    pub fn set_stretched(&self, i: usize, grad: Value<'a>) {
        let (own, whole) = (self.shape_of(self.input(i)), self.shape_of(self.output(0)));
        self.set(i, grad.sum(own.op_with("BroadcastGradientArgs", whole)).reshape(own));
    }

    /// The error that says that this node has no gradient in this case.
    pub fn unsupported(&self, why: &'static str) -> GradientError {
        GradientError::Unsupported { node: self.node.name.to_string(), op: self.node.op.name, why }
    }
}

/// `value`, conjugated where it is complex.
pub(super) fn conjugate(value: Value<'_>) -> Value<'_> {
    if value.dtype().is_complex() { value.op("Conj") } else { value }
}
