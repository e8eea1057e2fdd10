//! What a graph begins with: constants, values that are fed, variables.

use super::{Graph, GraphError, NodeId, Output, Value};
use crate::dtype::DType;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// A variable in a graph.
#[derive(Debug, Clone, Copy)]
pub struct Var {
    /// Its handle, for updates.
    pub handle: Output,
    /// Its value in a step, read when the step needs it.
    pub value: Output,
    /// Assigns the initial value; run it once.
    pub init: NodeId,
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

    /// A value that each step is fed.
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

    /// A tensor of these dimensions, every element `value`.
    pub fn fill(&self, dims: impl super::Ints, value: impl Into<Output>) -> Value<'_> {
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
