//! `stepscope train NAME`, and its parts that `demo` also uses: calls the library and prints its events and progress.

mod commands;
mod events;
pub mod meter;
mod worker;

use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use train::client::ClientRun;
use train::{FinishedRun, LaunchOptions, Launcher, Location, Progress, Trainer, mpi};

use crate::args::{self, Verbosity};
use crate::outcome::{Failure, Outcome};
use crate::progress::HiddenGuard;
use crate::signals;
use crate::summary::Summary;

use commands::ProcessCommands;
pub use events::observer;
pub use worker::run as run_worker;

/// Trains a model by name and prints the summary.
pub fn run(args: &args::Train, verbosity: Verbosity) -> Outcome {
    if args.max_restarts.is_some() && args.workers.is_none() && args.cluster.is_none() {
        let text = "--max-restarts is for training in several processes: give --workers or --cluster too";
        return Err(Failure::wrong_use(text));
    }
    if let Some(attempt) = args.attempt {
        return run_client(args, attempt, verbosity);
    }
    if args.cluster.as_deref().is_some_and(mpi::is_requested) {
        return mpi::run_in_cluster(|file| {
            run(&args::Train { cluster: Some(file.to_owned()), ..args.clone() }, verbosity)
        });
    }
    if args.workers.is_some() || args.cluster.is_some() && args.training.checkpoint_dir.is_some() {
        return launch(args, verbosity);
    }
    let task = args.task().load()?;
    let trainer = Trainer::new(args.name.name(), task, &args.training.options(), &location(args), observer())?;
    print_summary(train_here(trainer, verbosity)?, args.training.json)
}

/// Trains on this thread, with progress on stderr.
pub fn train_here(trainer: Trainer, verbosity: Verbosity) -> Result<FinishedRun, Failure> {
    stop_on_signal(trainer.progress())?;
    let meter = meter::start(Arc::clone(trainer.progress()), verbosity);
    let trained = trainer.train();
    drop(meter);
    Ok(trained?)
}

/// Makes Ctrl-C and SIGTERM end the run after the current step, with everything written.
pub fn stop_on_signal(progress: &Arc<Progress>) -> Result<(), Failure> {
    let progress = Arc::clone(progress);
    Ok(signals::on_stop(move || progress.stop())?)
}

/// Prints the summary of a run.
pub fn print_summary(run: FinishedRun, json: bool) -> Outcome {
    let summary = Summary::read(run)?;
    if json {
        summary.print_json();
    } else {
        summary.print();
    }
    Ok(())
}

/// The location of training, unless the launcher starts workers.
fn location(args: &args::Train) -> Location {
    match &args.cluster {
        Some(file) => Location::Cluster { file: file.clone(), patience: args.patience() },
        None => Location::Local,
    }
}

/// Trains in several processes, which are started again when one is lost.
fn launch(args: &args::Train, verbosity: Verbosity) -> Outcome {
    let options = LaunchOptions {
        n_workers: args.workers,
        cluster: args.cluster.clone(),
        max_restarts: args.max_restarts.unwrap_or(args::DEFAULT_MAX_RESTARTS),
    };
    let launcher = Launcher::new(args.name.name(), &args.training.options(), options, observer())?;
    let stop = launcher.stop_signal();
    signals::on_stop(move || stop.send())?;
    // The client shows the progress.
    let hidden = HiddenGuard::begin();
    let run = launcher.train(&ProcessCommands { args, verbosity })?;
    drop(hidden);
    print_summary(run, args.training.json)
}

/// Trains for a launcher, which started the run `attempt` times before.
fn run_client(args: &args::Train, attempt: u32, verbosity: Verbosity) -> Outcome {
    let Some(logdir) = args.training.logdir.clone() else {
        return Err(Failure::wrong_use("--attempt needs --logdir"));
    };
    let progress = Arc::new(Progress::new(args.training.steps.unwrap_or(0)));
    let run = ClientRun { attempt, logdir, location: location(args), progress: Arc::clone(&progress) };
    let (observer, scratch) = (observer(), args.scratch.clone());
    run.attach(BufReader::new(std::io::stdin()), move || end_orphaned(scratch), &observer)?;
    let meter = meter::start(progress, verbosity);
    let trained = run.train(&args.task(), &args.training.options(), &observer);
    drop(meter);
    Ok(trained?)
}

/// Ends a client whose launcher is gone: removes the scratch folder, which no other process does.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread that watches the launcher ends the process; main is in the middle of a step"
)]
fn end_orphaned(scratch: Option<PathBuf>) {
    if let Some(scratch) = scratch {
        // Removing may fail while the workers, which end too, remove their sockets.
        let _ = std::fs::remove_dir_all(scratch);
    }
    std::process::exit(1);
}
