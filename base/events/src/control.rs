//! The control page: the file `control` of a trace folder, one mapped page that all processes share.
//!
//! ```text
//! byte 0          magic "STPCTRL1" u64; zero until the page is ready. The last byte is the version
//!      8          switch u32: 1 record, 0 do not
//!      12         steps u32: steps still to record. Recording goes on with the next step that begins, and off after
//!                 the last. 0: recording does not go by steps
//!      16         dumps requested u32          20  dumps done u32
//!      24         flight recorder u32: 1 rings keep their newest records, which a dump writes to the trace
//!      32         slow step u64, ns: a step that takes longer requests a dump; 0: none does
//!      40         retention u64, ns: how much of the past a dump writes; 0: everything that the rings hold
//!      64         collector's pid u32; zero before the first collector
//!      68         collector finished u32: 1 after it drained everything and left
//!      72         collector's heartbeat i64, CLOCK_MONOTONIC_RAW ns
//!      128        events lost u64: emitted by threads that could get no ring
//!      136        threads without a ring u64
//!      144        failed writes to meta files u64 (disk full)
//!      152..4096  zero
//! ```
//!
//! The recorder sets the switch: a process that starts recording into a folder sets it only where it creates the page.
//! Producers read it every 10 ms.

use memmap2::MmapRaw;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// The page's name in the trace folder.
pub const FILE_NAME: &str = "control";
/// The environment variable that names the trace folder to programs that call [`crate::start_from_env`].
pub const ENV: &str = "STEPSCOPE_TRACE";
/// The prefix, before the process id, of the name of a file in the folder of `STEPSCOPE_TRACE`. The file holds the path
/// of the folder into which that process records instead, because it calls [`crate::start`].
pub const ELSEWHERE_PREFIX: &str = "elsewhere-";
/// The environment variable with the address of the collector that gathers the traces of several processes and hosts.
pub const COLLECTOR_ENV: &str = "STEPSCOPE_COLLECTOR";

const PAGE: u64 = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"STPCTRL1");
/// The magic while a process fills a new page.
const FILLING: u64 = u64::from_le_bytes(*b"STPCTRL0");

#[repr(C)]
struct Page {
    magic: AtomicU64,
    switch: AtomicU32,
    steps: AtomicU32,
    dumps_requested: AtomicU32,
    dumps_done: AtomicU32,
    flight: AtomicU32,
    pad0: u32,
    slow_step_ns: AtomicU64,
    keep_ns: AtomicU64,
    pad1: [u64; 2],
    collector_pid: AtomicU32,
    collector_finished: AtomicU32,
    collector_heartbeat: AtomicI64,
    pad2: [u64; 6],
    lost_events: AtomicU64,
    lost_threads: AtomicU64,
    lost_meta: AtomicU64,
}

const _: () =
    assert!(std::mem::offset_of!(Page, collector_pid) == 64 && std::mem::offset_of!(Page, lost_events) == 128);

/// Why a control page could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The file cannot be created, opened or mapped.
    #[error("{FILE_NAME}: {0}")]
    Io(#[from] io::Error),
    /// The file is not a control page of this version.
    #[error("{FILE_NAME} is not a control page of this version ({len} bytes, magic {magic:#018x})")]
    Foreign {
        /// The file's length, bytes.
        len: u64,
        /// The file's first eight bytes.
        magic: u64,
    },
}

/// A mapped control page.
pub struct Control {
    map: MmapRaw,
    file: File,
}

impl Control {
    /// Opens the folder's page, or creates it with the switch set to `is_on`. Several processes may do so at once.
    ///
    /// # Errors
    /// The folder is not writable or full, or `control` is some other file.
    pub fn open_or_create(trace_dir: &Path, is_on: bool) -> Result<Self, ControlError> {
        let path = trace_dir.join(FILE_NAME);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() == 0 {
            crate::ring::file::reserve(&file, PAGE)?;
        }
        let control = Self::map(file)?;
        let page = control.page();
        if page.magic.compare_exchange(0, FILLING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            page.switch.store(u32::from(is_on), Ordering::Relaxed);
            page.magic.store(MAGIC, Ordering::Release);
        }
        control.check()?;
        Ok(control)
    }

    /// Opens the existing page of a folder.
    ///
    /// # Errors
    /// The page is missing, not writable, or `control` is some other file.
    pub fn open(trace_dir: &Path) -> Result<Self, ControlError> {
        let control = Self::map(OpenOptions::new().read(true).write(true).open(trace_dir.join(FILE_NAME))?)?;
        control.check()?;
        Ok(control)
    }

    fn map(file: File) -> Result<Self, ControlError> {
        let len = file.metadata()?.len();
        if len != PAGE {
            return Err(ControlError::Foreign { len, magic: 0 });
        }
        Ok(Self { map: MmapRaw::map_raw(&file)?, file })
    }

    fn check(&self) -> Result<(), ControlError> {
        match self.page().magic.load(Ordering::Acquire) {
            // Another process is filling the page; its switch reads as off until the page is ready.
            MAGIC | FILLING => Ok(()),
            magic => Err(ControlError::Foreign { len: PAGE, magic }),
        }
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping is page-aligned and PAGE bytes long (checked in `map`), lives as long as `self`, and
        // holds only integers that are accessed atomically.
        unsafe { &*self.map.as_ptr().cast::<Page>() }
    }

    /// Whether processes should record.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.page().switch.load(Ordering::Relaxed) & 1 != 0
    }

    /// Switches recording in every process of the folder, within about 10 ms.
    pub fn switch(&self, is_on: bool) {
        self.page().switch.store(u32::from(is_on), Ordering::Relaxed);
    }

    /// Records the next `n` steps that begin, in all processes of the folder together, and nothing else from now on.
    pub fn record_steps(&self, n: u32) {
        self.switch(false);
        self.page().steps.store(n, Ordering::Release);
    }

    /// The number of steps still to be recorded; 0 when recording does not go by steps.
    #[must_use]
    pub fn n_steps_left(&self) -> u32 {
        self.page().steps.load(Ordering::Acquire)
    }

    /// Counts a recorded step. Returns whether the step was the last one requested, after which recording is off.
    pub(crate) fn count_step(&self) -> bool {
        let decrement = |n: u32| n.checked_sub(1);
        let was_last = self.page().steps.fetch_update(Ordering::AcqRel, Ordering::Acquire, decrement) == Ok(1);
        if was_last {
            self.switch(false);
        }
        was_last
    }

    /// Makes all rings that are created from now on flight recorders, which retain their newest records. A dump writes
    /// the last `retention_ns` of them (0: all) to the trace. A step that takes longer than `slow_step_ns` (0: none)
    /// requests a dump.
    pub fn enable_flight_recorder(&self, retention_ns: u64, slow_step_ns: u64) {
        let page = self.page();
        page.keep_ns.store(retention_ns, Ordering::Relaxed);
        page.slow_step_ns.store(slow_step_ns, Ordering::Relaxed);
        page.flight.store(1, Ordering::Release);
    }

    /// Whether new rings are flight recorders.
    #[must_use]
    pub fn is_flight(&self) -> bool {
        self.page().flight.load(Ordering::Acquire) != 0
    }

    /// How much of the past a dump writes, ns; 0: everything.
    #[must_use]
    pub fn retention_ns(&self) -> u64 {
        self.page().keep_ns.load(Ordering::Relaxed)
    }

    /// The longest that a step may take without requesting a dump, ns; 0: no limit.
    #[must_use]
    pub fn slow_step_ns(&self) -> u64 {
        self.page().slow_step_ns.load(Ordering::Relaxed)
    }

    /// Requests that the collector writes the content of the flight recorder's rings. Returns the dump's number.
    pub fn request_dump(&self) -> u32 {
        self.page().dumps_requested.fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// The numbers of the last dump that was requested and of the last that is done.
    #[must_use]
    pub fn dumps(&self) -> (u32, u32) {
        (self.page().dumps_requested.load(Ordering::Acquire), self.page().dumps_done.load(Ordering::Acquire))
    }

    /// The collector's state.
    #[must_use]
    pub fn collector(&self) -> CollectorState {
        let page = self.page();
        CollectorState {
            pid: page.collector_pid.load(Ordering::Relaxed),
            heartbeat_ns: page.collector_heartbeat.load(Ordering::Relaxed),
            finished: page.collector_finished.load(Ordering::Relaxed) != 0,
        }
    }

    /// The losses that no ring counts.
    #[must_use]
    pub fn lost(&self) -> Losses {
        let page = self.page();
        Losses {
            events: page.lost_events.load(Ordering::Relaxed),
            threads: page.lost_threads.load(Ordering::Relaxed),
            meta: page.lost_meta.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn add_lost(&self, lost: Losses) {
        self.page().lost_events.fetch_add(lost.events, Ordering::Relaxed);
        self.page().lost_threads.fetch_add(lost.threads, Ordering::Relaxed);
        self.page().lost_meta.fetch_add(lost.meta, Ordering::Relaxed);
    }
}

/// The state of a trace folder's collector, as the control page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorState {
    /// The collector's process id; zero before the first collector.
    pub pid: u32,
    /// The time of the collector's last heartbeat, `CLOCK_MONOTONIC_RAW` nanoseconds.
    pub heartbeat_ns: i64,
    /// Whether the collector drained everything and ended.
    pub finished: bool,
}

/// Events and names that reached no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events of threads that could get no ring (too many threads, disk full, folder gone).
    pub events: u64,
    /// The number of those threads.
    pub threads: u64,
    /// The number of failed writes to meta files.
    pub meta: u64,
}

/// The exclusive right to drain a folder's rings, until this value is dropped or the process ends in any way.
pub struct Collector {
    control: Control,
}

/// Why the right to drain was refused.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another collector has the right.
    #[error("another collector drains this folder (process {pid})")]
    Taken {
        /// The other collector's process id.
        pid: u32,
    },
    /// There is no usable control page.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl Collector {
    /// Becomes the folder's collector. A missing page is created, switched on.
    ///
    /// # Errors
    /// The folder has another collector, or the page cannot be opened.
    pub fn claim(trace_dir: &Path) -> Result<Self, ClaimError> {
        let control = Control::open_or_create(trace_dir, true)?;
        match control.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ClaimError::Taken { pid: control.collector().pid });
            }
            Err(TryLockError::Error(e)) => return Err(ControlError::Io(e).into()),
        }
        let page = control.page();
        page.collector_finished.store(0, Ordering::Relaxed);
        page.collector_pid.store(std::process::id(), Ordering::Relaxed);
        let collector = Self { control };
        collector.heartbeat();
        Ok(collector)
    }

    /// The folder's control page.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Stores the current time as the collector's heartbeat.
    pub fn heartbeat(&self) {
        self.control.page().collector_heartbeat.store(crate::clock::mono_now(), Ordering::Relaxed);
    }

    /// Stores the total losses of producers on another machine, which cannot write this page themselves.
    pub fn report_losses(&self, lost: Losses) {
        let page = self.control.page();
        page.lost_events.fetch_max(lost.events, Ordering::Relaxed);
        page.lost_threads.fetch_max(lost.threads, Ordering::Relaxed);
        page.lost_meta.fetch_max(lost.meta, Ordering::Relaxed);
    }

    /// Marks the dump with this number, and all before it, as done.
    pub fn mark_dump_done(&self, number: u32) {
        self.control.page().dumps_done.store(number, Ordering::Release);
    }

    /// Marks the collector as finished: everything was drained.
    pub fn finish(self) {
        self.control.page().collector_finished.store(1, Ordering::Release);
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // Closing the file is not enough: a forked child that inherited the open file would keep the lock. Where
        // unlocking fails, the lock ends with the last descriptor.
        self.control.file.unlock().ok();
    }
}
