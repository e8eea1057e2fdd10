//! Building neural nets: convolutions, pools, normalisation, dropout, embeddings, recurrent cells.
//!
//! ```
//! # use engine::graph::Padding;
//! # use engine::{DType, Graph, Tensor};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let g = Graph::new();
//! let images = g.placeholder("images", DType::F32, [None, Some(28), Some(28), Some(1)])?;
//! let filter = g.variable("filter", Tensor::from_vec([5, 5, 1, 32], vec![0.01f32; 800])?)?;
//! let h = g.relu(g.conv2d(images, filter.value, [1, 1], Padding::Same)?)?;
//! let pooled = g.max_pool(h, [2, 2], [2, 2], Padding::Same)?;
//! # assert_eq!(g.shape(pooled)?.to_string(), "[?,14,14,32]");
//! # Ok(())
//! # }
//! ```

use super::math::Built;
use super::{Attr, Graph, GraphError, Output};
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

/// What batch normalisation gives: see [`Graph::batch_norm`].
#[derive(Debug, Clone, Copy)]
pub struct BatchNorm {
    /// The normalised data.
    pub y: Output,
    /// The batch's mean of each channel.
    pub mean: Output,
    /// The batch's variance of each channel, unbiased.
    pub variance: Output,
}

/// The state of an LSTM: `[batch, units]` each.
#[derive(Debug, Clone, Copy)]
pub struct LstmState {
    /// What the cells hold.
    pub c: Output,
    /// What they give.
    pub h: Output,
}

/// The weights of an LSTM, as [`Graph::lstm_cell`] takes them.
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

macro_rules! activations {
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

impl Graph {
    activations! {
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
        /// Logarithm of the softmax along the last dimension.
        log_softmax = "LogSoftmax";
        /// Half the sum of squares.
        l2_loss = "L2Loss";
    }

    /// `x`, and `alpha * x` below 0.
    ///
    /// # Errors
    /// `x` is no float.
    pub fn leaky_relu(&self, x: Output, alpha: f32) -> Built {
        self.add_node("LeakyRelu").input(x).attr("alpha", alpha).output()
    }

    /// Convolution of images `[batch, height, width, channels]` with a filter `[height, width, channels, outputs]`.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn conv2d(&self, x: Output, filter: Output, strides: [usize; 2], padding: Padding) -> Built {
        let node = self.add_node("Conv2D").input(x).input(filter);
        node.attr("strides", window(strides)).attr("padding", padding).output()
    }

    /// Convolution of each channel by itself, with a filter `[height, width, channels, filters of each channel]`.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn depthwise_conv2d(&self, x: Output, filter: Output, strides: [usize; 2], padding: Padding) -> Built {
        let node = self.add_node("DepthwiseConv2dNative").input(x).input(filter);
        node.attr("strides", window(strides)).attr("padding", padding).output()
    }

    /// The largest of each window of images `[batch, height, width, channels]`.
    ///
    /// # Errors
    /// The window does not fit.
    pub fn max_pool(&self, x: Output, size: [usize; 2], strides: [usize; 2], padding: Padding) -> Built {
        let node = self.add_node("MaxPool").input(x).attr("ksize", window(size));
        node.attr("strides", window(strides)).attr("padding", padding).output()
    }

    /// The mean of each window of images `[batch, height, width, channels]`.
    ///
    /// # Errors
    /// The window does not fit.
    pub fn avg_pool(&self, x: Output, size: [usize; 2], strides: [usize; 2], padding: Padding) -> Built {
        let node = self.add_node("AvgPool").input(x).attr("ksize", window(size));
        node.attr("strides", window(strides)).attr("padding", padding).output()
    }

    /// Normalises each channel of `x` (`[batch, height, width, channels]`) by the statistics of the batch.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn batch_norm(&self, x: Output, scale: Output, offset: Output, epsilon: f32) -> Result<BatchNorm, GraphError> {
        let none = self.constant(Tensor::vector::<f32>(&[]))?;
        let node = self.add_node("FusedBatchNormV3").input(x).input(scale).input(offset).input(none).input(none);
        let y = node.attr("epsilon", epsilon).attr("is_training", true).output()?;
        Ok(BatchNorm { y, mean: Output { port: 1, ..y }, variance: Output { port: 2, ..y } })
    }

    /// Normalises each channel of `x` by given statistics, as a trained net does.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn batch_norm_by(&self, x: Output, [scale, offset, mean, variance]: [Output; 4], epsilon: f32) -> Built {
        let node = self.add_node("FusedBatchNormV3").input(x).input(scale).input(offset).input(mean).input(variance);
        node.attr("epsilon", epsilon).attr("is_training", false).output()
    }

    /// Normalises `x` along its last dimension, then scales and shifts it.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn layer_norm(&self, x: Output, scale: Output, offset: Output, epsilon: f32) -> Built {
        let g = self.scope("layer_norm");
        let mean_of = |v: Output| {
            let last = g.int_vector(&[-1])?;
            g.add_node("Mean").input(v).input(last).attr("keep_dims", true).output()
        };
        let mean = mean_of(x)?;
        let centred = g.sub(x, mean)?;
        let variance = mean_of(g.square(centred)?)?;
        let epsilon = g.number(g.dtype(x)?, f64::from(epsilon))?;
        let inverse = g.add_node("Rsqrt").input(g.add(variance, epsilon)?).output()?;
        g.add(g.mul(g.mul(centred, inverse)?, scale)?, offset)
    }

    /// The Gaussian error linear unit: `x` times the probability that a normal number is below it.
    ///
    /// # Errors
    /// `x` is no float.
    pub fn gelu(&self, x: Output) -> Built {
        let g = self.scope("gelu");
        let dtype = g.dtype(x)?;
        let scaled = g.mul(x, g.number(dtype, std::f64::consts::FRAC_1_SQRT_2)?)?;
        let erf = g.add_node("Erf").input(scaled).output()?;
        let half = g.mul(x, g.number(dtype, 0.5)?)?;
        g.mul(half, g.add(erf, g.number(dtype, 1.0)?)?)
    }

    /// Sets each element to 0 with probability `rate`, and scales the others so that the expected sum stays.
    ///
    /// # Errors
    /// `x` is no float.
    pub fn dropout(&self, x: Output, rate: f64, (seed, seed2): (i64, i64)) -> Built {
        let g = self.scope("dropout");
        let dtype = g.dtype(x)?;
        let node = g.add_node("RandomUniform").input(g.shape_of(x)?).attr("dtype", dtype);
        let uniform = node.attr("seed", seed).attr("seed2", seed2).output()?;
        let kept = g.greater_equal(uniform, g.number(dtype, rate)?)?;
        let scaled = g.mul(x, g.number(dtype, 1.0 / (1.0 - rate))?)?;
        g.select(kept, scaled, g.number(dtype, 0.0)?)
    }

    /// Rows of `params` (`[n, ...]`) at `ids`, of any shape. The gradient is of those rows only: see
    /// [`crate::slices::IndexedSlices`].
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn embedding_lookup(&self, params: Output, ids: Output) -> Built {
        let axis = self.constant(Tensor::scalar(0i32))?;
        self.add_node("GatherV2").input(params).input(ids).input(axis).output()
    }

    /// One step of an LSTM on `x` (`[batch, inputs]`), as one fused op.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn lstm_cell(&self, x: Output, state: LstmState, weights: &LstmWeights) -> Result<LstmState, GraphError> {
        let none = self.no_peephole(state.h)?;
        let node = self.add_node("LSTMBlockCell").input(x).input(state.c).input(state.h).input(weights.w);
        let node = node.input(none).input(none).input(none).input(weights.b);
        let node = node.attr("forget_bias", weights.forget_bias).attr("cell_clip", -1.0f32);
        let first = node.attr("use_peephole", false).output()?;
        Ok(LstmState { c: Output { port: 1, ..first }, h: Output { port: 6, ..first } })
    }

    /// An LSTM unrolled over steps: what it gives at each, and its state after the last.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub fn lstm_unrolled(
        &self,
        xs: &[Output],
        state: LstmState,
        weights: &LstmWeights,
    ) -> Result<(Vec<Output>, LstmState), GraphError> {
        let mut state = state;
        let mut outputs = Vec::with_capacity(xs.len());
        for x in xs {
            state = self.lstm_cell(*x, state, weights)?;
            outputs.push(state.h);
        }
        Ok((outputs, state))
    }

    /// An LSTM over `x` (`[steps, batch, inputs]`), all steps in one op: `[steps, batch, units]`.
    ///
    /// # Errors
    /// The inputs do not fit, or the number of steps is not known.
    pub fn lstm_layer(&self, x: Output, state: LstmState, weights: &LstmWeights) -> Built {
        let none = self.no_peephole(state.h)?;
        let steps = self.constant(Tensor::scalar(i64::MAX))?;
        let node = self.add_node("BlockLSTM").input(steps).input(x).input(state.c).input(state.h).input(weights.w);
        let node = node.input(none).input(none).input(none).input(weights.b);
        let node = node.attr("forget_bias", weights.forget_bias).attr("cell_clip", -1.0f32);
        let first = node.attr("use_peephole", false).output()?;
        Ok(Output { port: 6, ..first })
    }

    /// Zeros where weights from the state to the gates would be: `[units]`.
    fn no_peephole(&self, h: Output) -> Built {
        let dtype = self.dtype(h)?;
        if let Some(Some(units)) = self.shape(h)?.dims().and_then(|d| d.get(1).copied()) {
            let zeros = match dtype {
                DType::F64 => Tensor::vector(&vec![0f64; units]),
                _ => Tensor::vector(&vec![0f32; units]),
            };
            let zeros = self.constant(zeros)?;
            return if matches!(dtype, DType::F32 | DType::F64) { Ok(zeros) } else { self.cast(zeros, dtype) };
        }
        let (begin, size) = (self.int_vector(&[1])?, self.int_vector(&[1])?);
        let units = self.add_node("Slice").input(self.shape_of(h)?).input(begin).input(size).output()?;
        self.fill(units, self.number(dtype, 0.0)?)
    }
}
