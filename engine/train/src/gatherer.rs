//! The traces of a cluster's workers, gathered into the run's trace folder while they grow.
//!
//! The run asks each worker's process over a stream of the cluster to record ([`super::recorder`] answers), and makes the streams over
//! which the worker sends: with the cluster's TLS and job id, and without any port of its own. A worker that is lost and comes again is
//! asked again.

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
use crate::trace_protocol::{CONTROL, DATA, Messages, RecordCommand, RecordEvent, send};

/// Between two checks of the folder's control page.
const PERIOD: Duration = Duration::from_millis(10);
/// Between two attempts to reach a worker.
const RETRY: Duration = Duration::from_millis(250);
/// How long a run waits for its workers to record before it begins.
const TO_BEGIN: Duration = Duration::from_secs(2);
/// How long a worker may take to send the rest.
const TO_END: Duration = Duration::from_secs(15);

/// Gathers the traces of a run's workers.
pub(crate) struct Gatherer {
    shared: Arc<Shared>,
    tasks: Vec<(String, JoinHandle<Option<String>>)>,
    /// Watches the folder's control page.
    watching: JoinHandle<()>,
}

struct Shared {
    cluster: Cluster,
    security: Option<Security>,
    server: Server,
    /// The last command to the run's trace folder, and how many there were.
    asked: Mutex<(u64, Option<RecordCommand>)>,
    /// Workers that have answered whether they record.
    n_answered: AtomicUsize,
    is_ending: AtomicBool,
}

/// How a visit to a worker ended.
enum Visit {
    /// It sent everything.
    Complete,
    /// It did not record for the run, or could not send all of its trace.
    Incomplete(String),
    /// It cannot be reached, now or yet.
    Unreachable(String),
}

impl Gatherer {
    /// Begins to gather into `trace`, which this process records into; waits a moment for the workers to record.
    ///
    /// # Errors
    /// The cluster's file is invalid, or the folder cannot be written.
    pub fn start(trace: &Path, file: &Path) -> Result<Gatherer> {
        let cluster = read_cluster(file)?;
        let security = cluster.security(cluster.master.as_ref()).map_err(TrainError::wrong_use)?;
        let server = Server::start_within(trace, &ServerOptions { sync: false, ..ServerOptions::default() });
        let server = server.context("gathering the workers' traces")?;
        let control = Control::open(trace).context("watching the trace folder")?;
        let asked = Mutex::new((0, (!control.is_on()).then_some(RecordCommand::Switch { on: false })));
        let (n_answered, is_ending) = (AtomicUsize::new(0), AtomicBool::new(false));
        let names: Vec<TaskName> = cluster.tasks.keys().cloned().collect();
        let shared = Arc::new(Shared { cluster, security, server, asked, n_answered, is_ending });
        let watch = Arc::clone(&shared);
        let watching = std::thread::Builder::new().name("control".into()).spawn(move || watch.watch_control(&control));
        let watching = watching.context("watching the trace folder")?;
        let mut gatherer = Gatherer { shared, tasks: Vec::new(), watching };
        for name in names {
            let (shared, task) = (Arc::clone(&gatherer.shared), name.clone());
            let gather = move || shared.gather(&task);
            let thread = std::thread::Builder::new().name("gathering".into()).spawn(gather);
            gatherer.tasks.push((name.to_string(), thread.context("gathering the workers' traces")?));
        }
        let begin = events::clock::mono_now();
        let waited = || Duration::from_nanos((events::clock::mono_now() - begin).max(0).unsigned_abs());
        while gatherer.shared.n_answered.load(Ordering::Relaxed) < gatherer.tasks.len() && waited() < TO_BEGIN {
            std::thread::sleep(PERIOD);
        }
        Ok(gatherer)
    }

    /// Has the workers send the rest; adds what is missing to `warnings`.
    pub fn end(self, warnings: &mut Vec<String>) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        // A panic there has been reported by its hook.
        let _ = self.watching.join();
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

    /// Passes on the commands on the control page of the run's folder. No process that records into the folder itself runs steps: the workers
    /// count them, each its own.
    fn watch_control(&self, control: &Control) {
        let mut was_on = control.is_on();
        while !self.is_ending() {
            let (is_on, steps) = (control.is_on(), control.steps_wanted());
            let command = match steps {
                0 => (is_on != was_on).then_some(RecordCommand::Switch { on: is_on }),
                n => {
                    control.record_steps(0);
                    Some(RecordCommand::Steps { n })
                }
            };
            was_on = if steps > 0 { false } else { is_on };
            if command.is_some() {
                let mut asked = self.asked.lock();
                *asked = (asked.0 + 1, command);
            }
            std::thread::sleep(PERIOD);
        }
    }

    /// Gathers the trace of a task until the end; returns what is missing.
    fn gather(&self, task: &TaskName) -> Option<String> {
        let mut was_there = false;
        loop {
            let lost = match self.visit(task, &mut was_there) {
                Visit::Complete => return None,
                Visit::Incomplete(why) => return Some(why),
                Visit::Unreachable(why) => why,
            };
            if self.is_ending() {
                return Some(format!("what it had not sent is missing: {lost}"));
            }
            std::thread::sleep(RETRY);
        }
    }

    fn visit(&self, task: &TaskName, was_there: &mut bool) -> Visit {
        let lost = |error: &dyn std::fmt::Display| Visit::Unreachable(error.to_string());
        let stream = match open_stream(&self.cluster, task, CONTROL, self.security.as_ref()) {
            Ok(stream) => stream,
            Err(error) => return lost(&error),
        };
        let messages = Messages::new(stream, PERIOD);
        let begun = messages.and_then(|messages| send(messages.stream(), &RecordCommand::Begin).map(|()| messages));
        match begun {
            Ok(mut messages) => {
                self.attend(task, &mut messages, was_there).unwrap_or_else(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => Visit::Unreachable("its process ended the connection".into()),
                    _ => lost(&error),
                })
            }
            Err(error) => lost(&error),
        }
    }

    /// Passes commands on to a worker, and answers its requests, until it has sent its trace.
    fn attend(&self, task: &TaskName, messages: &mut Messages, was_there: &mut bool) -> io::Result<Visit> {
        let count_once = |was_there: &mut bool| {
            self.n_answered.fetch_add(usize::from(!std::mem::replace(was_there, true)), Ordering::Relaxed);
        };
        let (mut n_sent, mut ends_at) = (None, None);
        loop {
            match messages.next()? {
                None => {}
                Some(RecordEvent::Recording) => {
                    count_once(was_there);
                    let (n, last) = *self.asked.lock();
                    n_sent = Some(n);
                    // It records, unless the last command before it came says otherwise.
                    if last.is_some_and(|command| command != RecordCommand::Switch { on: true }) {
                        send(messages.stream(), &RecordCommand::Switch { on: false })?;
                    }
                }
                Some(RecordEvent::Connect) => {
                    // One that cannot be made is asked for again.
                    if let Ok(stream) = open_stream(&self.cluster, task, DATA, self.security.as_ref()) {
                        self.server.take(stream)?;
                    }
                }
                Some(RecordEvent::Refused { reason, may_retry: true }) => return Ok(Visit::Unreachable(reason)),
                Some(RecordEvent::Refused { reason, may_retry: false }) => {
                    count_once(was_there);
                    return Ok(Visit::Incomplete(reason));
                }
                Some(RecordEvent::Ended { problem }) => return Ok(problem.map_or(Visit::Complete, Visit::Incomplete)),
            }
            let (n, last) = *self.asked.lock();
            if let Some(command) = last.filter(|_| n_sent.is_some_and(|n_sent| n_sent < n)) {
                n_sent = Some(n);
                send(messages.stream(), &command)?;
            }
            if self.is_ending() && ends_at.is_none() {
                send(messages.stream(), &RecordCommand::End)?;
                ends_at = Some(events::clock::mono_now() + TO_END.as_nanos() as i64);
            }
            if ends_at.is_some_and(|at| events::clock::mono_now() > at) {
                return Ok(Visit::Incomplete(format!("it did not send the rest within {} s", TO_END.as_secs())));
            }
        }
    }
}
