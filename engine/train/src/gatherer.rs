//! The traces of a cluster's workers, gathered into the run's trace folder while they grow.
//!
//! Over a stream of the cluster the run requests each worker to record ([`super::recorder`] answers), and opens the
//! streams over which the worker sends its trace: they use the cluster's TLS and job id and need no further port. A
//! worker that was lost receives the request again once it is back.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use distributed::{Cluster, TaskName, open_stream};
use events::control::Control;
use gather::{Server, ServerOptions};
use net::Security;
use parking_lot::Mutex;

use crate::backend::read_cluster;
use crate::error::{Result, TrainError};
use crate::trace_protocol::{CONTROL_STREAM, DATA_STREAM, Messages, RecordCommand, RecordEvent, send};

/// The time between two checks of the folder's control page.
const POLL_PERIOD: Duration = Duration::from_millis(10);
/// The time between two attempts to reach a worker.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// How long a run waits for its workers to record before it begins.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a worker may take to send the rest of its trace.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// Gathers the traces of a run's workers.
pub(crate) struct Gatherer {
    shared: Arc<Shared>,
    tasks: Vec<(String, JoinHandle<Option<String>>)>,
    /// The thread that watches the folder's control page.
    control_thread: JoinHandle<()>,
}

struct Shared {
    cluster: Cluster,
    security: Option<Security>,
    server: Server,
    commands: Mutex<Commands>,
    /// The number of workers that have answered whether they record.
    n_answered: AtomicUsize,
    is_ending: AtomicBool,
}

/// The commands of the control page so far.
#[derive(Clone, Copy)]
struct Commands {
    n_commands: u64,
    last: Option<RecordCommand>,
}

/// How a visit to a worker ended.
enum Visit {
    /// The worker sent its whole trace.
    Complete,
    /// The worker did not record for the run, or could not send all of its trace.
    Incomplete(String),
    /// The worker cannot be reached at present.
    Unreachable(String),
}

impl Gatherer {
    /// Begins to gather into `trace`, the folder into which this process records; waits up to 2 s until the workers
    /// record.
    ///
    /// # Errors
    /// The cluster's file is invalid, or the folder cannot be written.
    pub fn start(trace: &Path, file: &Path) -> Result<Gatherer> {
        let cluster = read_cluster(file)?;
        let security = cluster.security(cluster.master.as_ref()).map_err(TrainError::wrong_use)?;
        let server = Server::start_within(trace, &ServerOptions { sync: false, ..ServerOptions::default() });
        let server = server.context("gathering the workers' traces")?;
        let control = Control::open(trace).context("watching the trace folder")?;
        let last = (!control.is_on()).then_some(RecordCommand::Switch { on: false });
        let commands = Mutex::new(Commands { n_commands: 0, last });
        let (n_answered, is_ending) = (AtomicUsize::new(0), AtomicBool::new(false));
        let names: Vec<TaskName> = cluster.tasks.keys().cloned().collect();
        let shared = Arc::new(Shared { cluster, security, server, commands, n_answered, is_ending });
        let watch = Arc::clone(&shared);
        let control_thread =
            std::thread::Builder::new().name("control".into()).spawn(move || watch.watch_control(&control));
        let control_thread = control_thread.context("watching the trace folder")?;
        let mut gatherer = Gatherer { shared, tasks: Vec::new(), control_thread };
        for name in names {
            let (shared, task) = (Arc::clone(&gatherer.shared), name.clone());
            let gather = move || shared.gather(&task);
            let thread = std::thread::Builder::new().name("gathering".into()).spawn(gather);
            gatherer.tasks.push((name.to_string(), thread.context("gathering the workers' traces")?));
        }
        let begin_ns = events::clock::mono_now();
        let waited = || Duration::from_nanos((events::clock::mono_now() - begin_ns).max(0).unsigned_abs());
        while gatherer.shared.n_answered.load(Ordering::Relaxed) < gatherer.tasks.len() && waited() < BEGIN_TIMEOUT {
            std::thread::sleep(POLL_PERIOD);
        }
        Ok(gatherer)
    }

    /// Ends the workers' recordings and receives the rest; adds a warning for each incomplete trace.
    pub fn end(self, warnings: &mut Vec<String>) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        // The panic hook has reported a panic of this thread.
        let _ = self.control_thread.join();
        for (task, thread) in self.tasks {
            match thread.join() {
                Ok(None) => {}
                Ok(Some(problem)) => warnings.push(format!("the trace of {task}: {problem}")),
                Err(_) => warnings.push(format!("the trace of {task}: its thread panicked")),
            }
        }
    }
}

impl Shared {
    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Passes the commands of the control page on to the workers, including the command to record N steps: this process
    /// runs no steps, and each worker counts its own.
    fn watch_control(&self, control: &Control) {
        let mut was_on = control.is_on();
        while !self.is_ending() {
            let (is_on, n_steps) = (control.is_on(), control.n_steps_left());
            let command = match n_steps {
                0 => (is_on != was_on).then_some(RecordCommand::Switch { on: is_on }),
                n => {
                    control.record_steps(0);
                    Some(RecordCommand::Steps { n })
                }
            };
            was_on = if n_steps > 0 { false } else { is_on };
            if command.is_some() {
                let mut commands = self.commands.lock();
                *commands = Commands { n_commands: commands.n_commands + 1, last: command };
            }
            std::thread::sleep(POLL_PERIOD);
        }
    }

    /// Gathers the trace of a task until the run ends; returns a warning where a part is missing.
    fn gather(&self, task: &TaskName) -> Option<String> {
        let mut has_answered = false;
        loop {
            let reason = match self.visit(task, &mut has_answered) {
                Visit::Complete => return None,
                Visit::Incomplete(why) => return Some(why),
                Visit::Unreachable(why) => why,
            };
            if self.is_ending() {
                return Some(format!("what it had not sent is missing: {reason}"));
            }
            std::thread::sleep(RETRY_DELAY);
        }
    }

    fn visit(&self, task: &TaskName, has_answered: &mut bool) -> Visit {
        let unreachable = |error: &dyn std::fmt::Display| Visit::Unreachable(error.to_string());
        let stream = match open_stream(&self.cluster, task, CONTROL_STREAM, self.security.as_ref()) {
            Ok(stream) => stream,
            Err(error) => return unreachable(&error),
        };
        let messages = Messages::new(stream, POLL_PERIOD);
        let messages = messages.and_then(|messages| send(messages.stream(), &RecordCommand::Begin).map(|()| messages));
        match messages {
            Ok(mut messages) => {
                self.serve_worker(task, &mut messages, has_answered).unwrap_or_else(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => Visit::Unreachable("its process ended the connection".into()),
                    _ => unreachable(&error),
                })
            }
            Err(error) => unreachable(&error),
        }
    }

    /// Passes commands on to a worker, and answers its requests, until it has sent its trace.
    fn serve_worker(&self, task: &TaskName, messages: &mut Messages, has_answered: &mut bool) -> io::Result<Visit> {
        let count_answer = |has_answered: &mut bool| {
            self.n_answered.fetch_add(usize::from(!std::mem::replace(has_answered, true)), Ordering::Relaxed);
        };
        let (mut n_sent, mut deadline_ns) = (None, None);
        loop {
            match messages.next()? {
                None => {}
                Some(RecordEvent::Recording) => {
                    count_answer(has_answered);
                    let Commands { n_commands, last } = *self.commands.lock();
                    n_sent = Some(n_commands);
                    // A new recording is switched on, unless an earlier command switched it off or counted steps.
                    if last.is_some_and(|command| command != RecordCommand::Switch { on: true }) {
                        send(messages.stream(), &RecordCommand::Switch { on: false })?;
                    }
                }
                Some(RecordEvent::Connect) => {
                    // Where the stream cannot be opened, the worker requests another one.
                    if let Ok(stream) = open_stream(&self.cluster, task, DATA_STREAM, self.security.as_ref()) {
                        self.server.take(stream)?;
                    }
                }
                Some(RecordEvent::Refused { reason, may_retry: true }) => return Ok(Visit::Unreachable(reason)),
                Some(RecordEvent::Refused { reason, may_retry: false }) => {
                    count_answer(has_answered);
                    return Ok(Visit::Incomplete(reason));
                }
                Some(RecordEvent::Ended { problem }) => return Ok(problem.map_or(Visit::Complete, Visit::Incomplete)),
            }
            let Commands { n_commands, last } = *self.commands.lock();
            if let Some(command) = last.filter(|_| n_sent.is_some_and(|n_sent| n_sent < n_commands)) {
                n_sent = Some(n_commands);
                send(messages.stream(), &command)?;
            }
            if self.is_ending() && deadline_ns.is_none() {
                send(messages.stream(), &RecordCommand::End)?;
                deadline_ns = Some(events::clock::mono_now() + END_TIMEOUT.as_nanos() as i64);
            }
            if deadline_ns.is_some_and(|deadline_ns| events::clock::mono_now() > deadline_ns) {
                return Ok(Visit::Incomplete(format!("it did not send the rest within {} s", END_TIMEOUT.as_secs())));
            }
        }
    }
}
