//! A multi-layer perceptron: fully connected layers with rectified linear units, softmax cross entropy on top.

use crate::dtype::DType;
use crate::gradients::GradientError;
use crate::graph::{Graph, GraphError, NodeId, Output, Var};
use crate::optimizer::Optimizer;
use crate::shape::PartialShape;

/// The shape of a perceptron and of its training.
#[derive(Debug, Clone)]
pub struct MlpOptions {
    /// Numbers per example.
    pub n_inputs: usize,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// Classes.
    pub n_classes: usize,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// Its rate.
    pub learning_rate: f32,
    /// Seed of the initial weights.
    pub seed: i64,
}

impl Default for MlpOptions {
    fn default() -> MlpOptions {
        MlpOptions {
            n_inputs: 64,
            hidden: vec![512, 512],
            n_classes: 10,
            optimizer: Optimizer::Momentum { momentum: 0.9 },
            learning_rate: 0.02,
            seed: 1,
        }
    }
}

/// A perceptron in a graph.
#[derive(Debug, Clone)]
pub struct Mlp {
    /// Examples, fed: f32 `[batch, inputs]`.
    pub x: Output,
    /// Their classes, fed: i64 `[batch]`.
    pub labels: Output,
    /// Before the softmax: f32 `[batch, classes]`.
    pub logits: Output,
    /// The mean cross entropy, a scalar.
    pub loss: Output,
    /// The share of examples whose largest logit is their class, a scalar.
    pub accuracy: Output,
    /// One step of training.
    pub train_op: NodeId,
    /// Initialises all variables; run it once.
    pub init: NodeId,
    /// A string with summaries of loss, accuracy and learning rate.
    pub scalars: Output,
    /// A string with histograms of weights, biases and their gradients.
    pub histograms: Output,
    /// The trained variables with their names, weights then biases of each layer.
    pub variables: Vec<(String, Var)>,
}

/// A trained variable, with its shape.
struct Parameter {
    name: String,
    var: Var,
    shape: Vec<usize>,
}

/// Adds a perceptron to a graph: scopes `layer1`, ..., `loss`, `accuracy`, `gradients`, `train`, `summaries`.
///
/// # Errors
/// Names clash in a way that cannot be resolved; not for sizes, which may be any.
pub fn mlp(g: &Graph, options: &MlpOptions) -> Result<Mlp, GradientError> {
    let x = g.placeholder("x", DType::F32, [None, Some(options.n_inputs)])?;
    let labels = g.placeholder("labels", DType::I64, [None])?;
    let mut parameters = Vec::new();
    let (mut h, mut n_in) = (x, options.n_inputs);
    let sizes: Vec<usize> = options.hidden.iter().copied().chain([options.n_classes]).collect();
    for (i, n_out) in sizes.iter().enumerate() {
        let is_last = i + 1 == sizes.len();
        h = layer(g, h, (n_in, *n_out), i, is_last, options.seed, &mut parameters)?;
        n_in = *n_out;
    }
    let loss = loss_of(g, h, labels)?;
    let accuracy = accuracy_of(g, h, labels)?;
    let rate = g.named_constant("learning_rate", options.learning_rate)?;
    let trained: Vec<(Var, &[usize])> = parameters.iter().map(|p| (p.var, p.shape.as_slice())).collect();
    let training = options.optimizer.minimize(g, loss, &trained, rate)?;
    let init: Vec<NodeId> = parameters.iter().map(|p| p.var.init).chain(training.init).collect();
    let init = g.group("init", &init)?;
    let summaries = g.scope("summaries");
    let scalar = |tag: &str, value| summaries.scalar_summary(tag, tag, value);
    let scalars = [scalar("loss", loss)?, scalar("accuracy", accuracy)?, scalar("learning_rate", rate)?];
    let scalars = summaries.merge_summaries("scalars", &scalars)?;
    let mut histograms = Vec::new();
    for (p, grad) in parameters.iter().zip(&training.gradients) {
        histograms.push(summaries.histogram_summary(&p.name, &p.name, p.var.value)?);
        let tag = format!("{}/gradient", p.name);
        histograms.push(summaries.histogram_summary(&tag, &tag, *grad)?);
    }
    let histograms = summaries.merge_summaries("histograms", &histograms)?;
    let variables = parameters.into_iter().map(|p| (p.name, p.var)).collect();
    Ok(Mlp { x, labels, logits: h, loss, accuracy, train_op: training.op, init, scalars, histograms, variables })
}

/// `relu(x w + b)`, the last layer without the relu. Weights begin as truncated normal numbers of deviation
/// sqrt(2 / n_in) (He et al. 2015), those of the last layer sqrt(2 / (n_in + n_out)) (Glorot and Bengio 2010).
fn layer(
    g: &Graph,
    x: Output,
    (n_in, n_out): (usize, usize),
    i: usize,
    is_last: bool,
    seed: i64,
    parameters: &mut Vec<Parameter>,
) -> Result<Output, GraphError> {
    let scope = g.scope(&format!("layer{}", i + 1));
    let fan = if is_last { n_in + n_out } else { n_in };
    let deviation = (2.0 / fan.max(1) as f32).sqrt();
    let shape = PartialShape::from([n_in, n_out]);
    let w = scope.variable_from("weights", DType::F32, shape, |s| {
        let normal = s.truncated_normal(&[n_in, n_out], DType::F32, seed, i as i64 + 1)?;
        s.mul(normal, s.named_constant("stddev", deviation)?)
    })?;
    let b = scope
        .variable_from("biases", DType::F32, [n_out], |s| s.fill(s.int_vector(&[n_out as i32])?, s.constant(0f32)?))?;
    let name = |part: &str| format!("{}/{part}", scope.scope_name());
    parameters.push(Parameter { name: name("weights"), var: w, shape: vec![n_in, n_out] });
    parameters.push(Parameter { name: name("biases"), var: b, shape: vec![n_out] });
    let y = scope.bias_add(scope.matmul(x, w.value)?, b.value)?;
    if is_last { Ok(y) } else { scope.relu(y) }
}

fn loss_of(g: &Graph, logits: Output, labels: Output) -> Result<Output, GraphError> {
    let scope = g.scope("loss");
    let each = scope.sparse_cross_entropy(logits, labels)?;
    scope.mean_all(each)
}

fn accuracy_of(g: &Graph, logits: Output, labels: Output) -> Result<Output, GraphError> {
    let scope = g.scope("accuracy");
    let guess = scope.arg_max(logits, 1)?;
    let right = scope.cast(scope.equal(guess, labels)?, DType::F32)?;
    scope.mean_all(right)
}
