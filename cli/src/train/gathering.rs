//! The traces of a cluster's workers, gathered into the run's trace folder while they grow.
//!
//! The run asks each worker's process over a stream of the cluster to record ([`super::recorded`] answers), and makes the streams over
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

use super::cluster;
use super::trace_words::{Ask, DATA, Tell, WORDS, Words, say};
use crate::outcome::Failure;

/// Between two looks at what the folder's control page asks for.
const PERIOD: Duration = Duration::from_millis(10);
/// Between two attempts to reach a worker.
const RETRY: Duration = Duration::from_millis(250);
/// How long a run waits for its workers to record before it begins.
const TO_BEGIN: Duration = Duration::from_secs(2);
/// How long a worker may take to send the rest.
const TO_END: Duration = Duration::from_secs(15);

/// The gathering of a run's traces.
pub(super) struct Gathering {
    shared: Arc<Shared>,
    tasks: Vec<(String, JoinHandle<Option<String>>)>,
    /// Watches the folder's control page.
    watching: JoinHandle<()>,
}

struct Shared {
    cluster: Cluster,
    security: Option<Security>,
    server: Server,
    /// What the run's trace folder is told to do, and by how many such words.
    asked: Mutex<(u64, Option<Ask>)>,
    /// Workers that said whether they record.
    n_told: AtomicUsize,
    is_ending: AtomicBool,
}

/// How a visit to a worker ended.
enum Visit {
    /// It sent everything.
    Done,
    /// It keeps its trace, or could not send all of it.
    Kept(String),
    /// It is gone, or not there yet.
    Lost(String),
}

impl Gathering {
    /// Begins to gather into `trace`, which this process records into; waits a moment for the workers to record.
    ///
    /// # Errors
    /// The cluster's file is none, or the folder cannot be written.
    pub fn start(trace: &Path, file: &Path) -> Result<Gathering, Failure> {
        let cluster = cluster::cluster(file)?;
        let security = cluster.security(cluster.master.as_ref()).map_err(Failure::wrong_use)?;
        let server = Server::start_within(trace, &ServerOptions { sync: false, ..ServerOptions::default() });
        let server = server.context("gathering the workers' traces")?;
        let control = Control::open(trace).context("watching the trace folder")?;
        let asked = Mutex::new((0, (!control.is_on()).then_some(Ask::Switch(false))));
        let (n_told, is_ending) = (AtomicUsize::new(0), AtomicBool::new(false));
        let names: Vec<TaskName> = cluster.tasks.keys().cloned().collect();
        let shared = Arc::new(Shared { cluster, security, server, asked, n_told, is_ending });
        let watch = Arc::clone(&shared);
        let watching = std::thread::Builder::new().name("control".into()).spawn(move || watch.watch(&control));
        let watching = watching.context("watching the trace folder")?;
        let mut gathering = Gathering { shared, tasks: Vec::new(), watching };
        for name in names {
            let (shared, task) = (Arc::clone(&gathering.shared), name.clone());
            let gather = move || shared.gather(&task);
            let thread = std::thread::Builder::new().name("gathering".into()).spawn(gather);
            gathering.tasks.push((name.to_string(), thread.context("gathering the workers' traces")?));
        }
        let begin = events::clock::mono_now();
        let waited = || Duration::from_nanos((events::clock::mono_now() - begin).max(0).unsigned_abs());
        while gathering.shared.n_told.load(Ordering::Relaxed) < gathering.tasks.len() && waited() < TO_BEGIN {
            std::thread::sleep(PERIOD);
        }
        Ok(gathering)
    }

    /// Has the workers send the rest; says what is missing.
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

    /// Passes on what the control page of the run's folder is told. No process that records into the folder itself runs steps: the workers
    /// count them, each its own.
    fn watch(&self, control: &Control) {
        let mut was_on = control.is_on();
        while !self.is_ending() {
            let (is_on, steps) = (control.is_on(), control.steps_wanted());
            let ask = match steps {
                0 => (is_on != was_on).then_some(Ask::Switch(is_on)),
                n => {
                    control.record_steps(0);
                    Some(Ask::Steps(n))
                }
            };
            was_on = if steps > 0 { false } else { is_on };
            if ask.is_some() {
                let mut asked = self.asked.lock();
                *asked = (asked.0 + 1, ask);
            }
            std::thread::sleep(PERIOD);
        }
    }

    /// Gathers the trace of a task until the end; gives what is missing.
    fn gather(&self, task: &TaskName) -> Option<String> {
        let mut was_there = false;
        loop {
            let lost = match self.visit(task, &mut was_there) {
                Visit::Done => return None,
                Visit::Kept(why) => return Some(why),
                Visit::Lost(why) => why,
            };
            if self.is_ending() {
                return Some(format!("what it had not sent is missing: {lost}"));
            }
            std::thread::sleep(RETRY);
        }
    }

    fn visit(&self, task: &TaskName, was_there: &mut bool) -> Visit {
        let lost = |error: &dyn std::fmt::Display| Visit::Lost(error.to_string());
        let stream = match open_stream(&self.cluster, task, WORDS, self.security.as_ref()) {
            Ok(stream) => stream,
            Err(error) => return lost(&error),
        };
        let words = Words::new(stream, PERIOD);
        let begun = words.and_then(|words| say(words.stream(), &Ask::Begin.to_json()).map(|()| words));
        match begun {
            Ok(mut words) => self.talk(task, &mut words, was_there).unwrap_or_else(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Visit::Lost("its process ended the connection".into()),
                _ => lost(&error),
            }),
            Err(error) => lost(&error),
        }
    }

    fn talk(&self, task: &TaskName, words: &mut Words, was_there: &mut bool) -> io::Result<Visit> {
        let tell_once = |was_there: &mut bool| {
            self.n_told.fetch_add(usize::from(!std::mem::replace(was_there, true)), Ordering::Relaxed);
        };
        let (mut heard, mut ends_at) = (None, None);
        loop {
            match words.next()?.as_ref().map(Tell::of) {
                None => {}
                Some(Some(Tell::Recording)) => {
                    tell_once(was_there);
                    let (n, last) = *self.asked.lock();
                    heard = Some(n);
                    // It records: whether it shall not was asked before it came.
                    let is_off = last.is_some_and(|ask| ask != Ask::Switch(true));
                    if is_off {
                        say(words.stream(), &Ask::Switch(false).to_json())?;
                    }
                }
                Some(Some(Tell::Connect)) => {
                    // One that cannot be made is asked for again.
                    if let Ok(stream) = open_stream(&self.cluster, task, DATA, self.security.as_ref()) {
                        self.server.take(stream)?;
                    }
                }
                Some(Some(Tell::Refused { why, for_now: true })) => return Ok(Visit::Lost(why)),
                Some(Some(Tell::Refused { why, for_now: false })) => {
                    tell_once(was_there);
                    return Ok(Visit::Kept(why));
                }
                Some(Some(Tell::Ended(None))) => return Ok(Visit::Done),
                Some(Some(Tell::Ended(Some(problem)))) => return Ok(Visit::Kept(problem)),
                Some(None) => return Err(io::ErrorKind::InvalidData.into()),
            }
            let (n, last) = *self.asked.lock();
            if let Some(ask) = last.filter(|_| heard.is_some_and(|heard| heard < n)) {
                heard = Some(n);
                say(words.stream(), &ask.to_json())?;
            }
            if self.is_ending() && ends_at.is_none() {
                say(words.stream(), &Ask::End.to_json())?;
                ends_at = Some(events::clock::mono_now() + TO_END.as_nanos() as i64);
            }
            if ends_at.is_some_and(|at| events::clock::mono_now() > at) {
                return Ok(Visit::Kept(format!("it did not send the rest within {} s", TO_END.as_secs())));
            }
        }
    }
}
