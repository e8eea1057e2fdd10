//! Recording sessions: starting and stopping, and the keeper thread.
//!
//! A process has at most one session. Every 10 ms its keeper thread reads the control page's switch, adds losses to the
//! page, and releases rings that the collector retired. It writes a clock anchor every second, more often at the
//! beginning.

use crate::clock;
use crate::control::{Control, ControlError, ELSEWHERE_PREFIX, ENV};
use crate::fork;
use crate::local::{OFF, STATE, fork_depth};
use crate::lock::{lock, lock_soon};
use crate::meta::{self, Entry};
use crate::names;
use crate::rings::{Options, SESSION, SessionGuard, SessionState, current, lock_session};
use crate::system;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Why recording did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// This system is not Unix: events that the program emits go nowhere.
    #[error("a process can be recorded on Unix only")]
    Unsupported,
    /// The process already records; stop that session first.
    #[error("this process already records into {0}")]
    AlreadyRecording(PathBuf),
    /// The folder cannot be created.
    #[error("cannot make the trace folder {0}: {1}")]
    Folder(PathBuf, #[source] io::Error),
    /// The control page cannot be used.
    #[error("cannot record into {0}: {1}")]
    Control(PathBuf, #[source] ControlError),
    /// The meta file cannot be created.
    #[error("cannot write {0}: {1}")]
    Meta(PathBuf, #[source] io::Error),
    /// The system cannot start a thread.
    #[error("cannot start the keeper thread: {0}")]
    Keeper(#[source] io::Error),
}

/// The next session's generation.
static NEXT_GENERATION: AtomicU32 = AtomicU32::new(OFF + 1);

impl SessionState {
    /// The keeper thread's loop.
    fn run_keeper(&self) {
        // Anchors after 10 and 110 ms, then each second: the first slices, too, need two near anchors for their times.
        let begin = clock::mono_now();
        let mut next_anchor = begin + 10_000_000;
        while !self.is_stopping.load(Ordering::Acquire) {
            self.follow_switch();
            self.report_lost(0);
            lock(&self.rings).alive.retain(|ring| !ring.is_retired());
            let now = clock::mono_now();
            if now >= next_anchor {
                names::append(&Entry::Anchor(clock::anchor()));
                next_anchor = now + (10 * (now - begin)).clamp(10_000_000, 1_000_000_000);
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        STATE.store(OFF, Ordering::Relaxed);
    }
}

/// A recording in progress; dropping it stops recording and completes the files.
#[must_use = "recording stops when the session is dropped"]
pub struct Session {
    shared: Arc<SessionState>,
    keeper: Option<JoinHandle<()>>,
}

impl Session {
    /// The trace folder.
    #[must_use]
    pub fn trace_dir(&self) -> &Path {
        &self.shared.trace_dir
    }

    /// The folder's control page.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.shared.control
    }

    /// Switches recording on or off: in this process at once, in the folder's other processes within about 10 ms.
    pub fn switch(&self, on: bool) {
        self.shared.control.switch(on);
        self.shared.follow_switch();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.shared.is_own() {
            // The session is the parent's. Its keeper does not run in this process, so a join would block for ever.
            std::mem::forget(self.keeper.take());
            return;
        }
        self.shared.is_stopping.store(true, Ordering::Release);
        if let Some(keeper) = self.keeper.take() {
            keeper.thread().unpark();
            // A panic of the keeper was already printed.
            let _ = keeper.join();
        }
        STATE.store(OFF, Ordering::Relaxed);
        *lock_session() = None;
        for ring in &lock(&self.shared.rings).alive {
            ring.finish();
        }
        names::append(&Entry::Anchor(clock::anchor()));
        self.shared.report_lost(names::stop_writing());
    }
}

/// Starts recording this process into a trace folder, which is made if it is missing.
///
/// Records at once, unless the folder's control page exists and is switched off. The program chooses the folder; under
/// `stepscope record`, [`start_from_env`] records into the recorder's folder. Where a program records into another
/// folder, the recorder reports that folder.
///
/// # Errors
/// The process records already, the folder cannot be written, or the system is not Unix.
pub fn start(trace_dir: &Path, options: Options) -> Result<Session, StartError> {
    if !system::CAN_RECORD {
        return Err(StartError::Unsupported);
    }
    fork::install_handlers();
    let mut current = lock_session();
    take_inherited(&mut current);
    if let Some(other) = &*current {
        return Err(StartError::AlreadyRecording(other.trace_dir.clone()));
    }
    let folder_error = |e| StartError::Folder(trace_dir.to_owned(), e);
    std::fs::create_dir_all(trace_dir).map_err(folder_error)?;
    // Absolute: the program may change its working directory.
    let trace_dir = std::path::absolute(trace_dir).map_err(folder_error)?;
    let control = Control::open_or_create(&trace_dir, true).map_err(|e| StartError::Control(trace_dir.clone(), e))?;
    let pid = std::process::id();
    let mut meta =
        meta::Writer::create(&trace_dir, pid).map_err(|e| StartError::Meta(meta::path(&trace_dir, pid), e))?;
    meta.append_all([process_entry(pid), Entry::Anchor(clock::anchor())].into_iter());
    let shared = Arc::new(SessionState {
        trace_dir,
        options,
        generation: NEXT_GENERATION.fetch_add(1, Ordering::Relaxed),
        fork_depth: fork_depth(),
        control,
        rings: Mutex::default(),
        lost_threads: AtomicU64::new(0),
        is_stopping: AtomicBool::new(false),
        switch_lock: Mutex::default(),
    });
    if shared.control.is_flight() {
        dump_on_panic();
    }
    let keeper = std::thread::Builder::new().name("events-keeper".to_owned()).spawn({
        let shared = Arc::clone(&shared);
        move || shared.run_keeper()
    });
    let keeper = keeper.map_err(StartError::Keeper)?;
    names::write_to(meta);
    // A second anchor at once: readers of the first 10 ms need two for the rate.
    names::append(&Entry::Anchor(clock::anchor()));
    *current = Some(Arc::clone(&shared));
    shared.follow_switch();
    record_elsewhere(&shared.trace_dir);
    Ok(Session { shared, keeper: Some(keeper) })
}

/// Where the program runs under `stepscope record` but records into a folder that it chose, writes the path of that
/// folder into the recorder's folder, so that the recorder can report it. Errors of this write are ignored.
fn record_elsewhere(trace_dir: &Path) {
    let recorder_dir =
        std::env::var_os(ENV).filter(|dir| !dir.is_empty()).and_then(|dir| std::path::absolute(dir).ok());
    if let Some(recorder_dir) = recorder_dir.filter(|dir| dir != trace_dir && dir.is_dir()) {
        let name = format!("{ELSEWHERE_PREFIX}{}", std::process::id());
        let _ = std::fs::write(recorder_dir.join(name), trace_dir.as_os_str().as_encoded_bytes());
    }
}

fn process_entry(pid: u32) -> Entry {
    let exe = std::env::current_exe().unwrap_or_default();
    Entry::Process {
        pid,
        start_ns: clock::wall_now_ns(),
        clock: clock::source(),
        host: host_name(),
        exe: exe.to_string_lossy().into_owned(),
        args: std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect(),
        born: born(pid),
    }
}

/// The start time of a process, in clock ticks since the machine's boot: with the process id it identifies the process.
/// 0 where the system does not report it.
#[must_use]
pub fn born(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field, the name, may hold spaces and brackets, and ends with the last bracket. The start time is the
    // 22nd field, the 20th after the name.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// This machine's name; empty where it has none.
#[must_use]
pub fn host_name() -> String {
    system::host_name()
}

/// What a forked child inherited, which is abandoned without touching it: its files are the parent's to close.
fn take_inherited(current: &mut SessionGuard) -> Option<Arc<SessionState>> {
    let inherited = current.take_if(|session| !session.is_own())?;
    std::mem::forget(Arc::clone(&inherited));
    names::forget_meta();
    Some(inherited)
}

/// Goes on recording in a forked child: with rings of its own, in the folder that its parent recorded into. `None` where
/// the parent did not record, or this process is no forked child.
///
/// Slices that were open at the fork are the parent's.
///
/// # Errors
/// As [`start`].
pub fn start_after_fork() -> Result<Option<Session>, StartError> {
    let Some(inherited) = take_inherited(&mut lock_session()) else { return Ok(None) };
    start(&inherited.trace_dir, inherited.options.clone()).map(Some)
}

/// A step that has begun, to be passed to [`end_step`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "the step ends with end_step"]
pub struct StepMark {
    /// Whether the step is one of "the next N steps".
    is_counted: bool,
    /// `CLOCK_MONOTONIC_RAW`, ns; 0 where the step's duration is not needed.
    begin_ns: i64,
}

/// The trace folder that this process records into, if it records.
#[must_use]
pub fn current_trace_dir() -> Option<PathBuf> {
    current().map(|shared| shared.trace_dir.clone())
}

/// Begins a step; to be called before [`is_on`](crate::is_on) is read for the step. Switches recording on if "the next
/// N steps" are to be recorded.
pub fn begin_step() -> StepMark {
    let Some(shared) = current() else { return StepMark::default() };
    let is_counted = shared.control.n_steps_left() > 0;
    if is_counted && !shared.control.is_on() {
        shared.control.switch(true);
        shared.follow_switch();
    }
    let begin_ns = if shared.control.slow_step_ns() > 0 { clock::mono_now() } else { 0 };
    StepMark { is_counted, begin_ns }
}

/// Ends a step; to be called after its slice was emitted. Switches recording off after the last of "the next N steps",
/// and requests a dump if the step was slow.
pub fn end_step(mark: StepMark) {
    if !mark.is_counted && mark.begin_ns == 0 {
        return;
    }
    let Some(shared) = current() else { return };
    if mark.is_counted && shared.control.count_step() {
        shared.follow_switch();
    }
    let limit = shared.control.slow_step_ns();
    if mark.begin_ns > 0 && limit > 0 && (clock::mono_now() - mark.begin_ns).unsigned_abs() > limit {
        shared.control.request_dump();
    }
}

/// Requests that the collector writes the content of the folder's flight recorder. Returns false where no session runs.
pub fn dump() -> bool {
    current().is_some_and(|shared| {
        shared.control.request_dump();
        true
    })
}

/// Makes a panic log its message and request a dump, from now on in this process.
fn dump_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // Interned before any panic: a panicking thread may hold the names' lock.
        let site = names::site("panic", "panic");
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if let Some(shared) = current_in_panic()
                && shared.control.is_flight()
            {
                crate::emit::log(site, &panic_message(info));
                shared.control.request_dump();
            }
            previous_hook(info);
        }));
    });
}

/// The running session; `None` also where the panicking thread holds the session's lock.
fn current_in_panic() -> Option<Arc<SessionState>> {
    lock_soon(&SESSION)?.clone()
}

fn panic_message(info: &std::panic::PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)");
    info.location().map_or_else(|| text.to_owned(), |at| format!("{text}, at {at}"))
}

static ENV_SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Starts recording into the folder that the environment variable `STEPSCOPE_TRACE` names, until the process exits.
/// Returns whether the variable is set.
///
/// # Errors
/// As [`start`]; a program usually prints the error and continues.
pub fn start_from_env() -> Result<bool, StartError> {
    let Some(trace_dir) = std::env::var_os(ENV).filter(|dir| !dir.is_empty()) else {
        return Ok(false);
    };
    let session = start(Path::new(&trace_dir), Options::default())?;
    *lock(&ENV_SESSION) = Some(session);
    extern "C" fn at_exit() {
        // In a forked child the session is the parent's, and its drop does nothing.
        drop(lock(&ENV_SESSION).take());
    }
    // Other threads may still emit while the handler runs, into mappings that stay.
    system::at_exit(at_exit);
    Ok(true)
}
