//! The state of a process's recording session, and the rings of the process's threads.

use crate::control::{Control, Losses};
use crate::local::{N_LOST_EVENTS, OFF, STATE, detach, fork_depth};
use crate::lock::lock;
use crate::meta::Entry;
use crate::names;
use crate::record::Record;
use crate::ring::RingFile;
use crate::system::thread_id;
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// How a process records.
#[derive(Clone, Debug)]
pub struct Options {
    /// Records in each thread's ring, rounded up to a power of two. 0, the default, chooses: 262,144 records for the
    /// first threads (four for each CPU, fewer where memory is short), 65,536 for all others. A ring of 262,144 records
    /// takes 8 MiB of disk and memory and holds 100 ms of events at 2.5 million events a second.
    pub ring_records: u32,
    /// The number of rings that may exist at once; events of further threads are counted as lost.
    pub max_rings: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { ring_records: 0, max_rings: 1024 }
    }
}

/// A session's state, which all threads share.
pub(crate) struct SessionState {
    pub(crate) trace_dir: PathBuf,
    pub(crate) options: Options,
    /// The session's number, which differs between the sessions of a process.
    pub(crate) generation: u32,
    /// [`fork_depth`] of the process that started it.
    pub(crate) fork_depth: u32,
    pub(crate) control: Control,
    /// The rings that exist. A finished ring stays in the list until the collector retires it.
    pub(crate) rings: Mutex<Rings>,
    /// Threads that got no ring, not yet added to the control page.
    pub(crate) lost_threads: AtomicU64,
    /// Whether the keeper thread should end.
    pub(crate) is_stopping: AtomicBool,
    /// Serialises [`SessionState::follow_switch`].
    pub(crate) switch_lock: Mutex<()>,
}

#[derive(Default)]
pub(crate) struct Rings {
    pub(crate) alive: Vec<Arc<RingFile>>,
    /// The number in the next ring's file name.
    next_number: u32,
}

pub(crate) static SESSION: Mutex<Option<Arc<SessionState>>> = Mutex::new(None);

pub(crate) type SessionGuard = MutexGuard<'static, Option<Arc<SessionState>>>;

pub(crate) fn lock_session() -> SessionGuard {
    lock(&SESSION)
}

/// A thread's ring, which is marked as finished when the thread ends or gets another one.
struct ThreadRing {
    ring: Option<Arc<RingFile>>,
    /// [`fork_depth`] of the process whose ring it is.
    fork_depth: u32,
}

thread_local! {
    /// The name that the thread was given for its rings; empty: its name as Rust knows it.
    static THREAD_NAME: RefCell<String> = const { RefCell::new(String::new()) };
    static THREAD_RING: RefCell<ThreadRing> = const { RefCell::new(ThreadRing { ring: None, fork_depth: 0 }) };
}

impl ThreadRing {
    fn replace(&mut self, ring: Option<Arc<RingFile>>) {
        let is_own = self.fork_depth == fork_depth();
        if let Some(old) = std::mem::replace(&mut self.ring, ring).filter(|_| is_own) {
            old.finish();
        }
        self.fork_depth = fork_depth();
    }
}

impl Drop for ThreadRing {
    fn drop(&mut self) {
        detach(true);
        self.replace(None);
    }
}

/// Names the calling thread in its rings to come.
pub(crate) fn name_thread(name: &str) {
    THREAD_NAME.set(name.to_owned());
}

/// Creates the calling thread's ring in session `generation` and passes it to `attach`, or `None` where no ring can be
/// created. Returns false, without calling `attach`, when that session is over or the thread is ending.
pub(crate) fn with_thread_ring(generation: u32, attach: impl FnOnce(Option<&RingFile>)) -> bool {
    let Some(session) = current().filter(|session| session.generation == generation) else { return false };
    let result = THREAD_RING.try_with(|thread_ring| {
        detach(false);
        let ring = session.create_thread_ring();
        thread_ring.borrow_mut().replace(ring.clone());
        if ring.is_none() {
            session.lost_threads.fetch_add(1, Ordering::Relaxed);
        }
        attach(ring.as_deref());
    });
    if result.is_err() {
        detach(true);
    }
    result.is_ok()
}

/// The default capacity, in records, of a ring that is created next to `n_rings` existing ones.
fn default_capacity(n_rings: usize) -> u32 {
    const SMALL: u32 = 1 << 16;
    const LARGE: u32 = 1 << 18;
    static MAX_LARGE_RINGS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let max_large_rings = *MAX_LARGE_RINGS.get_or_init(|| {
        let n_cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
        let free_kib: usize = free.and_then(|kib| kib.parse().ok()).unwrap_or(0);
        // All large rings together take at most a sixteenth of the free memory.
        (4 * n_cpus).min(free_kib / 16 / (LARGE as usize * size_of::<Record>() / 1024))
    });
    if n_rings < max_large_rings { LARGE } else { SMALL }
}

/// Creates a ring in the running session for a track that is not a thread of this process, and returns it with the
/// session's generation. `entry` makes the meta file's entry from the ring's number. `None` where no session runs, or
/// the session has [`Options::max_rings`].
pub(crate) fn track_ring(name: &str, tid: u32, entry: impl FnOnce(u32) -> Entry) -> Option<(u32, Arc<RingFile>)> {
    let session = current()?;
    let Some((number, ring)) = session.create_ring(tid, name) else {
        session.lost_threads.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    names::append(&entry(number));
    Some((session.generation, ring))
}

/// Whether the session with this generation is still running.
pub(crate) fn is_running(generation: u32) -> bool {
    current().is_some_and(|session| session.generation == generation)
}

/// The running session of this process, if there is one.
pub(crate) fn current() -> Option<Arc<SessionState>> {
    lock_session().clone().filter(|session| session.is_own())
}

impl SessionState {
    /// Whether this process started it: a forked child has its parent's until it starts one of its own.
    pub(crate) fn is_own(&self) -> bool {
        self.fork_depth == fork_depth()
    }

    /// Creates the calling thread's ring and names the thread in the meta file.
    fn create_thread_ring(&self) -> Option<Arc<RingFile>> {
        let (tid, thread) = (thread_id(), std::thread::current());
        let given = THREAD_NAME.with_borrow(String::clone);
        let name = if given.is_empty() { thread.name().unwrap_or_default().to_owned() } else { given };
        let (number, ring) = self.create_ring(tid, &name)?;
        names::append(&Entry::Thread { ring: number, tid, name });
        Some(ring)
    }

    /// Creates a ring file and returns it with its number. `None` where the session has [`Options::max_rings`], or the
    /// file cannot be created.
    fn create_ring(&self, tid: u32, name: &str) -> Option<(u32, Arc<RingFile>)> {
        let mut rings = lock(&self.rings);
        rings.alive.retain(|ring| !ring.is_retired());
        if rings.alive.len() >= self.options.max_rings as usize {
            return None;
        }
        let capacity = match self.options.ring_records {
            0 => default_capacity(rings.alive.len()),
            n => n,
        };
        let flight = self.control.is_flight();
        let (number, ring) = loop {
            let number = rings.next_number;
            rings.next_number = number.checked_add(1)?;
            match RingFile::create(&self.trace_dir, number, capacity, flight, tid, name) {
                // An earlier session, or an earlier process with the same id, left a ring file with this number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                result => break (number, Arc::new(result.ok()?)),
            }
        };
        rings.alive.push(Arc::clone(&ring));
        Some((number, ring))
    }

    /// Adds the losses since the last call to the control page: events, threads, and `n_meta` failed writes to the meta
    /// file.
    pub(crate) fn report_lost(&self, n_meta: u64) {
        let (events, threads) =
            (N_LOST_EVENTS.swap(0, Ordering::Relaxed), self.lost_threads.swap(0, Ordering::Relaxed));
        if events + threads + n_meta > 0 {
            self.control.add_lost(Losses { events, threads, meta: n_meta });
        }
    }

    /// Sets [`STATE`] as the control page's switch says.
    pub(crate) fn follow_switch(&self) {
        // The page is read under the lock: otherwise a thread that read it earlier could overwrite a newer state.
        let _guard = lock(&self.switch_lock);
        STATE.store(if self.control.is_on() { self.generation } else { OFF }, Ordering::Relaxed);
    }
}
