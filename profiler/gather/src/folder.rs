//! A path that is served to remote viewers: a trace, a run's folder, or a logdir of many.

use crate::remote::{POLL, TraceSource};
use crate::tail::read_up_to;
use crate::wire::{FilePlace, Listing, TracePlace};
use formats::graph_file::SAVED_MODEL;
use formats::{FileKind, sniff};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use trace_formats::{import, locate};
use trace_model::Batch;
use trace_store::remote::Server as TraceServer;
use trace_store::{Store, StoreOptions, TraceReader, Update};

/// The depth to which a logdir is listed, and the number of its entries that are listed, at most.
const MAX_DEPTH: usize = 32;
const MAX_ENTRIES: usize = 100_000;
/// Traces that are followed at a time, at most.
const MAX_TRACES: usize = 64;
/// Files of a run in addition to its event files: the graph, the run's description, the configuration of embeddings.
const RUN_FILES: [&str; 3] = ["graph.pb", "run.json", PROJECTOR_CONFIG];
const PROJECTOR_CONFIG: &str = "projector_config.pbtxt";
/// Files of embeddings: labels, vectors and pictures, next to their configuration.
const EMBEDDING_EXTENSIONS: [&str; 3] = ["tsv", "bytes", "png"];

/// A served path. A trace is opened when a viewer requests it, and followed until this is dropped.
pub(crate) struct Folder {
    root: PathBuf,
    traces: Mutex<BTreeMap<String, Arc<TraceServer>>>,
    stopping: Arc<AtomicBool>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
    }
}

impl Folder {
    /// Prepares to serve the trace, run or logdir at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let has_traces = || locate::traces_below(path).is_ok_and(|lookup| !lookup.traces.is_empty());
        match sniff(path)? {
            FileKind::Unknown(what) if !has_traces() => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, what.to_string()))
            }
            _ => Ok(Folder { root: fs::canonicalize(path)?, traces: Mutex::default(), stopping: Arc::default() }),
        }
    }

    /// Returns the path of a name that a viewer sent, always below the root.
    fn local_path(&self, name: &str) -> io::Result<PathBuf> {
        if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Where the root is a file, its own name stands for it too.
        let is_root = name.is_empty() || (self.root.is_file() && self.root.file_name() == Some(name.as_ref()));
        let path = if is_root { self.root.clone() } else { self.root.join(name) };
        // A symbolic link may lead out of the root.
        let path = fs::canonicalize(path)?;
        if path.starts_with(&self.root) { Ok(path) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Returns the server of a trace; opens the trace and starts following it with the first request.
    fn server(&self, trace: &str) -> io::Result<Arc<TraceServer>> {
        let path = self.local_path(trace)?;
        let mut traces = self.traces.lock();
        if let Some(server) = traces.get(trace) {
            return Ok(Arc::clone(server));
        }
        if traces.len() >= MAX_TRACES {
            return Err(io::Error::other(format!("{MAX_TRACES} traces are open already")));
        }
        let store = Arc::new(RwLock::new(Store::with_options(StoreOptions::UNBOUNDED)));
        let (thread_store, stopping, root) = (Arc::clone(&store), Arc::clone(&self.stopping), self.root.clone());
        let (open_sender, open_result) = mpsc::channel();
        let work = move || {
            // An error is the answer to the viewer's request.
            let source = Source::open(&root, &path).map_err(|error| open_sender.send(Err(error)));
            if let Ok(source) = source {
                let _ = open_sender.send(Ok(()));
                source.follow(&thread_store, &stopping);
            }
        };
        std::thread::Builder::new().name("follow".to_owned()).spawn(work)?;
        open_result.recv().map_err(io::Error::other)??;
        let server = Arc::new(TraceServer::new(store));
        traces.insert(trace.to_owned(), Arc::clone(&server));
        Ok(server)
    }
}

/// A trace that is followed: a trace folder of ours, or a file in a foreign format.
enum Source {
    Folder(Box<TraceReader>),
    Foreign(Box<import::Import>),
}

impl Source {
    /// Opens the trace at a path, which must be one of the traces below the root.
    fn open(root: &Path, path: &Path) -> io::Result<Source> {
        let trace = locate::traces_below(root)?.traces.into_iter().find(|trace| trace.path == path);
        let trace = trace.ok_or(io::ErrorKind::NotFound)?;
        if trace.is_own() {
            let reader = TraceReader::open(&trace.path).map_err(io::Error::other)?;
            return Ok(Source::Folder(Box::new(reader)));
        }
        let import = import::open(&trace.files).map_err(io::Error::other)?;
        Ok(Source::Foreign(Box::new(import)))
    }

    /// Reads the trace into the store until `stopping` is set, the file is read to its end, or the folder cannot be
    /// read any more.
    fn follow(mut self, store: &RwLock<Store>, stopping: &AtomicBool) {
        while !stopping.load(Ordering::Acquire) {
            let update: Option<Update> = match &mut self {
                Source::Folder(reader) => reader.poll_staged().ok(),
                Source::Foreign(import) => import.poll_staged().ok().map(|batch| mark_live_until_read(batch).into()),
            };
            let Some(update) = update else { return };
            let has_more = update.has_more();
            store.write().apply(update);
            match &self {
                Source::Foreign(_) if !has_more => return,
                _ if !has_more => std::thread::park_timeout(POLL),
                _ => {}
            }
        }
    }
}

/// Marks a trace as live until its file is read to the end, so that viewers follow it.
fn mark_live_until_read(mut batch: Batch) -> Batch {
    batch.live = Some(batch.has_more());
    batch
}

impl TraceSource for Folder {
    fn list(&self) -> io::Result<Listing> {
        let mut listing = Listing { version: crate::VERSION, ..Listing::default() };
        let lookup = locate::traces_below(&self.root)?;
        for trace in &lookup.traces {
            // `None` for a name that is not UTF-8: such a trace cannot be requested.
            let below = trace.path.strip_prefix(&self.root).unwrap_or(&trace.path).to_str();
            listing.traces.extend(below.map(|path| TracePlace { path: path.to_owned() }));
        }
        match sniff(&self.root)? {
            FileKind::TraceFolder | FileKind::Trace(_) => {}
            FileKind::RunFolder | FileKind::Logdir | FileKind::Unknown(_) => {
                let mut n_left = MAX_ENTRIES;
                list_run_files(&self.root, "", MAX_DEPTH, &mut n_left, &mut listing);
                listing.is_cut = n_left == 0 || lookup.is_cut;
            }
            _ => {
                // An event file, a graph, or the folder of a SavedModel.
                let file = if self.root.is_dir() { self.root.join(SAVED_MODEL) } else { self.root.clone() };
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                listing.files.push(describe_file(&file, name)?);
            }
        }
        Ok(listing)
    }

    fn look(&self, trace: &str, question: &[u8]) -> io::Result<Vec<u8>> {
        Ok(self.server(trace)?.respond(question))
    }

    fn read(&self, path: &str, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        let path = self.local_path(path)?;
        let is_root = path == self.root || path == self.root.join(SAVED_MODEL);
        if !is_root && !is_served(&path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        read_up_to(&File::open(path)?, offset, length as usize)
    }
}

fn describe_file(path: &Path, name: String) -> io::Result<FilePlace> {
    let metadata = fs::metadata(path)?;
    Ok(FilePlace { path: name, length: metadata.len(), identity: metadata.ino() ^ metadata.dev().rotate_left(32) })
}

/// Whether a file below a logdir belongs to a run; other files are not served. Neither are databases, of which a copy in
/// parts is none.
fn is_served(path: &Path) -> bool {
    let is_run_file = RUN_FILES.iter().any(|name| path.ends_with(name));
    let is_embedding = EMBEDDING_EXTENSIONS.iter().any(|end| path.extension() == Some(end.as_ref()));
    formats::is_event_file_name(path)
        || is_run_file
        || (formats::is_run_log(path) && !formats::is_database_name(path))
        || (is_embedding && path.parent().is_some_and(|folder| folder.join(PROJECTOR_CONFIG).is_file()))
}

/// Adds the files of runs in and below a folder to the listing. Leaves out entries that cannot be read, since they may
/// have been removed meanwhile.
fn list_run_files(folder: &Path, prefix: &str, depth: usize, n_left: &mut usize, listing: &mut Listing) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(*n_left).collect();
    *n_left -= entries.len();
    entries.sort_unstable();
    for path in entries {
        let Some(file_name) = path.file_name().and_then(|file_name| file_name.to_str()) else { continue };
        let relative_name = if prefix.is_empty() { file_name.to_owned() } else { format!("{prefix}/{file_name}") };
        if path.is_dir() {
            if !formats::is_trace_folder(&path) {
                list_run_files(&path, &relative_name, depth, n_left, listing);
            }
            continue;
        }
        if is_served(&path) {
            listing.files.extend(describe_file(&path, relative_name));
        }
    }
}
