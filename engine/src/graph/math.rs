//! Math beyond single elements: products, reductions, other shapes.
//!
//! ```
//! # use engine::{DType, Graph, Tensor};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let g = Graph::new();
//! let b = g.variable("b", Tensor::from_vec([100], vec![0.0f32; 100])?); // 100-d vector
//! let w = g.variable("W", Tensor::from_vec([784, 100], vec![0.5f32; 78400])?); // 784x100 matrix
//! let x = g.placeholder("x", DType::F32, [None, Some(784)]);
//! let relu = (x.matmul(w.value) + b.value).relu();
//! # assert_eq!(relu.shape().to_string(), "[?,100]");
//! # Ok(g.check()?)
//! # }
//! ```

use super::{Ints, Output, Value};
use crate::dtype::DType;
use crate::tensor::Tensor;

macro_rules! with_ints {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)+) => { $(
        $(#[$doc])*
        pub fn $name(self, ints: impl Ints) -> Value<'g> {
            self.op_with($op, ints.into_output(self.graph()))
        }
    )+ };
}

impl<'g> Value<'g> {
    with_ints! {
        /// The value with these dimensions, of which one may be -1.
        reshape = "Reshape";
        /// The value repeated to this shape.
        broadcast_to = "BroadcastTo";
        /// Sum along these axes.
        sum = "Sum";
        /// Mean along these axes.
        mean = "Mean";
        /// Product along these axes.
        product = "Prod";
        /// Maximum along these axes.
        max = "Max";
        /// Minimum along these axes.
        min = "Min";
        /// The value with its axes in this order.
        transpose = "Transpose";
        /// The value with a dimension of 1 inserted at this axis.
        expand_dims = "ExpandDims";
        /// The position of the largest element along this axis, as int64.
        arg_max = "ArgMax";
    }

    /// Mean along these axes, which stay as dimensions of 1.
    pub fn mean_keep_dims(self, axes: impl Ints) -> Value<'g> {
        let axes = axes.into_output(self.graph());
        self.graph().add_node("Mean").input(self).input(axes).attr("keep_dims", true).value()
    }

    /// Sum along these axes, which stay as dimensions of 1.
    pub fn sum_keep_dims(self, axes: impl Ints) -> Value<'g> {
        let axes = axes.into_output(self.graph());
        self.graph().add_node("Sum").input(self).input(axes).attr("keep_dims", true).value()
    }

    /// The mean of all elements.
    pub fn mean_all(self) -> Value<'g> {
        self.mean(self.all_axes())
    }

    /// The sum of all elements.
    pub fn sum_all(self) -> Value<'g> {
        self.sum(self.all_axes())
    }

    fn all_axes(self) -> Value<'g> {
        match self.shape().rank() {
            Some(rank) => self.graph().ints(&(0..rank as i32).collect::<Vec<_>>()),
            None => {
                let [zero, one] = [0i32, 1].map(|i| self.graph().constant(Tensor::scalar(i)));
                self.graph().add_node("Range").input(zero).input(self.rank_tensor()).input(one).value()
            }
        }
    }

    /// Matrix product.
    pub fn matmul(self, other: impl Into<Output>) -> Value<'g> {
        self.op_with("MatMul", other.into())
    }

    /// Matrix product, either factor transposed first.
    pub fn matmul_with(self, other: impl Into<Output>, transpose_self: bool, transpose_other: bool) -> Value<'g> {
        let node = self.graph().add_node("MatMul").input(self).input(other);
        node.attr("transpose_a", transpose_self).attr("transpose_b", transpose_other).value()
    }

    /// The value as another type.
    pub fn cast(self, to: DType) -> Value<'g> {
        self.graph().add_node("Cast").input(self).attr("DstT", to).value()
    }

    /// Elements of `t` where this condition holds, else of `e`, broadcast.
    pub fn select(self, t: impl Into<Output>, e: impl Into<Output>) -> Value<'g> {
        self.graph().add_node("SelectV2").input(self).input(t).input(e).value()
    }
}
