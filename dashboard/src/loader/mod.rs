//! Threads that follow files and commit what they read.
//!
//! [`Loader::open`] starts one thread a path. It looks at what the path holds and becomes its follower: [`logdir`] for
//! folders with runs ([`beside`] opens the traces and graphs in them), [`trace`] for a trace folder or another tool's trace, [`mod@far`] for
//! what another machine has, [`graph`] for a graph file; [`folder`] finds graphs and traces that lie in one folder. A follower
//! asks for a frame only when something changed, so that an idle window costs nothing.
//!
//! Lock order: the slots' lock is never held while waiting for the lock of a [`Shared`](crate::data::Shared) value.

mod beside;
mod far;
mod folder;
mod graph;
mod logdir;
mod slots;
mod trace;

use crate::data::Data;
pub use far::{Far, Found, OpenFar, is_url};
pub use folder::opens_whole;
use formats::{FileKind, sniff};
use profiler::locate;
use slots::{Slots, SourceId};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Called by loader threads when something new is to be shown.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Paths that may be open at a time: each has its thread.
const MAX_SOURCES: usize = 64;
/// Between two looks at growing files: half of what a frame may lag behind a write.
const POLL: Duration = Duration::from_millis(30);

/// Everything that is open. Dropping it stops the threads.
pub struct Loader {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads share with the window.
struct Shared {
    slots: Slots,
    wake: Wake,
    open_far: OpenFar,
    stop: AtomicBool,
}

impl Shared {
    /// Sleeps until the next look is due; whether to go on with the source at all.
    fn pause(&self, source: SourceId, time: Duration) -> bool {
        if !self.is_stopping(source) {
            std::thread::park_timeout(time);
        }
        !self.is_stopping(source)
    }

    /// Whether the window closes.
    fn is_closing(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the window closes, or the user stopped this source.
    fn is_stopping(&self, source: SourceId) -> bool {
        self.is_closing() || self.slots.is_stopped(source)
    }
}

impl Loader {
    /// Nothing open. `wake` asks for a new frame, `open_far` finds what URLs stand for.
    pub fn new(wake: Wake, open_far: OpenFar) -> Self {
        let shared = Shared { slots: Slots::default(), wake, open_far, stop: AtomicBool::new(false) };
        Self { shared: Arc::new(shared), threads: Vec::new() }
    }

    /// Opens a file or folder; what is wrong with it shows up as a failed source. A path that is open already stays as
    /// it is, and a failed one is tried again.
    pub fn open(&mut self, path: PathBuf) {
        let shared = self.shared.clone();
        let n_open = shared.slots.n_sources();
        let Some(source) = shared.slots.add_source(&path, None) else {
            return;
        };
        if n_open >= MAX_SOURCES {
            shared.slots.fail(source, &format!("{MAX_SOURCES} paths are open already"));
            return;
        }
        let thread = std::thread::Builder::new().name("load".to_owned());
        match thread.spawn(move || follow(&shared, source, &path)) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => self.shared.slots.fail(source, &format!("cannot start a thread: {error}")),
        }
    }

    /// Stops reading a path; what was read stays. It takes until the reader's current batch is done.
    pub fn stop(&self, path: &Path) {
        self.shared.slots.stop(path);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Holds everything still for one frame.
    pub fn frame(&self) -> Data {
        self.shared.slots.frame()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A loader that panicked has shown what it could; the window closes all the same.
            let _ = thread.join();
        }
    }
}

/// A thread's life: finds out what the path is and follows it.
fn follow(shared: &Arc<Shared>, source: SourceId, path: &Path) {
    if let Some(url) = path.to_str().filter(|_| is_url(path)) {
        far::open(shared, source, url);
        return (shared.wake)();
    }
    match sniff(path) {
        Err(error) => shared.slots.fail(source, &error.to_string()),
        Ok(FileKind::Unknown(formats::Foreign::NothingInFolder)) => {
            match (folder::graphs(path), locate::trace_at(path)) {
                (graphs, _) if !graphs.is_empty() => graph::load_all(shared, source, &graphs),
                (_, Ok(only)) if only.path == path => trace::import(shared, source, &only.files),
                // Runs may come; traces below are found as those beside runs.
                _ => logdir::follow(shared, source, path),
            }
        }
        Ok(FileKind::Logdir | FileKind::RunFolder | FileKind::EventFile) => logdir::follow(shared, source, path),
        Ok(FileKind::TraceFolder) => trace::follow(shared, source, path),
        Ok(FileKind::Trace(_)) => trace::import(shared, source, &[path.to_owned()]),
        Ok(FileKind::GraphDef | FileKind::GraphDefText) => graph::load(shared, source, path),
        Ok(FileKind::Unknown(what)) => shared.slots.fail(source, &what.to_string()),
    }
    (shared.wake)();
}

/// The last part of a path, for lists; the whole path where it has none.
fn short_name(path: &Path) -> Arc<str> {
    let whole = || path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match path.file_name() {
        Some(name) => name.to_string_lossy().into(),
        None => whole().file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into(),
    }
}
