//! Recording sessions: starting and stopping, the rings of the threads, and the keeper thread.
//!
//! A process has at most one session. The keeper wakes every 10 ms: it follows the control page's switch, adds what was lost to the page,
//! gives up rings that the collector retired, and writes a clock anchor every second (more often at the beginning).

use crate::clock;
use crate::control::{Control, ControlError, ELSEWHERE, ENV, Lost};
use crate::emit::{LOST, OFF, STATE, detach};
use crate::meta::{self, Entry};
use crate::names;
use crate::ring::RingFile;
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a process records.
#[derive(Clone, Debug)]
pub struct Options {
    /// Records per thread's ring, rounded up to a power of two. 0, the default, gives the first threads (four for each CPU) 262,144 where
    /// memory allows, 8 MiB of disk and memory each, which at 2.5 million events a second are 100 ms, and others 65,536.
    pub ring_records: u32,
    /// Rings that may exist at once; events of further threads are counted as lost.
    pub max_rings: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { ring_records: 0, max_rings: 1024 }
    }
}

/// Why recording did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The process already records; stop that session first.
    #[error("this process already records into {0}")]
    AlreadyRecording(PathBuf),
    /// The folder cannot be made.
    #[error("cannot make the trace folder {0}: {1}")]
    Folder(PathBuf, #[source] io::Error),
    /// The control page cannot be used.
    #[error("cannot record into {0}: {1}")]
    Control(PathBuf, #[source] ControlError),
    /// The meta file cannot be made.
    #[error("cannot write {0}: {1}")]
    Meta(PathBuf, #[source] io::Error),
    /// The system gives no thread.
    #[error("cannot start the keeper thread: {0}")]
    Keeper(#[source] io::Error),
}

/// What the session's threads share.
struct Shared {
    trace_dir: PathBuf,
    options: Options,
    generation: u32,
    control: Control,
    /// Rings that exist, the finished ones included until the collector retires them.
    rings: Mutex<Rings>,
    lost_threads: AtomicU64,
    stopping: AtomicBool,
    /// Held while the switch is followed.
    following: Mutex<()>,
}

#[derive(Default)]
struct Rings {
    alive: Vec<Arc<RingFile>>,
    next: u32,
}

static SESSION: Mutex<Option<Arc<Shared>>> = Mutex::new(None);
static GENERATIONS: AtomicU32 = AtomicU32::new(OFF + 1);
/// Set in a forked child, where the rings belong to the parent.
static FORKED: AtomicBool = AtomicBool::new(false);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's ring. When the thread ends the ring is finished.
struct Owned(Option<Arc<RingFile>>);

thread_local! {
    static OWNED: RefCell<Owned> = const { RefCell::new(Owned(None)) };
}

impl Drop for Owned {
    fn drop(&mut self) {
        detach(true);
        if let Some(ring) = self.0.take().filter(|_| !FORKED.load(Ordering::Relaxed)) {
            ring.finish();
        }
    }
}

/// Gives the thread a ring of session `generation` and hands it to `attach`, `None` when it can have none.
/// Returns false, without attaching, when that session is over or the thread is ending.
pub(crate) fn with_thread_ring(generation: u32, attach: impl FnOnce(Option<&RingFile>)) -> bool {
    let Some(shared) = lock(&SESSION).clone().filter(|s| s.generation == generation) else {
        return false;
    };
    let attached = OWNED.try_with(|owned| {
        detach(false);
        let ring = shared.new_ring();
        if let Some(old) = std::mem::replace(&mut owned.borrow_mut().0, ring.clone()) {
            old.finish();
        }
        if ring.is_none() {
            shared.lost_threads.fetch_add(1, Ordering::Relaxed);
        }
        attach(ring.as_deref());
    });
    if attached.is_err() {
        detach(true);
    }
    attached.is_ok()
}

/// The capacity of one more ring, where there are so many.
fn automatic_records(n_rings: usize) -> u32 {
    const SMALL: u32 = 1 << 16;
    const LARGE: u32 = 1 << 18;
    static ROOM: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let room = *ROOM.get_or_init(|| {
        let n_cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
        // A sixteenth of what is free, all large rings together.
        let kib: usize = free.and_then(|kib| kib.parse().ok()).unwrap_or(0);
        (4 * n_cpus).min(kib / 16 / (LARGE as usize * 32 / 1024))
    });
    if n_rings < room { LARGE } else { SMALL }
}

fn thread_id() -> u32 {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: gettid takes nothing and cannot fail.
        unsafe { libc::gettid() }.cast_unsigned()
    }
    #[cfg(not(target_os = "linux"))]
    {
        0
    }
}

/// A ring in the running session for what no thread of its own emits, and the session's number; `None` where nothing is
/// recorded, or it can have no more rings.
pub(crate) fn track_ring(name: &str, tid: u32, entry: impl FnOnce(u32) -> Entry) -> Option<(u32, Arc<RingFile>)> {
    let shared = current()?;
    let Some((number, ring)) = shared.make_ring(tid, name) else {
        shared.lost_threads.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    names::append(&entry(number));
    Some((shared.generation, ring))
}

/// Whether this session is still the running one.
pub(crate) fn is_running(generation: u32) -> bool {
    current().is_some_and(|shared| shared.generation == generation)
}

impl Shared {
    /// The calling thread's ring.
    fn new_ring(&self) -> Option<Arc<RingFile>> {
        let (tid, thread) = (thread_id(), std::thread::current());
        let name = thread.name().unwrap_or_default();
        let (number, ring) = self.make_ring(tid, name)?;
        names::append(&Entry::Thread { ring: number, tid, name: name.to_owned() });
        Some(ring)
    }

    fn make_ring(&self, tid: u32, name: &str) -> Option<(u32, Arc<RingFile>)> {
        let mut rings = lock(&self.rings);
        rings.alive.retain(|ring| !ring.is_retired());
        if rings.alive.len() >= self.options.max_rings as usize {
            return None;
        }
        let records = match self.options.ring_records {
            0 => automatic_records(rings.alive.len()),
            n => n,
        };
        let flight = self.control.is_flight();
        let (number, ring) = loop {
            let number = rings.next;
            rings.next = number.checked_add(1)?;
            match RingFile::create(&self.trace_dir, number, records, flight, tid, name) {
                // An earlier session, or an earlier process of this id, left one of this number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                result => break (number, Arc::new(result.ok()?)),
            }
        };
        rings.alive.push(Arc::clone(&ring));
        Some((number, ring))
    }

    /// Adds what was lost since the last call to the control page.
    fn report_lost(&self, meta: u64) {
        let (events, threads) = (LOST.swap(0, Ordering::Relaxed), self.lost_threads.swap(0, Ordering::Relaxed));
        if events + threads + meta > 0 {
            self.control.add_lost(Lost { events, threads, meta });
        }
    }

    /// Follows the control page's switch.
    fn follow_switch(&self) {
        // Who changed the page comes after who looked before: no older answer is stored over a newer one.
        let _in_turn = lock(&self.following);
        STATE.store(if self.control.is_on() { self.generation } else { OFF }, Ordering::Relaxed);
    }

    /// The keeper thread.
    fn keep(&self) {
        // 10, 110 ms, then each second: early slices are converted well too.
        let begin = clock::mono_now();
        let mut next_anchor = begin + 10_000_000;
        while !self.stopping.load(Ordering::Acquire) {
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
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
}

impl Session {
    /// Where it records.
    #[must_use]
    pub fn trace_dir(&self) -> &Path {
        &self.shared.trace_dir
    }

    /// The folder's control page.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.shared.control
    }

    /// Switches recording in this and all other processes of the folder, here at once.
    pub fn switch(&self, on: bool) {
        self.shared.control.switch(on);
        self.shared.follow_switch();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if FORKED.load(Ordering::Relaxed) {
            // The parent's session; its keeper does not run here, and a join would wait for ever.
            std::mem::forget(self.keeper.take());
            return;
        }
        self.shared.stopping.store(true, Ordering::Release);
        if let Some(keeper) = self.keeper.take() {
            keeper.thread().unpark();
            // A keeper that panicked has nothing more to say here.
            let _ = keeper.join();
        }
        STATE.store(OFF, Ordering::Relaxed);
        *lock(&SESSION) = None;
        for ring in &lock(&self.shared.rings).alive {
            ring.finish();
        }
        names::append(&Entry::Anchor(clock::anchor()));
        self.shared.report_lost(names::stop_writing());
    }
}

/// Starts recording this process into a trace folder, which is made if it is missing.
///
/// Records at once, unless the folder's control page exists and is switched off. The folder is the program's choice: under
/// `stepscope record` use [`start_from_env`], which records into the folder of that; the recorder says where else a program records.
///
/// # Errors
/// That the process records already, or that the folder cannot be written.
pub fn start(trace_dir: &Path, options: Options) -> Result<Session, StartError> {
    let mut current = lock(&SESSION);
    if let Some(other) = &*current {
        return Err(StartError::AlreadyRecording(other.trace_dir.clone()));
    }
    let here = |e| StartError::Folder(trace_dir.to_owned(), e);
    std::fs::create_dir_all(trace_dir).map_err(here)?;
    // Absolute: the program may change its working directory.
    let trace_dir = std::path::absolute(trace_dir).map_err(here)?;
    let control = Control::open_or_create(&trace_dir, true).map_err(|e| StartError::Control(trace_dir.clone(), e))?;
    let pid = std::process::id();
    let mut meta =
        meta::Writer::create(&trace_dir, pid).map_err(|e| StartError::Meta(meta::path(&trace_dir, pid), e))?;
    let first = clock::anchor();
    meta.append_all([process_entry(pid), Entry::Anchor(first)].into_iter());
    let shared = Arc::new(Shared {
        trace_dir,
        options,
        generation: GENERATIONS.fetch_add(1, Ordering::Relaxed),
        control,
        rings: Mutex::default(),
        lost_threads: AtomicU64::new(0),
        stopping: AtomicBool::new(false),
        following: Mutex::default(),
    });
    switch_off_in_forked_children();
    if shared.control.is_flight() {
        dump_on_panic();
    }
    let keeper = std::thread::Builder::new().name("events-keeper".to_owned()).spawn({
        let shared = Arc::clone(&shared);
        move || shared.keep()
    });
    let keeper = keeper.map_err(StartError::Keeper)?;
    names::write_to(meta);
    // A second anchor already: one alone gives no rate to the readers of the first 10 ms.
    names::append(&Entry::Anchor(clock::anchor()));
    *current = Some(Arc::clone(&shared));
    shared.follow_switch();
    say_elsewhere(&shared.trace_dir);
    Ok(Session { shared, keeper: Some(keeper) })
}

/// Leaves the folder of this process in the one of `stepscope record`, where the program names its own: its recorder says so. That
/// the file cannot be written is nothing that the program has to know.
fn say_elsewhere(trace_dir: &Path) {
    let wanted = std::env::var_os(ENV).filter(|dir| !dir.is_empty()).and_then(|dir| std::path::absolute(dir).ok());
    if let Some(wanted) = wanted.filter(|wanted| wanted != trace_dir && wanted.is_dir()) {
        let name = format!("{ELSEWHERE}{}", std::process::id());
        let _ = std::fs::write(wanted.join(name), trace_dir.as_os_str().as_encoded_bytes());
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

/// When a process began, in clock ticks since the machine did: with its id its identity. 0 where the system does not tell.
#[must_use]
pub fn born(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may hold spaces and brackets; it ends with the last bracket. The 22nd field is the 20th after it.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// This machine's name; empty where it has none.
#[must_use]
pub fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is writable for its length less one, so that a zero always ends the name.
    let status = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let end = buffer.iter().position(|&b| b == 0).unwrap_or(0);
    if status == 0 { String::from_utf8_lossy(&buffer[..end]).into_owned() } else { String::new() }
}

/// Registers, once, that a forked child does not write to its parent's rings.
fn switch_off_in_forked_children() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
        STATE.store(OFF, Ordering::Relaxed);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores to two atomics, which is allowed after fork.
        let status = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        debug_assert_eq!(status, 0, "only fails without memory");
    });
}

/// A step that runs; give it to [`step_ends`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "the step ends with step_ends"]
pub struct StepMark {
    counted: bool,
    /// Raw monotonic ns; 0 where nobody asks how long it takes.
    begin_ns: i64,
}

/// The session's page, when there is a session.
fn current() -> Option<Arc<Shared>> {
    lock(&SESSION).clone()
}

/// The trace folder that this process records into, if it records.
#[must_use]
pub fn recording_into() -> Option<PathBuf> {
    current().map(|shared| shared.trace_dir.clone())
}

/// A step begins: call it before [`is_on`](crate::is_on) is asked. If "the next N steps" are to be recorded, recording goes on here.
pub fn step_begins() -> StepMark {
    let Some(shared) = current() else { return StepMark::default() };
    let counted = shared.control.steps_wanted() > 0;
    if counted && !shared.control.is_on() {
        shared.control.switch(true);
        shared.follow_switch();
    }
    let begin_ns = if shared.control.slow_step_ns() > 0 { clock::mono_now() } else { 0 };
    StepMark { counted, begin_ns }
}

/// A step ended: call it after its slice was emitted. Recording goes off with the last of "the next N steps"; a step that was slow asks for a dump.
pub fn step_ends(mark: StepMark) {
    if !mark.counted && mark.begin_ns == 0 {
        return;
    }
    let Some(shared) = current() else { return };
    if mark.counted && shared.control.step_done() {
        shared.follow_switch();
    }
    let limit = shared.control.slow_step_ns();
    if mark.begin_ns > 0 && limit > 0 && (clock::mono_now() - mark.begin_ns).unsigned_abs() > limit {
        shared.control.request_dump();
    }
}

/// Asks the collector to write what this folder's flight recorder holds; false where nothing is recorded.
pub fn dump() -> bool {
    current().is_some_and(|shared| {
        shared.control.request_dump();
        true
    })
}

/// How often a panic looks whether the session's lock is free, a millisecond apart: others hold it for a moment, the panicking thread for
/// good.
const PANIC_LOOKS: u32 = 20;

/// Makes a panic tell its message and ask for a dump, from now on in this process.
fn dump_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // Named now: a panic may come from a place that holds the names' lock.
        let site = names::site("panic", "panic");
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if let Some(shared) = current_in_panic()
                && shared.control.is_flight()
            {
                crate::emit::log(site, &panic_message(info));
                shared.control.request_dump();
            }
            before(info);
        }));
    });
}

/// The session, unless the panic comes from a place that holds its lock.
fn current_in_panic() -> Option<Arc<Shared>> {
    for look in 0..PANIC_LOOKS {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        match SESSION.try_lock() {
            Ok(session) => return session.clone(),
            Err(std::sync::TryLockError::Poisoned(session)) => return session.into_inner().clone(),
            Err(std::sync::TryLockError::WouldBlock) => {}
        }
    }
    None
}

fn panic_message(info: &std::panic::PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)");
    info.location().map_or_else(|| text.to_owned(), |at| format!("{text}, at {at}"))
}

static FROM_ENV: Mutex<Option<Session>> = Mutex::new(None);

/// Starts recording into the folder that the environment variable `STEPSCOPE_TRACE` names, until the process exits.
/// Returns whether it names one.
///
/// # Errors
/// As [`start`]; a program will usually say so and go on.
pub fn start_from_env() -> Result<bool, StartError> {
    let Some(trace_dir) = std::env::var_os(ENV).filter(|dir| !dir.is_empty()) else {
        return Ok(false);
    };
    let session = start(Path::new(&trace_dir), Options::default())?;
    *lock(&FROM_ENV) = Some(session);
    extern "C" fn at_exit() {
        if !FORKED.load(Ordering::Relaxed) {
            drop(lock(&FROM_ENV).take());
        }
    }
    // SAFETY: the handler is a plain function; other threads may still emit while it runs, into mappings that stay.
    let status = unsafe { libc::atexit(at_exit) };
    debug_assert_eq!(status, 0, "only fails without memory");
    Ok(true)
}
