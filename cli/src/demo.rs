//! `stepscope demo`: train on one thread, show it in the window on the main thread.

use std::sync::Arc;

use crate::args::{self, Verbosity};
use crate::display;
use crate::outcome::{Failure, Outcome};
use crate::train::{self, Meter, Place, Shared, Trained, Trainer};
use crate::view;

/// Trains with the window open on the run; without a display, or on request, without it.
pub fn run(args: &args::Demo, verbosity: Verbosity) -> Outcome {
    let task = engine::tasks::mlp(engine::data::digits(), args.training.seed);
    let trainer =
        Trainer::new("demo", task.map_err(|error| Failure::Work(error.into()))?, &args.training, &Place::Here)?;
    let headless = args.headless || args.training.json;
    let missing = display::missing().filter(|_| !headless);
    if let Some(reason) = missing {
        note!("{reason}: running without the window");
    }
    if headless || missing.is_some() {
        let trained = train::train_here(trainer, verbosity)?;
        return train::finish(trained, args.training.json);
    }
    in_window(trainer, args, verbosity)
}

fn in_window(trainer: Trainer, args: &args::Demo, verbosity: Verbosity) -> Outcome {
    let shared = Arc::new(Shared::new(trainer.n_steps()));
    train::stop_on_signal(&shared)?;
    let logdir = trainer.logdir().to_path_buf();
    let meter = Meter::start(Arc::clone(&shared), verbosity);
    let training = {
        let shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("trainer".into());
        let train = move || {
            let trained = trainer.train(&shared);
            meter.end();
            trained
        };
        thread.spawn(train).map_err(|error| Failure::Work(error.into()))?
    };
    let stopped = Arc::clone(&shared);
    let shown = view::show(vec![logdir], args.window, "stepscope demo", Some(Box::new(move || stopped.stopped())));
    match shown {
        // The window was closed: the run ends with it.
        Ok(()) => shared.stop(),
        Err(error) => note!("{error}: running without the window"),
    }
    train::finish(join(training)?, args.training.json)
}

fn join(training: std::thread::JoinHandle<Result<Trained, Failure>>) -> Result<Trained, Failure> {
    training.join().unwrap_or_else(|_| Err(Failure::Work(anyhow::anyhow!("the training thread panicked"))))
}
