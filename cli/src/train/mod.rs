//! `stepscope train NAME`, and the training that `demo` shares: data, run folder, loop, summary.

mod backups;
mod checkpoints;
mod client;
mod cluster;
mod feeder;
mod gathering;
mod launcher;
mod learned;
mod names;
mod progress;
mod recorded;
mod reports;
mod run;
mod stall;
mod steps;
mod towers;
mod trace_words;
mod tracing;
mod trainer;
pub mod worker;
mod workers;
#[cfg_attr(not(feature = "mpi"), path = "no_world.rs")]
mod world;

use std::path::Path;
use std::sync::Arc;

use engine::models::Unrolling;
use engine::tasks::{self, Task};

use crate::args::{self, Model, Verbosity};
use crate::outcome::{Failure, Outcome};
use crate::signals;
use crate::summary;

pub use cluster::Place;
pub use progress::{Meter, Shared};
pub use tracing::Tracing;
pub use trainer::{Trained, Trainer};

/// Trains a model by name and prints the summary.
pub fn run(args: &args::Train, verbosity: Verbosity) -> Outcome {
    if args.max_restarts.is_some() && args.workers.is_none() && args.cluster.is_none() {
        let text = "--max-restarts is for training in several processes: give --workers or --cluster too";
        return Err(Failure::wrong_use(text));
    }
    if let Some(attempt) = args.attempt {
        return client::run(args, attempt, verbosity);
    }
    if args.cluster.as_deref().is_some_and(world::is_meant) {
        return world::train(args, verbosity);
    }
    let place = match (args.workers, &args.cluster, &args.training.checkpoint_dir) {
        (Some(_), ..) | (None, Some(_), Some(_)) => return launcher::run(args, verbosity),
        (None, Some(file), None) => Place::Cluster { file: file.clone(), patience: args.patience() },
        (None, None, _) => Place::Here,
    };
    let task = task(args.name, args.data.as_deref(), args.training.seed)?;
    let trainer = Trainer::new(args.name.name(), task, &args.training, &place)?;
    finish(train_here(trainer, verbosity)?, args.training.json)
}

/// The task of a name, on the user's data where given.
fn task(name: Model, data: Option<&Path>, seed: u64) -> Result<Task, Failure> {
    let digits = || match data {
        Some(path) => engine::data::digits_from(path).map_err(Failure::wrong_use),
        None => Ok(engine::data::digits()),
    };
    if data.is_some() && !name.learns_digits() {
        return Err(Failure::wrong_use(format_args!("{} makes its own text; --data is for digits", name.name())));
    }
    let task = match name {
        Model::Mlp => tasks::mlp(digits()?, seed),
        Model::Convnet => tasks::convnet(&digits()?, seed),
        Model::Inception => tasks::inception(&digits()?, seed),
        Model::Lstm => tasks::language_model(Unrolling::Unrolled, seed),
        Model::LstmWhile => tasks::language_model(Unrolling::While, seed),
        Model::Embeddings => tasks::embeddings(seed),
    };
    task.map_err(|error| Failure::Work(error.into()))
}

/// Trains on this thread, with progress on stderr.
pub fn train_here(trainer: Trainer, verbosity: Verbosity) -> Result<Trained, Failure> {
    let shared = Arc::new(Shared::new(trainer.n_steps()));
    stop_on_signal(&shared)?;
    let meter = Meter::start(Arc::clone(&shared), verbosity);
    let trained = trainer.train(&shared);
    meter.end();
    trained
}

/// Ctrl-C and SIGTERM end the run at the next step, with everything written.
pub fn stop_on_signal(shared: &Arc<Shared>) -> Result<(), Failure> {
    let shared = Arc::clone(shared);
    signals::on_stop(move || shared.stop()).map_err(|error| Failure::Work(error.into()))
}

/// Prints what came out.
pub fn finish(trained: Trained, json: bool) -> Outcome {
    let summary = summary::Summary::of(trained)?;
    if json {
        summary.print_json();
    } else {
        summary.print();
    }
    Ok(())
}
