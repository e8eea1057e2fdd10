//! The launcher of training in several processes: starts the training client and its workers, if it has any. When a
//! process is lost, it ends the others of the attempt and begins the next attempt, which continues from the newest
//! complete checkpoint.
//!
//! An attempt has new processes, new sockets and a new job id, so that no process of an earlier attempt can reach it.
//! On a cluster that already runs, the launcher starts only the client again, which waits for the workers and takes
//! them over.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use gather::Scratch;

use crate::checkpointer::has_checkpoints;
use crate::client;
use crate::error::{Result, TrainError};
use crate::event::{Event, Observer};
use crate::finished_run::FinishedRun;
use crate::launcher_link;
use crate::options::TrainOptions;
use crate::report::Report;
use crate::result::TrainingResult;
use crate::run::Run;
use crate::worker_processes::{StartError, WorkerProcesses, configure_child, scratch_folder};

/// How often processes are checked.
const POLL_PERIOD: Duration = Duration::from_millis(10);
/// How long a client may send no report before it counts as lost: as long as every other process of a cluster.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(2000);
/// How long a client may take until its first report.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to end its run on request: it ends its step, saves and tests.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may take to end after its last report.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The command lines of a run's processes.
pub trait Commands {
    /// The command of the training client in attempt number `attempt`, from 0.
    ///
    /// # Errors
    /// This program cannot be found.
    fn client(&self, attempt: u32, cluster: &Path, logdir: &Path, scratch: Option<&Path>) -> io::Result<Command>;

    /// The command of a worker.
    ///
    /// # Errors
    /// This program cannot be found.
    fn worker(&self, cluster: &Path, task: u16) -> io::Result<Command>;
}

/// The processes of a run.
#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// How many workers the launcher starts.
    pub n_workers: Option<u16>,
    /// The cluster whose workers train, where the launcher has none of its own.
    pub cluster: Option<PathBuf>,
    /// How often the run may start again.
    pub max_restarts: u32,
}

/// The number of requests to end a run.
#[derive(Clone, Default)]
pub struct StopSignal(Arc<AtomicU32>);

impl StopSignal {
    /// Requests the end of the run; after a second request the run ends without saving.
    pub fn send(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    fn count(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// How an attempt ended.
#[derive(Debug)]
enum AttemptEnd {
    /// All steps are done, or the run was stopped.
    Result(Box<TrainingResult>),
    /// A process was lost.
    Lost(String),
    /// The client failed for a reason that a restart does not remove, and has reported it; the exit code.
    Failed(u8),
}

/// Trains with processes that are started again when they are lost.
pub struct Launcher {
    options: LaunchOptions,
    has_checkpoint_dir: bool,
    /// The folder of the workers' sockets, if the launcher starts workers.
    scratch: Option<Scratch>,
    run: Run,
    stop: StopSignal,
    observer: Arc<dyn Observer>,
}

impl Launcher {
    /// Makes the run's folder and begins its trace.
    ///
    /// # Errors
    /// `TrainError::Usage` when the folder is in use, `TrainError::Work` for everything else.
    pub fn new(
        name: &str,
        train_options: &TrainOptions,
        options: LaunchOptions,
        observer: Arc<dyn Observer>,
    ) -> Result<Launcher> {
        let continues = has_checkpoints(train_options)?;
        let scratch = options.n_workers.map(|_| scratch_folder()).transpose()?;
        let run = Run::begin(name, train_options, continues, options.cluster.as_deref())?;
        let has_checkpoint_dir = train_options.checkpoint_dir.is_some();
        Ok(Launcher { options, has_checkpoint_dir, scratch, run, stop: StopSignal::default(), observer })
    }

    /// The signal that requests the end of the run.
    pub fn stop_signal(&self) -> StopSignal {
        self.stop.clone()
    }

    /// Runs attempts until one ends with a result.
    ///
    /// # Errors
    /// An attempt failed, or a process was lost after `max_restarts` restarts.
    pub fn train(self, commands: &dyn Commands) -> Result<FinishedRun> {
        let mut restarts = 0;
        let result = loop {
            let reason = match self.attempt(restarts, commands)? {
                AttemptEnd::Result(result) => break *result,
                AttemptEnd::Failed(code) => return Err(TrainError::Client(code)),
                AttemptEnd::Lost(reason) => reason,
            };
            let max = self.options.max_restarts;
            let checked = check_restart(restarts, max, self.stop.count() > 0, self.has_checkpoint_dir);
            checked.map_err(|hint| anyhow!("{reason}; {hint}"))?;
            restarts += 1;
            self.observer.on_event(&Event::Restarting { reason: &reason, restart: restarts, max });
        };
        Ok(FinishedRun::finish(result, self.run, restarts.into()))
    }

    /// Runs one attempt with processes of its own, none of which outlives it.
    fn attempt(&self, number: u32, commands: &dyn Commands) -> Result<AttemptEnd> {
        let _slice = (number > 0).then(|| events::slice(events::site("train", "attempt")));
        let trace = self.run.trace();
        let mut workers = None;
        if let (Some(scratch), Some(n)) = (&self.scratch, self.options.n_workers) {
            let folder = scratch.path().join(number.to_string());
            let command = |cluster: &Path, task| commands.worker(cluster, task);
            match WorkerProcesses::start(&folder, n, command, trace) {
                Ok(started) => workers = Some(started),
                Err(StartError::Lost(reason)) => return Ok(AttemptEnd::Lost(reason)),
                Err(StartError::Failed(error)) => return Err(error.into()),
            }
        }
        let cluster = workers.as_ref().map(|workers| workers.file.clone()).or(self.options.cluster.clone());
        let cluster = cluster.context("a launcher has a cluster")?;
        let scratch = self.scratch.as_ref().map(Scratch::path);
        let command = commands.client(number, &cluster, self.run.folder().path(), scratch);
        let mut client = Client::start(command.context("starting the training client")?, trace)?;
        let mut ended = self.watch(&mut client, workers.as_mut())?;
        drop(client);
        if let (AttemptEnd::Result(result), Some(workers)) = (&mut ended, workers.take()) {
            workers.end(&mut result.warnings);
        }
        Ok(ended)
    }

    /// Waits until the attempt is over: the client ended, or a process was lost.
    fn watch(&self, client: &mut Client, mut workers: Option<&mut WorkerProcesses>) -> Result<AttemptEnd> {
        let mut state = ClientState::new(events::clock::mono_now());
        let mut stop_sent_ns = None;
        loop {
            client.receive(&mut state);
            if let Some(status) = client.process.try_wait().context("watching the training client")? {
                client.receive_rest(&mut state);
                return Ok(state.conclude(status));
            }
            if let Some(reason) = workers.as_mut().and_then(|workers| workers.find_lost())
                && state.result.is_none()
            {
                return Ok(AttemptEnd::Lost(reason));
            }
            let now_ns = events::clock::mono_now();
            if state.is_silent(now_ns) {
                return Ok(AttemptEnd::Lost("the training client was lost: it is silent".into()));
            }
            let signals = self.stop.count();
            if signals > 0 && stop_sent_ns.is_none() {
                stop_sent_ns = Some(now_ns);
                client.stop();
            }
            if signals > 1 || stop_sent_ns.is_some_and(|sent_ns| elapsed(sent_ns, now_ns) > STOP_TIMEOUT) {
                return Err(
                    anyhow!("the run was ended before it had saved; it can be continued from its checkpoints").into()
                );
            }
        }
    }
}

/// Checks that a run that lost a process after `restarts` restarts may start again; the error says what the user can
/// do.
fn check_restart(
    restarts: u32,
    max: u32,
    is_stopping: bool,
    has_checkpoint_dir: bool,
) -> std::result::Result<(), String> {
    if is_stopping {
        return Err("the run was being stopped, and can be continued from its checkpoints".into());
    }
    if !has_checkpoint_dir {
        return Err("with --checkpoint-dir DIR the run would continue from its newest checkpoint".into());
    }
    if restarts >= max {
        return Err(format!(
            "it went on after {restarts} losses before, as --max-restarts {max} allows: \
             the same command continues from the newest checkpoint"
        ));
    }
    Ok(())
}

fn elapsed(from_ns: i64, to_ns: i64) -> Duration {
    Duration::from_nanos((to_ns - from_ns).max(0).unsigned_abs())
}

/// The reports of a client so far.
struct ClientState {
    started_ns: i64,
    /// The time of the last report.
    last_report_ns: Option<i64>,
    step: u64,
    /// The reason of the loss that the client reported.
    lost_reason: Option<String>,
    result: Option<Box<TrainingResult>>,
}

impl ClientState {
    fn new(started_ns: i64) -> ClientState {
        ClientState { started_ns, last_report_ns: None, step: 0, lost_reason: None, result: None }
    }

    fn apply(&mut self, report: Report, now_ns: i64) {
        self.last_report_ns = Some(now_ns);
        match report {
            Report::Alive { step } => self.step = step,
            Report::Lost { reason } => self.lost_reason = Some(reason),
            Report::Result(result) => self.result = Some(result),
        }
    }

    /// Whether the client has sent no report for so long that it counts as lost.
    fn is_silent(&self, now_ns: i64) -> bool {
        match self.last_report_ns {
            Some(last_ns) => elapsed(last_ns, now_ns) > SILENCE_TIMEOUT,
            None => elapsed(self.started_ns, now_ns) > START_TIMEOUT,
        }
    }

    /// Returns how the attempt ended, from the exit status of its client.
    fn conclude(self, status: ExitStatus) -> AttemptEnd {
        match (self.result, self.lost_reason, status.code()) {
            (Some(result), ..) if status.success() => AttemptEnd::Result(result),
            (_, Some(reason), _) => AttemptEnd::Lost(reason),
            (.., Some(code)) if code != i32::from(client::EXIT_CODE_LOST) => {
                AttemptEnd::Failed(u8::try_from(code).unwrap_or(1))
            }
            _ => {
                let step = self.step;
                AttemptEnd::Lost(format!("the training client was lost after step {step}: it ended with {status}"))
            }
        }
    }
}

/// The training client's process, killed when the `Client` is dropped.
struct Client {
    process: Child,
    stdin: Option<ChildStdin>,
    reports: Receiver<Report>,
}

impl Client {
    fn start(mut command: Command, trace: Option<&Path>) -> anyhow::Result<Client> {
        configure_child(&mut command, trace)?;
        let mut process = command.spawn().context("starting the training client")?;
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().context("its output is a pipe")?;
        Ok(Client { process, stdin, reports: launcher_link::read_reports(stdout)? })
    }

    /// Receives one report, or waits [`POLL_PERIOD`].
    fn receive(&mut self, state: &mut ClientState) {
        match self.reports.recv_timeout(POLL_PERIOD) {
            Ok(report) => state.apply(report, events::clock::mono_now()),
            Err(RecvTimeoutError::Timeout) => {}
            // The client is ending, and `watch` polls its status.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL_PERIOD),
        }
    }

    /// Receives the reports that the client sent before it ended.
    fn receive_rest(&mut self, state: &mut ClientState) {
        while let Ok(report) = self.reports.recv_timeout(END_TIMEOUT) {
            state.apply(report, events::clock::mono_now());
        }
    }

    fn stop(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            launcher_link::send_stop(stdin);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Killing fails if the process has ended; waiting is needed in either case.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    use crate::result::tests::result;

    const SECOND: i64 = 1_000_000_000;

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    fn killed() -> ExitStatus {
        ExitStatus::from_raw(9)
    }

    #[test]
    fn a_run_restarts_as_often_as_it_may() {
        assert!(check_restart(0, 2, false, true).is_ok() && check_restart(1, 2, false, true).is_ok());
        let hint = check_restart(2, 2, false, true).unwrap_err();
        assert!(hint.starts_with("it went on after 2 losses before, as --max-restarts 2 allows"), "{hint}");
        assert!(check_restart(0, 0, false, true).is_err(), "none are allowed");
    }

    #[test]
    fn a_run_restarts_from_checkpoints_only_and_not_when_it_is_stopped() {
        assert!(check_restart(0, 9, false, false).unwrap_err().contains("--checkpoint-dir"));
        assert!(check_restart(0, 9, true, true).unwrap_err().contains("being stopped"));
    }

    #[test]
    fn a_client_may_be_silent_longer_before_its_first_report() {
        let mut state = ClientState::new(0);
        assert!(!state.is_silent(9 * SECOND) && state.is_silent(11 * SECOND));
        state.apply(Report::Alive { step: 3 }, 11 * SECOND);
        assert!(!state.is_silent(12 * SECOND) && state.is_silent(14 * SECOND));
        assert!(!state.is_silent(0), "clocks of processors may differ a little");
    }

    #[test]
    fn a_client_with_a_result_has_finished_if_it_ended_well() {
        let with_result = || {
            let mut state = ClientState::new(0);
            state.apply(Report::Result(Box::new(result())), 1);
            state
        };
        assert!(matches!(with_result().conclude(exited(0)), AttemptEnd::Result(result) if result.steps == 7));
        assert!(matches!(with_result().conclude(killed()), AttemptEnd::Lost(_)));
    }

    #[test]
    fn a_client_that_lost_a_task_is_lost_and_one_that_failed_is_not() {
        let mut state = ClientState::new(0);
        state.apply(Report::Lost { reason: "task 1 is gone".into() }, 1);
        let ended = state.conclude(exited(client::EXIT_CODE_LOST.into()));
        assert!(matches!(ended, AttemptEnd::Lost(reason) if reason == "task 1 is gone"));
        assert!(matches!(ClientState::new(0).conclude(exited(2)), AttemptEnd::Failed(2)));
    }

    #[test]
    fn a_client_that_was_killed_is_lost_after_its_last_step() {
        let mut state = ClientState::new(0);
        state.apply(Report::Alive { step: 41 }, 1);
        let AttemptEnd::Lost(reason) = state.conclude(killed()) else { panic!("it is lost") };
        assert!(reason.starts_with("the training client was lost after step 41: it ended with signal: 9"), "{reason}");
    }
}
