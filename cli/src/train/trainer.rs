//! A training run: graph and session made; trained and tested by the files beside this one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use engine::checkpoint::Saver;
use engine::tasks::{Judge, NextBatch, Task};
use engine::training::{InputMode, Parallelism, TrainingOptions, build};
use engine::{Graph, RunOptions, Session, SessionOptions, Tensor};
use events::clock;
use summaries::{SummaryWriter, WriterOptions};

use super::checkpoints;
use super::cluster::{Backend, Connected, Place, Runner};
use super::feeder::Feeder;
use super::learned::{Learned, Tested};
use super::names::Names;
use super::progress::Shared;
use super::run::Run;
use super::stall::Watch;
use super::towers::Towers;
use crate::args::{Numerics, Training};
use crate::devices;
use crate::graph::empty_folder;
use crate::outcome::Failure;

/// Batches that a queue holds.
pub(super) const QUEUED: usize = 8;

/// A run that is ready to train: folder made, graph built.
pub struct Trainer {
    run: Run,
    pub(super) runner: Runner,
    pub(super) names: Names,
    pub(super) next_batch: Mutex<NextBatch>,
    test: Vec<Vec<Tensor>>,
    judge: Judge,
    batch_size: usize,
    pub(super) writer: SummaryWriter,
    /// On a cluster, the workers that write summaries of their own.
    pub(super) towers: Towers,
    pub(super) training: Training,
    /// Steps to train.
    pub(super) steps: u64,
    pub(super) saver: Option<Mutex<Saver>>,
    /// The step after which the checkpoint was saved that the run continued from.
    pub(super) restored: Option<u64>,
    /// Whether it may find that all steps are done already.
    pub(super) is_restart: bool,
}

/// A run that is over: what it learned, and where its files are.
pub struct Trained {
    /// What came of it.
    pub learned: Learned,
    /// The run's folder.
    pub logdir: PathBuf,
    /// The trace's folder, unless tracing was off.
    pub trace: Option<PathBuf>,
    /// What the collector says of the trace.
    pub collected: Option<profiler::CollectorReport>,
    /// What one traced slice costs here, nanoseconds, measured in this process.
    pub ns_per_slice: Option<f64>,
    /// How often the run was continued from a checkpoint, or begun anew.
    pub restarts: u64,
}

impl Trained {
    /// Of a run whose processes have ended.
    pub(super) fn of(mut learned: Learned, run: Run, restarts: u64) -> Trained {
        let (logdir, ns_per_slice) = (run.folder().path().to_path_buf(), run.ns_per_slice());
        let traced = run.end(&mut learned.warnings);
        let restarts = restarts + u64::from(learned.continued && restarts == 0);
        let (trace, collected) = traced.map(|traced| (traced.folder, traced.collected)).unzip();
        Trained { learned, logdir, trace, collected, ns_per_slice, restarts }
    }
}

impl Trainer {
    /// Makes the run's folder, starts its trace and builds the graph.
    ///
    /// # Errors
    /// `Failure::Use` when the folder is somebody's, `Failure::Work` for everything else.
    pub fn new(name: &str, task: Task, training: &Training, place: &Place) -> Result<Trainer, Failure> {
        // Before anything is begun: a folder that is somebody's is wrong use.
        training.dump_graphs.as_deref().map(empty_folder).transpose()?;
        devices::check(&training.device)?;
        // A run that continues may write beside what it wrote before.
        let continues = checkpoints::of(training)?.is_some_and(|saver| !saver.checkpoints().is_empty());
        let cluster = match place {
            Place::Cluster { file, .. } => Some(file.as_path()),
            Place::Here => None,
        };
        Trainer::in_run(Run::begin(name, training, continues, cluster)?, task, training, place)
    }

    /// Builds the graph of a run that began.
    ///
    /// # Errors
    /// As [`Trainer::new`].
    pub(super) fn in_run(run: Run, task: Task, training: &Training, place: &Place) -> Result<Trainer, Failure> {
        if training.memory_limit.is_some() {
            engine::memory::set_limit(training.memory_limit);
        }
        let dump_graphs = training.dump_graphs.as_deref().map(empty_folder).transpose()?;
        let saver = checkpoints::of(training)?;
        let connected = Connected::at(place)?;
        let graph = Graph::new();
        let mut options = training_options(&task, training);
        if let Some(connected) = &connected {
            options.devices = connected.devices()?;
            options.input = InputMode::QueuePerTower { capacity: QUEUED };
        }
        check_backups(&options, training)?;
        let built = build(&graph, task.network.as_ref(), &options).context("building the model")?;
        let names = Names::of(&graph, &built, task.judge.wants()).context("naming the model's nodes")?;
        let graph_def = graph.to_def();
        run.folder().write_graph(&graph_def)?;
        let writer =
            SummaryWriter::create(run.folder().path(), WriterOptions::default()).context("writing summaries")?;
        writer.add_graph(&graph_def);
        let threads = training.threads.map(usize::from);
        let runner = match connected {
            Some(connected) => connected.session(&graph)?,
            None => {
                let devices = match training.device.is_empty() {
                    true => SessionOptions::devices(options.towers.max(1)),
                    false => devices::session_options(&training.device)?,
                };
                let numerics = Numerics::of(training.numerics);
                let session_options = SessionOptions { threads, dump_graphs, numerics, ..devices };
                let session = Session::new(&graph, session_options).context("starting a session")?;
                Runner::new(Backend::Here(Arc::new(session)))
            }
        };
        let steps = training.steps.unwrap_or(task.steps);
        let training = training.clone();
        Ok(Trainer {
            run,
            runner,
            names,
            next_batch: Mutex::new(task.next_batch),
            test: task.test,
            judge: task.judge,
            batch_size: task.batch_size,
            writer,
            towers: Towers::default(),
            training,
            steps,
            saver: saver.map(Mutex::new),
            restored: None,
            is_restart: false,
        })
    }

    /// The same where the run was begun before: it may find that all steps are done.
    pub(super) fn again(self) -> Trainer {
        Trainer { is_restart: true, ..self }
    }

    /// The run's folder.
    pub fn logdir(&self) -> &std::path::Path {
        self.run.folder().path()
    }

    /// Steps to train.
    pub fn n_steps(&self) -> u64 {
        self.steps
    }

    /// Initialises the variables and trains to the last step, or until `shared` says stop; ends the run.
    ///
    /// # Errors
    /// When a step fails.
    pub fn train(self, shared: &Shared) -> Result<Trained, Failure> {
        let (learned, run) = self.learn(shared)?;
        Ok(Trained::of(learned, run, 0))
    }

    /// As [`Trainer::train`], of a run that goes on.
    ///
    /// # Errors
    /// When a step fails.
    pub(super) fn learn(mut self, shared: &Shared) -> Result<(Learned, Run), Failure> {
        self.runner.watch = Watch::new(shared.ending());
        let init = RunOptions { label: "init", ..RunOptions::default() };
        let init = self.runner.run_step(&init, &[], &[], &[&self.names.init]);
        init.context("initialising the variables")?;
        self.restore(shared)?;
        let feeder = self.start_feeder()?;
        let (wall, cpu) = (clock::mono_now(), clock::cpu_now());
        shared.begin(self.restored.unwrap_or(0), wall);
        let trained = self.steps(shared);
        let (ended, cpu_ns) = (clock::mono_now(), clock::cpu_now() - cpu);
        shared.end(ended);
        let wall_ns = ended - wall;
        let fed = feeder.map_or(Ok(()), Feeder::end);
        // Where both failed, the input is why.
        fed?;
        let (steps, final_loss) = trained?;
        // First of all: who told the run to end may not wait for the test.
        self.save_last(steps)?;
        let tested = self.test(steps, shared)?;
        let mut warnings: Vec<String> = self.towers.close(&self.runner).into_iter().collect();
        if let Backend::Cluster(session) = &self.runner.backend {
            session.close();
        }
        if let Err(error) = self.writer.close() {
            warnings.push(format!("summaries: {error}"));
        }
        let n_done = steps - self.restored.unwrap_or(0).min(steps);
        let per_step = (self.batch_size * self.names.batches_per_step()) as u64;
        let learned = Learned {
            steps,
            n_done,
            examples: n_done * per_step,
            stopped: steps < self.steps,
            continued: self.restored.is_some(),
            final_loss,
            tested,
            wall_ns,
            cpu_ns,
            warnings,
        };
        Ok((learned, self.run))
    }

    /// Starts to fill the queue, where there is one.
    fn start_feeder(&mut self) -> anyhow::Result<Option<Feeder>> {
        // The tasks of a cluster fill their queues themselves.
        let (Some(names), Backend::Here(session)) = (self.names.enqueue.clone(), &self.runner.backend) else {
            return Ok(None);
        };
        let unused: NextBatch = Box::new(Vec::new);
        let next_batch = std::mem::replace(self.next_batch.get_mut().unwrap_or_else(PoisonError::into_inner), unused);
        Feeder::start(Arc::clone(session), names, |_, _| Ok(Some(next_batch))).map(Some)
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
        self.writer.add_scalar(&format!("test/{}", short(&quality.name)), quality.value as f32, step as i64);
        shared.set_quality(&quality);
        Ok(Tested { loss, accuracy, quality })
    }
}

/// A quality's name as a tag: `test accuracy` is told as `test/accuracy`.
fn short(name: &str) -> String {
    name.trim_start_matches("test ").replace(" / ", "_per_").replace(' ', "_")
}

/// How the task is trained, as the user wants it.
fn training_options(task: &Task, training: &Training) -> TrainingOptions {
    let mut options = task.training.clone();
    options.learning_rate = training.learning_rate.unwrap_or(options.learning_rate);
    if let Some(devices) = training.devices {
        options.towers = usize::from(devices);
    }
    options.devices = training.device.iter().map(devices::Wanted::name).collect();
    if training.all_reduce {
        options.parallelism = Parallelism::AllReduce;
    }
    if training.asynchronous {
        options.parallelism = Parallelism::Asynchronous;
    }
    if let Some(spare) = training.backup_workers {
        options.parallelism = Parallelism::Backup { spare: usize::from(spare) };
    }
    // Threads that each run steps take their batches from one queue.
    let is_threaded = training.asynchronous || training.backup_workers.is_some();
    if is_threaded && options.input == InputMode::Fed {
        options.input = InputMode::Queue { capacity: QUEUED };
    }
    options
}

/// Backup workers are some of the towers, not all.
fn check_backups(options: &TrainingOptions, training: &Training) -> Result<(), Failure> {
    let n = if options.devices.is_empty() { options.towers.max(1) } else { options.devices.len() };
    match training.backup_workers {
        Some(spare) if usize::from(spare) >= n => Err(Failure::wrong_use(format_args!(
            "--backup-workers {spare}: there are {n} in all, and a step needs the gradients of at least one; \
             give more with --workers or --devices"
        ))),
        _ => Ok(()),
    }
}
