//! The methods of values that make layers, and [`engine::layers`], against Keras's layers, in `data/keras_layers.json.gz`
//! (made by `tests/scripts/keras_layer_fixtures.py`): outputs, and the gradients of inputs and weights.

use std::collections::BTreeMap;

use engine::gradients::gradients;
use engine::graph::{LstmState, LstmWeights, NodeId, Padding, Value};
use engine::layers::{Initial, Phase, Variables, accuracy, batch_norm, conv2d, dense, dropout, embedding, layer_norm};
use engine::optimizer::Optimizer;
use engine::schedule::{exponential_decay, inverse_time_decay, polynomial_decay};
use engine::{DType, Graph, Output, Session, SessionOptions, Tensor};
use serde::Deserialize;

#[derive(Deserialize)]
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Array {
    fn tensor(&self, dtype: DType) -> Tensor {
        match dtype {
            DType::F32 => Tensor::from_vec(self.shape.as_slice(), self.values.iter().map(|v| *v as f32).collect()),
            DType::I32 => Tensor::from_vec(self.shape.as_slice(), self.values.iter().map(|v| *v as i32).collect()),
            _ => Tensor::from_vec(self.shape.as_slice(), self.values.clone()),
        }
        .unwrap()
    }
}

#[derive(Deserialize)]
struct Case {
    name: String,
    x: Array,
    weights: Vec<Array>,
    cotangent: Array,
    y: Array,
    grads: Vec<Array>,
    /// The weights after a call that may have changed them.
    #[serde(default)]
    after: Vec<Array>,
}

#[derive(Deserialize)]
struct Fixture {
    layers: Vec<Case>,
    rates: BTreeMap<String, Vec<f64>>,
}

fn fixture() -> Fixture {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras_layers.json.gz");
    serde_json::from_reader(flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::F32 => tensor.slice::<f32>().unwrap().iter().map(|v| f64::from(*v)).collect(),
        _ => tensor.slice::<f64>().unwrap().to_vec(),
    }
}

fn padding(name: &str) -> Padding {
    if name.ends_with("same") { Padding::Same } else { Padding::Valid }
}

/// The layer of a case.
fn layer<'g>(name: &str, x: Value<'g>, w: &[Value<'g>]) -> Value<'g> {
    match name {
        "dense" | "dense of rank 3" => x.matmul(w[0]).bias_add(w[1]),
        "batch norm" => x.batch_norm_by([0, 1, 2, 3].map(|i| w[i].output()), 1e-3),
        "layer norm" => x.layer_norm(w[0], w[1], 1e-3),
        "relu" => x.relu(),
        "relu6" => x.relu6(),
        "elu" => x.elu(),
        "selu" => x.selu(),
        "softplus" => x.softplus(),
        "softsign" => x.softsign(),
        "sigmoid" => x.sigmoid(),
        "tanh" => x.tanh(),
        "gelu" => x.gelu(),
        "leaky relu" => x.leaky_relu(0.2),
        "softmax" => x.softmax(),
        "log softmax" => x.log_softmax(),
        "embedding" => w[0].embedding_lookup(x),
        "lstm" => lstm(x, w),
        _ if name.starts_with("conv2d") => x.conv2d(w[0], [2, 2], padding(name)).bias_add(w[1]),
        _ if name.starts_with("depthwise") => x.depthwise_conv2d(w[0], [1, 1], padding(name)),
        _ if name.starts_with("max pool") => x.max_pool([2, 3], [2, 2], padding(name)),
        _ if name.starts_with("average pool") => x.avg_pool([2, 3], [2, 2], padding(name)),
        _ => panic!("{name}"),
    }
}

/// Keras's gates are input, forget, new value, output; ours have the new value second. Its batch is the first axis.
fn lstm<'g>(x: Value<'g>, w: &[Value<'g>]) -> Value<'g> {
    let (g, units) = (x.graph(), 4);
    let order = g.ints(&[0, 2, 1, 3]);
    let reordered = |weights: Value<'g>| {
        let gates = weights.reshape([-1, 4, units]).transpose([1, 0, 2]);
        gates.embedding_lookup(order).transpose([1, 0, 2]).reshape([-1, 4 * units])
    };
    let weights = LstmWeights {
        w: reordered(g.concat(&[w[0], w[1]], 0)).output(),
        b: reordered(w[2]).reshape([-1]).output(),
        forget_bias: 0.0,
    };
    let start = g.constant(Tensor::from_vec([2, 4], vec![0f32; 8]).unwrap());
    x.transpose([1, 0, 2]).lstm_layer(LstmState { c: start, h: start }, &weights).transpose([1, 0, 2])
}

/// The layer of a case, with variables of its own; their order is that of the case's weights.
fn layer_of_variables<'g>(
    name: &str,
    x: Value<'g>,
    variables: &mut Variables,
    updates: &mut Vec<NodeId>,
) -> Option<Value<'g>> {
    let (mut at, initial) = (variables.at("layer"), Initial::Constant(0.5));
    Some(match name {
        "dense" | "dense of rank 3" => dense(x, &mut at, 5, initial),
        "conv2d same" | "conv2d valid" => conv2d(x, &mut at, 4, [3, 2], [2, 2], padding(name), initial),
        "layer norm" => layer_norm(x, &mut at),
        "embedding" => embedding(x, &mut at, 6, 3, initial),
        "batch norm that shifts" => batch_norm(x, &mut at, Phase::Evaluation, updates),
        "batch norm that trains" => batch_norm(x, &mut at, Phase::Training, updates),
        _ => return None,
    })
}

/// Compares values with Keras's; gives the number of their elements.
fn compare<'a>(name: &str, got: &[Tensor], expected: impl Iterator<Item = &'a Array>, tolerance: f64) -> usize {
    let expected: Vec<&Array> = expected.collect();
    assert_eq!(got.len(), expected.len(), "{name}");
    for (i, (got, want)) in got.iter().zip(&expected).enumerate() {
        assert_eq!(got.shape().dims(), want.shape, "{name}, value {i}");
        for (got, want) in numbers(got).iter().zip(&want.values) {
            let far = (got - want).abs() / want.abs().max(1.0);
            assert!(far <= tolerance, "{name}, value {i}: {got}, Keras has {want}");
        }
    }
    expected.iter().map(|array| array.values.len()).sum()
}

#[test]
fn layers_are_as_those_of_keras() {
    let mut n_values = 0;
    for case in fixture().layers.into_iter().filter(|case| !case.name.starts_with("batch norm that")) {
        let dtype = if matches!(case.name.as_str(), "gelu" | "lstm" | "batch norm") { DType::F32 } else { DType::F64 };
        let g = Graph::new();
        let x = g.constant(case.x.tensor(if case.name == "embedding" { DType::I32 } else { dtype }));
        let weights: Vec<Value<'_>> = case.weights.iter().map(|w| g.constant(w.tensor(dtype))).collect();
        let y = layer(&case.name, x, &weights);
        let loss = (y * g.constant(case.cotangent.tensor(dtype))).sum_all();
        let mut sources: Vec<Output> = weights.iter().map(|w| w.output()).collect();
        if case.name != "embedding" {
            sources.insert(0, x.output());
        }
        sources.truncate(case.grads.len());
        let grads = gradients(&g, &[loss.output()], &sources, &[]).unwrap();
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        let step = grads.iter().fold(session.step().fetch(y), |step, grad| step.fetch(*grad));
        let tolerance = if dtype == DType::F32 { 2e-6 } else { 1e-12 };
        let expected = std::iter::once(&case.y).chain(&case.grads);
        n_values += compare(&case.name, &step.run().unwrap(), expected, tolerance);
    }
    assert!(n_values > 2_000, "{n_values}");
}

#[test]
fn layers_with_variables_are_as_those_of_keras() {
    let (mut n_cases, mut n_values) = (0, 0);
    for case in fixture().layers {
        let g = Graph::new();
        let (mut variables, mut updates) = (Variables::new(&g, 1), Vec::new());
        let dtype = if case.name == "embedding" { DType::I32 } else { DType::F32 };
        let x = g.constant(case.x.tensor(dtype));
        let Some(y) = layer_of_variables(&case.name, x, &mut variables, &mut updates) else { continue };
        assert_eq!(variables.all().len(), case.weights.len(), "{}", case.name);
        let loss = (y * g.constant(case.cotangent.tensor(DType::F32))).sum_all();
        let trained = variables.trained().into_iter().map(|var| var.value);
        let sources: Vec<Output> = (dtype == DType::F32).then_some(x.output()).into_iter().chain(trained).collect();
        let grads = gradients(&g, &[loss.output()], &sources, &[]).unwrap();
        let weights = case.weights.iter().map(|weights| g.constant(weights.tensor(DType::F32)));
        let assigns: Vec<NodeId> = variables.all().iter().zip(weights).map(|(v, w)| v.var.assign(w)).collect();
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        session.step().targets(&assigns).run().unwrap();
        let step = grads.iter().fold(session.step().fetch(y), |step, grad| step.fetch(*grad));
        let got = step.targets(&updates).run().unwrap();
        n_values += compare(&case.name, &got, std::iter::once(&case.y).chain(&case.grads), 1e-5);
        if !case.after.is_empty() {
            let step = variables.all().iter().fold(session.step(), |step, v| step.fetch(v.var.value));
            n_values += compare(&case.name, &step.run().unwrap(), case.after.iter(), 1e-5);
        }
        n_cases += 1;
    }
    assert_eq!(n_cases, 8);
    assert!(n_values > 1_500, "{n_values}");
}

/// Also where a step alone knows several of the other dimensions: the last stays known.
#[test]
fn dense_is_along_the_last_of_any_dimensions() {
    let g = Graph::new();
    let mut variables = Variables::new(&g, 1);
    for (dims, shape) in [([None, Some(5)], "[?,5,4]"), ([Some(2), Some(5)], "[2,5,4]"), ([None, None], "[?,?,4]")] {
        let x = g.placeholder("x", DType::F32, [dims[0], dims[1], Some(3)]);
        let y = dense(x, &mut variables.at("first"), 4, Initial::Constant(1.0)).relu();
        let z = dense(y, &mut variables.at("second"), 2, Initial::Constant(1.0));
        assert_eq!(y.shape().to_string(), shape);
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        session.step().targets(&variables.init()).run().unwrap();
        let ones = Tensor::from_vec([2, 5, 3], vec![1f32; 30]).unwrap();
        let got = session.step().feed(x, ones).fetch(z).run().unwrap();
        assert_eq!(got, [Tensor::from_vec([2, 5, 2], vec![12f32; 20]).unwrap()]);
    }
    assert_eq!(variables.all().len(), 4);
}

/// The counter goes up after the updates, which read it before.
#[test]
fn a_training_step_is_counted_after_it() {
    let g = Graph::new();
    let mut variables = Variables::new(&g, 1);
    let v = variables.get("v", &[], Initial::Constant(0.0));
    let step = variables.step_counter();
    let loss = g.value(v.value) * 1.0;
    let rate = -g.value(step.value).cast(DType::F32);
    let training = Optimizer::GradientDescent.minimize(loss, &variables.trained(), rate).unwrap();
    let train = training.counted_by(&g, step);
    assert_eq!(variables.step_counter().value, step.value);
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    session.step().targets(&variables.init()).run().unwrap();
    for _ in 0..4 {
        session.step().target(train).run().unwrap();
    }
    let got = session.step().fetch(step.value).fetch(v.value).run().unwrap();
    assert_eq!(got, [Tensor::scalar(4i64), Tensor::scalar(6f32)]);
}

#[test]
fn rates_decay_as_those_of_keras() {
    let g = Graph::new();
    let step = g.placeholder("step", DType::I64, [] as [usize; 0]);
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    for (name, expected) in fixture().rates {
        let rate = match name.as_str() {
            "exponential" => exponential_decay(step, 0.1, 7.0, 0.5),
            "inverse time" => inverse_time_decay(step, 0.1, 7.0, 0.5),
            _ => polynomial_decay(step, (0.1, 0.01), 12.0, 2.0),
        };
        for (i, expected) in expected.into_iter().enumerate() {
            let got = session.step().feed(step, Tensor::scalar(i as i64)).fetch(rate).run().unwrap();
            let got = f64::from(got[0].item::<f32>().unwrap());
            assert!((got - expected).abs() < 1e-7, "{name}, step {i}: {got}, Keras has {expected}");
        }
    }
}

/// A share of the elements goes, the others are scaled so that the mean stays; without a session's seed it is the same
/// every time.
#[test]
fn dropout_keeps_the_mean() {
    let g = Graph::new();
    let x = g.constant(Tensor::from_vec([100, 100], vec![2f32; 10_000]).unwrap());
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let y = session.step().fetch(x.dropout(0.25, (1, 2))).run().unwrap();
    let y = numbers(&y[0]);
    let n_dropped = y.iter().filter(|v| **v == 0.0).count();
    assert!((2_300..2_700).contains(&n_dropped), "{n_dropped}");
    assert!(y.iter().all(|v| *v == 0.0 || (v - 2.0 / 0.75).abs() < 1e-6));
    let [train, evaluate] = [Phase::Training, Phase::Evaluation].map(|phase| dropout(x, 0.25, phase, (1, 2)));
    assert_eq!(evaluate.output(), x.output());
    assert_eq!(numbers(&session.step().fetch(train).run().unwrap()[0]), y);
    assert_eq!(dropout(x, 0.0, Phase::Training, (1, 2)).output(), x.output());
}

/// Sizes come from values, names from paths; the same path gives the same variables.
#[test]
fn variables_have_paths_and_sizes_of_their_own() {
    let g = Graph::new();
    let mut variables = Variables::new(&g, 1);
    let x = g.placeholder("x", DType::F32, [None, Some(3)]);
    let mut part = variables.at("encoder");
    let y = dense(x, &mut part.at("hidden"), 5, Initial::He);
    let again = dense(x, &mut part.at("hidden"), 5, Initial::He);
    let images = y.reshape([-1, 1, 1, 5]);
    let mut updates = Vec::new();
    let normal = batch_norm(images, &mut variables.at("norm"), Phase::Training, &mut updates);
    let share = accuracy(again, g.placeholder("labels", DType::I64, [None]));
    g.check().unwrap();
    let names: Vec<&str> = variables.all().iter().map(|v| v.name.as_str()).collect();
    let expected =
        ["encoder/hidden/weights", "encoder/hidden/biases", "norm/beta", "norm/moving_mean", "norm/moving_variance"];
    assert_eq!(names, expected);
    // Nodes are named after the path too, and where they are in such a scope already, after it once.
    let scope = g.scope("inner").scope("hidden");
    let inside = dense(x.with(&scope), &mut variables.at("hidden"), 5, Initial::He);
    let nodes = [y, again, normal, inside].map(|value| g.node(value.node()).unwrap().name.to_string());
    assert_eq!(
        nodes,
        ["encoder/hidden/BiasAdd", "encoder/hidden_1/BiasAdd", "norm/batch_norm/AddV2_1", "inner/hidden/BiasAdd"]
    );
    assert_eq!(variables.trained().len(), 5);
    assert_eq!((normal.shape().to_string(), share.shape().to_string()), ("[?,1,1,5]".to_owned(), "[]".to_owned()));
    assert_eq!(updates.len(), 2);
    let unknown = g.placeholder("unknown", DType::F32, [None, None]);
    dense(unknown, &mut variables.at("more"), 2, Initial::He);
    assert_eq!(
        g.check().unwrap_err().to_string(),
        "node unknown: its last dimension must be known, as a layer's variables have that size"
    );
}
