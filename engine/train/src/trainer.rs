//! A training run: creates its folder, graph and session, runs the loop, and saves and tests the model at the end.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use engine::tasks::Task;
use engine::training::{InputMode, build};
use engine::{Graph, RunOptions, Session};
use events::clock;
use formats::proto::event::What;
use formats::proto::{Event as SummaryEvent, SessionLog, session_log};
use summaries::{SummaryWriter, WriterOptions};

use crate::backend::{Backend, Connection, Location, StepRunner};
use crate::checkpointer::{Checkpointer, has_checkpoints};
use crate::error::{Result, TrainError};
use crate::evaluator::Evaluator;
use crate::event::{Event, Observer};
use crate::feeder::{Feeder, StoppedFeeder};
use crate::finished_run::FinishedRun;
use crate::input::Input;
use crate::named_graph::NamedGraph;
use crate::options::{QUEUE_CAPACITY, TrainOptions, check_backups};
use crate::progress::Progress;
use crate::result::TrainingResult;
use crate::run::Run;
use crate::stall::StallWatch;
use crate::training_loop::TrainingLoop;
use crate::worker_summaries::WorkerSummaries;

/// A run that is ready to train.
pub struct Trainer {
    run: Run,
    progress: Arc<Progress>,
    observer: Arc<dyn Observer>,
    training: TrainingLoop,
    batch_size: usize,
    /// Whether a launcher started the run before; a restarted run may find all steps done.
    is_restart: bool,
}

impl Trainer {
    /// Makes the run's folder, starts its trace and builds the graph.
    ///
    /// # Errors
    /// `TrainError::Usage` when the folder is in use, `TrainError::Work` for everything else.
    pub fn new(
        name: &str,
        task: Task,
        options: &TrainOptions,
        location: &Location,
        observer: Arc<dyn Observer>,
    ) -> Result<Trainer> {
        options.check()?;
        // A run that continues may write into the folder that it wrote before.
        let continues = has_checkpoints(options)?;
        let cluster = match location {
            Location::Cluster { file, .. } => Some(file.as_path()),
            Location::Local => None,
        };
        let run = Run::begin(name, options, continues, cluster)?;
        Trainer::with_run(run, task, options, location, observer, Arc::new(Progress::new(0)))
    }

    /// Builds the graph of a run whose folder and trace exist.
    ///
    /// # Errors
    /// As [`Trainer::new`].
    pub(crate) fn with_run(
        run: Run,
        task: Task,
        options: &TrainOptions,
        location: &Location,
        observer: Arc<dyn Observer>,
        progress: Arc<Progress>,
    ) -> Result<Trainer> {
        options.check()?;
        if options.memory_limit.is_some() {
            engine::memory::set_limit(options.memory_limit);
        }
        let checkpointer = Checkpointer::new(options)?;
        let connection = Connection::open(location)?;
        let graph = Graph::new();
        let mut engine_options = options.training_options(&task);
        if let Some(connection) = &connection {
            engine_options.devices = connection.devices()?;
            engine_options.input = InputMode::QueuePerTower { capacity: QUEUE_CAPACITY };
        }
        check_backups(&engine_options)?;
        let built = build(&graph, task.network.as_ref(), &engine_options).context("building the model")?;
        let named_graph = NamedGraph::new(&graph, built);
        let graph_def = graph.to_def();
        run.folder().write_graph(&graph_def)?;
        let writer =
            SummaryWriter::create(run.folder().path(), WriterOptions::default()).context("writing summaries")?;
        writer.add_graph(&graph_def);
        let backend = match connection {
            Some(connection) => connection.session(&graph)?,
            None => {
                let session_options = options.session_options(engine_options.towers)?;
                Backend::Local(Arc::new(Session::new(&graph, session_options).context("starting a session")?))
            }
        };
        let watch = StallWatch::new(Arc::clone(progress.stop_request()), Arc::clone(&observer));
        let steps = options.steps.unwrap_or(task.steps);
        progress.set_steps(steps);
        let training = TrainingLoop {
            runner: StepRunner { backend, watch },
            evaluator: Evaluator::new(task.test, task.judge, &named_graph),
            graph: named_graph,
            input: Input::new(task.next_batch),
            writer,
            worker_summaries: WorkerSummaries::default(),
            checkpointer,
            steps,
            histograms_every: options.histograms_every(),
        };
        Ok(Trainer { run, progress, observer, training, batch_size: task.batch_size, is_restart: false })
    }

    /// Sets whether a launcher started the run before.
    pub(crate) fn with_restart(self, is_restart: bool) -> Trainer {
        Trainer { is_restart, ..self }
    }

    /// The run's folder.
    pub fn logdir(&self) -> &Path {
        self.run.folder().path()
    }

    /// The progress of the run, with which other threads watch and stop the run.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Initialises the variables, trains to the last step or until the run is stopped, and ends the run.
    ///
    /// # Errors
    /// When a step fails.
    pub fn train(self) -> Result<FinishedRun> {
        let (result, run) = self.run()?;
        Ok(FinishedRun::finish(result, run, 0))
    }

    /// As [`Trainer::train`], but leaves the run open: the launcher ends it.
    ///
    /// # Errors
    /// When a step fails.
    pub(crate) fn run(mut self) -> Result<(TrainingResult, Run)> {
        let training = &self.training;
        let options = RunOptions { label: "init", ..RunOptions::default() };
        let init = training.runner.run_step(&options, &[], &[], &[training.graph.name(training.graph.init)]);
        init.context("initialising the variables")?;
        self.restore()?;
        let (training, progress) = (&mut self.training, &self.progress);
        let feeder = training.input.start_feeder(&training.runner.backend, &training.graph)?;
        let restored_step = training.checkpointer.restored_step();
        let (begin_ns, begin_cpu_ns) = (clock::mono_now(), clock::cpu_now());
        progress.begin(restored_step.unwrap_or(0), begin_ns);
        let trained = training.run(progress);
        let (end_ns, cpu_ns) = (clock::mono_now(), clock::cpu_now() - begin_cpu_ns);
        progress.end(end_ns);
        // The feeder's error comes first: where training failed too, the failed input is the reason.
        let feeder = feeder.map(Feeder::stop).transpose()?;
        let (steps, final_loss) = trained?;
        // Saved before the test, because a stopped run may be ended during it, and before the queue is closed, because
        // the checkpoint saves an open queue.
        training.checkpointer.save_last(&training.runner, &training.graph, steps)?;
        feeder.map_or(Ok(()), StoppedFeeder::close)?;
        let test = training.test(steps, progress)?;
        let n_done = steps - restored_step.unwrap_or(0).min(steps);
        let result = TrainingResult {
            steps,
            n_done,
            examples: n_done * (self.batch_size * training.graph.batches_per_step()) as u64,
            stopped: steps < training.steps,
            continued: restored_step.is_some(),
            final_loss,
            test,
            wall_ns: end_ns - begin_ns,
            cpu_ns,
            warnings: Vec::new(),
        };
        Ok((TrainingResult { warnings: self.training.close(), ..result }, self.run))
    }

    /// Continues from the newest complete checkpoint, if there is one: state, summaries, and the input's position.
    fn restore(&mut self) -> Result<()> {
        let training = &mut self.training;
        let restored = training.checkpointer.restore(&training.runner, &training.graph)?;
        if let Some(restored) = &restored {
            for warning in &restored.warnings {
                self.observer.on_event(&Event::Warning(&warning.to_string()));
            }
            let step = restored.step;
            // A restarted run whose steps are all done is only tested again.
            if step >= training.steps && !self.is_restart {
                return Err(TrainError::wrong_use(format_args!(
                    "{} is of step {step}: nothing is left to train; give more --steps",
                    restored.prefix.display()
                )));
            }
            self.observer.on_event(&Event::Resumed { step, checkpoint: &restored.prefix });
            self.progress.begin(step, 0);
        }
        let step = restored.map(|restored| restored.step);
        let restart = (step.is_some() || self.is_restart).then(|| restart_event(step.unwrap_or(0)));
        if let Some(restart) = &restart {
            training.writer.add_event(restart);
        }
        let logdir = self.run.folder().path();
        let observer = self.observer.as_ref();
        training.worker_summaries =
            WorkerSummaries::open(&training.graph, &training.runner, logdir, restart.as_ref(), observer)?;
        Ok(training.input.continue_after(step, &training.runner, &training.graph)?)
    }
}

/// The event by which readers drop the summaries that an earlier attempt wrote of the steps after `restored_step`.
fn restart_event(restored_step: u64) -> SummaryEvent {
    let log = SessionLog { status: session_log::SessionStatus::Start.into(), ..SessionLog::default() };
    SummaryEvent {
        wall_time: clock::wall_now(),
        step: restored_step as i64 + 1,
        what: Some(What::SessionLog(log)),
        source_metadata: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    use crate::options::TraceTarget;
    use crate::task::{Model, TaskSpec};

    fn options(dir: &Path, steps: u64) -> TrainOptions {
        TrainOptions {
            steps: Some(steps),
            logdir: Some(dir.join("run")),
            checkpoint_dir: Some(dir.join("checkpoints")),
            trace: TraceTarget::Off,
            ..TrainOptions::default()
        }
    }

    fn trainer(options: &TrainOptions, observer: Arc<dyn Observer>) -> Result<Trainer> {
        let task = TaskSpec { model: Model::Embeddings, data: None, seed: 1 }.load()?;
        Trainer::new("test", task, options, &Location::Local, observer)
    }

    fn silent_observer() -> Arc<dyn Observer> {
        Arc::new(|_: &Event<'_>| {})
    }

    #[test]
    fn a_run_trains_its_steps_and_continues_from_its_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let first = trainer(&options(dir.path(), 3), silent_observer()).unwrap();
        let progress = Arc::clone(first.progress());
        let run = first.train().unwrap();
        assert_eq!((run.result.steps, run.result.n_done, run.restarts), (3, 3, 0));
        assert_eq!((progress.n_done(), run.result.stopped, run.result.continued), (3, false, false));
        assert!(run.result.final_loss.is_finite() && run.trace.is_none());

        let texts: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&texts);
        let observer = Arc::new(move |event: &Event<'_>| sink.lock().unwrap().push(event.to_string()));
        let run = trainer(&options(dir.path(), 5), observer).unwrap().train().unwrap();
        assert_eq!((run.result.steps, run.result.n_done, run.restarts), (5, 2, 1));
        assert!(run.result.continued);
        let texts = texts.lock().unwrap();
        assert!(texts[0].starts_with("continuing after step 3 from "), "{texts:?}");
    }

    #[test]
    fn a_run_without_steps_left_is_wrong_use_but_for_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        trainer(&options(dir.path(), 2), silent_observer()).unwrap().train().unwrap();
        let Err(TrainError::Usage(error)) = trainer(&options(dir.path(), 2), silent_observer()).unwrap().train() else {
            panic!("it trained")
        };
        assert!(error.to_string().ends_with("is of step 2: nothing is left to train; give more --steps"), "{error}");
        let again = trainer(&options(dir.path(), 2), silent_observer()).unwrap().with_restart(true);
        let run = again.train().unwrap();
        assert_eq!((run.result.steps, run.result.n_done), (2, 0), "it was only tested again");
    }

    #[test]
    fn a_stopped_run_ends_after_its_step() {
        let dir = tempfile::tempdir().unwrap();
        let stopped = trainer(&options(dir.path(), 1_000_000), silent_observer()).unwrap();
        stopped.progress().stop();
        let run = stopped.train().unwrap();
        assert_eq!((run.result.steps, run.result.stopped), (1, true));
    }
}
