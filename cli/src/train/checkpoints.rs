//! Checkpoints of a training run: restored when it starts, saved as it goes and at its end.

use std::path::Path;
use std::sync::PoisonError;

use anyhow::Context;
use engine::checkpoint::{Saver, SaverOptions};

use super::cluster::Runner;
use super::progress::Shared;
use super::trainer::Trainer;
use crate::outcome::Failure;

/// Steps between checkpoints, unless the user says.
const EVERY: u64 = 100;

/// The saver of a folder, or of a place `s3://BUCKET/PREFIX`.
pub(super) fn saver(place: &Path, every: Option<u64>) -> Result<Saver, Failure> {
    let options = SaverOptions { every_steps: Some(every.unwrap_or(EVERY)), ..SaverOptions::default() };
    match place.to_str().filter(|text| text.starts_with("s3://")) {
        Some(url) => in_store(url, options),
        None => Saver::new(place, options).map_err(Failure::wrong_use),
    }
}

#[cfg(feature = "s3")]
fn in_store(url: &str, options: SaverOptions) -> Result<Saver, Failure> {
    use std::sync::Arc;

    use engine::checkpoint::ObjectStoreFiles;

    let store = Arc::new(ObjectStoreFiles::open(url).map_err(Failure::wrong_use)?);
    let (process, now) = (std::process::id(), events::clock::wall_now_ns());
    let folder = std::env::temp_dir().join(format!("stepscope-checkpoints-{process}-{now}"));
    Saver::in_store(store, folder, options).map_err(Failure::wrong_use)
}

#[cfg(not(feature = "s3"))]
fn in_store(url: &str, _: SaverOptions) -> Result<Saver, Failure> {
    Err(Failure::wrong_use(format_args!("{url}: this build knows no object stores: build it with --features s3")))
}

impl Trainer {
    /// Continues from the newest whole checkpoint, if there is one: variables, queue, random state, and the input's
    /// position.
    pub(super) fn restore(&mut self, shared: &Shared) -> Result<(), Failure> {
        let (Some(saver), Runner::Here(session)) = (&mut self.saver, &self.runner) else { return Ok(()) };
        let saver = saver.get_mut().unwrap_or_else(PoisonError::into_inner);
        let restored = saver.restore(session).map_err(Failure::wrong_use)?;
        let Some(restored) = restored else {
            // The first interval begins here.
            saver.after_step(session, 0).context("saving a checkpoint")?;
            return Ok(());
        };
        for warning in &restored.warnings {
            eprintln!("warning: {warning}");
        }
        if restored.step >= self.steps {
            let (step, at) = (restored.step, restored.prefix.display());
            return Err(Failure::wrong_use(format_args!(
                "{at} is of step {step}: nothing is left to train; give more --steps"
            )));
        }
        eprintln!("continuing after step {} from {}", restored.step, restored.prefix.display());
        shared.step_done(restored.step);
        self.restored = Some(restored.step);
        let queued = match &self.names.enqueue {
            Some(names) => session.run(&[], &[&names.size], &[]).context("looking at the input queue")?[0]
                .item::<i32>()
                .context("looking at the input queue")?,
            None => 0,
        };
        let towers = self.names.feeds.len() / self.names.train_ops.len();
        let used = restored.step * towers as u64 + u64::try_from(queued).unwrap_or(0);
        let next_batch = self.next_batch.get_mut().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..used {
            drop(next_batch());
        }
        Ok(())
    }

    /// Saves when it is time.
    pub(super) fn save(&self, step: u64) -> anyhow::Result<()> {
        if let (Some(saver), Runner::Here(session)) = (&self.saver, &self.runner) {
            let mut saver = saver.lock().unwrap_or_else(PoisonError::into_inner);
            saver.after_step(session, step).context("saving a checkpoint")?;
        }
        Ok(())
    }

    /// Saves the end of the run.
    pub(super) fn save_last(&self, step: u64) -> anyhow::Result<()> {
        if let (Some(saver), Runner::Here(session)) = (&self.saver, &self.runner) {
            let mut saver = saver.lock().unwrap_or_else(PoisonError::into_inner);
            saver.save(session, step).context("saving a checkpoint")?;
        }
        Ok(())
    }
}
