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
use engine::graph::{Graph, NodeId, Output, Var};
use engine::layers::{Phase, Variables};
use engine::models::{MlpOptions, Network};
use engine::optimizer::{Optimizer, Slots};
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
    let mut init = variables.init();
    let (mut sums, mut adds): (Vec<Var>, Vec<NodeId>) = (Vec::new(), Vec::new());
    for (i, (var, grad)) in trained.iter().zip(&grads).enumerate() {
        let shape = g.shape(var.value)?.known().ok_or("a variable's shape is not known")?;
        let n = shape.n_elements();
        let zeros = Tensor::from_vec(shape, vec![0f32; n])?;
        let sum = g.variable(&format!("accumulator{i}"), zeros);
        init.push(sum.init);
        adds.push(g.add_node("AssignAddVariableOp").input(sum.handle).input(*grad).value().node());
        sums.push(sum);
    }
    let share = g.constant(1.0 / N_MICRO as f32);
    let means: Vec<Output> = sums.iter().map(|sum| (g.value(sum.value) * share).output()).collect();
    let mut slots = Slots::default();
    let optimizer = Optimizer::Momentum { momentum: 0.9 };
    let applied = optimizer.apply(g, &trained, &means, rate, &mut slots)?;
    let after = g.with_control(&[applied.op]);
    let clear = |sum: &Var| {
        let zero = after.value(sum.value) - sum.value;
        after.add_node("AssignVariableOp").input(sum.handle).input(zero).value().node()
    };
    let clears: Vec<NodeId> = sums.iter().map(clear).collect();
    let at_once = optimizer.apply(g, &trained, &grads, rate, &mut slots)?;
    init.extend(applied.init.iter().chain(&at_once.init));
    let (accumulate, apply) = (g.group("accumulate", &adds), g.group("apply", &clears));
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
    let name = |id: NodeId| g.node(id).map(|node| node.name.to_string());
    let (x, labels, loss) = (name(model.x.node)?, name(model.labels.node)?, name(model.loss.node)?);
    let (accumulate, apply, train) = (name(model.accumulate)?, name(model.apply)?, name(model.train)?);
    let init = name(g.group("init", &model.init))?;
    // Two sessions with variables of their own.
    let (little, whole) = (Session::new(&g, SessionOptions::default())?, Session::new(&g, SessionOptions::default())?);
    for session in [&little, &whole] {
        session.run(&[], &[], &[&init])?;
    }
    let n_rows = digits().train_y.len();
    let mut batches = Batches::new(n_rows, MICRO * N_MICRO, 3);
    println!("step   loss of 4 x {MICRO}   loss of 1 x {}", MICRO * N_MICRO);
    for step in 1..=50 {
        let rows = batches.draw().to_vec();
        let mut mean = 0.0;
        for part in rows.chunks(MICRO) {
            let [px, py] = batch(part)?;
            let fetched = little.run(&[(&x, px), (&labels, py)], &[&loss], &[&accumulate])?;
            mean += fetched[0].item::<f32>()? / N_MICRO as f32;
        }
        little.run(&[], &[], &[&apply])?;
        let [wx, wy] = batch(&rows)?;
        let at_once = whole.run(&[(&x, wx), (&labels, wy)], &[&loss], &[&train])?[0].item::<f32>()?;
        if step % 10 == 0 {
            println!("{step:4} {mean:16.5} {at_once:15.5}");
        }
        if (mean - at_once).abs() > 1e-3 * at_once.abs().max(0.1) {
            return Err(format!("step {step}: the paths part, {mean} and {at_once}").into());
        }
    }
    Ok(())
}
