//! The training loop: one thread of steps, or one for each tower ([`super::backups`] has those beside it); summaries and tests as it goes.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, anyhow};
use engine::session::CancelToken;
use engine::{RunOptions, Tensor};
use events::clock;

use super::backups::Pace;
use super::progress::Shared;
use super::towers::{Pauses, Telling};
use super::trainer::Trainer;

/// Steps between scalar summaries.
pub(super) const SCALARS_EVERY: u64 = 10;
/// Steps between histogram summaries, and between tests, unless the user says.
const HISTOGRAMS_EVERY: u64 = 100;

impl Trainer {
    /// All steps; gives how many were done and the last loss.
    pub(super) fn steps(&self, shared: &Shared) -> anyhow::Result<(u64, f32)> {
        if let Some(pushes) = &self.names.pushes {
            return self.with_backups(pushes, shared);
        }
        if self.names.train_ops.len() == 1 {
            return self.one_after_the_other(shared, None);
        }
        let this = self;
        let next = AtomicU64::new(self.restored.unwrap_or(0));
        let failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let replicas: Vec<_> = (1..this.names.train_ops.len())
                .map(|replica| {
                    let (next, failed) = (&next, &failed);
                    let body = move || this.replica(replica, next, failed, shared).map(drop);
                    std::thread::Builder::new().name(format!("replica{replica}")).spawn_scoped(scope, body)
                })
                .collect();
            let mut result = this.replica(0, &next, &failed, shared);
            for replica in replicas {
                let ended = replica.context("starting a replica's thread")?.join();
                let ended = ended.map_err(|_| anyhow!("a replica's thread panicked")).and_then(|ended| ended);
                if let (Ok(_), Err(error)) = (&result, ended) {
                    result = Err(error);
                }
            }
            let loss = result?;
            Ok((next.load(Ordering::Relaxed).min(this.steps), loss))
        })
    }

    /// Steps of one tower, as long as any are left; the first one also summarises and tests.
    fn replica(&self, replica: usize, next: &AtomicU64, failed: &AtomicBool, shared: &Shared) -> anyhow::Result<f32> {
        let mut loss = f32::NAN;
        let (mut pauses, mut last_test) = (Pauses::default(), 0);
        loop {
            let step = next.fetch_add(1, Ordering::Relaxed) + 1;
            if step > self.steps || shared.stopped() || failed.load(Ordering::Relaxed) {
                // What was taken and not done is given back.
                next.fetch_sub(1, Ordering::Relaxed);
                return Ok(loss);
            }
            let (scalars, histograms) = pauses.end(step, SCALARS_EVERY, self.histograms_every());
            let telling = self.towers.telling(replica..replica + 1, step, scalars, histograms);
            let summarise = replica == 0 && scalars;
            let done = self.step(step, replica, None, summarise, None, telling).with_context(|| format!("step {step}"));
            if let Some(value) = done.inspect_err(|_| failed.store(true, Ordering::Relaxed))? {
                loss = value;
                shared.set_loss(loss);
            }
            shared.step_done(step);
            if replica == 0 && step - last_test >= self.histograms_every() && step < self.steps {
                last_test = step;
                self.test(step, shared)?;
            }
            if replica == 0 {
                self.save(step)?;
            }
        }
    }

    /// Steps one by one; with backup workers their towers keep `pace`.
    pub(super) fn one_after_the_other(&self, shared: &Shared, pace: Option<&Pace>) -> anyhow::Result<(u64, f32)> {
        let last = self.steps;
        let is_fed = self.names.enqueue.is_none() && pace.is_none();
        let mut loss = f32::NAN;
        for step in self.restored.unwrap_or(0) + 1..=last {
            let stop = shared.stopped();
            let batch = is_fed.then(|| self.batches());
            let summarise = stop || self.is_for_scalars(step);
            let cancel = pace.map(|pace| pace.begin(step));
            // With backup workers towers tell of themselves in their own steps.
            let telling = match pace {
                Some(_) => Telling::default(),
                None => self.towers.telling(0..self.towers.len(), step, summarise, self.is_for_histograms(step)),
            };
            let done = self.step(step, 0, batch, summarise, cancel, telling).with_context(|| format!("step {step}"))?;
            if let Some(value) = done {
                loss = value;
                shared.set_loss(loss);
            }
            shared.step_done(step);
            // Who stops it saves the end and tests; and the last step is tested once, when all are done.
            if stop {
                return Ok((step, loss));
            }
            if step.is_multiple_of(self.histograms_every()) && step < last {
                self.test(step, shared)?;
            }
            // With the state that the test carries on, so that a run that goes on from here has it.
            self.save(step)?;
        }
        Ok((last, loss))
    }

    /// A batch for each tower.
    fn batches(&self) -> Vec<Tensor> {
        let mut next_batch = self.next_batch.lock().unwrap_or_else(PoisonError::into_inner);
        (0..self.names.feeds.len()).flat_map(|_| next_batch()).collect()
    }

    /// Whether numbers of a step are kept: of the first one that is done, the last, and some between.
    fn is_for_scalars(&self, step: u64) -> bool {
        step == self.restored.unwrap_or(0) + 1 || step == self.steps || step.is_multiple_of(SCALARS_EVERY)
    }

    /// Whether histograms and pictures of a step are kept.
    pub(super) fn is_for_histograms(&self, step: u64) -> bool {
        step == 1 || step.is_multiple_of(self.histograms_every())
    }

    /// Steps between histograms.
    pub(super) fn histograms_every(&self) -> u64 {
        self.training.summary_every.unwrap_or(HISTOGRAMS_EVERY)
    }

    /// One step; gives the loss where it is summarised.
    fn step(
        &self,
        step: u64,
        replica: usize,
        batch: Option<Vec<Tensor>>,
        summarise: bool,
        cancel: Option<&CancelToken>,
        telling: Telling<'_>,
    ) -> anyhow::Result<Option<f32>> {
        let names = &self.names;
        let options = RunOptions { label: "train", summary_step: Some(step as i64), cancel, ..RunOptions::default() };
        let feed_names = names.feeds.iter().flatten().map(String::as_str);
        let Telling { mut feeds, mut targets } = telling;
        feeds.extend(feed_names.zip(batch.into_iter().flatten()));
        targets.push(&names.train_ops[replica]);
        let mut fetches: Vec<&str> = Vec::new();
        if summarise {
            fetches.extend([names.losses[replica].as_str(), &names.scalars]);
        }
        if replica == 0 && self.is_for_histograms(step) {
            fetches.push(&names.histograms);
            fetches.extend(names.images.as_deref().filter(|_| names.pushes.is_none()));
        }
        let fetched = self.runner.run_step(&options, &feeds, &fetches, &targets)?;
        let mut loss = None;
        for (name, value) in fetches.iter().zip(&fetched) {
            if *name == names.losses[replica] {
                loss = Some(value.item::<f32>()?);
            } else {
                self.write(value, step)?;
            }
        }
        Ok(loss)
    }

    /// Writes a serialised `Summary`.
    pub(super) fn write(&self, summary: &Tensor, step: u64) -> anyhow::Result<()> {
        let wall = clock::wall_now();
        for bytes in summary.strings()? {
            self.writer.add_summary_bytes(bytes, step as i64, wall);
        }
        Ok(())
    }
}
