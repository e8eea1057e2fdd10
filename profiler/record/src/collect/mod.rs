//! The collector: a thread that drains the rings of a trace folder into a chunk file while programs run.
//!
//! It works by the folder alone: any process's rings in it, also of processes that start later. The traced programs never wait for it:
//! when it is late or cannot write, their rings fill up, and they count what they drop.
//!
//! After a crash of the collector, of a traced program or of both, every record that was published is in a
//! chunk file, or in a ring file, or (between the write and the giving back) in both; sequence numbers say.

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
    /// Another collector works there, or the folder cannot be written.
    #[error("cannot collect in {0}: {1}")]
    Claim(PathBuf, #[source] events::control::ClaimError),
    /// The chunk file cannot be made.
    #[error("cannot write a chunk file in {0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// The system gives no thread.
    #[error("cannot start the collector's thread: {0}")]
    Thread(#[source] io::Error),
}

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
    /// Starts collecting in a trace folder, which must exist; its control page is made where it is missing.
    ///
    /// # Errors
    /// That another collector works there, or that the folder cannot be written.
    pub fn start(trace_dir: &Path, options: CollectorOptions) -> Result<Collector, CollectError> {
        Collector::start_with(trace_dir, options, None)
    }

    /// As [`start`](Self::start), with tracks of the collector's own.
    ///
    /// # Errors
    /// As [`start`](Self::start).
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

    /// Its counts so far (CPU time only at the end).
    #[must_use]
    pub fn progress(&self) -> CollectorReport {
        *self.shared.report.lock()
    }

    /// Drains what is left, marks the trace as finished, removes the files of rings that ended, and gives the final figures.
    ///
    /// Stop the recording session first: what is emitted later stays in the rings.
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

/// CPU time of the calling thread as the scheduler counts it; 0 where it does not say.
fn thread_cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
