//! The training loop: batches in, steps traced, summaries out, accuracy on the test images as it goes.

use std::path::PathBuf;

use anyhow::Context;
use engine::data::{Batches, Digits};
use engine::graph::GraphError;
use engine::models::{Mlp, MlpOptions, mlp};
use engine::{Graph, Output, RunOptions, Session, SessionOptions, Tensor};
use events::clock;
use summaries::{EventWriter, WriterOptions};

use super::progress::Shared;
use super::tracing::{self, Tracing};
use crate::args::Training;
use crate::outcome::Failure;
use crate::run_folder::RunFolder;

/// Images per step.
const BATCH: usize = 128;
/// Steps between scalar summaries.
const SCALARS_EVERY: u64 = 10;
/// Steps between histogram summaries, and between looks at the test images.
const HISTOGRAMS_EVERY: u64 = 100;

/// A run that is ready to train: folder made, graph built.
pub struct Trainer {
    folder: RunFolder,
    tracing: Option<Tracing>,
    ns_per_slice: Option<f64>,
    session: Session,
    model: Names,
    digits: Digits,
    writer: EventWriter,
    training: Training,
}

/// What a finished run knows of itself; `report` adds what the trace says.
pub struct Trained {
    /// The run's folder.
    pub logdir: PathBuf,
    /// The trace's folder, unless tracing was off.
    pub trace: Option<PathBuf>,
    /// Steps done, which is fewer than asked for when the run was stopped.
    pub steps: u64,
    /// Whether somebody stopped it.
    pub stopped: bool,
    /// Loss over the last batch.
    pub final_loss: f32,
    /// Share of the test images that are classified rightly, 0 to 1.
    pub test_accuracy: f32,
    /// Wall time of the training loop, nanoseconds.
    pub wall_ns: i64,
    /// CPU time of the whole process meanwhile, nanoseconds.
    pub cpu_ns: i64,
    /// What the collector says of the trace.
    pub collected: Option<profiler::CollectorReport>,
    /// What one traced slice costs here, nanoseconds, measured in this process.
    pub ns_per_slice: Option<f64>,
    /// What was lost on the way to disk, in words.
    pub warnings: Vec<String>,
}

/// The model's nodes by name, as sessions want them.
struct Names {
    x: String,
    labels: String,
    loss: String,
    accuracy: String,
    scalars: String,
    histograms: String,
    train_op: String,
    init: String,
}

impl Names {
    fn of(graph: &Graph, model: &Mlp) -> Result<Names, GraphError> {
        let node = |id| graph.node(id).map(|node| node.name.to_string());
        let output = |o: Output| node(o.node).map(|name| format!("{name}:{}", o.port));
        Ok(Names {
            x: output(model.x)?,
            labels: output(model.labels)?,
            loss: output(model.loss)?,
            accuracy: output(model.accuracy)?,
            scalars: output(model.scalars)?,
            histograms: output(model.histograms)?,
            train_op: node(model.train_op)?,
            init: node(model.init)?,
        })
    }
}

impl Trainer {
    /// Makes the run's folder, starts its trace and builds the graph.
    ///
    /// # Errors
    /// `Failure::Use` when the folder is somebody's, `Failure::Work` for everything else.
    pub fn new(name: &str, digits: Digits, training: &Training) -> Result<Trainer, Failure> {
        let folder = RunFolder::create(name, training.logdir.as_deref(), training.trace.as_deref())?;
        let ns_per_slice = folder.trace().and_then(|_| tracing::ns_per_slice());
        let tracing = folder.trace().map(Tracing::start).transpose()?;
        let graph = Graph::new();
        let options = MlpOptions { seed: training.seed as i64, ..MlpOptions::default() };
        let model = mlp(&graph, &options).context("building the model")?;
        let model = Names::of(&graph, &model).context("naming the model's nodes")?;
        let graph_def = graph.to_def();
        folder.write_graph(&graph_def)?;
        let writer = EventWriter::create(folder.path(), WriterOptions::default()).context("writing summaries")?;
        writer.add_graph(&graph_def);
        let threads = training.threads.map(usize::from);
        let session = Session::new(&graph, SessionOptions { threads, ..SessionOptions::default() });
        let session = session.context("starting a session")?;
        let training = training.clone();
        Ok(Trainer { folder, tracing, ns_per_slice, session, model, digits, writer, training })
    }

    /// The run's folder.
    pub fn logdir(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Initialises the variables and trains to the last step, or until `shared` says stop.
    ///
    /// # Errors
    /// When a step fails.
    pub fn train(self, shared: &Shared) -> Result<Trained, Failure> {
        let init = RunOptions { label: "init", ..RunOptions::default() };
        let init = self.session.run_step(&init, &[], &[], &[&self.model.init]);
        init.context("initialising the variables")?;
        let (wall, cpu) = (clock::mono_now(), clock::cpu_now());
        let (steps, final_loss) = self.steps(shared)?;
        let (wall_ns, cpu_ns) = (clock::mono_now() - wall, clock::cpu_now() - cpu);
        let test_accuracy = self.test(steps, shared)?;
        let mut warnings = Vec::new();
        if let Err(error) = self.writer.close() {
            warnings.push(format!("summaries: {error}"));
        }
        let trace = self.tracing.as_ref().map(|tracing| tracing.folder().to_path_buf());
        let collected = self.tracing.map(Tracing::end);
        if let Some(report) = &collected {
            warnings.extend(losses(report));
        }
        Ok(Trained {
            logdir: self.folder.path().to_path_buf(),
            trace,
            steps,
            stopped: steps < self.training.steps,
            final_loss,
            test_accuracy,
            wall_ns,
            cpu_ns,
            collected,
            ns_per_slice: self.ns_per_slice,
            warnings,
        })
    }

    /// The loop; gives the steps done and the last batch's loss.
    fn steps(&self, shared: &Shared) -> anyhow::Result<(u64, f32)> {
        let mut batches = Batches::new(self.digits.train_y.len(), BATCH, self.training.seed);
        let last = self.training.steps;
        let mut loss = f32::NAN;
        for step in 1..=last {
            let stop = shared.stopped();
            let (x, y) = self.batch(batches.draw());
            let summarise = step == 1 || step == last || stop || step % SCALARS_EVERY == 0;
            if let Some(value) = self.step(step, x, y, summarise).with_context(|| format!("step {step}"))? {
                loss = value;
                shared.set_loss(loss);
            }
            shared.step_done(step);
            if stop {
                return Ok((step, loss));
            }
            // The last step is tested once, when all are done.
            if step.is_multiple_of(HISTOGRAMS_EVERY) && step < last {
                self.test(step, shared)?;
            }
        }
        Ok((last, loss))
    }

    /// One step; gives the loss where it is summarised.
    fn step(&self, step: u64, x: Tensor, y: Tensor, summarise: bool) -> anyhow::Result<Option<f32>> {
        let model = &self.model;
        let options = RunOptions { label: "train", summary_step: Some(step as i64), ..RunOptions::default() };
        let feeds = [(model.x.as_str(), x), (model.labels.as_str(), y)];
        let mut fetches: Vec<&str> = Vec::new();
        if summarise {
            fetches.extend([model.loss.as_str(), &model.scalars]);
        }
        if step == 1 || step.is_multiple_of(HISTOGRAMS_EVERY) {
            fetches.push(&model.histograms);
        }
        let fetched = self.session.run_step(&options, &feeds, &fetches, &[&model.train_op])?;
        let mut loss = None;
        for (name, value) in fetches.iter().zip(&fetched) {
            if *name == model.loss {
                loss = Some(value.item::<f32>()?);
            } else {
                self.write(value, step)?;
            }
        }
        Ok(loss)
    }

    /// Writes a serialised `Summary`.
    fn write(&self, summary: &Tensor, step: u64) -> anyhow::Result<()> {
        let wall = clock::wall_now();
        for bytes in summary.strings()? {
            self.writer.add_summary_bytes(bytes, step as i64, wall);
        }
        Ok(())
    }

    /// Accuracy and loss on the test images, as the scalars `test/accuracy` and `test/loss`.
    fn test(&self, step: u64, shared: &Shared) -> anyhow::Result<f32> {
        let model = &self.model;
        let options = RunOptions { label: "test", summary_step: Some(step as i64), ..RunOptions::default() };
        let feeds =
            [(model.x.as_str(), self.digits.test_x.clone()), (model.labels.as_str(), self.digits.test_y.clone())];
        let fetched = self.session.run_step(&options, &feeds, &[&model.loss, &model.accuracy], &[]);
        let fetched = fetched.context("testing")?;
        let (loss, accuracy) = (fetched[0].item::<f32>()?, fetched[1].item::<f32>()?);
        self.writer.add_scalar("test/loss", loss, step as i64);
        self.writer.add_scalar("test/accuracy", accuracy, step as i64);
        shared.set_accuracy(accuracy);
        Ok(accuracy)
    }

    /// The images and labels of a batch.
    fn batch(&self, rows: &[usize]) -> (Tensor, Tensor) {
        let fits = "the data set's tensors have these types";
        let images = self.digits.train_x.slice::<f32>().expect(fits);
        let labels = self.digits.train_y.slice::<i64>().expect(fits);
        let n_pixels = images.len() / labels.len();
        let x = rows.iter().flat_map(|&row| &images[row * n_pixels..(row + 1) * n_pixels]).copied().collect();
        let y = rows.iter().map(|&row| labels[row]).collect();
        let fits = "as many values as the shape says";
        (Tensor::from_vec([rows.len(), n_pixels], x).expect(fits), Tensor::from_vec([rows.len()], y).expect(fits))
    }
}

/// What the collector could not keep.
fn losses(report: &profiler::CollectorReport) -> Vec<String> {
    let mut losses = Vec::new();
    if report.dropped > 0 {
        losses.push(format!("{} events were dropped: a thread's ring was full", report.dropped));
    }
    if report.write_errors > 0 {
        losses.push(format!("the trace could not be written {} times", report.write_errors));
    }
    if report.limit_reached {
        losses.push("the trace reached its size limit and ended before the run".to_owned());
    }
    losses
}
