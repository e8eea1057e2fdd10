//! Watches a command from outside: scheduling, samples and counters of all its threads, whether it emits events or not.
//!
//! [`Watch::prepare`] opens the kernel's interfaces that the system grants, on the thread that then starts the command;
//! [`Watch::set_command`] sets the command's process; [`Watch::attach`] watches a process that runs already. A thread
//! reads the kernel's rings every 10 ms and adds their events to [`Tracks`], which the collector writes. Each interface
//! that is not granted is reported once, with its remedy.

mod samples;
mod usage;

use crate::collect::Tracks;
use crate::count::groups;
use crate::count::{CounterSet, ThreadCounters};
use crate::proc;
use crate::sample::parse::{Event, Record, SampleFields};
use crate::sample::perf::{self, Counters, ObservedThreads, PerfOptions, Rings};
use crate::sample::poll::{self, RingMerger};
use crate::sched::tracefs::{Instance, Root};
use events::Kind;
use events::clock::Source as ClockSource;
use events::meta::NoteKind;
use parking_lot::Mutex;
use samples::Samples;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use trace_model::ThreadState;
use trace_model::scheduling::derive::{SchedCounts, Scheduling};
use trace_model::scheduling::{Comm, SchedEvent, SchedKind};
use usage::ProcUsage;

/// The pause between two polls of the kernel's rings.
const INTERVAL: Duration = Duration::from_millis(10);
/// The number of polls between two readings of the counters.
const COUNT_EVERY: u64 = 10;

/// Reads the clocks that tracefs offers, as the kernel writes them.
///
/// # Errors
/// tracefs is not mounted and cannot be mounted: the user is not root, or the kernel lacks it.
pub fn tracefs_clocks() -> io::Result<String> {
    Root::find()?.clocks()
}

/// The kinds of data that a watch records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Whether to record scheduling: the threads on each CPU, and the threads' waits.
    pub sched: bool,
    /// Samples of call stacks per second and CPU; `None` for no samples.
    pub sample_hz: Option<u32>,
    /// The counters to record for each thread.
    pub counters: CounterSet,
}

impl WatchOptions {
    /// Whether any data is to be recorded.
    #[must_use]
    pub fn is_any_set(self) -> bool {
        self.sched || self.sample_hz.is_some() || !self.counters.is_empty()
    }
}

/// The counts of recorded events, and the data that cannot be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchReport {
    /// The source of scheduling: `tracefs`, `perf events`, `/proc`, or nothing.
    pub sched_source: Option<&'static str>,
    /// Switches in which a thread of the command took part.
    pub switches: u64,
    /// Wake-ups of the command's threads.
    pub wakeups: u64,
    /// Samples of the command's threads.
    pub samples: u64,
    /// Readings of a thread's counters.
    pub readings: u64,
    /// Events that were lost, because the kernel's rings or a table were full.
    pub lost: u64,
    /// Times that a thread ran without a reported switch to it (some kernels leave out switches of certain threads).
    /// The thread counts as running from its wake-up on, so that its wait for the CPU counts as running.
    pub unreported_switches: u64,
    /// Names of the data that cannot be recorded here, each with its remedy.
    pub unavailable: Vec<(String, String)>,
}

/// Why watching did not start.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The trace folder cannot be written.
    #[error("cannot write the trace folder: {0}")]
    Folder(#[source] io::Error),
    /// The watching thread cannot be started.
    #[error("cannot start the watching thread: {0}")]
    Thread(#[source] io::Error),
}

/// The state that the caller and the watching thread share.
struct Shared {
    /// The command's process id; 0 until it runs.
    command: AtomicU32,
    stopping: AtomicBool,
    tracks: Arc<Mutex<Tracks>>,
}

/// A watched command; dropping this stops watching.
#[must_use = "watching stops when it is dropped"]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<WatchReport>>,
}

impl Watch {
    /// Opens the interfaces for `options` that the system grants, and tracks in a trace folder that exists. Start the
    /// command on the same thread.
    ///
    /// # Errors
    /// The folder cannot be written. Data that cannot be recorded is no error: the report and the trace name it.
    pub fn prepare(trace_dir: &Path, options: WatchOptions) -> Result<Watch, WatchError> {
        Watch::open(trace_dir, options, ObservedThreads::NextCommand)
    }

    /// Watches a process that runs already, and its descendants, into a trace folder that exists.
    ///
    /// # Errors
    /// There is no such process; those of [`Watch::prepare`].
    pub fn attach(trace_dir: &Path, options: WatchOptions, pid: u32) -> Result<Watch, WatchError> {
        let threads: Vec<u32> = proc::descendants(pid).into_iter().flat_map(proc::threads).collect();
        if threads.is_empty() {
            return Err(WatchError::NoProcess(pid));
        }
        let watch = Watch::open(trace_dir, options, ObservedThreads::Threads(&threads))?;
        watch.set_command(pid);
        Ok(watch)
    }

    fn open(trace_dir: &Path, options: WatchOptions, observed: ObservedThreads<'_>) -> Result<Watch, WatchError> {
        let is_attached = observed != ObservedThreads::NextCommand;
        let mut unavailable = Vec::new();
        let mut missing = |what: &str, remedy: String| unavailable.push((what.to_owned(), remedy));
        let instance = options.sched.then(|| Root::find().and_then(Instance::start));
        let instance = ok_or_report(instance, |error| {
            missing("wake-ups and other processes on the CPUs (tracefs)", tracefs_remedy(error));
        });
        let perf_options =
            PerfOptions { sample_hz: options.sample_hz, has_switches: options.sched && instance.is_none() };
        let rings =
            (perf_options.has_switches || perf_options.sample_hz.is_some()).then(|| perf::open(perf_options, observed));
        let rings = ok_or_report(rings, |error| {
            let what = if perf_options.sample_hz.is_some() { "samples" } else { "context switches" };
            missing(&format!("{what} (perf events)"), perf::remedy(error));
        });
        if rings.as_ref().is_some_and(|r| !r.has_kernel && perf_options.sample_hz.is_some()) {
            missing("the kernel's part of stacks", perf::KERNEL_REMEDY.to_owned());
        }
        if let Some(n) = rings.as_ref().map(|r| r.n_left_out).filter(|n| *n > 0) {
            missing(&format!("{n} of the process's threads"), "it has too many; record it from its start".to_owned());
        }
        // The kernel's counters are inherited from a command's start on; for a process that runs already `/proc` is
        // read.
        let counters = if is_attached { Counters::default() } else { perf::counters() };
        let thread_counters = open_counters(options.counters, observed, &mut missing);
        let clock = instance.as_ref().map_or(ClockSource::MonotonicRaw, Instance::clock);
        let mut tracks = Tracks::create(trace_dir, std::process::id(), "kernel", clock).map_err(WatchError::Folder)?;
        for (what, remedy) in &unavailable {
            note_unavailable(&mut tracks, 1, what, &format!("not recorded on this machine; {remedy}"));
        }
        let (command, stopping) = (AtomicU32::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { command, stopping, tracks: Arc::new(Mutex::new(tracks)) });
        let sched_source = match (&instance, &rings) {
            _ if !options.sched => None,
            (Some(_), _) => Some("tracefs"),
            (None, Some(_)) => Some("perf events"),
            (None, None) => Some("/proc"),
        };
        let usage = (sched_source == Some("/proc") || counters.counters.is_empty()).then(ProcUsage::default);
        let report = WatchReport { sched_source, unavailable, ..WatchReport::default() };
        let watcher =
            Watcher { instance, rings, counters, usage, thread_counters, is_attached, report, ..Watcher::default() };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || watcher.run(&shared)
        });
        Ok(Watch { shared, thread: Some(thread.map_err(WatchError::Thread)?) })
    }

    /// The tracks, for [`Collector::start_with`](crate::collect::Collector::start_with).
    #[must_use]
    pub fn tracks(&self) -> Arc<Mutex<Tracks>> {
        Arc::clone(&self.shared.tracks)
    }

    /// Sets the process that the command runs as.
    pub fn set_command(&self, pid: u32) {
        self.shared.command.store(pid, Ordering::Release);
    }

    /// Reads the rest of the rings, and looks up the functions of sampled addresses. Stop the collector afterwards.
    pub fn stop(mut self) -> WatchReport {
        self.end()
    }

    fn end(&mut self) -> WatchReport {
        self.shared.stopping.store(true, Ordering::Release);
        // A panic of the thread has been reported by its hook, and the written data stay readable.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the value of a request that the system granted; reports the error of one that it refused.
fn ok_or_report<T>(request: Option<io::Result<T>>, report: impl FnOnce(&io::Error)) -> Option<T> {
    request?.inspect_err(report).ok()
}

/// Opens the counters of threads; reports missing counters and threads.
fn open_counters(
    requested: CounterSet,
    observed: ObservedThreads<'_>,
    missing: &mut impl FnMut(&str, String),
) -> Option<ThreadCounters> {
    let groups = (!requested.is_empty()).then(|| groups::open(requested, observed));
    let report = |error: &io::Error| missing(&format!("counters {requested} of threads"), groups::remedy(error));
    let groups = ok_or_report(groups, report)?;
    for (names, remedy) in groups.remedies() {
        missing(&format!("counters {names}"), remedy);
    }
    if groups.n_left_out > 0 {
        let remedy = "it has too many; record it from its start, or raise the limit of open files";
        missing(&format!("counters of {} of the process's threads", groups.n_left_out), remedy.to_owned());
    }
    if !groups.has_kernel {
        missing("the kernel's part of counters", perf::KERNEL_REMEDY.to_owned());
    }
    Some(ThreadCounters::new(groups))
}

fn tracefs_remedy(error: &io::Error) -> String {
    format!("{error}; run as root, on a kernel with CONFIG_FTRACE")
}

/// The state of the watching thread.
#[derive(Default)]
struct Watcher {
    instance: Option<Instance>,
    rings: Option<Rings>,
    counters: Counters,
    usage: Option<ProcUsage>,
    scheduling: Scheduling<Tracks>,
    samples: Samples,
    thread_counters: Option<ThreadCounters>,
    ring_merger: RingMerger,
    /// The last written values of `counters`.
    last_values: Vec<u64>,
    polls: u64,
    /// Whether the process ran before it was watched.
    is_attached: bool,
    report: WatchReport,
}

impl Watcher {
    fn run(mut self, shared: &Shared) -> WatchReport {
        let mut command = 0;
        while !shared.stopping.load(Ordering::Acquire) {
            self.begin_once(&mut command, shared);
            if command != 0 {
                self.poll(command, shared, false);
            }
            std::thread::sleep(INTERVAL);
        }
        if let Some(instance) = &self.instance {
            instance.stop();
        }
        // A command may have ended before the first poll.
        self.begin_once(&mut command, shared);
        if command != 0 {
            self.poll(command, shared, true);
            let mut tracks = shared.tracks.lock();
            let now = tracks.now();
            self.scheduling.finish(now, &mut tracks);
            self.note_unreported(&mut tracks);
            self.note_scaled(&mut tracks);
        }
        let symbols = self.samples.symbols();
        shared.tracks.lock().append_entries(symbols.into_iter());
        let SchedCounts { switches, wakeups, unreported: unreported_switches, .. } = self.scheduling.counts;
        let (samples, readings) =
            (self.samples.n_written, self.thread_counters.as_ref().map_or(0, |counters| counters.threads.n_readings));
        WatchReport { switches, wakeups, samples, readings, unreported_switches, ..self.report }
    }

    /// Begins watching as soon as the command runs; `command` is 0 until then.
    fn begin_once(&mut self, command: &mut u32, shared: &Shared) {
        if *command == 0 {
            *command = shared.command.load(Ordering::Acquire);
            if *command != 0 {
                self.begin(*command, &mut shared.tracks.lock());
            }
        }
    }

    fn begin(&mut self, command: u32, tracks: &mut Tracks) {
        if self.is_attached {
            return self.follow_running_process(command, tracks);
        }
        let name = proc::name(command);
        self.scheduling.follow_thread(command, command, name);
        let kind = SchedKind::Exec { process: command, name };
        self.scheduling.handle_event(&SchedEvent { time: 0, cpu: 0, kind }, tracks);
    }

    /// Adds the threads and descendants of a running process, and the code that they have mapped.
    fn follow_running_process(&mut self, command: u32, tracks: &mut Tracks) {
        for process in proc::descendants(command) {
            let name = proc::name(process);
            for thread in proc::threads(process) {
                self.scheduling.follow_thread(thread, process, proc::name(thread));
            }
            self.scheduling
                .handle_event(&SchedEvent { time: 0, cpu: 0, kind: SchedKind::Exec { process, name } }, tracks);
            for (address, len, offset, path) in proc::code_mappings(process) {
                self.samples.maps.add_mapping(process, address, len, offset, &path);
            }
        }
    }

    fn poll(&mut self, command: u32, shared: &Shared, is_last: bool) {
        // The rings are read before the tracks are locked: the collector waits for the lock.
        let events = self.instance.as_mut().map(|i| i.poll(is_last)).unwrap_or_default();
        let records = self.records(is_last);
        let mut tracks = shared.tracks.lock();
        for event in &events {
            self.scheduling.handle_event(event, &mut tracks);
        }
        drop(tracks);
        let counted = self.thread_counters.as_mut().map(|counters| counters.poll(is_last, &mut shared.tracks.lock()));
        // Without the sampling rings the counters' rings are the only source of names and new threads.
        let counted = counted.filter(|_| self.rings.is_none()).unwrap_or_default();
        let names = counted.into_iter().filter(|r| matches!(r.event, Event::Comm { .. } | Event::Fork { .. }));
        for record in records.into_iter().chain(names) {
            self.record(record, &shared.tracks);
        }
        let mut tracks = shared.tracks.lock();
        self.samples.flush(&mut tracks);
        if self.polls.is_multiple_of(COUNT_EVERY) || is_last {
            self.count(command, &mut tracks);
            self.note_lost(&mut tracks);
        }
        self.polls += 1;
        tracks.write_anchor_if_due(is_last);
    }

    /// Reads the records of the perf rings, in order of time.
    fn records(&mut self, is_last: bool) -> Vec<Record> {
        let until = poll::now();
        let Some(rings) = &mut self.rings else { return Vec::new() };
        let fields = if rings.has_stack { SampleFields::Stack } else { SampleFields::Chain };
        self.ring_merger.read(&mut rings.samplers, fields);
        self.ring_merger.read(&mut rings.faults, SampleFields::Address);
        self.ring_merger.take(until, is_last)
    }

    fn record(&mut self, record: Record, tracks: &Mutex<Tracks>) {
        let origin = record.origin;
        let kind = match record.event {
            // Without the lock: unwinding and mapping may read a library's file.
            Event::Sample(sample) => return self.samples.add(origin, &sample),
            Event::Map { address, len, offset, path } => {
                return self.samples.maps.add_mapping(origin.pid, address, len, offset, &path);
            }
            Event::Comm { name, is_exec } => {
                let name = Comm::new(&name);
                if is_exec {
                    self.samples.maps.exec(origin.pid);
                    SchedKind::Exec { process: origin.pid, name }
                } else {
                    SchedKind::Renamed { thread: origin.tid, name }
                }
            }
            Event::Fork { pid, tid, parent, parent_pid } => {
                self.samples.maps.fork(parent_pid, pid);
                SchedKind::Fork { parent, thread: tid, in_process: pid == parent_pid, name: Comm::default() }
            }
            // The kernel reports no switch after a thread's exit.
            Event::Exit { tid } => SchedKind::Off { thread: tid, left: ThreadState::Dead },
            Event::SwitchIn => SchedKind::On { thread: origin.tid },
            Event::SwitchOut { is_preempted } => {
                let left = if is_preempted { ThreadState::Preempted } else { ThreadState::Waiting };
                SchedKind::Off { thread: origin.tid, left }
            }
            Event::Fault(address) => SchedKind::MajorFault { thread: origin.tid, address },
            Event::Reading(_) | Event::Lost(_) | Event::Other => return,
        };
        // tracefs reports all of these but page faults, with more detail.
        if self.instance.is_none() || matches!(kind, SchedKind::MajorFault { .. }) {
            let mut tracks = tracks.lock();
            let time = tracks.ticks_at(origin.time.cast_signed());
            self.scheduling.handle_event(&SchedEvent { time, cpu: origin.cpu, kind }, &mut tracks);
        }
    }

    fn count(&mut self, command: u32, tracks: &mut Tracks) {
        let now = tracks.now();
        if let Some(usage) = &mut self.usage {
            usage.count(command, &mut self.scheduling, now, tracks);
        }
        let Some(track) = self.scheduling.process_track(command, tracks) else { return };
        self.last_values.resize(self.counters.counters.len(), u64::MAX);
        for ((name, counter), before) in self.counters.counters.iter_mut().zip(&mut self.last_values) {
            let Ok(value) = counter.read() else { continue };
            if value != *before {
                *before = value;
                let site = tracks.site("counter", name);
                tracks.add_point(Kind::Counter, track, now, site, 0, (value as f64).to_bits());
            }
        }
    }

    fn note_lost(&mut self, tracks: &mut Tracks) {
        let lost = self.instance.as_ref().map_or(0, Instance::lost);
        let counted = self.thread_counters.as_ref().map_or(0, ThreadCounters::lost);
        let total =
            self.ring_merger.lost.max(lost) + self.scheduling.counts.untracked + self.samples.stacks.n_cut + counted;
        if total > self.report.lost {
            self.report.lost = total;
            let text = format!("{total} events of the kernel were lost: its rings were full, or the tables were");
            tracks.note(NoteKind::Lost, total, "kernel", &text);
        }
    }

    fn note_scaled(&mut self, tracks: &mut Tracks) {
        if let Some(share) = self.thread_counters.as_ref().and_then(|counters| counters.threads.counted_share()) {
            let why = format!(
                "the processor has too few for all, they counted {:.0} % of the time and are scaled up to 100 %; record fewer at once",
                share * 100.0
            );
            note_unavailable(tracks, 1, "counters that took turns", &why);
        }
    }

    fn note_unreported(&mut self, tracks: &mut Tracks) {
        let n = self.scheduling.counts.unreported;
        if n > 0 {
            let why = format!(
                "{n} times a thread ran that had got no CPU as far as was reported; after a wake-up it counts as running at once, and \
                 after losing its CPU its wait is not seen"
            );
            note_unavailable(tracks, n, "switches that the kernel left out", &why);
        }
    }
}

fn note_unavailable(tracks: &mut Tracks, count: u64, what: &str, why: &str) {
    tracks.note(NoteKind::Unavailable, count, what, &format!("{what}: {why}"));
}
