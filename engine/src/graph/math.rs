//! Building graphs: a method for each op, so that a program reads like the white paper's Figure 1.
//!
//! ```
//! # use engine::{DType, Graph, Tensor};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let g = Graph::new();
//! let b = g.variable("b", Tensor::from_vec([100], vec![0.0f32; 100])?)?; // 100-d vector
//! let w = g.variable("W", Tensor::from_vec([784, 100], vec![0.5f32; 78400])?)?; // 784x100 matrix
//! let x = g.placeholder("x", DType::F32, [None, Some(784)])?;
//! let relu = g.relu(g.add(g.matmul(x, w.value)?, b.value)?)?;
//! # assert_eq!(g.shape(relu)?.to_string(), "[?,100]");
//! # Ok(())
//! # }
//! ```

use super::{Attr, Graph, GraphError, NodeId, Output};
use crate::dtype::DType;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// What building a node gives.
pub type Built = Result<Output, GraphError>;

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

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)+) => { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// The op does not take such an input.
        pub fn $name(&self, x: Output) -> Built {
            self.add_node($op).input(x).output()
        }
    )+ };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)+) => { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// The op does not take such inputs, or their shapes do not fit.
        pub fn $name(&self, x: Output, y: Output) -> Built {
            self.add_node($op).input(x).input(y).output()
        }
    )+ };
}

impl Graph {
    unary! {
        /// `-x`.
        neg = "Neg";
        /// `e^x`.
        exp = "Exp";
        /// Natural logarithm.
        log = "Log";
        /// `x * x`.
        square = "Square";
        /// Square root.
        sqrt = "Sqrt";
        /// Absolute value.
        abs = "Abs";
        /// -1, 0 or 1.
        sign = "Sign";
        /// Hyperbolic tangent.
        tanh = "Tanh";
        /// Logistic function.
        sigmoid = "Sigmoid";
        /// `max(x, 0)`.
        relu = "Relu";
        /// Softmax along the last dimension.
        softmax = "Softmax";
        /// `x`.
        identity = "Identity";
        /// `x`, through which no gradient flows.
        stop_gradient = "StopGradient";
        /// Zeros in the shape of `x`.
        zeros_like = "ZerosLike";
        /// Ones in the shape of `x`.
        ones_like = "OnesLike";
        /// The shape, as int32.
        shape_of = "Shape";
        /// The number of elements, as int32.
        size_of = "Size";
        /// The number of dimensions, as int32.
        rank_of = "Rank";
    }
    binary! {
        /// `x + y`, broadcast.
        add = "AddV2";
        /// `x - y`, broadcast.
        sub = "Sub";
        /// `x * y`, broadcast.
        mul = "Mul";
        /// `x / y`, broadcast.
        div = "RealDiv";
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
        /// Matrix product.
        matmul = "MatMul";
        /// `x` plus a vector along its last dimension.
        bias_add = "BiasAdd";
        /// `x` with the dimensions that the vector `y` lists.
        reshape = "Reshape";
        /// `x` repeated to the shape that the vector `y` lists.
        broadcast_to = "BroadcastTo";
        /// Sum along the axes that `y` lists.
        sum = "Sum";
        /// Mean along the axes that `y` lists.
        mean = "Mean";
        /// Maximum along the axes that `y` lists.
        max = "Max";
        /// Minimum along the axes that `y` lists.
        min = "Min";
        /// `x` with its axes in the order that `y` lists.
        transpose = "Transpose";
        /// `x` with a dimension of 1 inserted at `y`.
        expand_dims = "ExpandDims";
        /// A tensor of shape `x` filled with `y`.
        fill = "Fill";
    }

    /// A constant.
    ///
    /// # Errors
    /// It is a resource.
    pub fn constant(&self, value: impl Into<Tensor>) -> Built {
        self.named_constant("Const", value)
    }

    /// A constant with a name.
    ///
    /// # Errors
    /// It is a resource, or the name is not one.
    pub fn named_constant(&self, name: &str, value: impl Into<Tensor>) -> Built {
        let value = value.into();
        self.add_node("Const").name(name).attr("dtype", value.dtype()).attr("value", value).output()
    }

    /// A constant of type `dtype`, which must be a number type, from a float.
    ///
    /// # Errors
    /// `dtype` is not a number type.
    pub fn number(&self, dtype: DType, value: f64) -> Built {
        let number = Tensor::number(dtype, value);
        self.constant(number.map_err(|_| GraphError::NotANumber { dtype })?)
    }

    /// A constant vector of int32: axes, shapes, permutations.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn int_vector(&self, values: &[i32]) -> Built {
        self.constant(Tensor::vector(values))
    }

    /// A value that each step is fed.
    ///
    /// # Errors
    /// The name is not one.
    pub fn placeholder(&self, name: &str, dtype: DType, shape: impl Into<PartialShape>) -> Built {
        self.add_node("Placeholder").name(name).attr("dtype", dtype).attr("shape", shape.into()).output()
    }

    /// A variable that begins as a constant.
    ///
    /// # Errors
    /// The name is not one.
    pub fn variable(&self, name: &str, initial: Tensor) -> Result<Var, GraphError> {
        let shape = PartialShape::from(initial.shape());
        let dtype = initial.dtype();
        self.variable_from(name, dtype, shape, |g| g.named_constant("initial_value", initial))
    }

    /// A variable that begins as what `initial` builds in the variable's scope.
    ///
    /// # Errors
    /// The name is not one, or as `initial`.
    pub fn variable_from(
        &self,
        name: &str,
        dtype: DType,
        shape: impl Into<PartialShape>,
        initial: impl FnOnce(&Graph) -> Built,
    ) -> Result<Var, GraphError> {
        let handle = self.add_node("VarHandleOp").name(name).attr("dtype", dtype).attr("shape", shape.into());
        let id = handle.build()?;
        let full = self.node(id)?.name.clone();
        let own = self.at_scope(&full);
        let handle = Output::from(id);
        let initial = initial(&own)?;
        let init = own.add_node("AssignVariableOp").name("Assign").input(handle).input(initial).build()?;
        let value = own.add_node("ReadVariableOp").name("Read").input(handle).attr("dtype", dtype).output()?;
        Ok(Var { handle, value, init })
    }

    /// A node that does nothing, after all of these.
    ///
    /// # Errors
    /// The name is not one.
    pub fn group(&self, name: &str, after: &[NodeId]) -> Result<NodeId, GraphError> {
        self.add_node("NoOp").name(name).after(after).build()
    }

    /// Matrix product of `a` and `b`, either transposed first.
    ///
    /// # Errors
    /// The inputs are not matrices that fit.
    pub fn matmul_with(&self, a: Output, b: Output, transpose_a: bool, transpose_b: bool) -> Built {
        let node = self.add_node("MatMul").input(a).input(b);
        node.attr("transpose_a", transpose_a).attr("transpose_b", transpose_b).output()
    }

    /// The sum of tensors of one shape.
    ///
    /// # Errors
    /// They differ in type or shape.
    pub fn add_n(&self, xs: &[Output]) -> Built {
        self.add_node("AddN").inputs(xs).output()
    }

    /// `x` as another type.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn cast(&self, x: Output, to: DType) -> Built {
        self.add_node("Cast").input(x).attr("DstT", to).output()
    }

    /// The position of the largest element along an axis, as int64.
    ///
    /// # Errors
    /// There is no such axis.
    pub fn arg_max(&self, x: Output, axis: i32) -> Built {
        let axis = self.constant(Tensor::scalar(axis))?;
        self.add_node("ArgMax").input(x).input(axis).output()
    }

    /// The mean of all elements of a tensor whose rank is known.
    ///
    /// # Errors
    /// The rank is not known.
    pub fn mean_all(&self, x: Output) -> Built {
        let axes = self.all_axes(x)?;
        self.mean(x, axes)
    }

    /// The sum of all elements of a tensor whose rank is known.
    ///
    /// # Errors
    /// The rank is not known.
    pub fn sum_all(&self, x: Output) -> Built {
        let axes = self.all_axes(x)?;
        self.sum(x, axes)
    }

    fn all_axes(&self, x: Output) -> Built {
        match self.shape(x)?.rank() {
            Some(rank) => self.int_vector(&(0..rank as i32).collect::<Vec<_>>()),
            None => {
                let (zero, one) = (self.constant(Tensor::scalar(0i32))?, self.constant(Tensor::scalar(1i32))?);
                let rank = self.rank_of(x)?;
                self.add_node("Range").input(zero).input(rank).input(one).output()
            }
        }
    }

    /// Elements of `t` where `condition`, else of `e`, broadcast.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn select(&self, condition: Output, t: Output, e: Output) -> Built {
        self.add_node("SelectV2").input(condition).input(t).input(e).output()
    }

    /// Cross entropy of each row of `logits` with the class in `labels`; port 1 is its gradient.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn sparse_cross_entropy(&self, logits: Output, labels: Output) -> Built {
        self.add_node("SparseSoftmaxCrossEntropyWithLogits").input(logits).input(labels).output()
    }

    /// Normal numbers less than two deviations from 0, of deviation 1 before that cut.
    ///
    /// # Errors
    /// The shape is too large for int32.
    pub fn truncated_normal(&self, shape: &[usize], dtype: DType, seed: i64, seed2: i64) -> Built {
        let dims: Vec<i32> = shape.iter().map(|d| i32::try_from(*d).unwrap_or(i32::MAX)).collect();
        let shape = self.named_constant("shape", Tensor::vector(&dims))?;
        let node = self.add_node("TruncatedNormal").input(shape).attr("dtype", dtype);
        node.attr("seed", seed).attr("seed2", seed2).output()
    }

    /// A summary of one number, under `tag`.
    ///
    /// # Errors
    /// `value` is not a number.
    pub fn scalar_summary(&self, name: &str, tag: &str, value: Output) -> Built {
        let tag = self.named_constant(&format!("{name}/tags"), Tensor::string(tag))?;
        self.add_node("ScalarSummary").name(name).input(tag).input(value).output()
    }

    /// A summary of the distribution of many numbers, under `tag`.
    ///
    /// # Errors
    /// `values` are not numbers.
    pub fn histogram_summary(&self, name: &str, tag: &str, values: Output) -> Built {
        let tag = self.named_constant(&format!("{name}/tag"), Tensor::string(tag))?;
        self.add_node("HistogramSummary").name(name).input(tag).input(values).output()
    }

    /// Summaries in one.
    ///
    /// # Errors
    /// They are not strings.
    pub fn merge_summaries(&self, name: &str, summaries: &[Output]) -> Built {
        self.add_node("MergeSummary").name(name).inputs(summaries).output()
    }

    /// The attribute `name` of the node that `output` belongs to.
    ///
    /// # Errors
    /// The output is another graph's.
    pub fn attr(&self, output: Output, name: &str) -> Result<Option<Attr>, GraphError> {
        Ok(self.node(output.node)?.attrs.get(name).cloned())
    }
}
