//! The session that a process records in and the rings of its threads.

use crate::control::{Control, Lost};
use crate::local::{LOST, OFF, STATE, detach};
use crate::meta::Entry;
use crate::names;
use crate::ring::RingFile;
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// The state that the session's threads share.
pub(crate) struct Shared {
    pub(crate) trace_dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) generation: u32,
    pub(crate) control: Control,
    /// Rings that exist, the finished ones included until the collector retires them.
    pub(crate) rings: Mutex<Rings>,
    pub(crate) lost_threads: AtomicU64,
    pub(crate) stopping: AtomicBool,
    /// Held while the switch is followed.
    pub(crate) following: Mutex<()>,
}

#[derive(Default)]
pub(crate) struct Rings {
    pub(crate) alive: Vec<Arc<RingFile>>,
    next: u32,
}

pub(crate) static SESSION: Mutex<Option<Arc<Shared>>> = Mutex::new(None);
/// Set in a forked child, where the rings belong to the parent.
pub(crate) static FORKED: AtomicBool = AtomicBool::new(false);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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

/// The session's page, when there is a session.
pub(crate) fn current() -> Option<Arc<Shared>> {
    lock(&SESSION).clone()
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
    pub(crate) fn report_lost(&self, meta: u64) {
        let (events, threads) = (LOST.swap(0, Ordering::Relaxed), self.lost_threads.swap(0, Ordering::Relaxed));
        if events + threads + meta > 0 {
            self.control.add_lost(Lost { events, threads, meta });
        }
    }

    /// Follows the control page's switch.
    pub(crate) fn follow_switch(&self) {
        // Who changed the page comes after who looked before: no older answer is stored over a newer one.
        let _in_turn = lock(&self.following);
        STATE.store(if self.control.is_on() { self.generation } else { OFF }, Ordering::Relaxed);
    }
}
