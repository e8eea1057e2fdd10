//! Gradient accumulation: four batches of 32 train as one of 128 does, in a quarter of the memory.
//!
//! ```text
//! cargo run --release -p engine --example gradient_accumulation
//! ```
//!
//! Each micro-step adds its gradients to accumulators; after four of them a step applies their mean and clears them. A
//! model that is fed the same 128 examples at once takes the same path, which the program checks as it goes.

#![allow(clippy::print_stdout, reason = "a program whose output is its result")]

use engine::data::{Batches, digits};
use engine::gradients::gradients;
use engine::graph::{Graph, NodeId, Output};
use engine::layers::{Phase, Variables};
use engine::models::{MlpOptions, Network};
use engine::optimizer::{Optimizer, Slots};
use engine::schedule::Accumulation;
use engine::{DType, Session, SessionOptions, Tensor};

type Failure = Box<dyn std::error::Error>;

const MICRO: usize = 32;
const N_MICRO: usize = 4;

struct Model {
    x: Output,
    labels: Output,
    loss: Output,
    init: Vec<NodeId>,
    /// Adds a batch's gradients to the accumulators.
    accumulate: NodeId,
    /// Applies the mean of what was accumulated, and clears it.
    apply: NodeId,
    /// Trains on one batch at once.
    train: NodeId,
}

fn build(g: &Graph) -> Result<Model, Failure> {
    let net = MlpOptions { hidden: vec![64], ..MlpOptions::default() };
    let x = g.placeholder("x", DType::F32, [None, Some(64)]).output();
    let labels = g.placeholder("labels", DType::I64, [None]).output();
    let mut variables = Variables::new(g, 1);
    let tower = net.tower(g, &mut variables, &[x, labels], Phase::Training)?;
    let trained = variables.trained();
    let xs: Vec<Output> = trained.iter().map(|var| var.value).collect();
    let grads = gradients(g, &[tower.loss], &xs, &[])?;
    let rate = g.named_constant("rate", 0.1f32);
    let sums = Accumulation::new(g, &trained, &grads, N_MICRO)?;
    let mut slots = Slots::default();
    let optimizer = Optimizer::Momentum { momentum: 0.9 };
    let applied = optimizer.apply(g, &trained, &sums.means, rate, &mut slots)?;
    let at_once = optimizer.apply(g, &trained, &grads, rate, &mut slots)?;
    let init = [variables.init(), sums.init.clone(), applied.init, at_once.init].concat();
    let (accumulate, apply) = (sums.add, sums.reset_after(g, applied.op)?);
    g.check()?;
    Ok(Model { x, labels, loss: tower.loss, init, accumulate, apply, train: at_once.op })
}

/// The images and labels of these rows.
fn batch(rows: &[usize]) -> Result<[Tensor; 2], Failure> {
    let data = digits();
    let (images, labels) = (data.train_x.slice::<f32>()?, data.train_y.slice::<i64>()?);
    let x = rows.iter().flat_map(|r| images[r * 64..(r + 1) * 64].iter().copied()).collect();
    let y: Vec<i64> = rows.iter().map(|r| labels[*r]).collect();
    Ok([Tensor::from_vec([rows.len(), 64], x)?, Tensor::vector(&y)])
}

fn main() -> Result<(), Failure> {
    let g = Graph::new();
    let model = build(&g)?;
    // Two sessions with variables of their own.
    let (little, whole) = (Session::new(&g, SessionOptions::default())?, Session::new(&g, SessionOptions::default())?);
    for session in [&little, &whole] {
        session.step().targets(&model.init).run()?;
    }
    let n_rows = digits().train_y.len();
    let mut batches = Batches::new(n_rows, MICRO * N_MICRO, 3);
    println!("step   loss of 4 x {MICRO}   loss of 1 x {}", MICRO * N_MICRO);
    for step in 1..=50 {
        let rows = batches.draw().to_vec();
        let mut mean = 0.0;
        for part in rows.chunks(MICRO) {
            let [px, py] = batch(part)?;
            let step = little.step().feed(model.x, px).feed(model.labels, py);
            let fetched = step.fetch(model.loss).target(model.accumulate).run()?;
            mean += fetched[0].item::<f32>()? / N_MICRO as f32;
        }
        little.step().target(model.apply).run()?;
        let [wx, wy] = batch(&rows)?;
        let step_at_once = whole.step().feed(model.x, wx).feed(model.labels, wy);
        let at_once = step_at_once.fetch(model.loss).target(model.train).run()?[0].item::<f32>()?;
        if step % 10 == 0 {
            println!("{step:4} {mean:16.5} {at_once:15.5}");
        }
        if (mean - at_once).abs() > 1e-3 * at_once.abs().max(0.1) {
            return Err(format!("step {step}: the paths part, {mean} and {at_once}").into());
        }
    }
    Ok(())
}
