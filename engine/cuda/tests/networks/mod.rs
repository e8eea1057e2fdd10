//! Networks whose training is compared between devices: for tests, and for the check of a GPU.

use std::sync::Arc;

use engine::compile::placement::PlacementOptions;
use engine::device::Device;
use engine::graph::{GraphError, Output, Padding, Value};
use engine::layers::{Initial, Phase, VariableScope, Variables};
use engine::models::{Convnet, Inception, Input, LanguageModel, MlpOptions, Network, SkipGram, Tower, Unrolling};
use engine::training::{TrainingGraph, TrainingOptions, build};
use engine::{DType, Graph, PartialShape, Session, SessionOptions, Tensor};

/// Blocks of a residual net (He et al. 2016): two convolutions of 3x3 with batch normalisation, and what came in added; then the mean
/// of all pixels and logits of ten classes.
pub struct Residual {
    pub edge: usize,
    pub channels: usize,
    pub n_blocks: usize,
}

impl Residual {
    fn conv<'g>(&self, x: Value<'g>, variables: &mut VariableScope<'_>) -> Value<'g> {
        let n = self.channels;
        let filters = variables.get("filters", &[3, 3, n, n], Initial::He);
        let scale = variables.get("scale", &[n], Initial::Constant(1.0));
        let offset = variables.get("offset", &[n], Initial::Constant(0.0));
        x.conv2d(filters.value, [1, 1], Padding::Same).batch_norm(scale.value, offset.value, 1e-3).y
    }
}

impl Network for Residual {
    fn name(&self) -> &'static str {
        "residual"
    }

    fn inputs(&self) -> Vec<Input> {
        let shape = PartialShape::from([None, Some(self.edge), Some(self.edge), Some(self.channels)]);
        vec![
            Input { name: "images", dtype: DType::F32, shape },
            Input { name: "labels", dtype: DType::I64, shape: PartialShape::from([None]) },
        ]
    }

    fn tower(&self, g: &Graph, variables: &mut Variables, inputs: &[Output], _: Phase) -> Result<Tower, GraphError> {
        let mut x = inputs[0];
        for i in 0..self.n_blocks {
            let name = format!("block{i}");
            let (g, mut variables) = (g.scope(&name), variables.at(&name));
            let y = self.conv(g.value(x), &mut variables.at("a")).relu();
            let y = self.conv(y, &mut variables.at("b"));
            x = (g.value(x) + y).relu().output();
        }
        let pooled = g.value(x).mean([1, 2]);
        let w = variables.get("logits/weights", &[self.channels, 10], Initial::Glorot);
        let loss = pooled.matmul(w.value).sparse_cross_entropy(inputs[1]).mean_all().try_output()?;
        Ok(Tower { loss, accuracy: None, images: Vec::new(), updates: Vec::new() })
    }
}

/// Networks by name, small, with the size of their batches.
pub fn all() -> Vec<(&'static str, Box<dyn Network>, usize)> {
    let lstm = |unrolling| LanguageModel { n_words: 30, units: 12, layers: 2, time: 3, batch: 4, unrolling };
    vec![
        ("mlp", Box::new(MlpOptions { hidden: vec![70, 50], ..MlpOptions::default() }), 12),
        ("residual", Box::new(Residual { edge: 6, channels: 8, n_blocks: 2 }), 5),
        ("convnet", Box::new(Convnet { edge: 12, filters: [4, 6], hidden: 20, dropout: 0.3, ..Convnet::default() }), 8),
        ("embeddings", Box::new(SkipGram { n_words: 40, size: 8, negatives: 5 }), 16),
        ("inception", Box::new(Inception { divisor: 64, ..Inception::default() }), 6),
        ("lstm, unrolled", Box::new(lstm(Unrolling::Unrolled)), 4),
        ("lstm, a loop", Box::new(lstm(Unrolling::While)), 4),
    ]
}

/// A network with its training step on these devices.
pub fn trained(network: &dyn Network, devices: &[&str]) -> (Graph, TrainingGraph) {
    let g = Graph::new();
    let devices = devices.iter().map(|name| (*name).to_owned()).collect();
    let training = build(&g, network, &TrainingOptions { devices, ..TrainingOptions::default() }).unwrap();
    (g, training)
}

/// A session on the CPU and a GPU, where what a GPU cannot do goes to the CPU.
pub fn options(gpu: Arc<Device>) -> SessionOptions {
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    let devices = vec![Arc::new(Device::cpu(0, usize::MAX)), gpu];
    SessionOptions { devices, placement, ..SessionOptions::default() }
}

/// An output's name.
pub fn name(g: &Graph, output: Output) -> String {
    format!("{}:{}", g.node(output.node).unwrap().name, output.port)
}

/// Batch `n` of a network's inputs.
pub fn batch(network: &dyn Network, size: usize, n: usize) -> Vec<Tensor> {
    let input = |(which, input): (usize, Input)| {
        let dims: Vec<usize> = input.shape.dims().unwrap().iter().map(|d| d.unwrap_or(size)).collect();
        let count: usize = dims.iter().product();
        let number = |i: usize| (i * 7 + n * 13 + which * 5 + i * i % 11) % 10;
        match input.dtype {
            DType::F32 => {
                Tensor::from_vec(dims.as_slice(), (0..count).map(|i| number(i) as f32 / 10.0).collect::<Vec<_>>())
            }
            DType::I64 => Tensor::from_vec(dims.as_slice(), (0..count).map(|i| number(i) as i64).collect::<Vec<_>>()),
            _ => Tensor::from_vec(dims.as_slice(), (0..count).map(|i| number(i) as i32).collect::<Vec<_>>()),
        }
        .unwrap()
    };
    network.inputs().into_iter().enumerate().map(input).collect()
}

/// Ops of nodes that ran on the CPU though they were asked to be on the GPU.
fn left_behind(g: &Graph, session: &Session) -> Vec<String> {
    let asks = |name: &str| g.nodes().find(name).is_some_and(|node| node.device.contains("GPU"));
    let model = session.cost_model();
    let left = model.records().filter(|node| node.device == "CPU" && asks(&node.name)).map(|node| node.op.clone());
    let mut ops: Vec<String> = left.collect();
    ops.sort();
    ops.dedup();
    ops
}

/// The losses of some steps on a session's devices, and what stayed on the CPU.
pub fn losses(
    network: &dyn Network,
    size: usize,
    n_steps: usize,
    devices: &[&str],
    options: SessionOptions,
) -> (Vec<f32>, Vec<String>) {
    let (g, t) = trained(network, devices);
    let session = Session::new(&g, options).unwrap();
    session.run(&[], &[], &[&g.node(t.init).unwrap().name]).unwrap();
    let feeds: Vec<String> = t.feeds[0].iter().map(|feed| name(&g, *feed)).collect();
    let (loss, target) = (name(&g, t.losses[0]), g.node(t.train_ops[0]).unwrap().name.to_string());
    let step = |n: usize| {
        let values: Vec<(&str, Tensor)> = feeds.iter().map(String::as_str).zip(batch(network, size, n)).collect();
        session.run(&values, &[&loss], &[&target]).unwrap()[0].item::<f32>().unwrap()
    };
    let losses = (0..n_steps).map(step).collect();
    (losses, left_behind(&g, &session))
}

/// How many steps are worth comparing. The inception net, normalised by batches of six, is not stable: on the CPU too its second
/// loss moves by a sixth when its inputs move by two millionths.
pub fn n_steps(name: &str, most: usize) -> usize {
    if name == "inception" { 1 } else { most }
}

/// Where losses are further apart than rounding explains.
pub fn differs(name: &str, expected: &[f32], got: &[f32]) -> Option<String> {
    let tolerance = if name == "inception" { 1e-3 } else { 2e-4 };
    let is_near = |(e, g): (&f32, &f32)| (e - g).abs() <= tolerance * e.abs().max(1.0);
    let all = expected.len() == got.len() && expected.iter().zip(got).all(is_near);
    (!all).then(|| format!("expected losses {expected:?}, got {got:?}"))
}
