//! Checkpoints of a training run: restored when it starts, saved as it goes and at its end.

use std::path::Path;
use std::sync::PoisonError;

use anyhow::Context;
use engine::checkpoint::{CheckpointError, Restored, Saver, SaverOptions};
use engine::{RunOptions, Tensor};
use formats::proto::event::What;
use formats::proto::{Event, SessionLog, session_log};

use super::cluster::{Backend, Runner};
use super::names::RemoteNames;
use super::progress::Shared;
use super::towers::Towers;
use super::trainer::Trainer;
use crate::args::Training;
use crate::outcome::Failure;

/// Steps between checkpoints, unless the user says.
const EVERY: u64 = 100;

/// The saver that the user wants, if any.
pub(super) fn of(training: &Training) -> Result<Option<Saver>, Failure> {
    training.checkpoint_dir.as_deref().map(|place| saver(place, training.checkpoint_every)).transpose()
}

/// The saver of a folder, or of a place `s3://BUCKET/PREFIX`.
fn saver(place: &Path, every: Option<u64>) -> Result<Saver, Failure> {
    let options = SaverOptions { every_steps: Some(every.unwrap_or(EVERY)), ..SaverOptions::default() };
    match place.to_str().filter(|text| text.starts_with("s3://")) {
        Some(url) => in_store(url, options),
        None => {
            // Absolute: the tasks of a cluster may have other working folders.
            let place = std::path::absolute(place).map_err(Failure::wrong_use)?;
            Saver::new(place, options).map_err(Failure::wrong_use)
        }
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
        let restored = self.restore_state()?;
        if let Some(restored) = &restored {
            for warning in &restored.warnings {
                note!("warning: {warning}");
            }
            let (step, at) = (restored.step, restored.prefix.display());
            // One that was lost when all steps were done is only tested again.
            if step >= self.steps && !self.is_restart {
                return Err(Failure::wrong_use(format_args!(
                    "{at} is of step {step}: nothing is left to train; give more --steps"
                )));
            }
            note!("continuing after step {step} from {at}");
            shared.begin(step, 0);
            self.restored = Some(step);
        }
        let restart = (self.restored.is_some() || self.is_restart).then(|| self.restart());
        if let Some(restart) = &restart {
            self.writer.add_event(restart);
        }
        self.towers = Towers::open(&self.names.towers, &self.runner, self.logdir(), restart.as_ref())?;
        match &self.runner.backend {
            Backend::Here(_) => self.skip_input(),
            Backend::Cluster(_) => Ok(self.position_input()?),
        }
    }

    fn restore_state(&mut self) -> Result<Option<Restored>, Failure> {
        let Some(saver) = &mut self.saver else { return Ok(None) };
        let saver = saver.get_mut().unwrap_or_else(PoisonError::into_inner);
        let restored = match (&self.runner.backend, &self.names.remote) {
            (Backend::Cluster(session), Some(names)) => {
                let run = |prefix: &Path| restore_there(&self.runner, names, prefix);
                saver.restore_by(session.graph(), run).map_err(Stopped::into_failure)?
            }
            (Backend::Here(session), _) => saver.restore(session).map_err(Failure::wrong_use)?,
            (Backend::Cluster(_), None) => None,
        };
        if restored.is_none() {
            // The first interval begins here.
            saver.is_due(0);
        }
        Ok(restored)
    }

    /// By this readers of the summaries forget what an earlier attempt wrote of the steps that are done again.
    fn restart(&self) -> Event {
        let log = SessionLog { status: session_log::SessionStatus::Start.into(), ..SessionLog::default() };
        Event {
            wall_time: events::clock::wall_now(),
            step: self.restored.unwrap_or(0) as i64 + 1,
            what: Some(What::SessionLog(log)),
            source_metadata: None,
        }
    }

    /// Drops the batches that the steps before took, and those that wait in the queue.
    fn skip_input(&mut self) -> Result<(), Failure> {
        let (Some(step), Backend::Here(session)) = (self.restored, &self.runner.backend) else { return Ok(()) };
        let queued = match &self.names.enqueue {
            Some(names) => session.run(&[], &[&names.size], &[]).context("looking at the input queue")?[0]
                .item::<i32>()
                .context("looking at the input queue")?,
            None => 0,
        };
        let towers = self.names.feeds.len() / self.names.train_ops.len();
        let used = step * towers as u64 + u64::try_from(queued).unwrap_or(0);
        let next_batch = self.next_batch.get_mut().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..used {
            drop(next_batch());
        }
        Ok(())
    }

    /// Tells each task where its input begins: what the steps before took follows from their number.
    fn position_input(&self) -> anyhow::Result<()> {
        let Some(names) = &self.names.remote else { return Ok(()) };
        let (step, n) = (self.restored.unwrap_or(0), self.names.train_ops.len() as u64);
        // Asynchronous: the towers share the steps.
        let taken = |tower: usize| step / n + u64::from((tower as u64) < step % n);
        let positions = names.positions.iter().enumerate();
        let feeds: Vec<(&str, Tensor)> =
            positions.map(|(tower, (feed, _))| (feed.as_str(), Tensor::scalar(taken(tower) as i64))).collect();
        let tell: Vec<&str> = names.positions.iter().map(|(_, tell)| tell.as_str()).collect();
        let options = RunOptions { label: "input", ..RunOptions::default() };
        self.runner.run_step(&options, &feeds, &[], &tell).context("telling the tasks where their input begins")?;
        Ok(())
    }

    /// Saves when it is time.
    pub(super) fn save(&self, step: u64) -> anyhow::Result<()> {
        let Some(saver) = &self.saver else { return Ok(()) };
        let mut saver = saver.lock().unwrap_or_else(PoisonError::into_inner);
        if saver.is_due(step) {
            // A run that goes on from here does not do again what these tell of. What is lost of them is told at the end.
            let _ = self.writer.flush();
        }
        match &self.runner.backend {
            Backend::Here(session) => saver.after_step(session, step).map(drop).context("saving a checkpoint"),
            Backend::Cluster(_) if saver.is_due(step) => self.save_there(&mut saver, step),
            Backend::Cluster(_) => Ok(()),
        }
    }

    /// Saves the end of the run.
    pub(super) fn save_last(&self, step: u64) -> anyhow::Result<()> {
        let Some(saver) = &self.saver else { return Ok(()) };
        // It is there already, and may have been all that was left to do.
        if self.restored == Some(step) {
            return Ok(());
        }
        let mut saver = saver.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.runner.backend {
            Backend::Here(session) => saver.save(session, step).map(drop).context("saving a checkpoint"),
            // The last step may have been one after which it was time.
            Backend::Cluster(_) if saver.last_step() == Some(step) => Ok(()),
            Backend::Cluster(_) => self.save_there(&mut saver, step),
        }
    }

    /// Has the tasks write what they hold.
    fn save_there(&self, saver: &mut Saver, step: u64) -> anyhow::Result<()> {
        let Some(names) = &self.names.remote else { return Ok(()) };
        let write = |prefix: &Path| {
            let parts = names.parts.iter().enumerate();
            let mut feeds: Vec<(&str, Tensor)> =
                parts.map(|(i, feed)| (feed.as_str(), text(&Saver::part(prefix, i)))).collect();
            feeds.push((names.prefix.as_str(), text(prefix)));
            let options = RunOptions { label: "save", ..RunOptions::default() };
            self.runner.run_step(&options, &feeds, &[], &[&names.save]).map(drop).map_err(Stopped::Step)
        };
        saver.save_by(step, write).map(drop).map_err(Stopped::into_error).context("saving a checkpoint")
    }
}

/// Has the tasks take what the checkpoint has.
fn restore_there(runner: &Runner, names: &RemoteNames, prefix: &Path) -> Result<(), Stopped> {
    let options = RunOptions { label: "restore", ..RunOptions::default() };
    let feeds = [(names.prefix.as_str(), text(prefix))];
    runner.run_step(&options, &feeds, &[], &[&names.restore]).map(drop).map_err(Stopped::Step)
}

fn text(prefix: &Path) -> Tensor {
    Tensor::string(prefix.to_string_lossy().into_owned())
}

/// What kept tasks from saving or restoring.
enum Stopped {
    Checkpoint(CheckpointError),
    Step(anyhow::Error),
}

impl From<CheckpointError> for Stopped {
    fn from(error: CheckpointError) -> Stopped {
        Stopped::Checkpoint(error)
    }
}

impl Stopped {
    fn into_error(self) -> anyhow::Error {
        match self {
            Stopped::Checkpoint(error) => error.into(),
            Stopped::Step(error) => error,
        }
    }

    fn into_failure(self) -> Failure {
        match self {
            // A folder that another model's checkpoints are in, or only damaged ones.
            Stopped::Checkpoint(error) => Failure::wrong_use(error),
            Stopped::Step(error) => Failure::Work(error.context("restoring the checkpoint")),
        }
    }
}
