//! Math beyond single elements: products, reductions, parts, other shapes.

use super::{Ints, Output, Value};
use crate::dtype::DType;

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
            None => self.graph().range(0, self.rank_tensor(), 1),
        }
    }

    /// Matrix product `[n, k]` by `[k, m]`; where either factor has more dimensions, of the matrices in the last two
    /// (`BatchMatMulV2`), whose other dimensions are broadcast: `[b, n, k]` by `[b, k, m]` or `[k, m]` is `[b, n, m]`.
    pub fn matmul(self, other: impl Into<Output>) -> Value<'g> {
        self.matmul_with(other, false, false)
    }

    /// As [`Value::matmul`], the matrices of either factor transposed first.
    pub fn matmul_with(self, other: impl Into<Output>, transpose_self: bool, transpose_other: bool) -> Value<'g> {
        let (g, other) = (self.graph(), self.graph().value(other));
        let is_batch = |factor: Value<'_>| factor.shape().rank().is_some_and(|rank| rank > 2);
        if !is_batch(self) && !is_batch(other) {
            let node = g.add_node("MatMul").input(self).input(other);
            return node.attr("transpose_a", transpose_self).attr("transpose_b", transpose_other).value();
        }
        // The op takes adjoints: that of the conjugate is the transpose.
        let conjugated = |factor: Value<'g>, is_transposed: bool| {
            if is_transposed && factor.dtype().is_complex() { factor.op("Conj") } else { factor }
        };
        let (a, b) = (conjugated(self, transpose_self), conjugated(other, transpose_other));
        let node = g.add_node("BatchMatMulV2").input(a).input(b);
        node.attr("adj_x", transpose_self).attr("adj_y", transpose_other).value()
    }

    /// The part that begins at `begin` and has `size` elements along each axis; a size of -1 takes all that follow.
    pub fn slice(self, begin: impl Ints, size: impl Ints) -> Value<'g> {
        let (begin, size) = (begin.into_output(self.graph()), size.into_output(self.graph()));
        self.graph().add_node("Slice").input(self).input(begin).input(size).value()
    }

    /// What lies at `indices`, of any shape, along `axis`: the dimensions of `indices` take the place of that one.
    pub fn gather(self, indices: impl Ints, axis: i32) -> Value<'g> {
        let (indices, axis) = (indices.into_output(self.graph()), axis.into_output(self.graph()));
        self.graph().add_node("GatherV2").input(self).input(indices).input(axis).value()
    }

    /// The value without the dimensions of 1 at these axes; without any dimension of 1 where there are no axes.
    pub fn squeeze<const N: usize>(self, axes: [i64; N]) -> Value<'g> {
        self.graph().add_node("Squeeze").input(self).attr("squeeze_dims", axes.to_vec()).value()
    }

    /// The value as a matrix: `[n, ...]` as `[n, elements of the rest]`.
    pub fn flatten(self) -> Value<'g> {
        let shape = self.shape();
        let rest =
            shape.dims().and_then(|dims| dims.get(1..)?.iter().try_fold(1usize, |n, dim| n.checked_mul((*dim)?)));
        match rest {
            Some(rest) => self.reshape([-1, rest as i64]),
            None => {
                let n = self.shape_tensor().slice([0], [1]);
                self.reshape(self.graph().concat(&[n, self.graph().ints(&[-1])], 0))
            }
        }
    }

    /// Classes as vectors of `depth` numbers along a new last dimension: 1 where the class is, otherwise 0; f32.
    pub fn one_hot(self, depth: impl Ints) -> Value<'g> {
        let (g, depth) = (self.graph(), depth.into_output(self.graph()));
        g.add_node("OneHot").input(self).input(depth).input(g.constant(1f32)).input(g.constant(0f32)).value()
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
