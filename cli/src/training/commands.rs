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
struct CommandBuilder(Command);

impl CommandBuilder {
    fn new() -> io::Result<CommandBuilder> {
        Ok(CommandBuilder(Command::new(std::env::current_exe()?)))
    }

    fn add_value(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.0.args([name, &value.to_string()]);
        }
    }

    fn add_path(&mut self, name: &str, path: Option<impl AsRef<OsStr>>) {
        if let Some(path) = path {
            self.0.arg(name).arg(path);
        }
    }
}

impl Commands for ProcessCommands<'_> {
    fn client(&self, attempt: u32, cluster: &Path, logdir: &Path, scratch: Option<&Path>) -> io::Result<Command> {
        let (args, training) = (self.args, &self.args.training);
        let mut builder = CommandBuilder::new()?;
        builder.0.args(["train", args.name.name(), "--trace", "off"]);
        builder.add_path("--cluster", Some(cluster));
        builder.add_path("--logdir", Some(logdir));
        builder.add_path("--scratch", scratch);
        builder.add_path("--checkpoint-dir", training.checkpoint_dir.as_ref());
        builder.add_value("--attempt", Some(attempt));
        builder.add_value("--seed", Some(training.seed));
        builder.add_value("--steps", training.steps);
        builder.add_value("--learning-rate", training.learning_rate);
        builder.add_value("--checkpoint-every", training.checkpoint_every);
        builder.add_value("--backup-workers", training.backup_workers);
        builder.add_value("--summary-every", training.summary_every);
        builder.add_value("--memory-limit", training.memory_limit);
        builder.add_value("--patience", args.patience);
        let flags = [
            (training.asynchronous, "--async"),
            (training.all_reduce, "--all-reduce"),
            (training.json, "--json"),
            (self.verbosity == Verbosity::Quiet, "--quiet"),
            (self.verbosity == Verbosity::Verbose, "--verbose"),
        ];
        builder.0.args(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
        Ok(builder.0)
    }

    fn worker(&self, cluster: &Path, task: u16) -> io::Result<Command> {
        let training = &self.args.training;
        let mut builder = CommandBuilder::new()?;
        builder.0.args(["worker", "--quiet", "--json", "--until-stdin-ends", "--job", "worker"]);
        builder.add_value("--task", Some(task));
        builder.add_path("--cluster", Some(cluster));
        // The task with whose batches the workers fill their queues.
        builder.add_value("--input", Some(self.args.name.name()));
        builder.add_value("--seed", Some(training.seed));
        builder.add_path("--data", self.args.data.as_ref());
        builder.add_value("--memory-limit", training.memory_limit);
        builder.add_value("--threads", training.threads);
        Ok(builder.0)
    }
}
