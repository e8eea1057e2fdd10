//! What tracing costs the demo: the same model trained in blocks of steps, tracing on and off in turn.
//!
//! CPU time of the whole process is compared, the collector's thread included. A block ends only after a pause in
//! which the collector drains what the block left in the rings, so that its work is charged to the block that caused
//! it; the pause itself costs no CPU. The order within a pair changes from pair to pair.

use std::time::Duration;

use engine::data::Batches;
use engine::models::{MlpOptions, mlp};
use engine::{Graph, Output, RunOptions, Session, SessionOptions, Tensor};
use events::clock;
use profiler::{Collector, CollectorOptions};

use crate::BenchError;
use crate::report::Report;

const PAIRS: usize = 400;
const STEPS: usize = 40;
/// Twice the collector's interval and a little.
const DRAIN: Duration = Duration::from_millis(45);
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

/// What one block took.
struct Block {
    cpu_ns: f64,
    wall_ns: f64,
}

/// Runs the comparison.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let folder = tempfile::tempdir()?;
    let mut demo = Demo::new()?;
    let recording = events::start(folder.path(), events::Options::default())?;
    let collector = Collector::start(folder.path(), CollectorOptions::default())?;
    for on in [false, true] {
        recording.switch(on);
        demo.block()?;
    }
    let before = collector.progress().slices;
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        for traced in [pair % 2 == 0, pair % 2 == 1] {
            recording.switch(traced);
            let block = demo.block()?;
            if traced { &mut on } else { &mut off }.push(block);
        }
    }
    let slices = collector.progress().slices - before;
    drop(recording);
    let collected = collector.stop();
    tell(report, &on, &off, slices);
    report.add("dropped events", collected.dropped as f64, "events");
    report.add("bytes per record on disk", collected.bytes as f64 / collected.records.max(1) as f64, "bytes");
    Ok(())
}

fn tell(report: &mut Report, on: &[Block], off: &[Block], slices: u64) {
    let percent = sorted(on.iter().zip(off).map(|(on, off)| (on.cpu_ns / off.cpu_ns - 1.0) * 100.0));
    // The binomial 95 % interval of the median: order statistics n/2 -+ 1.96 sqrt(n)/2.
    let half = 0.98 * (percent.len() as f64).sqrt();
    let at = |i: f64| percent[(i.max(0.0) as usize).min(percent.len() - 1)];
    let middle = percent.len() as f64 / 2.0;
    report.add("tracing, CPU time, median of pairs", at(middle), "%");
    report.add("tracing, CPU time, 95 % interval from", at(middle - half), "%");
    report.add("tracing, CPU time, 95 % interval to", at(middle + half), "%");
    report.add("pairs", percent.len() as f64, "pairs");
    let rate = |blocks: &[Block]| {
        let wall = sorted(blocks.iter().map(|block| block.wall_ns));
        STEPS as f64 / (wall[wall.len() / 2] / 1e9)
    };
    report.add("steps/s, traced", rate(on), "steps/s");
    report.add("steps/s, not traced", rate(off), "steps/s");
    let per_slice = sorted(on.iter().zip(off).map(|(on, off)| on.cpu_ns - off.cpu_ns));
    let slices_per_block = slices as f64 / PAIRS as f64;
    report.add("slices per step", slices_per_block / STEPS as f64, "slices");
    report.add("CPU per slice, emitted and collected", per_slice[per_slice.len() / 2] / slices_per_block, "ns");
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
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
    fn block(&mut self) -> Result<Block, BenchError> {
        let (cpu, wall) = (clock::cpu_now(), clock::mono_now());
        for _ in 0..STEPS {
            self.step += 1;
            let (x, y) = &self.batches[self.step % self.batches.len()];
            let feeds = [(self.x.as_str(), x.clone()), (self.labels.as_str(), y.clone())];
            let fetches = [self.loss.as_str(), &self.scalars];
            let fetches = if self.step.is_multiple_of(10) { &fetches[..] } else { &[] };
            let options = RunOptions { label: "train", summary_step: Some(self.step as i64), ..RunOptions::default() };
            self.session.run_step(&options, &feeds, fetches, &[&self.train_op])?;
        }
        let wall_ns = (clock::mono_now() - wall) as f64;
        std::thread::sleep(DRAIN);
        Ok(Block { cpu_ns: (clock::cpu_now() - cpu) as f64, wall_ns })
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
