//! Threads that follow files and commit what they read.
//!
//! [`Loader::open`] starts one thread a path. It detects what the path holds and follows it: [`logdir`] follows folders
//! with runs ([`artifacts`] opens the traces, graphs and profiles in them), [`trace`] a trace folder or another tool's
//! trace, [`remote`] a URL, [`graph`] reads a graph file, [`snapshot`] a memory snapshot; [`folder`] finds graphs and traces that lie in one folder. A
//! follower requests a frame only when something changed, so that an idle window costs nothing.
//!
//! Lock order: the slots' lock is never held while waiting for the lock of a [`Shared`](crate::data::Shared) value.

mod artifacts;
mod folder;
mod graph;
mod logdir;
mod remote;
mod shared;
mod slots;
mod snapshot;
mod trace;
mod url;

use crate::data::Data;
pub use folder::opens_whole;
use formats::{FileKind, sniff};
use shared::Shared;
pub use shared::Wake;
use slots::{Slots, SourceId};
#[cfg(test)]
pub(crate) use snapshot::read_file as read_snapshot_file;
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};
use trace_formats::locate;
pub use url::{OpenRemote, RemoteSource, RemoteSources, is_url};

/// Paths that may be open at a time: each has its thread.
const MAX_SOURCES: usize = 64;

/// Everything that is open. Dropping it stops the threads.
pub struct Loader {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Loader {
    /// Nothing open. `wake` asks for a new frame, `open_remote` opens URLs.
    pub fn new(wake: Wake, open_remote: OpenRemote) -> Self {
        let shared = Shared { slots: Slots::default(), wake, open_remote, stop: AtomicBool::new(false) };
        Self { shared: Arc::new(shared), threads: Vec::new() }
    }

    /// Opens a file or folder; an error becomes a failed source. A path that is open already stays as it is, and a
    /// failed one is retried.
    pub fn open(&mut self, path: PathBuf) {
        let (shared, theirs) = (&self.shared, self.shared.clone());
        let n_open = shared.slots.n_sources();
        let Some(source) = shared.slots.add_source(&path, None) else {
            return;
        };
        if n_open >= MAX_SOURCES {
            shared.slots.fail(source, &format!("{MAX_SOURCES} paths are open already"));
            return;
        }
        self.threads.extend(shared.spawn("load", source, move || follow(&theirs, source, &path)));
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

/// Detects what a path holds and follows it.
fn follow(shared: &Arc<Shared>, source: SourceId, path: &Path) {
    if let Some(url) = path.to_str().filter(|_| is_url(path)) {
        remote::open(shared, source, url);
        return (shared.wake)();
    }
    match sniff(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => shared.slots.fail(source, "File not found"),
        Err(error) => shared.slots.fail(source, &error.to_string()),
        Ok(FileKind::Unknown(formats::Foreign::NothingInFolder)) => {
            match (folder::graphs(path), locate::trace_at(path)) {
                (graphs, _) if !graphs.is_empty() => graph::load_all(shared, source, &graphs),
                (_, Ok(only)) if only.path == path => trace::import(shared, source, &only.files),
                // Runs may come; traces below are found as artifacts of runs.
                _ => logdir::follow(shared, source, path),
            }
        }
        Ok(FileKind::Logdir | FileKind::RunFolder | FileKind::EventFile | FileKind::RunLog) => {
            logdir::follow(shared, source, path);
        }
        Ok(FileKind::TraceFolder) => trace::follow(shared, source, path),
        Ok(FileKind::Trace(_)) => trace::import(shared, source, &[path.to_owned()]),
        Ok(FileKind::GraphDef | FileKind::GraphDefText) => graph::load(shared, source, path),
        Ok(FileKind::MemorySnapshot) => snapshot::load(shared, source, path),
        Ok(FileKind::Unknown(what)) => shared.slots.fail(source, &what.to_string()),
    }
    (shared.wake)();
}
