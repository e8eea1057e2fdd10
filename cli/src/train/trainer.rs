//! A training run: folder, trace, graph and session made; trained, tested and reported by the files beside this one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use engine::checkpoint::Saver;
use engine::graph::GraphError;
use engine::tasks::{Judge, NextBatch, Quality, Task};
use engine::training::{Enqueue, InputMode, Parallelism, TrainingGraph, build};
use engine::{Graph, Output, RunOptions, Session, SessionOptions, Tensor};
use events::clock;
use summaries::{SummaryWriter, WriterOptions};

use super::checkpoints;
use super::cluster::{Launched, Place, Runner};
use super::feeder::Feeder;
use super::progress::Shared;
use super::tracing::{self, Tracing};
use crate::args::{Numerics, Training};
use crate::graph::empty_folder;
use crate::outcome::Failure;
use crate::run_folder::RunFolder;

/// Batches that a queue holds.
pub(super) const QUEUED: usize = 8;

/// A run that is ready to train: folder made, graph built.
pub struct Trainer {
    pub(super) folder: RunFolder,
    pub(super) tracing: Option<Tracing>,
    pub(super) ns_per_slice: Option<f64>,
    pub(super) runner: Runner,
    pub(super) names: Names,
    pub(super) next_batch: Mutex<NextBatch>,
    test: Vec<Vec<Tensor>>,
    judge: Judge,
    batch_size: usize,
    pub(super) writer: SummaryWriter,
    pub(super) training: Training,
    /// Steps to train.
    pub(super) steps: u64,
    pub(super) saver: Option<Mutex<Saver>>,
    /// The step after which the checkpoint was saved that the run continued from.
    pub(super) restored: Option<u64>,
}

/// What a finished run knows of itself; `report` adds what the trace says.
pub struct Trained {
    /// The run's folder.
    pub logdir: PathBuf,
    /// The trace's folder, unless tracing was off.
    pub trace: Option<PathBuf>,
    /// Steps done, which is fewer than asked for when the run was stopped.
    pub steps: u64,
    /// Examples that these steps saw.
    pub examples: u64,
    /// Whether somebody stopped it.
    pub stopped: bool,
    /// Loss over the last batch.
    pub final_loss: f32,
    /// What the test batches say.
    pub tested: Tested,
    /// Wall time of the training loop, nanoseconds.
    pub wall_ns: i64,
    /// CPU time of the whole process meanwhile, nanoseconds.
    pub cpu_ns: i64,
    /// What the collector says of the trace.
    pub collected: Option<profiler::CollectorReport>,
    /// What one traced slice costs here, nanoseconds, measured in this process.
    pub ns_per_slice: Option<f64>,
    /// How often the run was continued from a checkpoint.
    pub restarts: u64,
    /// What was lost on the way to disk, in words.
    pub warnings: Vec<String>,
}

/// What the test batches say.
#[derive(Debug, Clone)]
pub struct Tested {
    /// The mean loss.
    pub loss: f64,
    /// The share that is classified rightly, where the model classifies.
    pub accuracy: Option<f64>,
    /// The quality that the task is judged by.
    pub quality: Quality,
}

/// The graph's nodes by name, as sessions want them.
pub(super) struct Names {
    pub init: String,
    pub feeds: Vec<Vec<String>>,
    pub enqueue: Option<EnqueueNames>,
    pub train_ops: Vec<String>,
    pub losses: Vec<String>,
    pub scalars: String,
    pub histograms: String,
    pub images: Option<String>,
    pub test_feeds: Vec<String>,
    pub test_loss: String,
    pub test_accuracy: Option<String>,
    pub test_updates: Vec<String>,
    /// The variable that the judgement needs.
    pub judged: Option<String>,
}

/// The queue's nodes.
#[derive(Clone)]
pub(super) struct EnqueueNames {
    pub feeds: Vec<String>,
    pub op: String,
    pub close: String,
    pub size: String,
}

impl EnqueueNames {
    pub fn of(graph: &Graph, enqueue: &Enqueue) -> Result<EnqueueNames, GraphError> {
        Ok(EnqueueNames {
            feeds: enqueue.feeds.iter().map(|feed| output_name(graph, *feed)).collect::<Result<_, _>>()?,
            op: graph.node(enqueue.op)?.name.to_string(),
            close: graph.node(enqueue.close)?.name.to_string(),
            size: output_name(graph, enqueue.size)?,
        })
    }
}

fn output_name(graph: &Graph, output: Output) -> Result<String, GraphError> {
    Ok(format!("{}:{}", graph.node(output.node)?.name, output.port))
}

impl Names {
    fn of(graph: &Graph, built: &TrainingGraph, wanted: Option<&str>) -> Result<Names, GraphError> {
        let node = |id| graph.node(id).map(|node| node.name.to_string());
        let output = |o: &Output| output_name(graph, *o);
        let outputs = |list: &[Output]| list.iter().map(output).collect::<Result<Vec<_>, _>>();
        let enqueue = built.enqueues.first().map(|enqueue| EnqueueNames::of(graph, enqueue)).transpose()?;
        let judged = built.variables.iter().find(|(name, _)| Some(name.as_str()) == wanted);
        Ok(Names {
            init: node(built.init)?,
            feeds: built.feeds.iter().map(|feeds| outputs(feeds)).collect::<Result<_, _>>()?,
            enqueue,
            train_ops: built.train_ops.iter().map(|id| node(*id)).collect::<Result<_, _>>()?,
            losses: outputs(&built.losses)?,
            scalars: output(&built.scalars)?,
            histograms: output(&built.histograms)?,
            images: built.images.as_ref().map(output).transpose()?,
            test_feeds: outputs(&built.evaluation.feeds)?,
            test_loss: output(&built.evaluation.loss)?,
            test_accuracy: built.evaluation.accuracy.as_ref().map(output).transpose()?,
            test_updates: built.evaluation.updates.iter().map(|id| node(*id)).collect::<Result<_, _>>()?,
            judged: judged.map(|(_, value)| output(value)).transpose()?,
        })
    }
}

impl Trainer {
    /// Makes the run's folder, starts its trace and builds the graph.
    ///
    /// # Errors
    /// `Failure::Use` when the folder is somebody's, `Failure::Work` for everything else.
    pub fn new(name: &str, task: Task, training: &Training, place: &Place) -> Result<Trainer, Failure> {
        let dump_graphs = training.dump_graphs.as_deref().map(empty_folder).transpose()?;
        let saver = training.checkpoint_dir.as_deref().map(|dir| checkpoints::saver(dir, training.checkpoint_every));
        let saver = saver.transpose()?;
        // A run that continues may write beside what it wrote before.
        let continues = saver.as_ref().is_some_and(|saver| !saver.checkpoints().is_empty());
        let folder = RunFolder::create(name, training.logdir.as_deref(), training.trace.as_deref(), continues)?;
        let ns_per_slice = folder.trace().and_then(|_| tracing::ns_per_slice());
        let tracing = folder.trace().map(Tracing::start).transpose()?;
        let launched = Launched::at(place, folder.trace())?;
        let graph = Graph::new();
        let mut options = task.training.clone();
        options.learning_rate = training.learning_rate.unwrap_or(options.learning_rate);
        if let Some(devices) = training.devices {
            options.towers = usize::from(devices);
        }
        if training.asynchronous {
            options.parallelism = Parallelism::Asynchronous;
            // Threads that each run steps take their batches from one queue.
            if options.input == InputMode::Fed {
                options.input = InputMode::Queue { capacity: QUEUED };
            }
        }
        if let Some(launched) = &launched {
            options.devices = launched.devices()?;
            options.input = InputMode::QueuePerTower { capacity: QUEUED };
        }
        let built = build(&graph, task.network.as_ref(), &options).context("building the model")?;
        let names = Names::of(&graph, &built, task.judge.wants()).context("naming the model's nodes")?;
        let graph_def = graph.to_def();
        folder.write_graph(&graph_def)?;
        let writer = SummaryWriter::create(folder.path(), WriterOptions::default()).context("writing summaries")?;
        writer.add_graph(&graph_def);
        let threads = training.threads.map(usize::from);
        let runner = match launched {
            Some(launched) => launched.session(&graph)?,
            None => {
                let devices = SessionOptions::devices(options.towers.max(1));
                let numerics = Numerics::of(training.numerics);
                let session_options = SessionOptions { threads, dump_graphs, numerics, ..devices };
                Runner::Here(Arc::new(Session::new(&graph, session_options).context("starting a session")?))
            }
        };
        let steps = training.steps.unwrap_or(task.steps);
        let training = training.clone();
        Ok(Trainer {
            folder,
            tracing,
            ns_per_slice,
            runner,
            names,
            next_batch: Mutex::new(task.next_batch),
            test: task.test,
            judge: task.judge,
            batch_size: task.batch_size,
            writer,
            training,
            steps,
            saver: saver.map(Mutex::new),
            restored: None,
        })
    }

    /// The run's folder.
    pub fn logdir(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Steps to train.
    pub fn n_steps(&self) -> u64 {
        self.steps
    }

    /// Initialises the variables and trains to the last step, or until `shared` says stop.
    ///
    /// # Errors
    /// When a step fails.
    pub fn train(mut self, shared: &Shared) -> Result<Trained, Failure> {
        let init = RunOptions { label: "init", ..RunOptions::default() };
        let init = self.runner.run_step(&init, &[], &[], &[&self.names.init]);
        init.context("initialising the variables")?;
        self.restore(shared)?;
        let feeder = self.start_feeder()?;
        let (wall, cpu) = (clock::mono_now(), clock::cpu_now());
        let trained = self.steps(shared);
        let (wall_ns, cpu_ns) = (clock::mono_now() - wall, clock::cpu_now() - cpu);
        let fed = feeder.map_or(Ok(()), Feeder::end);
        // Where both failed, the input is why.
        fed?;
        let (steps, final_loss) = trained?;
        let tested = self.test(steps, shared)?;
        self.save_last(steps)?;
        let mut warnings = Vec::new();
        // Before the trace is sealed: the tasks write into it, too.
        self.runner.end(&mut warnings);
        if let Err(error) = self.writer.close() {
            warnings.push(format!("summaries: {error}"));
        }
        let trace = self.tracing.as_ref().map(|tracing| tracing.folder().to_path_buf());
        let collected = self.tracing.map(|tracing| tracing.end(&mut warnings));
        if let Some(report) = &collected {
            warnings.extend(losses(report));
        }
        let per_step = self.batch_size as u64 * (self.names.feeds.len() / self.names.train_ops.len()) as u64;
        Ok(Trained {
            logdir: self.folder.path().to_path_buf(),
            trace,
            steps,
            examples: (steps - self.restored.unwrap_or(0)) * per_step,
            stopped: steps < self.steps,
            final_loss,
            tested,
            wall_ns,
            cpu_ns,
            collected,
            ns_per_slice: self.ns_per_slice,
            restarts: u64::from(self.restored.is_some()),
            warnings,
        })
    }

    /// Starts to fill the queue, where there is one.
    fn start_feeder(&mut self) -> anyhow::Result<Option<Feeder>> {
        // The tasks of a cluster fill their queues themselves.
        let (Some(names), Runner::Here(session)) = (self.names.enqueue.clone(), &self.runner) else { return Ok(None) };
        let unused: NextBatch = Box::new(Vec::new);
        let next_batch = std::mem::replace(self.next_batch.get_mut().unwrap_or_else(PoisonError::into_inner), unused);
        Feeder::start(Arc::clone(session), names, next_batch).map(Some)
    }

    /// Loss and quality on the test batches, as the scalars `test/loss` and `test/...`.
    pub(super) fn test(&self, step: u64, shared: &Shared) -> anyhow::Result<Tested> {
        let names = &self.names;
        let options = RunOptions { label: "test", summary_step: Some(step as i64), ..RunOptions::default() };
        let mut fetches = vec![names.test_loss.as_str()];
        fetches.extend(names.test_accuracy.as_deref());
        let targets: Vec<&str> = names.test_updates.iter().map(String::as_str).collect();
        let (mut loss, mut accuracy, mut rows) = (0.0, 0.0, 0.0);
        for batch in &self.test {
            let feeds: Vec<(&str, Tensor)> = names.test_feeds.iter().map(String::as_str).zip(batch.clone()).collect();
            let fetched = self.runner.run_step(&options, &feeds, &fetches, &targets).context("testing")?;
            let n = batch.first().and_then(|x| x.dims().first()).copied().unwrap_or(1) as f64;
            loss += n * f64::from(fetched[0].item::<f32>()?);
            accuracy += fetched.get(1).map(Tensor::item::<f32>).transpose()?.map_or(0.0, |a| n * f64::from(a));
            rows += n;
        }
        let (loss, accuracy) = (loss / rows, names.test_accuracy.as_ref().map(|_| accuracy / rows));
        let judged = match &names.judged {
            Some(name) => self.runner.run_step(&options, &[], &[name], &[]).context("testing")?.pop(),
            None => None,
        };
        let quality = self.judge.quality(loss, accuracy, judged.as_ref());
        self.writer.add_scalar("test/loss", loss as f32, step as i64);
        self.writer.add_scalar(&format!("test/{}", short(quality.name)), quality.value as f32, step as i64);
        shared.set_quality(&quality);
        Ok(Tested { loss, accuracy, quality })
    }
}

/// A quality's name as a tag: `test accuracy` is told as `test/accuracy`.
fn short(name: &str) -> String {
    name.trim_start_matches("test ").replace(" / ", "_per_").replace(' ', "_")
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
