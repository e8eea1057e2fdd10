//! A path that is served to remote viewers: a trace, a run's folder, or a logdir of many.

use crate::remote::{POLL, Served};
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
use trace_store::{Store, StoreOptions, TraceReader, Update, remote as far};

/// The depth to which a logdir is listed, and the number of entries that are listed, at most.
const MAX_DEPTH: usize = 32;
const MAX_ENTRIES: usize = 100_000;
/// Traces that are followed at a time, at most.
const MAX_TRACES: usize = 64;
/// Files of a run in addition to its event files: the graph, the run's description, the configuration of embeddings.
const RUN_FILES: [&str; 3] = ["graph.pb", "run.json", PROJECTOR];
const PROJECTOR: &str = "projector_config.pbtxt";
/// Files of embeddings: labels, vectors and pictures, next to their configuration.
const EMBEDDINGS: [&str; 3] = ["tsv", "bytes", "png"];

/// A served path. Traces are opened when a viewer requests them, and followed until this is dropped.
pub(crate) struct Folder {
    root: PathBuf,
    traces: Mutex<BTreeMap<String, Arc<far::Server>>>,
    stopping: Arc<AtomicBool>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
    }
}

impl Folder {
    /// Serves what is at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let has_traces = || locate::traces_below(path).is_ok_and(|lookup| !lookup.traces.is_empty());
        match sniff(path)? {
            FileKind::Unknown(what) if !has_traces() => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, what.to_string()))
            }
            _ => Ok(Folder { root: fs::canonicalize(path)?, traces: Mutex::default(), stopping: Arc::default() }),
        }
    }

    /// The path of a name that a viewer sent, always below the root.
    fn path_of(&self, name: &str) -> io::Result<PathBuf> {
        if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Where one file is served, the file's own name stands for it.
        let is_root = name.is_empty() || (self.root.is_file() && self.root.file_name() == Some(name.as_ref()));
        let path = if is_root { self.root.clone() } else { self.root.join(name) };
        // A symbolic link may lead out of the root.
        let path = fs::canonicalize(path)?;
        if path.starts_with(&self.root) { Ok(path) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn server(&self, trace: &str) -> io::Result<Arc<far::Server>> {
        let path = self.path_of(trace)?;
        let mut traces = self.traces.lock();
        if let Some(server) = traces.get(trace) {
            return Ok(Arc::clone(server));
        }
        if traces.len() >= MAX_TRACES {
            return Err(io::Error::other(format!("{MAX_TRACES} traces are open already")));
        }
        let store = Arc::new(RwLock::new(Store::with_options(StoreOptions::UNBOUNDED)));
        let (theirs, stopping, root) = (Arc::clone(&store), Arc::clone(&self.stopping), self.root.clone());
        let (opened, has_opened) = mpsc::channel();
        let work = move || {
            // An error is the answer to the viewer's request.
            let source = Source::open(&root, &path).map_err(|error| opened.send(Err(error)));
            if let Ok(source) = source {
                let _ = opened.send(Ok(()));
                source.follow(&theirs, &stopping);
            }
        };
        std::thread::Builder::new().name("follow".to_owned()).spawn(work)?;
        has_opened.recv().map_err(io::Error::other)??;
        let server = Arc::new(far::Server::new(store));
        traces.insert(trace.to_owned(), Arc::clone(&server));
        Ok(server)
    }
}

enum Source {
    Folder(Box<TraceReader>),
    Foreign(Box<import::Import>),
}

impl Source {
    /// Opens the trace at a path, if it is one of those below the root.
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
                Source::Foreign(import) => import.poll_staged().ok().map(|batch| live_until_read(batch).into()),
            };
            let Some(update) = update else { return };
            let more = update.has_more();
            store.write().apply(update);
            match &self {
                Source::Foreign(_) if !more => return,
                _ if !more => std::thread::park_timeout(POLL),
                _ => {}
            }
        }
    }
}

/// A file that is being read is shown like a trace that grows.
fn live_until_read(mut batch: Batch) -> Batch {
    batch.live = Some(batch.has_more());
    batch
}

impl Served for Folder {
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
                let mut left = MAX_ENTRIES;
                list_run_files(&self.root, "", MAX_DEPTH, &mut left, &mut listing);
                listing.is_cut = left == 0 || lookup.is_cut;
            }
            _ => {
                // An event file, a graph, or the folder of a SavedModel.
                let file = if self.root.is_dir() { self.root.join(SAVED_MODEL) } else { self.root.clone() };
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                listing.files.push(file_place(&file, name)?);
            }
        }
        Ok(listing)
    }

    fn look(&self, trace: &str, question: &[u8]) -> io::Result<Vec<u8>> {
        Ok(self.server(trace)?.respond(question))
    }

    fn read(&self, path: &str, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        let path = self.path_of(path)?;
        let is_root = path == self.root || path == self.root.join(SAVED_MODEL);
        if !is_root && !is_served(&path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        read_up_to(&File::open(path)?, offset, length as usize)
    }
}

fn file_place(path: &Path, name: String) -> io::Result<FilePlace> {
    let metadata = fs::metadata(path)?;
    Ok(FilePlace { path: name, length: metadata.len(), identity: metadata.ino() ^ metadata.dev().rotate_left(32) })
}

/// Whether a file below a logdir belongs to a run: no other file is served.
fn is_served(path: &Path) -> bool {
    let is_run_file = RUN_FILES.iter().any(|name| path.ends_with(name));
    let is_embedding = EMBEDDINGS.iter().any(|end| path.extension() == Some(end.as_ref()));
    formats::is_event_file_name(path)
        || is_run_file
        || (is_embedding && path.parent().is_some_and(|folder| folder.join(PROJECTOR).is_file()))
}

/// Adds the files of runs in a folder and below. Entries that cannot be read are left out: they may have been removed
/// meanwhile.
fn list_run_files(folder: &Path, name: &str, depth: usize, left: &mut usize, listing: &mut Listing) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(*left).collect();
    *left -= entries.len();
    entries.sort_unstable();
    for path in entries {
        let Some(own) = path.file_name().and_then(|own| own.to_str()) else { continue };
        let below = if name.is_empty() { own.to_owned() } else { format!("{name}/{own}") };
        if path.is_dir() {
            if !formats::is_trace_folder(&path) {
                list_run_files(&path, &below, depth, left, listing);
            }
            continue;
        }
        if is_served(&path) {
            listing.files.extend(file_place(&path, below));
        }
    }
}
