//! `stepscope demo`: trains on one thread and shows the run in the window on the main thread.

use std::sync::Arc;
use std::thread::JoinHandle;

use train::{FinishedRun, Location, Trainer};

use crate::args::{self, Verbosity};
use crate::display;
use crate::outcome::{Failure, Outcome};
use crate::training::{self, meter};
use crate::view;

/// Trains with the window open on the run; without the window on request, or where there is no display.
pub fn run(args: &args::Demo, verbosity: Verbosity) -> Outcome {
    let task = engine::tasks::mlp(engine::data::digits(), args.training.seed);
    let task = task.map_err(|error| Failure::Work(error.into()))?;
    let trainer = Trainer::new("demo", task, &args.training.options(), &Location::Local, training::observer())?;
    let headless = args.headless || args.training.json;
    let missing = display::unavailable_reason().filter(|_| !headless);
    if let Some(reason) = missing {
        note!("{reason}: running without the window");
    }
    if headless || missing.is_some() {
        return training::print_summary(training::train_here(trainer, verbosity)?, args.training.json);
    }
    in_window(trainer, args, verbosity)
}

fn in_window(trainer: Trainer, args: &args::Demo, verbosity: Verbosity) -> Outcome {
    let progress = Arc::clone(trainer.progress());
    training::stop_on_signal(&progress)?;
    let logdir = trainer.logdir().to_path_buf();
    let meter = meter::start(Arc::clone(&progress), verbosity);
    let thread = {
        let thread = std::thread::Builder::new().name("trainer".into());
        let train = move || {
            let trained = trainer.train();
            drop(meter);
            trained
        };
        thread.spawn(train).map_err(|error| Failure::Work(error.into()))?
    };
    let stopping = Arc::clone(&progress);
    let shown = view::show(vec![logdir], args.window, "stepscope demo", Some(Box::new(move || stopping.is_stopping())));
    match shown {
        // Closing the window ends the run.
        Ok(()) => progress.stop(),
        Err(error) => note!("{error}: running without the window"),
    }
    training::print_summary(join(thread)?, args.training.json)
}

fn join(thread: JoinHandle<train::Result<FinishedRun>>) -> Result<FinishedRun, Failure> {
    let panicked = |_| Err(Failure::Work(anyhow::anyhow!("the training thread panicked")));
    thread.join().map_or_else(panicked, |trained| Ok(trained?))
}
