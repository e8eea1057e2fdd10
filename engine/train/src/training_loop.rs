//! The training loop: one thread of steps, or one for each tower; summaries, tests and checkpoints as it goes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, anyhow};
use engine::session::CancelToken;
use engine::training::Pushes;
use engine::{RunOptions, Tensor};
use events::clock;
use summaries::SummaryWriter;

use crate::backend::{Backend, StepRunner};
use crate::backups::{self, StepSignal};
use crate::checkpointer::Checkpointer;
use crate::evaluator::Evaluator;
use crate::input::Input;
use crate::named_graph::NamedGraph;
use crate::progress::Progress;
use crate::result::TestResult;
use crate::worker_summaries::{DueSummaries, SummaryIntervals, SummaryNodes, WorkerSummaries};

/// Steps between scalar summaries.
const SCALARS_EVERY: u64 = 10;

/// A model that is ready to be trained, with everything that its steps need.
pub(crate) struct TrainingLoop {
    pub runner: StepRunner,
    pub graph: NamedGraph,
    pub input: Input,
    pub evaluator: Evaluator,
    pub writer: SummaryWriter,
    /// On a cluster, the summaries that the workers write themselves.
    pub worker_summaries: WorkerSummaries,
    pub checkpointer: Checkpointer,
    /// Steps to train.
    pub steps: u64,
    /// Steps between histograms, images and tests.
    pub histograms_every: u64,
}

/// How one step is run.
#[derive(Default)]
struct StepSpec<'a> {
    /// The index of the train op: the tower's in asynchronous training, else 0.
    replica: usize,
    batch: Vec<Tensor>,
    /// Whether loss and scalars are fetched.
    is_summarised: bool,
    cancel: Option<&'a CancelToken>,
    /// The nodes that make workers write summaries.
    summary_nodes: SummaryNodes<'a>,
}

impl TrainingLoop {
    /// Runs all steps; returns the last one and its loss.
    pub fn run(&self, progress: &Progress) -> anyhow::Result<(u64, f32)> {
        match &self.graph.pushes {
            Some(pushes) => self.run_with_backups(pushes, progress),
            None if self.graph.train_ops.len() == 1 => self.run_in_order(progress, None),
            None => self.run_replicas(progress),
        }
    }

    /// Tests the model after `step` steps.
    pub fn test(&self, step: u64, progress: &Progress) -> anyhow::Result<TestResult> {
        let result = self.evaluator.test(&self.runner, &self.graph, &self.writer, step)?;
        progress.set_quality(&result.quality);
        Ok(result)
    }

    /// Closes the event files and the session; returns a warning for each file that is incomplete.
    pub fn close(self) -> Vec<String> {
        let mut warnings: Vec<String> = self.worker_summaries.close(&self.graph, &self.runner).into_iter().collect();
        if let Backend::Cluster(session) = &self.runner.backend {
            session.close();
        }
        warnings.extend(self.writer.close().err().map(|error| format!("summaries: {error}")));
        warnings
    }

    /// The number of steps that were done before the loop begins: those of the checkpoint.
    fn n_restored_steps(&self) -> u64 {
        self.checkpointer.restored_step().unwrap_or(0)
    }

    /// Trains asynchronously: each tower has a thread, and the threads share the steps.
    fn run_replicas(&self, progress: &Progress) -> anyhow::Result<(u64, f32)> {
        let n_begun = AtomicU64::new(self.n_restored_steps());
        let has_failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let replicas: Vec<_> = (1..self.graph.train_ops.len())
                .map(|replica| {
                    let (n_begun, has_failed) = (&n_begun, &has_failed);
                    let body = move || self.run_replica(replica, n_begun, has_failed, progress).map(drop);
                    std::thread::Builder::new().name(format!("replica{replica}")).spawn_scoped(scope, body)
                })
                .collect();
            let mut result = self.run_replica(0, &n_begun, &has_failed, progress);
            for replica in replicas {
                let ended = replica.context("starting a replica's thread")?.join();
                let ended = ended.map_err(|_| anyhow!("a replica's thread panicked")).and_then(|ended| ended);
                if let (Ok(_), Err(error)) = (&result, ended) {
                    result = Err(error);
                }
            }
            let loss = result?;
            Ok((n_begun.load(Ordering::Relaxed).min(self.steps), loss))
        })
    }

    /// Runs steps of one tower until none are left; tower 0 also summarises, tests and saves.
    fn run_replica(
        &self,
        replica: usize,
        n_begun: &AtomicU64,
        has_failed: &AtomicBool,
        progress: &Progress,
    ) -> anyhow::Result<f32> {
        let mut loss = f32::NAN;
        let (mut intervals, mut last_test) = (SummaryIntervals::default(), 0);
        loop {
            let step = n_begun.fetch_add(1, Ordering::Relaxed) + 1;
            if step > self.steps || progress.is_stopping() || has_failed.load(Ordering::Relaxed) {
                // Subtracted again, so that `n_begun` ends as the number of steps that were done.
                n_begun.fetch_sub(1, Ordering::Relaxed);
                return Ok(loss);
            }
            let due = intervals.due(step, SCALARS_EVERY, self.histograms_every);
            let summary_nodes = self.worker_summaries.nodes(&self.graph, replica..replica + 1, step, due);
            let is_summarised = replica == 0 && due.scalars;
            let spec = StepSpec { replica, is_summarised, summary_nodes, ..StepSpec::default() };
            let step_loss = self.run_step(step, spec).with_context(|| format!("step {step}"));
            if let Some(value) = step_loss.inspect_err(|_| has_failed.store(true, Ordering::Relaxed))? {
                loss = value;
                progress.set_loss(loss);
            }
            progress.set_n_done(step);
            if replica == 0 && step - last_test >= self.histograms_every && step < self.steps {
                last_test = step;
                self.test(step, progress)?;
            }
            if replica == 0 {
                self.save(step)?;
            }
        }
    }

    /// Trains with backup workers: the steps run in order, while the towers push gradients.
    fn run_with_backups(&self, pushes: &Pushes, progress: &Progress) -> anyhow::Result<(u64, f32)> {
        let done = Tensor::scalar(self.n_restored_steps() as i64);
        let options = RunOptions { label: "begin", ..RunOptions::default() };
        let feed = [(self.graph.name(pushes.done), done)];
        let begun = self.runner.run_step(&options, &feed, &[], &[self.graph.name(pushes.begin)]);
        begun.context("preparing the accumulators")?;
        let intervals: Vec<_> = pushes.ops.iter().map(|_| std::sync::Mutex::new(SummaryIntervals::default())).collect();
        let push = |tower: usize, step: u64, cancel: &CancelToken| {
            let mut intervals = intervals[tower].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let due = intervals.due(step, SCALARS_EVERY, self.histograms_every);
            drop(intervals);
            self.push_gradients(
                pushes,
                tower,
                step,
                cancel,
                self.worker_summaries.nodes(&self.graph, tower..tower + 1, step, due),
            )
        };
        backups::train_with_towers(pushes.ops.len(), push, |signal| self.run_in_order(progress, Some(signal)))
    }

    fn push_gradients(
        &self,
        pushes: &Pushes,
        tower: usize,
        step: u64,
        cancel: &CancelToken,
        summary_nodes: SummaryNodes<'_>,
    ) -> anyhow::Result<()> {
        let summary_step = Some(step as i64);
        let options = RunOptions { label: "gradients", summary_step, cancel: Some(cancel), ..RunOptions::default() };
        // With backup workers the training step runs no tower: the images come from the step of tower 0.
        let images = self.graph.images.filter(|_| tower == 0 && self.is_for_histograms(step));
        let images = images.map(|images| self.graph.name(images));
        let SummaryNodes { mut feeds, mut targets } = summary_nodes;
        feeds.push((self.graph.name(pushes.done), Tensor::scalar(step as i64 - 1)));
        targets.push(self.graph.name(pushes.ops[tower]));
        let fetched = self.runner.run_step(&options, &feeds, images.as_slice(), &targets)?;
        fetched.iter().try_for_each(|summary| self.write(summary, step))
    }

    /// Runs the steps one by one; with backup workers `signal` starts the towers' steps.
    fn run_in_order(&self, progress: &Progress, signal: Option<&StepSignal>) -> anyhow::Result<(u64, f32)> {
        let last = self.steps;
        let is_fed = self.graph.is_fed() && signal.is_none();
        let mut loss = f32::NAN;
        for step in self.n_restored_steps() + 1..=last {
            let is_stopping = progress.is_stopping();
            let batch = if is_fed { self.input.batches(self.graph.feeds.len()) } else { Vec::new() };
            let is_summarised = is_stopping || self.is_for_scalars(step);
            let cancel = signal.map(|signal| signal.begin(step));
            // With backup workers the towers write summaries in their own steps, in `push_gradients`.
            let summary_nodes = match signal {
                Some(_) => SummaryNodes::default(),
                None => {
                    let due = DueSummaries { scalars: is_summarised, histograms: self.is_for_histograms(step) };
                    self.worker_summaries.nodes(&self.graph, 0..self.graph.towers.len(), step, due)
                }
            };
            let spec = StepSpec { batch, is_summarised, cancel, summary_nodes, ..StepSpec::default() };
            if let Some(value) = self.run_step(step, spec).with_context(|| format!("step {step}"))? {
                loss = value;
                progress.set_loss(loss);
            }
            progress.set_n_done(step);
            // The caller saves and tests a stopped run. It also tests after the last step, so that step is not tested
            // here.
            if is_stopping {
                return Ok((step, loss));
            }
            if step.is_multiple_of(self.histograms_every) && step < last {
                self.test(step, progress)?;
            }
            // Saved after the test, so that a continued run also has the state that the test changed.
            self.save(step)?;
        }
        Ok((last, loss))
    }

    /// Saves a checkpoint when it is due.
    fn save(&self, step: u64) -> anyhow::Result<()> {
        // A run that continues from this checkpoint does not write the summaries of these steps again. A failed flush
        // is reported by `close`.
        let flush = || drop(self.writer.flush());
        self.checkpointer.save(&self.runner, &self.graph, step, flush)
    }

    /// Whether a step writes scalars: the first step of this process, the last, and every [`SCALARS_EVERY`]th.
    fn is_for_scalars(&self, step: u64) -> bool {
        step == self.n_restored_steps() + 1 || step == self.steps || step.is_multiple_of(SCALARS_EVERY)
    }

    /// Whether a step writes histograms and images.
    fn is_for_histograms(&self, step: u64) -> bool {
        step == 1 || step.is_multiple_of(self.histograms_every)
    }

    /// Runs one step; returns the loss if the step is summarised.
    fn run_step(&self, step: u64, spec: StepSpec<'_>) -> anyhow::Result<Option<f32>> {
        let StepSpec { replica, batch, is_summarised, cancel, summary_nodes } = spec;
        let graph = &self.graph;
        let options = RunOptions { label: "train", summary_step: Some(step as i64), cancel, ..RunOptions::default() };
        let SummaryNodes { mut feeds, mut targets } = summary_nodes;
        // The batch comes first in the zip, because it is empty where a queue feeds the step: then no feed is named.
        feeds.extend(
            batch.into_iter().zip(graph.feeds.iter().flatten()).map(|(value, feed)| (graph.name(*feed), value)),
        );
        targets.push(graph.name(graph.train_ops[replica]));
        let mut fetches: Vec<&str> = Vec::new();
        if is_summarised {
            fetches.extend([graph.name(graph.losses[replica]), graph.name(graph.scalars)]);
        }
        if replica == 0 && self.is_for_histograms(step) {
            fetches.push(graph.name(graph.histograms));
            let images = graph.images.filter(|_| graph.pushes.is_none());
            fetches.extend(images.map(|images| graph.name(images)));
        }
        let fetched = self.runner.run_step(&options, &feeds, &fetches, &targets)?;
        let (loss, summaries) = fetched.split_at(usize::from(is_summarised));
        summaries.iter().try_for_each(|summary| self.write(summary, step))?;
        Ok(loss.first().map(Tensor::item::<f32>).transpose()?)
    }

    /// Writes a serialised `Summary`.
    fn write(&self, summary: &Tensor, step: u64) -> anyhow::Result<()> {
        let wall = clock::wall_now();
        for bytes in summary.strings()? {
            self.writer.add_summary_bytes(bytes, step as i64, wall);
        }
        Ok(())
    }
}
