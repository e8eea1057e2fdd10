//! Values of a graph under construction: with operators and methods, so that a program reads like its formulas.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::{Graph, GraphError, NodeBuilder, NodeId, Output};
use crate::dtype::DType;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// An output of a node, and the graph handle that adds the nodes which use it. If an op takes two values, the left
/// one's handle adds the node.
///
/// ```
/// # use engine::graph::Padding;
/// # use engine::{DType, Graph, Tensor};
/// # fn main() -> Result<(), engine::Error> {
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [None, Some(2)]);
/// let y = 0.5 * x * (1.0 + x.tanh());
/// assert_eq!(y.shape().to_string(), "[?,2]");
///
/// let images = g.placeholder("images", DType::F32, [None, Some(28), Some(28), Some(1)]);
/// let filter = g.variable("filter", Tensor::from_vec([5, 5, 1, 32], vec![0.01f32; 800])?);
/// let h = images.conv2d(filter.value, [1, 1], Padding::Same).relu();
/// let pooled = h.max_pool([2, 2], [2, 2], Padding::Same);
/// assert_eq!(pooled.shape().to_string(), "[?,14,14,32]");
/// g.check()?;
/// # Ok(())
/// # }
/// ```
///
/// A node that does not fit is no error at once: the graph keeps the first error, values that would depend on the node
/// are skipped, and [`Graph::check`] reports it, with the node, its op and the shapes of its inputs.
#[derive(Clone, Copy)]
pub struct Value<'g> {
    graph: &'g Graph,
    output: Output,
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.output.fmt(f)
    }
}

impl From<Value<'_>> for Output {
    fn from(value: Value<'_>) -> Output {
        value.output
    }
}

/// The other operand of an op of two: a value or an output of the graph, or a number, which becomes a constant of the
/// first operand's type.
pub trait Operand {
    /// The output; of a number, that of a constant of the type of `other`.
    fn output_like(self, other: Value<'_>) -> Output;
}

impl Operand for Value<'_> {
    fn output_like(self, _: Value<'_>) -> Output {
        self.output
    }
}

impl Operand for Output {
    fn output_like(self, _: Value<'_>) -> Output {
        self
    }
}

impl Operand for f64 {
    fn output_like(self, other: Value<'_>) -> Output {
        other.number(self).output
    }
}

/// Integers as ops take them (axes, shapes, permutations): a value or an output of the graph, or numbers of i32, i64 or
/// usize, which become a constant, a scalar or a vector; of int32, or of int64 where one of them is too large for that.
pub trait Ints {
    /// The output; of numbers, that of a constant in `graph`.
    fn into_output(self, graph: &Graph) -> Output;
}

impl Ints for Value<'_> {
    fn into_output(self, _: &Graph) -> Output {
        self.output
    }
}

impl Ints for Output {
    fn into_output(self, _: &Graph) -> Output {
        self
    }
}

macro_rules! ints {
    ($($t:ty)+) => { $(
        impl Ints for $t {
            fn into_output(self, graph: &Graph) -> Output {
                graph.constant(int_scalar(self)).output
            }
        }

        impl<const N: usize> Ints for [$t; N] {
            fn into_output(self, graph: &Graph) -> Output {
                graph.constant(int_vector(&self)).output
            }
        }

        impl Ints for &[$t] {
            fn into_output(self, graph: &Graph) -> Output {
                graph.constant(int_vector(self)).output
            }
        }
    )+ };
}

ints! { i32 i64 usize }

fn int_scalar<T: Copy>(number: T) -> Tensor
where
    i32: TryFrom<T>,
    i64: TryFrom<T>,
{
    match i32::try_from(number) {
        Ok(number) => Tensor::scalar(number),
        Err(_) => Tensor::scalar(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

fn int_vector<T: Copy>(numbers: &[T]) -> Tensor
where
    i32: TryFrom<T>,
    i64: TryFrom<T>,
{
    let narrow: Option<Vec<i32>> = numbers.iter().map(|n| i32::try_from(*n).ok()).collect();
    match narrow {
        Some(numbers) => Tensor::vector(&numbers),
        None => Tensor::vector(&numbers.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX)).collect::<Vec<_>>()),
    }
}

impl Graph {
    /// An output as a value.
    pub fn value(&self, output: impl Into<Output>) -> Value<'_> {
        Value { graph: self, output: output.into() }
    }

    /// The first error among the nodes that were added as values with this handle and those made from it; `Ok` without.
    ///
    /// # Errors
    /// That error.
    pub fn check(&self) -> Result<(), GraphError> {
        self.first_error.lock().clone().map_or(Ok(()), Err)
    }

    /// A value in the place of one that could not be added.
    pub(super) fn fail(&self, error: GraphError) -> Value<'_> {
        self.first_error.lock().get_or_insert(error);
        self.value(Output::INVALID)
    }
}

impl<'g> NodeBuilder<'g> {
    /// As [`NodeBuilder::build`]: gives the node's first output, or keeps the error for [`Graph::check`]. Of an op without
    /// outputs the value stands for the node alone: [`Value::node`] is what a step runs and other nodes run after.
    pub fn value(self) -> Value<'g> {
        let graph = self.graph();
        if self.has_invalid_input() {
            return graph.value(Output::INVALID);
        }
        match self.build() {
            Ok(id) => graph.value(id),
            Err(error) => graph.fail(error),
        }
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)+) => { $(
        $(#[$doc])*
        pub fn $name(self) -> Value<'g> {
            self.op($op)
        }
    )+ };
}

pub(super) use unary;

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)+) => { $(
        $(#[$doc])*
        pub fn $name(self, other: impl Operand) -> Value<'g> {
            self.op_with($op, other)
        }
    )+ };
}

impl<'g> Value<'g> {
    /// The output.
    pub fn output(self) -> Output {
        self.output
    }

    /// The output, if everything could be added so far.
    ///
    /// # Errors
    /// The first error ([`Graph::check`]).
    pub fn try_output(self) -> Result<Output, GraphError> {
        self.graph.check()?;
        Ok(self.output)
    }

    /// The node that computes it.
    pub fn node(self) -> NodeId {
        self.output.node
    }

    /// The handle that adds the nodes which use it.
    pub fn graph(self) -> &'g Graph {
        self.graph
    }

    /// Another output of the same node.
    pub fn port(self, port: u32) -> Value<'g> {
        Value { output: Output { port, ..self.output }, ..self }
    }

    /// The same value, with another handle.
    pub fn with(self, graph: &Graph) -> Value<'_> {
        Value { graph, output: self.output }
    }

    /// What `build` makes of the value in the scope `name`.
    pub fn in_scope(self, name: &str, build: impl for<'s> FnOnce(Value<'s>) -> Value<'s>) -> Value<'g> {
        let scope = self.graph.scope(name);
        self.graph.value(build(self.with(&scope)))
    }

    /// The element type; float of a value that could not be added.
    pub fn dtype(self) -> DType {
        self.graph.dtype(self.output).unwrap_or(DType::F32)
    }

    /// What is known of the shape.
    pub fn shape(self) -> PartialShape {
        self.graph.shape(self.output).unwrap_or_default()
    }

    /// The size of the last dimension, which must be known: 0 of a value of which it is not, with an error of the graph.
    pub fn last_dim(self) -> usize {
        let last = self.shape().dims().and_then(|dims| dims.last().copied().flatten());
        if last.is_none() && self.output.node != Output::INVALID.node {
            let node = self.graph.node(self.output.node).map(|node| node.name.to_string()).unwrap_or_default();
            self.graph.fail(GraphError::UnknownSize { node });
        }
        last.unwrap_or(0)
    }

    /// A constant of this value's type, which must be a number type.
    pub fn number(self, value: f64) -> Value<'g> {
        if self.output.node == Output::INVALID.node {
            return self;
        }
        let dtype = self.dtype();
        match Tensor::number(dtype, value) {
            Ok(number) => self.graph.constant(number),
            Err(_) => self.graph.fail(GraphError::NotANumber { dtype }),
        }
    }

    /// The op `op` of this value alone.
    pub fn op(self, op: &str) -> Value<'g> {
        add(self.graph, op, &[self.output])
    }

    /// The op `op` of this value and another.
    pub fn op_with(self, op: &str, other: impl Operand) -> Value<'g> {
        add(self.graph, op, &[self.output, other.output_like(self)])
    }

    unary! {
        /// `e^x`.
        exp = "Exp";
        /// Natural logarithm.
        log = "Log";
        /// `x * x`.
        square = "Square";
        /// Square root.
        sqrt = "Sqrt";
        /// `1 / sqrt(x)`.
        rsqrt = "Rsqrt";
        /// `1 / x`.
        reciprocal = "Reciprocal";
        /// Absolute value.
        abs = "Abs";
        /// -1, 0 or 1.
        sign = "Sign";
        /// Sine.
        sin = "Sin";
        /// Cosine.
        cos = "Cos";
        /// Hyperbolic sine.
        sinh = "Sinh";
        /// Hyperbolic cosine.
        cosh = "Cosh";
        /// Hyperbolic tangent.
        tanh = "Tanh";
        /// Logistic function.
        sigmoid = "Sigmoid";
        /// `x`.
        identity = "Identity";
        /// `x`, through which no gradient flows.
        stop_gradient = "StopGradient";
        /// Zeros in the shape of `x`.
        zeros_like = "ZerosLike";
        /// Ones in the shape of `x`.
        ones_like = "OnesLike";
        /// The shape, as int32.
        shape_tensor = "Shape";
        /// The number of elements, as int32.
        size_tensor = "Size";
        /// The number of dimensions, as int32.
        rank_tensor = "Rank";
    }

    binary! {
        /// `x ^ y`, broadcast.
        pow = "Pow";
        /// The larger one, broadcast.
        maximum = "Maximum";
        /// The smaller one, broadcast.
        minimum = "Minimum";
        /// `x == y`, broadcast.
        equal = "Equal";
        /// `x > y`, broadcast.
        greater = "Greater";
        /// `x >= y`, broadcast.
        greater_equal = "GreaterEqual";
        /// `x < y`, broadcast.
        less = "Less";
        /// `x <= y`, broadcast.
        less_equal = "LessEqual";
    }
}

fn add<'g>(graph: &'g Graph, op: &str, inputs: &[Output]) -> Value<'g> {
    let output = inputs.iter().fold(graph.add_node(op), |node, input| node.input(*input)).value().output;
    graph.value(output)
}

impl<'g> Neg for Value<'g> {
    type Output = Value<'g>;

    fn neg(self) -> Value<'g> {
        self.op("Neg")
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:literal;)+) => { $(
        impl<'g, T: Operand> $trait<T> for Value<'g> {
            type Output = Value<'g>;

            fn $method(self, other: T) -> Value<'g> {
                self.op_with($op, other)
            }
        }

        impl<'g> $trait<Value<'g>> for f64 {
            type Output = Value<'g>;

            fn $method(self, other: Value<'g>) -> Value<'g> {
                other.number(self).op_with($op, other)
            }
        }
    )+ };
}

operators! {
    Add add "AddV2";
    Sub sub "Sub";
    Mul mul "Mul";
    Div div "RealDiv";
}
