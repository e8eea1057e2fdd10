//! What a graph begins with: constants, values that are fed, variables.

use super::{Graph, GraphError, Ints, NodeId, Output, Value};
use crate::dtype::DType;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// A variable in a graph, as the ids of its nodes. Optimizers take it as it is.
#[derive(Debug, Clone, Copy)]
pub struct Var {
    /// The variable itself, a resource: what ops that update or read it take. As one of the `xs` of
    /// `engine::gradients::gradients` it gives the gradient through all reads.
    pub handle: Output,
    /// What it holds, read once in a step that needs it: for formulas (`x.matmul(w.value)`, `g.value(w.value).l2_loss()`),
    /// and as one of the `xs` of `engine::gradients::gradients` where nothing else reads the variable.
    pub value: Output,
    /// Assigns the initial value; run it once.
    pub init: NodeId,
}

impl Var {
    /// Sets the variable to `value` when a step runs the node, as do all updates: on the variable's device. A step that
    /// also reads the variable reads before or after it, unless one of both depends on the other.
    pub fn assign(self, value: Value<'_>) -> NodeId {
        self.update("AssignVariableOp", value)
    }

    /// Adds `value` to the variable.
    pub fn assign_add(self, value: Value<'_>) -> NodeId {
        self.update("AssignAddVariableOp", value)
    }

    /// Moves the variable towards `value`: `var -= (1 - decay) (var - value)`.
    pub fn assign_moving_average(self, value: Value<'_>, decay: f32) -> NodeId {
        let away = value.graph().value(self.value) - value;
        self.update("AssignSubVariableOp", away * f64::from(1.0 - decay))
    }

    fn update(self, op: &str, value: Value<'_>) -> NodeId {
        let (g, dtype) = (value.graph(), value.graph().value(self.value).dtype());
        let home = g.node(self.handle.node).map(|node| node.device.clone()).unwrap_or_default();
        let node = g.add_node(op).input(self.handle).input(value).attr("dtype", dtype);
        node.device(&home).value().node()
    }
}

impl Graph {
    /// A constant.
    pub fn constant(&self, value: impl Into<Tensor>) -> Value<'_> {
        self.named_constant("Const", value)
    }

    /// A constant with a name.
    pub fn named_constant(&self, name: &str, value: impl Into<Tensor>) -> Value<'_> {
        let value = value.into();
        self.add_node("Const").name(name).attr("dtype", value.dtype()).attr("value", value).value()
    }

    /// A constant of type `dtype`, which must be a number type, from a float.
    pub fn number(&self, dtype: DType, value: f64) -> Value<'_> {
        match Tensor::number(dtype, value) {
            Ok(number) => self.constant(number),
            Err(_) => self.fail(GraphError::NotANumber { dtype }),
        }
    }

    /// A constant vector of int32: axes, shapes, permutations.
    pub fn ints(&self, values: &[i32]) -> Value<'_> {
        self.constant(Tensor::vector(values))
    }

    /// A value that each step is fed: `[None, Some(2)]` is a matrix of any number of rows and two columns, `[3, 2]` one of
    /// this shape, [`PartialShape::scalar`] a scalar.
    pub fn placeholder(&self, name: &str, dtype: DType, shape: impl Into<PartialShape>) -> Value<'_> {
        self.add_node("Placeholder").name(name).attr("dtype", dtype).attr("shape", shape.into()).value()
    }

    /// A variable that begins as a constant.
    pub fn variable(&self, name: &str, initial: Tensor) -> Var {
        let (shape, dtype) = (PartialShape::from(initial.shape()), initial.dtype());
        self.variable_from(name, dtype, shape, |g| g.named_constant("initial_value", initial))
    }

    /// A variable that begins as what `initial` builds in the variable's scope.
    pub fn variable_from(
        &self,
        name: &str,
        dtype: DType,
        shape: impl Into<PartialShape>,
        initial: impl for<'s> FnOnce(&'s Graph) -> Value<'s>,
    ) -> Var {
        let handle = self.add_node("VarHandleOp").name(name).attr("dtype", dtype).attr("shape", shape.into()).value();
        let scope = self.node(handle.node()).map(|node| node.name.to_string()).unwrap_or_default();
        let (own, handle) = (self.at_scope(&scope), handle.output());
        let initial = initial(&own).output();
        let init = own.add_node("AssignVariableOp").name("Assign").input(handle).input(initial).value().node();
        let value = own.add_node("ReadVariableOp").name("Read").input(handle).attr("dtype", dtype).value().output();
        Var { handle, value, init }
    }

    /// A node that does nothing, after all of these.
    pub fn group(&self, name: &str, after: &[NodeId]) -> NodeId {
        self.add_node("NoOp").name(name).after(after).value().node()
    }

    /// The sum of tensors of one shape.
    pub fn add_n(&self, values: &[impl Into<Output> + Copy]) -> Value<'_> {
        self.add_node("AddN").inputs(values).value()
    }

    /// The values, joined along an axis.
    pub fn concat(&self, values: &[impl Into<Output> + Copy], axis: i32) -> Value<'_> {
        let axis = self.constant(Tensor::scalar(axis));
        self.add_node("ConcatV2").inputs(values).input(axis).value()
    }

    /// The values, which have one shape, along a new axis.
    pub fn stack(&self, values: &[impl Into<Output> + Copy], axis: i32) -> Value<'_> {
        self.add_node("Pack").inputs(values).attr("axis", i64::from(axis)).value()
    }

    /// `begin`, `begin + step`, ... before `end`: scalars of one type.
    pub fn range(&self, begin: impl Ints, end: impl Ints, step: impl Ints) -> Value<'_> {
        let (begin, end, step) = (begin.into_output(self), end.into_output(self), step.into_output(self));
        self.add_node("Range").input(begin).input(end).input(step).value()
    }

    /// A tensor of these dimensions, every element `value`.
    pub fn fill(&self, dims: impl Ints, value: impl Into<Output>) -> Value<'_> {
        let dims = dims.into_output(self);
        self.add_node("Fill").input(dims).input(value).value()
    }

    /// Normal numbers less than two deviations from 0, of deviation 1 before that cut.
    pub fn truncated_normal(&self, shape: &[usize], dtype: DType, seed: i64, seed2: i64) -> Value<'_> {
        let dims: Vec<i32> = shape.iter().map(|d| i32::try_from(*d).unwrap_or(i32::MAX)).collect();
        let shape = self.named_constant("shape", Tensor::vector(&dims));
        let node = self.add_node("TruncatedNormal").input(shape).attr("dtype", dtype);
        node.attr("seed", seed).attr("seed2", seed2).value()
    }
}
