//! The collector: a thread that drains the rings of a trace folder into a chunk file while programs run.
//!
//! The collector drains all rings in the folder, also those of processes that start later. The traced programs never
//! wait for it: when it is late or cannot write, their rings fill up, and they count the records that they drop.
//!
//! After a crash of the collector, of a traced program or of both, every published record is in a chunk file, in a ring
//! file, or (between the write and the consumption) in both; sequence numbers identify duplicates.

mod drain;
mod flight;
mod sink;
mod tracks;

pub use drain::{CollectorOptions, CollectorReport};
pub use tracks::{TrackNo, Tracks};

use drain::Drain;
use parking_lot::Mutex;
use sink::FileSink;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Why collecting did not start.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// Another collector works in the folder, or the folder cannot be written.
    #[error("cannot collect in {0}: {1}")]
    Claim(PathBuf, #[source] events::control::ClaimError),
    /// The chunk file cannot be created.
    #[error("cannot write a chunk file in {0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// The collector's thread cannot be started.
    #[error("cannot start the collector's thread: {0}")]
    Thread(#[source] io::Error),
}

/// The state that the caller and the collector's thread share.
struct Shared {
    stopping: AtomicBool,
    report: Mutex<CollectorReport>,
}

/// A running collector. Dropping it stops it.
#[must_use = "collecting stops when the collector is dropped"]
pub struct Collector {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    /// Starts collecting in a trace folder, which must exist; creates its control page if missing.
    ///
    /// # Errors
    /// Another collector works there, or the folder cannot be written.
    pub fn start(trace_dir: &Path, options: CollectorOptions) -> Result<Collector, CollectError> {
        Collector::start_with(trace_dir, options, None)
    }

    /// Starts collecting as [`start`](Self::start) does, and writes tracks that a recorder fills.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn start_with(
        trace_dir: &Path,
        options: CollectorOptions,
        tracks: Option<Arc<Mutex<Tracks>>>,
    ) -> Result<Collector, CollectError> {
        let claim =
            events::control::Collector::claim(trace_dir).map_err(|e| CollectError::Claim(trace_dir.to_owned(), e))?;
        let sink = FileSink::create(trace_dir).map_err(|e| CollectError::File(trace_dir.to_owned(), e))?;
        let drain = Drain::new(trace_dir, claim, sink, options, tracks);
        let shared = Arc::new(Shared { stopping: AtomicBool::new(false), report: Mutex::default() });
        let thread = std::thread::Builder::new().name("collector".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || run(drain, &shared)
        });
        Ok(Collector { shared, thread: Some(thread.map_err(CollectError::Thread)?) })
    }

    /// The collector's counts so far (CPU time only at the end).
    #[must_use]
    pub fn progress(&self) -> CollectorReport {
        *self.shared.report.lock()
    }

    /// Drains the rest of the rings, marks the trace as finished, removes the files of rings that ended, and returns
    /// the final counts.
    ///
    /// Stop the recording session first: events that are emitted later stay in the rings.
    pub fn stop(mut self) -> CollectorReport {
        self.finish();
        self.progress()
    }

    fn finish(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been reported by its hook; the trace folder stays readable.
            let _ = thread.join();
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.finish();
    }
}

fn run(mut drain: Drain<FileSink>, shared: &Shared) {
    let cpu_before = thread_cpu_ns();
    while !shared.stopping.load(Ordering::Acquire) {
        let pause = drain.pass();
        *shared.report.lock() = drain.report();
        if !pause.is_zero() {
            std::thread::park_timeout(pause);
        }
    }
    let mut report = drain.finish();
    report.cpu_ns = thread_cpu_ns().saturating_sub(cpu_before);
    *shared.report.lock() = report;
}

/// CPU time of the calling thread, ns, as the scheduler counts it; 0 where the system does not report it.
fn thread_cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
