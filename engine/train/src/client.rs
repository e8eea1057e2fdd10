//! The training client of a launcher: the process that trains. When it is lost, the launcher starts it again.

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

/// The exit code of a client that lost a task and has reported the loss.
pub const EXIT_CODE_LOST: u8 = 75;

/// The client's side of a run that a launcher began.
pub struct ClientRun {
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// The run's folder, which the launcher made.
    pub logdir: std::path::PathBuf,
    /// The location of training.
    pub location: Location,
    /// The progress of the run.
    pub progress: Arc<Progress>,
}

impl ClientRun {
    /// Starts to handle the launcher's `commands` and to report that the client is alive; calls `on_orphaned` when
    /// the launcher is gone.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn attach(
        &self,
        commands: impl BufRead + Send + 'static,
        on_orphaned: impl FnOnce() + Send + 'static,
        observer: &Arc<dyn Observer>,
    ) -> anyhow::Result<()> {
        launcher_link::start_heartbeat(&self.progress, Arc::clone(observer))?;
        let progress = Arc::clone(&self.progress);
        let listen = move || launcher_link::handle_commands(commands, &progress, on_orphaned);
        let thread = std::thread::Builder::new().name("launcher".into()).spawn(listen);
        thread.map(drop).context("listening to the launcher")
    }

    /// Trains, and reports either the result or the loss of a task.
    ///
    /// # Errors
    /// `TrainError::Client` where a task was lost; else as [`Trainer::new`] and [`Trainer::train`].
    pub fn train(&self, task: &TaskSpec, options: &TrainOptions, observer: &Arc<dyn Observer>) -> Result<()> {
        let report = match self.run(&self.logdir, task, options, observer) {
            Ok(result) => Report::Result(Box::new(result)),
            Err(TrainError::Work(error)) => match backend::lost_task(&error) {
                Some(reason) => {
                    observer.on_event(&Event::Report(&Report::Lost { reason }));
                    return Err(TrainError::Client(EXIT_CODE_LOST));
                }
                None => return Err(error.into()),
            },
            Err(error) => return Err(error),
        };
        observer.on_event(&Event::Report(&report));
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
        let trainer = Trainer::with_run(run, task.load()?, options, &self.location, Arc::clone(observer), progress)?;
        Ok(trainer.with_restart(self.attempt > 0).run()?.0)
    }
}
