//! The command lines of the processes that a launcher starts: the training client, and workers.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Command;

use train::Commands;

use crate::args::{self, Verbosity};

/// Command lines with the options of the launcher's own command line.
pub struct ProcessCommands<'a> {
    /// The launcher's options.
    pub args: &'a args::Train,
    /// How much the client prints.
    pub verbosity: Verbosity,
}

/// A command of this program, built from options.
struct Options(Command);

impl Options {
    fn new() -> io::Result<Options> {
        Ok(Options(Command::new(std::env::current_exe()?)))
    }

    fn value(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.0.args([name, &value.to_string()]);
        }
    }

    fn path(&mut self, name: &str, path: Option<impl AsRef<OsStr>>) {
        if let Some(path) = path {
            self.0.arg(name).arg(path);
        }
    }
}

impl Commands for ProcessCommands<'_> {
    fn client(&self, attempt: u32, cluster: &Path, logdir: &Path, scratch: Option<&Path>) -> io::Result<Command> {
        let (args, training) = (self.args, &self.args.training);
        let mut options = Options::new()?;
        options.0.args(["train", args.name.name(), "--trace", "off"]);
        options.path("--cluster", Some(cluster));
        options.path("--logdir", Some(logdir));
        options.path("--scratch", scratch);
        options.path("--checkpoint-dir", training.checkpoint_dir.as_ref());
        options.value("--attempt", Some(attempt));
        options.value("--seed", Some(training.seed));
        options.value("--steps", training.steps);
        options.value("--learning-rate", training.learning_rate);
        options.value("--checkpoint-every", training.checkpoint_every);
        options.value("--backup-workers", training.backup_workers);
        options.value("--summary-every", training.summary_every);
        options.value("--memory-limit", training.memory_limit);
        options.value("--patience", args.patience);
        let flags = [
            (training.asynchronous, "--async"),
            (training.all_reduce, "--all-reduce"),
            (training.json, "--json"),
            (self.verbosity == Verbosity::Quiet, "--quiet"),
            (self.verbosity == Verbosity::Verbose, "--verbose"),
        ];
        options.0.args(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
        Ok(options.0)
    }

    fn worker(&self, cluster: &Path, task: u16) -> io::Result<Command> {
        let training = &self.args.training;
        let mut options = Options::new()?;
        options.0.args(["worker", "--quiet", "--json", "--until-stdin-ends", "--job", "worker"]);
        options.value("--task", Some(task));
        options.path("--cluster", Some(cluster));
        // The task with whose batches the workers fill their queues.
        options.value("--input", Some(self.args.name.name()));
        options.value("--seed", Some(training.seed));
        options.path("--data", self.args.data.as_ref());
        options.value("--memory-limit", training.memory_limit);
        options.value("--threads", training.threads);
        Ok(options.0)
    }
}
