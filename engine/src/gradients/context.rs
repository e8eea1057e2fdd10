//! What a gradient function sees of its node, and the nodes that it adds.

use super::back_loop::stack_of;
use super::error::GradientError;
use super::place::Place;
use crate::dtype::{DType, Element};
use crate::graph::{Attr, Graph, GraphError, Node, Output};
use crate::ops::OpKind;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// A node, the gradients of its outputs, and where those of its inputs go.
pub struct GradientContext<'a> {
    place: &'a Place,
    graph: &'a Graph,
    node: &'a Node,
    grads: &'a [Option<Output>],
    inputs: Vec<Option<Output>>,
}

type Added = Result<Output, GradientError>;

impl<'a> GradientContext<'a> {
    pub(super) fn new(place: &'a Place, node: &'a Node, grads: &'a [Option<Output>]) -> GradientContext<'a> {
        GradientContext { place, graph: &place.graph, node, grads, inputs: vec![None; node.inputs.len()] }
    }

    /// The inputs that got a gradient, with it.
    pub(super) fn finish(self) -> impl Iterator<Item = (Output, Output)> {
        let pairs: Vec<_> = self.node.inputs.iter().copied().zip(self.inputs).collect();
        pairs.into_iter().filter_map(|(input, grad)| grad.map(|grad| (input, grad)))
    }

    /// The node.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// The gradient of output `i`; zeros where none arrived.
    ///
    /// # Errors
    /// The zeros could not be added.
    pub fn grad(&mut self, i: usize) -> Added {
        match self.grads.get(i).copied().flatten() {
            Some(grad) => Ok(grad),
            None => self.zeros(self.output(i)),
        }
    }

    /// Zeros in the shape of an output of the forward pass.
    ///
    /// # Errors
    /// The graph refuses the nodes.
    pub fn zeros(&mut self, of: Output) -> Added {
        self.place.zeros(of)
    }

    /// Of a node that pops from a stack: keeps its gradient for the loop that pushed.
    pub(super) fn push_gradient(&mut self, grad: Output) -> Result<(), GradientError> {
        let stack = stack_of(&self.graph.nodes(), self.node.inputs[0]);
        match (stack, &self.place.back) {
            (Some(stack), Some(back)) => Ok(back.push_gradient(&self.place.mirrors, stack, grad)?),
            _ => Err(self.unsupported("outside of a loop")),
        }
    }

    /// Names the call of [`super::gradients`] that this is part of.
    pub fn source(&self) -> String {
        self.place.source.to_string()
    }

    /// `value`, once the node of `before` ran.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn after(&mut self, value: Output, before: Output) -> Added {
        Ok(self.graph.add_node("Identity").input(value).after(&[before.node]).output()?)
    }

    /// Says that `grad`, whose shape inference may not know, has the shape of `like`.
    ///
    /// # Errors
    /// Either is another graph's.
    pub fn with_shape_of(&mut self, grad: Output, like: Output) -> Added {
        self.graph.set_shape(grad, self.graph.shape(like)?)?;
        Ok(grad)
    }

    /// Of a node with two inputs, which are the sides of one conditional: its predicate, and the side of the first.
    pub fn sides_of_inputs(&self) -> Option<(Output, u32)> {
        let [first, second] = self.node.inputs[..] else { return None };
        let nodes = self.graph.nodes();
        let joined = nodes.context_of(self.node.id);
        let (first, second) = (nodes.side_within(first, joined)?, nodes.side_within(second, joined)?);
        let is_one = first.pred == second.pred && first.branch != second.branch;
        is_one.then_some((first.pred, u32::from(first.branch)))
    }

    /// The gradient of output `i`, where one arrived.
    pub fn arrived(&self, i: usize) -> Option<Output> {
        self.grads.get(i).copied().flatten()
    }

    /// What input `i` reads.
    ///
    /// # Panics
    /// The op has fewer inputs: the graph checked their number when the node was added.
    pub fn input(&self, i: usize) -> Output {
        self.node.inputs[i]
    }

    /// Output `i`.
    pub fn output(&self, i: usize) -> Output {
        Output { node: self.node.id, port: i as u32 }
    }

    /// Says that `grad` is the gradient of input `i`.
    pub fn set(&mut self, i: usize, grad: Output) {
        self.inputs[i] = Some(grad);
    }

    /// What is known of the shape of an output.
    ///
    /// # Errors
    /// It is another graph's.
    pub fn shape(&self, of: Output) -> Result<PartialShape, GradientError> {
        Ok(self.graph.shape(of)?)
    }

    /// The element type of an output.
    ///
    /// # Errors
    /// It is another graph's.
    pub fn dtype(&self, of: Output) -> Result<DType, GradientError> {
        Ok(self.graph.dtype(of)?)
    }

    /// Adds a node of `op` whose inputs are single outputs.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn op(&mut self, op: &str, inputs: &[Output]) -> Added {
        self.op_with(op, inputs, &[])
    }

    /// The same with attributes.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn op_with(&mut self, op: &str, inputs: &[Output], attrs: &[(&str, Attr)]) -> Added {
        let mut builder = self.graph.add_node(op);
        for input in inputs {
            builder = builder.input(*input);
        }
        for (name, value) in attrs {
            builder = builder.attr(name, value.clone());
        }
        Ok(builder.output()?)
    }

    /// Adds a node of `op` whose first input is the list `values`, then `rest`.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn op_of_list(&mut self, op: &str, values: &[Output], rest: &[Output], attrs: &[(&str, Attr)]) -> Added {
        let mut builder = self.graph.add_node(op).inputs(values);
        for input in rest {
            builder = builder.input(*input);
        }
        for (name, value) in attrs {
            builder = builder.attr(name, value.clone());
        }
        Ok(builder.output()?)
    }

    /// Adds a node of `op` whose inputs are these lists.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn op_of_lists(&mut self, op: &str, lists: &[&[Output]]) -> Added {
        Ok(lists.iter().fold(self.graph.add_node(op), |node, list| node.inputs(list)).output()?)
    }

    /// Adds a node of `op` whose last input is the list `values`, after `first`.
    pub fn op_then_list(&mut self, op: &str, first: &[Output], values: &[Output]) -> Added {
        let mut builder = self.graph.add_node(op);
        for input in first {
            builder = builder.input(*input);
        }
        Ok(builder.inputs(values).output()?)
    }

    /// Adds a constant.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn constant(&mut self, value: Tensor) -> Added {
        let dtype = value.dtype();
        Ok(self.graph.add_node("Const").attr("value", value).attr("dtype", dtype).output()?)
    }

    /// Adds a constant vector.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn vector<T: Element>(&mut self, values: &[T]) -> Added {
        self.constant(Tensor::vector(values))
    }

    /// Adds a scalar of the element type of `like`, a number type.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn scalar_like(&mut self, value: f64, like: Output) -> Added {
        let dtype = self.dtype(like)?;
        let tensor = Tensor::number(dtype, value).map_err(|_| GraphError::NotANumber { dtype })?;
        self.constant(tensor)
    }

    /// The shape of `of` as an i32 vector, when it runs.
    ///
    /// # Errors
    /// The graph refuses the node.
    pub fn shape_of(&mut self, of: Output) -> Added {
        self.place.shape_of(of)
    }

    /// `value`, reshaped to the shape of `like`.
    ///
    /// # Errors
    /// The graph refuses the nodes.
    pub fn reshape_like(&mut self, value: Output, like: Output) -> Added {
        let shape = self.shape_of(like)?;
        self.op("Reshape", &[value, shape])
    }

    /// The value of `of` as integers, where it is a constant, or what a loop or branch is given of one.
    pub fn ints(&self, mut of: Output) -> Option<Vec<i64>> {
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
    ///
    /// # Errors
    /// The graph refuses the nodes.
    pub fn set_broadcast(&mut self, grads: [(usize, Output); 2]) -> Result<(), GradientError> {
        let [(i, gi), (j, gj)] = grads;
        let shapes = (self.shape(self.input(i))?.known(), self.shape(self.input(j))?.known());
        if matches!(&shapes, (Some(a), Some(b)) if a == b) {
            self.set(i, gi);
            self.set(j, gj);
            return Ok(());
        }
        let (si, sj) = (self.shape_of(self.input(i))?, self.shape_of(self.input(j))?);
        let axes = self.op("BroadcastGradientArgs", &[si, sj])?;
        for (input, grad, shape, port) in [(i, gi, si, 0), (j, gj, sj, 1)] {
            let sum = self.op("Sum", &[grad, Output { port, ..axes }])?;
            let grad = self.op("Reshape", &[sum, shape])?;
            self.set(input, grad);
        }
        Ok(())
    }

    /// The error that says that this node has no gradient in this case.
    pub fn unsupported(&self, why: &'static str) -> GradientError {
        GradientError::Unsupported { node: self.node.name.to_string(), op: self.node.op.name, why }
    }
}
