//! The training client of a launcher: a process that may be lost and started again as any other one of the run.

use std::path::PathBuf;
use std::sync::Arc;

use super::cluster::{self, Place};
use super::learned::Learned;
use super::progress::{Meter, Shared};
use super::reports::{self, Report};
use super::run::Run;
use super::trainer::Trainer;
use crate::args::{self, Verbosity};
use crate::outcome::{Failure, Outcome};

/// How a client ends that lost a task, which it has said.
pub(super) const LOST: u8 = 75;

/// Trains for a launcher, which began it `attempt` times before.
pub(super) fn run(args: &args::Train, attempt: u32, verbosity: Verbosity) -> Outcome {
    // How many steps there are is known when the task is.
    let shared = Arc::new(Shared::new(args.training.steps.unwrap_or(0)));
    reports::say_alive(&shared)?;
    let scratch = args.scratch.clone();
    reports::obey(Arc::clone(&shared), move || orphaned(scratch))?;
    match train(args, attempt, verbosity, &shared) {
        Ok(learned) => {
            Report::Learned(Box::new(learned)).tell();
            Ok(())
        }
        Err(Failure::Work(error)) => match cluster::lost(&error) {
            Some(why) => {
                Report::Lost { why }.tell();
                Err(Failure::Command(LOST))
            }
            None => Err(error.into()),
        },
        Err(failure) => Err(failure),
    }
}

fn train(args: &args::Train, attempt: u32, verbosity: Verbosity, shared: &Arc<Shared>) -> Result<Learned, Failure> {
    let place = match &args.cluster {
        Some(file) => Place::Cluster { file: file.clone(), patience: args.patience() },
        None => Place::Here,
    };
    let Some(logdir) = &args.training.logdir else {
        return Err(Failure::wrong_use("--attempt needs --logdir"));
    };
    let task = super::task(args.name, args.data.as_deref(), args.training.seed)?;
    let trainer = Trainer::in_run(Run::join(logdir), task, &args.training, &place)?;
    let trainer = if attempt > 0 { trainer.again() } else { trainer };
    shared.set_steps(trainer.n_steps());
    let meter = Meter::start(Arc::clone(shared), verbosity);
    let learned = trainer.learn(shared);
    meter.end();
    Ok(learned?.0)
}

/// The launcher is gone: nobody wants what this process does, and nobody else cleans up.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread that watches the launcher ends the process; main is in the middle of a step"
)]
fn orphaned(scratch: Option<PathBuf>) {
    if let Some(scratch) = scratch {
        // The workers end, too, and may be removing theirs.
        let _ = std::fs::remove_dir_all(scratch);
    }
    std::process::exit(1);
}
