//! Building neural nets: convolutions, pools, normalisation, dropout, embeddings, recurrent cells.

use super::value::unary;
use super::{Attr, NodeBuilder, Output, Value};
use crate::dtype::DType;
use crate::tensor::Tensor;

/// What windows do at the edges of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Zeros around the data, so that a stride of 1 keeps its size.
    Same,
    /// Windows lie within the data.
    Valid,
}

impl From<Padding> for Attr {
    fn from(padding: Padding) -> Attr {
        Attr::from(match padding {
            Padding::Same => "SAME",
            Padding::Valid => "VALID",
        })
    }
}

/// What batch normalisation gives: see [`Value::batch_norm`].
#[derive(Debug, Clone, Copy)]
pub struct BatchNorm<'g> {
    /// The normalised data.
    pub y: Value<'g>,
    /// The batch's mean of each channel.
    pub mean: Value<'g>,
    /// The batch's variance of each channel, unbiased.
    pub variance: Value<'g>,
}

/// The state of an LSTM: `[batch, units]` each.
#[derive(Debug, Clone, Copy)]
pub struct LstmState<'g> {
    /// What the cells hold.
    pub c: Value<'g>,
    /// What they give.
    pub h: Value<'g>,
}

/// The weights of an LSTM, as [`Value::lstm_cell`] takes them.
#[derive(Debug, Clone, Copy)]
pub struct LstmWeights {
    /// `[inputs + units, 4 * units]`: columns of input gate, new value, forget gate, output gate.
    pub w: Output,
    /// `[4 * units]`.
    pub b: Output,
    /// Added to the forget gate before its sigmoid.
    pub forget_bias: f32,
}

/// An attribute of windows over height and width: `[1, y, x, 1]`.
fn window([y, x]: [usize; 2]) -> Attr {
    Attr::ListInt(vec![1, y as i64, x as i64, 1])
}

impl<'g> Value<'g> {
    unary! {
        /// Softmax along the last dimension.
        softmax = "Softmax";
        /// Logarithm of the softmax along the last dimension.
        log_softmax = "LogSoftmax";
        /// `max(x, 0)`.
        relu = "Relu";
        /// `min(max(x, 0), 6)`.
        relu6 = "Relu6";
        /// `x`, and `e^x - 1` below 0.
        elu = "Elu";
        /// The self-normalising rectifier.
        selu = "Selu";
        /// `log(1 + e^x)`.
        softplus = "Softplus";
        /// `x / (1 + |x|)`.
        softsign = "Softsign";
        /// Half the sum of squares.
        l2_loss = "L2Loss";
    }

    /// `x`, and `alpha * x` below 0.
    pub fn leaky_relu(self, alpha: f32) -> Value<'g> {
        self.graph().add_node("LeakyRelu").input(self).attr("alpha", alpha).value()
    }

    /// The value plus a vector along its last dimension.
    pub fn bias_add(self, bias: impl Into<Output>) -> Value<'g> {
        self.op_with("BiasAdd", bias.into())
    }

    /// Convolution of images `[batch, height, width, channels]` with a filter `[height, width, channels, outputs]`.
    pub fn conv2d(self, filter: impl Into<Output>, strides: [usize; 2], padding: Padding) -> Value<'g> {
        let node = self.graph().add_node("Conv2D").input(self).input(filter);
        node.attr("strides", window(strides)).attr("padding", padding).value()
    }

    /// Convolution of each channel by itself, with a filter `[height, width, channels, filters of each channel]`.
    pub fn depthwise_conv2d(self, filter: impl Into<Output>, strides: [usize; 2], padding: Padding) -> Value<'g> {
        let node = self.graph().add_node("DepthwiseConv2dNative").input(self).input(filter);
        node.attr("strides", window(strides)).attr("padding", padding).value()
    }

    /// The largest of each window of images `[batch, height, width, channels]`.
    pub fn max_pool(self, size: [usize; 2], strides: [usize; 2], padding: Padding) -> Value<'g> {
        self.pool("MaxPool", size, strides, padding)
    }

    /// The mean of each window of images `[batch, height, width, channels]`.
    pub fn avg_pool(self, size: [usize; 2], strides: [usize; 2], padding: Padding) -> Value<'g> {
        self.pool("AvgPool", size, strides, padding)
    }

    fn pool(self, op: &'g str, size: [usize; 2], strides: [usize; 2], padding: Padding) -> Value<'g> {
        let node = self.graph().add_node(op).input(self).attr("ksize", window(size));
        node.attr("strides", window(strides)).attr("padding", padding).value()
    }

    /// Normalises each channel of images `[batch, height, width, channels]` by the statistics of the batch.
    pub fn batch_norm(self, scale: impl Into<Output>, offset: impl Into<Output>, epsilon: f32) -> BatchNorm<'g> {
        let none = self.graph().constant(Tensor::vector::<f32>(&[]));
        let node = self.graph().add_node("FusedBatchNormV3").input(self).input(scale).input(offset);
        let node = node.input(none).input(none).attr("epsilon", epsilon).attr("is_training", true);
        let y = node.value();
        BatchNorm { y, mean: y.port(1), variance: y.port(2) }
    }

    /// Normalises each channel of images by given statistics (scale, offset, mean and variance), as a trained net does.
    pub fn batch_norm_by(self, statistics: [Output; 4], epsilon: f32) -> Value<'g> {
        let node = self.graph().add_node("FusedBatchNormV3").input(self);
        let node = statistics.into_iter().fold(node, NodeBuilder::input);
        node.attr("epsilon", epsilon).attr("is_training", false).value()
    }

    /// Normalises along the last dimension, then scales and shifts.
    pub fn layer_norm(self, scale: impl Into<Output>, offset: impl Into<Output>, epsilon: f64) -> Value<'g> {
        let (scale, offset) = (scale.into(), offset.into());
        self.in_scope("layer_norm", |x| {
            let centred = x - x.mean_keep_dims([-1]);
            let variance = centred.square().mean_keep_dims([-1]);
            let inverse = (variance + epsilon).rsqrt();
            centred * inverse * scale + offset
        })
    }

    /// The Gaussian error linear unit: `x` times the probability that a normal number is below it.
    pub fn gelu(self) -> Value<'g> {
        self.in_scope("gelu", |x| {
            let erf = (x * std::f64::consts::FRAC_1_SQRT_2).op("Erf");
            x * 0.5 * (erf + 1.0)
        })
    }

    /// Sets each element to 0 with probability `rate`, and scales the others so that the expected sum stays.
    pub fn dropout(self, rate: f64, (seed, seed2): (i64, i64)) -> Value<'g> {
        self.in_scope("dropout", |x| {
            let node = x.graph().add_node("RandomUniform").input(x.shape_tensor()).attr("dtype", x.dtype());
            let uniform = node.attr("seed", seed).attr("seed2", seed2).value();
            let scaled = x * (1.0 / (1.0 - rate));
            uniform.greater_equal(rate).select(scaled, x.number(0.0))
        })
    }

    /// Rows of this value (`[n, ...]`) at `ids`, of any shape. The gradient is of those rows only: see
    /// `engine::slices::IndexedSlices`.
    pub fn embedding_lookup(self, ids: impl Into<Output>) -> Value<'g> {
        let ids: Output = ids.into();
        self.gather(ids, 0)
    }

    /// Cross entropy of each row of these logits with the class in `labels`; port 1 is its gradient.
    pub fn sparse_cross_entropy(self, labels: impl Into<Output>) -> Value<'g> {
        self.op_with("SparseSoftmaxCrossEntropyWithLogits", labels.into())
    }

    /// One step of an LSTM on `[batch, inputs]`, as one fused op.
    pub fn lstm_cell(self, state: LstmState<'_>, weights: &LstmWeights) -> LstmState<'g> {
        let none = self.no_peephole(state.h);
        let node = self.graph().add_node("LSTMBlockCell").input(self).input(state.c).input(state.h).input(weights.w);
        let node = node.input(none).input(none).input(none).input(weights.b);
        let node = node.attr("forget_bias", weights.forget_bias).attr("cell_clip", -1.0f32);
        let first = node.attr("use_peephole", false).value();
        LstmState { c: first.port(1), h: first.port(6) }
    }

    /// An LSTM over `[steps, batch, inputs]`, all steps in one op: `[steps, batch, units]`.
    pub fn lstm_layer(self, state: LstmState<'_>, weights: &LstmWeights) -> Value<'g> {
        let none = self.no_peephole(state.h);
        let steps = self.graph().constant(Tensor::scalar(i64::MAX));
        let node = self.graph().add_node("BlockLSTM").input(steps).input(self).input(state.c).input(state.h);
        let node = node.input(weights.w).input(none).input(none).input(none).input(weights.b);
        let node = node.attr("forget_bias", weights.forget_bias).attr("cell_clip", -1.0f32);
        node.attr("use_peephole", false).value().port(6)
    }

    /// Zeros where weights from the state to the gates would be: `[units]`.
    fn no_peephole(self, h: Value<'_>) -> Value<'g> {
        let (g, dtype) = (self.graph(), h.dtype());
        if let Some(Some(units)) = h.shape().dims().and_then(|d| d.get(1).copied()) {
            let zeros = match dtype {
                DType::F64 => g.constant(Tensor::vector(&vec![0f64; units])),
                _ => g.constant(Tensor::vector(&vec![0f32; units])),
            };
            return if matches!(dtype, DType::F32 | DType::F64) { zeros } else { zeros.cast(dtype) };
        }
        g.fill(h.with(g).shape_tensor().slice([1], [1]), g.number(dtype, 0.0))
    }
}
