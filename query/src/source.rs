//! The traces below a path or URL, each with its label, and the logdir that may be there.

use crate::bucket::{self, Bucket};
use crate::error::QueryError;
use datafusion::error::DataFusionError;
use datafusion::execution::object_store::ObjectStoreUrl;
use formats::FileKind;
use object_store::ObjectMeta;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use trace_formats::{import, locate};
use trace_store::{Store, StoreOptions, TraceReader};

/// The most memory of recently opened stores, which stay open for other tables of a query.
const CACHE_BYTES: u64 = 1 << 30;
/// The most warnings that are collected; further ones are dropped.
const MAX_WARNINGS: usize = 100;

/// The location and the format of a trace.
#[derive(Debug)]
pub(crate) enum Location {
    /// The Parquet files of a sealed trace whose checksums are right.
    Sealed(PathBuf),
    /// A trace folder that is read through a store: live, unsealed after a crash, gathered, or damaged.
    Folder(PathBuf),
    /// A file of another tool.
    File(PathBuf),
    /// Objects of a bucket.
    Objects(bucket::Trace),
}

/// A trace.
#[derive(Debug)]
pub(crate) struct Source {
    /// The value of the column `trace` in its rows: the path of the trace below the root, `.` for the root itself.
    pub(crate) label: String,
    pub(crate) location: Location,
    open_store: Mutex<Weak<Store>>,
}

/// The traces below a path or URL.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) root: String,
    pub(crate) url: ObjectStoreUrl,
    pub(crate) bucket: Option<Arc<Bucket>>,
    pub(crate) traces: Vec<Arc<Source>>,
    recent_stores: Mutex<VecDeque<Arc<Store>>>,
    warnings: Mutex<Vec<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock can be used: no panic leaves the values behind these locks half-changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sources {
    /// Finds the traces below `root`. Reads names, and verifies the checksums of sealed traces.
    pub(crate) fn find(root: &str, runtime: &tokio::runtime::Runtime) -> Result<Sources, QueryError> {
        let failed = |reason: String| QueryError::Open { at: root.to_owned(), reason };
        let mut sources = Sources {
            root: root.to_owned(),
            url: ObjectStoreUrl::local_filesystem(),
            bucket: None,
            traces: Vec::new(),
            recent_stores: Mutex::default(),
            warnings: Mutex::default(),
        };
        let mut found = Vec::new();
        if bucket::is_url(root) {
            let (bucket, traces) = Bucket::open(root, runtime.handle())?;
            sources.url = bucket.url.clone();
            sources.bucket = Some(Arc::new(bucket));
            found.extend(traces.into_iter().map(|trace| (trace.label.clone(), Location::Objects(trace))));
        } else {
            let path = fs::canonicalize(root).map_err(|e| failed(e.to_string()))?;
            sources.find_local(&path, &mut found).map_err(|e| failed(e.to_string()))?;
            if found.is_empty() && !has_summaries(&path) {
                let kind = formats::sniff(&path).map_err(|e| failed(e.to_string()))?;
                let content =
                    if let FileKind::Unknown(kind) = kind { kind.to_string() } else { "no trace or logdir".into() };
                return Err(failed(content));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let source = |(label, location)| Arc::new(Source { label, location, open_store: Mutex::default() });
        sources.traces = found.into_iter().map(source).collect();
        Ok(sources)
    }

    fn find_local(&self, root: &Path, found: &mut Vec<(String, Location)>) -> std::io::Result<()> {
        let lookup = locate::traces_below(root)?;
        for trace in lookup.traces {
            if trace.is_own() {
                found.push((label(root, &trace.path), self.locate(trace.path)));
                continue;
            }
            // The files of a job's ranks are separate traces here, each with its clock and a label.
            let (files, left_out) = import::without_copies(&trace.files);
            left_out.into_iter().for_each(|notice| self.warn(notice.text));
            found.extend(files.into_iter().map(|file| (label(root, &file), Location::File(file))));
        }
        for (folder, error) in lookup.unreadable {
            self.warn(format!("{}: {error}", folder.display()));
        }
        if lookup.is_cut {
            self.warn(format!("{}: it has more files than are looked at", root.display()));
        }
        Ok(())
    }

    /// The location of the trace in a folder: its Parquet files if they are undamaged, else the folder.
    fn locate(&self, path: PathBuf) -> Location {
        let Some(folder) = trace_store::seal::complete_folder(&path) else { return Location::Folder(path) };
        match trace_store::seal::check(&folder) {
            Ok(()) => Location::Sealed(folder),
            Err(problem) => {
                self.warn(format!("{}: {problem}; what is damaged is left out", folder.display()));
                Location::Folder(path)
            }
        }
    }

    /// Returns the store of a trace; opens it if it is not open.
    pub(crate) fn store(&self, source: &Source) -> Result<Arc<Store>, DataFusionError> {
        let mut open_store = lock(&source.open_store);
        if let Some(store) = open_store.upgrade() {
            return Ok(store);
        }
        let store = source
            .read()
            .map_err(|reason| DataFusionError::External(format!("{}: {reason}", self.display_name(source)).into()))?;
        for warning in store.warnings() {
            self.warn(format!("{}: {}", self.display_name(source), warning.text));
        }
        let store = Arc::new(store);
        *open_store = Arc::downgrade(&store);
        let mut recent_stores = lock(&self.recent_stores);
        recent_stores.push_back(Arc::clone(&store));
        while recent_stores.len() > 1
            && recent_stores.iter().map(|store| store.stats().memory_bytes).sum::<u64>() > CACHE_BYTES
        {
            recent_stores.pop_front();
        }
        Ok(store)
    }

    /// Checks a table's file in a bucket; returns false, and warns, where it is damaged.
    ///
    /// # Errors
    /// The bucket cannot be read.
    pub(crate) async fn is_undamaged(&self, source: &Source, table: &str) -> object_store::Result<bool> {
        let Location::Objects(trace) = &source.location else { return Ok(true) };
        let damage = trace.damage(&format!("{table}.parquet")).await?;
        if let Some(problem) = &damage {
            self.warn(format!("{}: {problem}; what is damaged is left out", self.display_name(source)));
        }
        Ok(damage.is_none())
    }

    /// The name of a trace in messages.
    fn display_name(&self, source: &Source) -> String {
        if self.traces.len() == 1 { self.root.clone() } else { format!("{}: {}", self.root, source.label) }
    }

    /// Adds a warning for the user, unless it is there already.
    pub(crate) fn warn(&self, text: String) {
        let mut warnings = lock(&self.warnings);
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// The warnings since the last call.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.warnings))
    }
}

impl Source {
    /// The Parquet file of a table of a sealed trace. `None` where the trace must be read through a store; `Some(None)`
    /// where it has no such table.
    pub(crate) fn parquet_file(&self, table: &str) -> Option<Option<ParquetFile>> {
        let name = format!("{table}.parquet");
        match &self.location {
            Location::Sealed(folder) => {
                let path = folder.join(name);
                Some(path.is_file().then_some(ParquetFile::Local(path)))
            }
            Location::Objects(trace) => {
                let files = trace.sealed_files.as_ref()?;
                Some(files.get(&name).cloned().map(ParquetFile::Object))
            }
            Location::Folder(_) | Location::File(_) => None,
        }
    }

    fn read(&self) -> Result<Store, String> {
        match &self.location {
            Location::Sealed(path) | Location::Folder(path) => read_folder(path),
            Location::File(path) => read_file(path),
            Location::Objects(trace) => {
                let copy = trace.copy()?;
                if copy.is_dir() { read_folder(&copy) } else { read_file(&copy) }
            }
        }
    }
}

/// A file that DataFusion can scan.
#[derive(Clone, Debug)]
pub(crate) enum ParquetFile {
    Local(PathBuf),
    Object(ObjectMeta),
}

fn read_folder(path: &Path) -> Result<Store, String> {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let mut reader = TraceReader::open(path).map_err(|e| e.to_string())?;
    reader.read_all(&mut store).map_err(|e| e.to_string())?;
    Ok(store)
}

fn read_file(path: &Path) -> Result<Store, String> {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let mut import = import::open(&[path.to_owned()]).map_err(|e| e.to_string())?;
    import.read_all(&mut store).map_err(|e| e.to_string())?;
    Ok(store)
}

/// Whether the path is an event file or a log of another tool, or a folder with such below it.
fn has_summaries(path: &Path) -> bool {
    matches!(formats::sniff(path), Ok(FileKind::EventFile | FileKind::Logdir | FileKind::RunFolder | FileKind::RunLog))
}

/// The label of a trace: the name of its run.
fn label(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let name = bucket::run_name(&below.to_string_lossy());
    match path.file_name() {
        Some(file) if name == "." && path.is_file() => file.to_string_lossy().into_owned(),
        _ => name,
    }
}
