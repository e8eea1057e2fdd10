//! The training client of a launcher: a process that, like every other process of the run, may be lost and started
//! again.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use crate::backend::{self, Location};
use crate::error::{Result, TrainError};
use crate::event::{Event, Observer};
use crate::launcher_link;
use crate::options::TrainOptions;
use crate::progress::Progress;
use crate::report::Report;
use crate::result::TrainingResult;
use crate::run::Run;
use crate::task::TaskSpec;
use crate::trainer::Trainer;

/// The exit code of a client that lost a task, which it has reported.
pub const LOST: u8 = 75;

/// A run of a launcher, from the client's side.
pub struct ClientRun {
    /// The attempt's number: how often the launcher began the run before.
    pub attempt: u32,
    /// The run's folder, which the launcher made.
    pub logdir: std::path::PathBuf,
    /// The location of training.
    pub location: Location,
    /// The progress of the run.
    pub progress: Arc<Progress>,
}

impl ClientRun {
    /// Starts to obey the launcher's `commands` and to report that the client is alive; calls `orphaned` when the
    /// launcher is gone.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn attach(
        &self,
        commands: impl BufRead + Send + 'static,
        orphaned: impl FnOnce() + Send + 'static,
        observer: &Arc<dyn Observer>,
    ) -> anyhow::Result<()> {
        launcher_link::report_alive(&self.progress, Arc::clone(observer))?;
        let progress = Arc::clone(&self.progress);
        let listen = move || launcher_link::obey(commands, &progress, orphaned);
        let thread = std::thread::Builder::new().name("launcher".into()).spawn(listen);
        thread.map(drop).context("listening to the launcher")
    }

    /// Trains, and reports the result or the loss of a task.
    ///
    /// # Errors
    /// `TrainError::Client` where a task was lost; else as [`Trainer::new`] and [`Trainer::train`].
    pub fn train(&self, task: &TaskSpec, options: &TrainOptions, observer: &Arc<dyn Observer>) -> Result<()> {
        let report = match self.run(&self.logdir, task, options, observer) {
            Ok(result) => Report::Result(Box::new(result)),
            Err(TrainError::Work(error)) => match backend::lost_task(&error) {
                Some(reason) => {
                    observer.event(&Event::Report(&Report::Lost { reason }));
                    return Err(TrainError::Client(LOST));
                }
                None => return Err(error.into()),
            },
            Err(error) => return Err(error),
        };
        observer.event(&Event::Report(&report));
        Ok(())
    }

    fn run(
        &self,
        logdir: &Path,
        task: &TaskSpec,
        options: &TrainOptions,
        observer: &Arc<dyn Observer>,
    ) -> Result<TrainingResult> {
        let (run, progress) = (Run::join(logdir), Arc::clone(&self.progress));
        let trainer = Trainer::in_run(run, task.load()?, options, &self.location, Arc::clone(observer), progress)?;
        Ok(trainer.restarted(self.attempt > 0).run()?.0)
    }
}
