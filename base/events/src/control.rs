//! The control page: the file `control` of a trace folder, one mapped page that all processes share.
//!
//! ```text
//! byte 0          magic "STPCTRL1" u64; zero until the page is ready. The last byte is the version
//!      8          switch u32: 1 record, 0 do not
//!      12         reserved u32 (record the next N steps)
//!      64         collector's pid u32; zero before the first collector
//!      68         collector finished u32: 1 after it drained everything and left
//!      72         collector's heartbeat i64, CLOCK_MONOTONIC_RAW ns
//!      128        events lost u64: emitted by threads that could get no ring
//!      136        threads without a ring u64
//!      144        meta entries lost u64 (disk full)
//!      152..4096  zero
//! ```
//!
//! The switch is the recorder's: a process that starts recording into a folder sets it only when it makes the page.
//! Producers look at it every 10 ms.

use memmap2::MmapRaw;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// The page's name in the trace folder.
pub const FILE_NAME: &str = "control";
/// The environment variable that names the trace folder to programs that call [`crate::start_from_env`].
pub const ENV: &str = "STEPSCOPE_TRACE";

const PAGE: u64 = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"STPCTRL1");
/// While one process fills a new page.
const FILLING: u64 = u64::from_le_bytes(*b"STPCTRL0");

#[repr(C)]
struct Page {
    magic: AtomicU64,
    switch: AtomicU32,
    reserved: AtomicU32,
    pad0: [u64; 6],
    collector_pid: AtomicU32,
    collector_finished: AtomicU32,
    collector_heartbeat: AtomicI64,
    pad1: [u64; 6],
    lost_events: AtomicU64,
    lost_threads: AtomicU64,
    lost_meta: AtomicU64,
}

const _: () =
    assert!(std::mem::offset_of!(Page, collector_pid) == 64 && std::mem::offset_of!(Page, lost_events) == 128);

/// Why a control page could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The file cannot be made, opened or mapped.
    #[error("{FILE_NAME}: {0}")]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("{FILE_NAME} is not a control page of this version ({len} bytes, magic {magic:#018x})")]
    Foreign {
        /// The file's length.
        len: u64,
        /// Its first eight bytes.
        magic: u64,
    },
}

/// A mapped control page.
pub struct Control {
    map: MmapRaw,
    file: File,
}

impl Control {
    /// Opens the folder's page, or makes it with the switch as given. Several processes may do so at once.
    ///
    /// # Errors
    /// That the folder is not writable or full, or that `control` is some other file.
    pub fn open_or_create(trace_dir: &Path, on: bool) -> Result<Self, ControlError> {
        let path = trace_dir.join(FILE_NAME);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() == 0 {
            crate::ring::file::reserve(&file, PAGE)?;
        }
        let control = Self::map(file)?;
        let page = control.page();
        if page.magic.compare_exchange(0, FILLING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            page.switch.store(u32::from(on), Ordering::Relaxed);
            page.magic.store(MAGIC, Ordering::Release);
        }
        control.check()?;
        Ok(control)
    }

    /// Opens the page of a folder that somebody records into.
    ///
    /// # Errors
    /// That there is none, that it is not writable, or that `control` is some other file.
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
            // A page that another process fills at this moment; its switch reads as off until it is ready.
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
    pub fn switch(&self, on: bool) {
        self.page().switch.store(u32::from(on), Ordering::Relaxed);
    }

    /// What is known of the collector.
    #[must_use]
    pub fn collector(&self) -> CollectorState {
        let page = self.page();
        CollectorState {
            pid: page.collector_pid.load(Ordering::Relaxed),
            heartbeat_ns: page.collector_heartbeat.load(Ordering::Relaxed),
            finished: page.collector_finished.load(Ordering::Relaxed) != 0,
        }
    }

    /// What could not be recorded in any ring.
    #[must_use]
    pub fn lost(&self) -> Lost {
        let page = self.page();
        Lost {
            events: page.lost_events.load(Ordering::Relaxed),
            threads: page.lost_threads.load(Ordering::Relaxed),
            meta: page.lost_meta.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn add_lost(&self, lost: Lost) {
        self.page().lost_events.fetch_add(lost.events, Ordering::Relaxed);
        self.page().lost_threads.fetch_add(lost.threads, Ordering::Relaxed);
        self.page().lost_meta.fetch_add(lost.meta, Ordering::Relaxed);
    }
}

/// The collector of a trace folder, as its control page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorState {
    /// Its process; zero before the first.
    pub pid: u32,
    /// When it last said that it lives, `CLOCK_MONOTONIC_RAW` nanoseconds.
    pub heartbeat_ns: i64,
    /// Whether it left after draining everything.
    pub finished: bool,
}

/// Events and names that reached no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events of threads that could get no ring (too many threads, disk full, folder gone).
    pub events: u64,
    /// Those threads.
    pub threads: u64,
    /// Writes to meta files that failed.
    pub meta: u64,
}

/// The right to drain the folder's rings; one holder at a time. It ends with the process, however that ends.
pub struct Collector {
    control: Control,
}

/// Why the right to drain was refused.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another collector has it.
    #[error("another collector drains this folder (process {pid})")]
    Taken {
        /// Its process.
        pid: u32,
    },
    /// There is no usable control page.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl Collector {
    /// Becomes the folder's collector. The page is made, switched on, where it is missing.
    ///
    /// # Errors
    /// That there is one already, or that the page cannot be opened.
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

    /// The page.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Says that the collector lives.
    pub fn heartbeat(&self) {
        self.control.page().collector_heartbeat.store(crate::clock::mono_now(), Ordering::Relaxed);
    }

    /// Says that everything was drained and the collector leaves.
    pub fn finish(self) {
        self.control.page().collector_finished.store(1, Ordering::Release);
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // A child that the program forked may still hold the open file, and with it the lock, which closing our
        // descriptor would leave taken. If it cannot be given up here it ends with the last descriptor.
        self.control.file.unlock().ok();
    }
}
