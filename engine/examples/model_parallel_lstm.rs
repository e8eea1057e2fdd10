//! Model parallelism: an LSTM of three layers, each on a device of its own (white paper, figure 8).
//!
//! ```text
//! cargo run --release -p engine --example model_parallel_lstm [TRACE_FOLDER]
//! ```
//!
//! While the third device works on the first words, the second works on the next ones, and the first on those after:
//! with a folder, the trace shows the diagonal, with an arrow for each state that crosses devices
//! (`stepscope view TRACE_FOLDER`). The result is that of one device, which the program checks.

#![allow(clippy::print_stdout, reason = "a program whose output is its result")]

use engine::graph::{Graph, Output};
use engine::{DType, RunOptions, Session, SessionOptions, Tensor};

type Failure = Box<dyn std::error::Error>;

const LAYERS: usize = 3;
const TIME: usize = 16;
const BATCH: usize = 32;
const STEPS: usize = 10;
const UNITS: usize = 128;

fn device(i: usize) -> String {
    format!("/job:localhost/device:cpu:{i}")
}

/// Numbers that look random and are the same everywhere.
fn numbers(shape: &[usize], scale: f32) -> Result<Tensor, Failure> {
    let n: usize = shape.iter().product();
    let hash = |i: usize| ((i as u32).wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 23) as f32 - 1.0;
    Ok(Tensor::from_vec(engine::Shape::new(shape), (0..n).map(|i| scale * hash(i)).collect())?)
}

fn cell(g: &Graph, x: Output, (c, h): (Output, Output), w: Output) -> (Output, Output) {
    let one = g.constant(Tensor::scalar(1i32));
    let gates = g.add_node("ConcatV2").inputs(&[x, h]).input(one).value().matmul(w);
    let split = g.add_node("Split").input(one).input(gates).attr("num_split", 4i64).value();
    let c = split.port(2).sigmoid() * c + split.port(0).sigmoid() * split.port(1).tanh();
    let h = split.port(3).sigmoid() * c.tanh();
    (c.output(), h.output())
}

/// The layers on `n_devices` devices; the sum of all outputs.
fn build(n_devices: usize) -> Result<(Graph, String), Failure> {
    let g = Graph::new();
    // Fed: of constants all would be computed before the first step.
    let x = g.placeholder("words", DType::F32, [Some(TIME), Some(BATCH), Some(UNITS)]);
    let zero = g.constant(numbers(&[BATCH, UNITS], 0.0)?).output();
    let steps = g.add_node("Unpack").input(x).attr("num", TIME as i64).value();
    let on = |layer: usize| g.with_device(&device(layer % n_devices)).scope(&format!("layer{layer}"));
    let layers: Vec<Graph> = (0..LAYERS).map(on).collect();
    let initial = numbers(&[2 * UNITS, 4 * UNITS], 0.05)?;
    let weights: Vec<Output> = layers.iter().map(|g| g.constant(initial.clone()).output()).collect();
    let mut states = [(zero, zero); LAYERS];
    let mut outputs = Vec::new();
    for t in 0..TIME as u32 {
        let mut h = steps.port(t).output();
        for layer in 0..LAYERS {
            states[layer] = cell(&layers[layer], h, states[layer], weights[layer]);
            h = states[layer].1;
        }
        outputs.push(h);
    }
    let sum = g.add_node("Pack").inputs(&outputs).value().square().sum_all();
    g.check()?;
    Ok((g.clone(), g.node(sum.node())?.name.to_string()))
}

fn run(n_devices: usize, n_steps: usize) -> Result<(f32, f64), Failure> {
    let (g, sum) = build(n_devices)?;
    let session = Session::new(&g, SessionOptions::devices(n_devices))?;
    let step = session.prepare(&["words"], &[&sum], &[])?;
    let words = [numbers(&[TIME, BATCH, UNITS], 1.0)?];
    let options = RunOptions { label: "figure 8", ..RunOptions::default() };
    let mut value = step.run_step(&options, &words)?[0].item::<f32>()?;
    let begin = events::clock::mono_now();
    for _ in 0..n_steps {
        value = step.run_step(&options, &words)?[0].item::<f32>()?;
    }
    Ok((value, (events::clock::mono_now() - begin) as f64 / n_steps as f64 / 1e6))
}

fn main() -> Result<(), Failure> {
    let folder = std::env::args_os().nth(1);
    let recording = folder.as_ref().map(|f| events::start(f.as_ref(), events::Options::default())).transpose()?;
    let (one, one_ms) = run(1, STEPS)?;
    let (three, three_ms) = run(LAYERS, STEPS)?;
    drop(recording);
    println!("one device:    {one:.6}  {one_ms:.2} ms per step");
    println!("three devices: {three:.6}  {three_ms:.2} ms per step");
    if (one - three).abs() > 1e-4 * one.abs() {
        return Err("the results differ".into());
    }
    Ok(())
}
