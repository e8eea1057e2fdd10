//! The launcher of training in several processes: starts the training client and, with `--workers`, the workers; when any of them is
//! lost, ends what is left of the attempt and begins the next one, which continues from the newest whole checkpoint.
//!
//! An attempt has new processes, new sockets and a new job id, so that nothing of an earlier one can reach it. On a cluster the
//! workers are somebody else's: only the client is begun again, which waits for them and takes them anew.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use gather::Scratch;

use super::checkpoints;
use super::client;
use super::learned::Learned;
use super::reports::{self, Report};
use super::run::Run;
use super::trainer::Trained;
use super::workers::{self, NotStarted, Workers};
use crate::args::{self, Verbosity};
use crate::outcome::{Failure, Outcome};
use crate::progress;
use crate::signals;

/// How often processes are looked at.
const PERIOD: Duration = Duration::from_millis(10);
/// How long a client may be silent: as long as any other process of a cluster.
const SILENCE: Duration = Duration::from_millis(2000);
/// How long a client may take to say its first word.
const TO_START: Duration = Duration::from_secs(10);
/// How long a client that was told to end its run may take: it ends its step, saves and tests.
const TO_STOP: Duration = Duration::from_secs(60);
/// How long one that has said all may take to end.
const TO_END: Duration = Duration::from_secs(5);

/// How an attempt ended.
enum Ended {
    /// All steps are done, or it was stopped.
    Learned(Box<Learned>),
    /// A process was lost.
    Lost(String),
    /// The client has said what is wrong, which would be wrong again.
    Failed(u8),
}

/// Trains with processes that are begun again when they are lost, and prints the summary.
pub(super) fn run(args: &args::Train, verbosity: Verbosity) -> Outcome {
    let continues = checkpoints::of(&args.training)?.is_some_and(|saver| !saver.checkpoints().is_empty());
    let scratch = args.workers.map(|_| workers::scratch()).transpose()?;
    let run = Run::begin(args.name.name(), &args.training, continues, args.cluster.as_deref())?;
    let launcher = Launcher { args, verbosity, scratch, run, signals: Arc::default() };
    let signals = Arc::clone(&launcher.signals);
    let on_signal = move || {
        signals.fetch_add(1, Relaxed);
    };
    signals::on_stop(on_signal).map_err(|error| Failure::Work(error.into()))?;
    // The client shows it.
    let shown = progress::ShownElsewhere::begin();
    let (learned, restarts) = launcher.supervise()?;
    drop(shown);
    super::finish(Trained::of(learned, launcher.run, restarts.into()), args.training.json)
}

struct Launcher<'a> {
    args: &'a args::Train,
    verbosity: Verbosity,
    /// Where workers have their sockets, if they are this one's.
    scratch: Option<Scratch>,
    run: Run,
    /// How often somebody asked for the end.
    signals: Arc<AtomicU32>,
}

impl Launcher<'_> {
    /// Attempts until one comes to an end; gives what it learned, and how many were lost.
    fn supervise(&self) -> Result<(Learned, u32), Failure> {
        let budget = self.args.max_restarts();
        let mut restarts = 0;
        loop {
            let why = match self.attempt(restarts)? {
                Ended::Learned(learned) => return Ok((*learned, restarts)),
                Ended::Failed(code) => return Err(Failure::Command(code)),
                Ended::Lost(why) => why,
            };
            if self.signals.load(Relaxed) > 0 {
                return Err(
                    anyhow!("{why}; the run was being stopped, and can be continued from its checkpoints").into()
                );
            }
            if self.args.training.checkpoint_dir.is_none() {
                return Err(
                    anyhow!("{why}; with --checkpoint-dir DIR the run would go on from its newest checkpoint").into()
                );
            }
            if restarts == budget {
                let times = format!("it went on after {restarts} losses before, as --max-restarts {budget} allows");
                return Err(anyhow!("{why}; {times}: the same command continues from the newest checkpoint").into());
            }
            restarts += 1;
            note!("stepscope: {why}; restart {restarts} of at most {budget}");
        }
    }

    /// One attempt, with processes of its own, none of which outlives it.
    fn attempt(&self, number: u32) -> Result<Ended, Failure> {
        let _told = (number > 0).then(|| events::slice(events::site("train", "attempt")));
        let trace = self.run.trace();
        let mut workers = None;
        if let (Some(scratch), Some(n)) = (&self.scratch, self.args.workers) {
            let folder = scratch.path().join(number.to_string());
            match Workers::start(&folder, n, &workers::input_options(self.args), trace) {
                Ok(started) => workers = Some(started),
                Err(NotStarted::Lost(why)) => return Ok(Ended::Lost(why)),
                Err(NotStarted::Failed(error)) => return Err(error.into()),
            }
        }
        let cluster = workers.as_ref().map(|workers| workers.file.clone()).or(self.args.cluster.clone());
        let cluster = cluster.context("a launcher has a cluster")?;
        let mut client = Client::start(self.command(number, &cluster)?, trace)?;
        let mut ended = self.watch(&mut client, workers.as_mut())?;
        drop(client);
        if let (Ended::Learned(learned), Some(workers)) = (&mut ended, workers.take()) {
            workers.end(&mut learned.warnings);
        }
        Ok(ended)
    }

    /// The command of the training client.
    fn command(&self, attempt: u32, cluster: &Path) -> anyhow::Result<Command> {
        let (args, training) = (self.args, &self.args.training);
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["train", args.name.name(), "--attempt", &attempt.to_string()]).arg("--cluster").arg(cluster);
        command.args(["--seed", &training.seed.to_string(), "--trace", "off"]);
        command.arg("--logdir").arg(self.run.folder().path());
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                command.args([name, &value]);
            }
        };
        option("--steps", training.steps.map(|n| n.to_string()));
        option("--learning-rate", training.learning_rate.map(|rate| rate.to_string()));
        option("--checkpoint-every", training.checkpoint_every.map(|n| n.to_string()));
        option("--backup-workers", training.backup_workers.map(|n| n.to_string()));
        option("--summary-every", training.summary_every.map(|n| n.to_string()));
        option("--memory-limit", training.memory_limit.map(|n| n.to_string()));
        option("--patience", args.patience.map(|n| n.to_string()));
        let mut path = |name: &str, value: Option<&PathBuf>| {
            if let Some(value) = value {
                command.arg(name).arg(value);
            }
        };
        path("--checkpoint-dir", training.checkpoint_dir.as_ref());
        let scratch = self.scratch.as_ref().map(|scratch| scratch.path().to_path_buf());
        path("--scratch", scratch.as_ref());
        let flags = [
            (training.asynchronous, "--async"),
            (training.all_reduce, "--all-reduce"),
            (training.json, "--json"),
            (self.verbosity == Verbosity::Quiet, "--quiet"),
            (self.verbosity == Verbosity::Verbose, "--verbose"),
        ];
        command.args(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
        Ok(command)
    }

    /// Waits until the attempt is over: the client ended, or some process is lost.
    fn watch(&self, client: &mut Client, mut workers: Option<&mut Workers>) -> Result<Ended, Failure> {
        let mut told = Told::default();
        let began = events::clock::mono_now();
        let since = |then: i64| Duration::from_nanos((events::clock::mono_now() - then).max(0) as u64);
        let mut stopping = None;
        loop {
            client.hear(&mut told);
            if let Some(status) = client.process.try_wait().context("watching the training client")? {
                client.hear_all(&mut told);
                return Ok(told.conclude(status));
            }
            if let Some(why) = workers.as_mut().and_then(|workers| workers.lost())
                && told.learned.is_none()
            {
                return Ok(Ended::Lost(why));
            }
            let is_silent = match told.last {
                Some(last) => since(last) > SILENCE,
                None => since(began) > TO_START,
            };
            if is_silent {
                return Ok(Ended::Lost("the training client was lost: it is silent".into()));
            }
            let signals = self.signals.load(Relaxed);
            if signals > 0 && stopping.is_none() {
                stopping = Some(events::clock::mono_now());
                client.stop();
            }
            if signals > 1 || stopping.is_some_and(|begin| since(begin) > TO_STOP) {
                return Err(
                    anyhow!("the run was ended before it had saved; it can be continued from its checkpoints").into()
                );
            }
        }
    }
}

/// What the client said so far.
#[derive(Default)]
struct Told {
    /// When it last said anything.
    last: Option<i64>,
    step: u64,
    lost: Option<String>,
    learned: Option<Box<Learned>>,
}

impl Told {
    fn take(&mut self, report: Report) {
        self.last = Some(events::clock::mono_now());
        match report {
            Report::Alive { step } => self.step = step,
            Report::Lost { why } => self.lost = Some(why),
            Report::Learned(learned) => self.learned = Some(learned),
        }
    }

    /// What it means that the client ended so.
    fn conclude(self, status: ExitStatus) -> Ended {
        match (self.learned, self.lost, status.code()) {
            (Some(learned), ..) if status.success() => Ended::Learned(learned),
            (_, Some(why), _) => Ended::Lost(why),
            (.., Some(code)) if code != i32::from(client::LOST) => Ended::Failed(u8::try_from(code).unwrap_or(1)),
            _ => Ended::Lost(format!("the training client was lost after step {}: it ended with {status}", self.step)),
        }
    }
}

/// The training client: killed when this goes.
struct Client {
    process: Child,
    stdin: Option<ChildStdin>,
    reports: Receiver<Report>,
}

impl Client {
    fn start(mut command: Command, trace: Option<&Path>) -> anyhow::Result<Client> {
        workers::as_child(&mut command, trace)?;
        let mut process = command.spawn().context("starting the training client")?;
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().context("its output is a pipe")?;
        Ok(Client { process, stdin, reports: reports::listen(stdout)? })
    }

    /// Hears what it says for a moment.
    fn hear(&mut self, told: &mut Told) {
        match self.reports.recv_timeout(PERIOD) {
            Ok(report) => told.take(report),
            Err(RecvTimeoutError::Timeout) => {}
            // It is ending.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(PERIOD),
        }
    }

    /// Hears what it said before it ended.
    fn hear_all(&mut self, told: &mut Told) {
        while let Ok(report) = self.reports.recv_timeout(TO_END) {
            told.take(report);
        }
    }

    fn stop(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            reports::stop(stdin);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // One that ended already cannot be killed, and is waited for all the same.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
