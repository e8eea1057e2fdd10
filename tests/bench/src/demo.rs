//! What tracing costs the demo: the same model trained in blocks of steps, tracing on and off in turn.

use engine::data::Batches;
use engine::models::MlpOptions;
use engine::training::mlp;
use engine::{Graph, Output, RunOptions, Session, SessionOptions, Tensor};

use crate::report::{BenchError, Report};
use crate::tracing_cost::Blocks;

const PAIRS: usize = 400;
const STEPS: usize = 40;
const BATCH: usize = 128;

struct Demo {
    session: Session,
    x: String,
    labels: String,
    loss: String,
    scalars: String,
    train_op: String,
    batches: Vec<(Tensor, Tensor)>,
    step: usize,
}

/// Runs the comparison.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let mut demo = Demo::new()?;
    let mut block = || demo.block();
    Blocks { name: "demo", pairs: PAIRS, steps: STEPS, run: &mut block }.compare(report)
}

impl Demo {
    fn new() -> Result<Demo, BenchError> {
        let graph = Graph::new();
        let model = mlp(&graph, &MlpOptions::default())?;
        let session = Session::new(&graph, SessionOptions::default())?;
        let node = |id| graph.node(id).map(|node| node.name.to_string());
        let output = |o: Output| node(o.node).map(|name| format!("{name}:{}", o.port));
        session.run(&[], &[], &[&node(model.init)?])?;
        let (x, labels, loss) = (output(model.x)?, output(model.labels)?, output(model.loss)?);
        let (scalars, train_op) = (output(model.scalars)?, node(model.train_op)?);
        Ok(Demo { session, x, labels, loss, scalars, train_op, batches: batches()?, step: 0 })
    }

    /// Trains a block of steps, with the demo's scalar summaries.
    fn block(&mut self) -> Result<(), BenchError> {
        for _ in 0..STEPS {
            self.step += 1;
            let (x, y) = &self.batches[self.step % self.batches.len()];
            let feeds = [(self.x.as_str(), x.clone()), (self.labels.as_str(), y.clone())];
            let fetches = [self.loss.as_str(), &self.scalars];
            let fetches = if self.step.is_multiple_of(10) { &fetches[..] } else { &[] };
            let options = RunOptions { label: "train", summary_step: Some(self.step as i64), ..RunOptions::default() };
            self.session.run_step(&options, &feeds, fetches, &[&self.train_op])?;
        }
        Ok(())
    }
}

/// An epoch of batches, made beforehand: what is measured are steps.
pub(crate) fn batches() -> Result<Vec<(Tensor, Tensor)>, BenchError> {
    let digits = engine::data::digits();
    let (images, labels) = (digits.train_x.slice::<f32>()?, digits.train_y.slice::<i64>()?);
    let n_pixels = images.len() / labels.len();
    let mut draw = Batches::new(labels.len(), BATCH, 1);
    let mut made = Vec::new();
    while draw.epoch() == 0 {
        let rows = draw.draw();
        let x = rows.iter().flat_map(|&row| &images[row * n_pixels..(row + 1) * n_pixels]).copied().collect();
        let y = rows.iter().map(|&row| labels[row]).collect();
        made.push((Tensor::from_vec([BATCH, n_pixels], x)?, Tensor::from_vec([BATCH], y)?));
    }
    Ok(made)
}
