//! What a path or URL holds: traces, each with its label, and perhaps a logdir.

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

/// Memory of the traces that stay open in addition to those in use, in case that another table asks for them.
const KEPT_BYTES: u64 = 1 << 30;
/// Warnings that are kept; more are counted.
const MAX_WARNINGS: usize = 100;

/// The source of a trace's rows.
#[derive(Debug)]
pub(crate) enum Location {
    /// The Parquet files of a sealed trace, which are what was written.
    Sealed(PathBuf),
    /// A trace folder that is read through a store: live, left by a crash, gathered, or damaged.
    Folder(PathBuf),
    /// Another tool's file.
    File(PathBuf),
    /// Objects of a bucket.
    Objects(bucket::Trace),
}

/// A trace.
#[derive(Debug)]
pub(crate) struct Source {
    /// The value of its rows in the column `trace`: its path below the root, `.` for the root itself.
    pub(crate) label: String,
    pub(crate) place: Location,
    open: Mutex<Weak<Store>>,
}

/// All that a path or URL holds.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) root: String,
    pub(crate) url: ObjectStoreUrl,
    pub(crate) bucket: Option<Arc<Bucket>>,
    pub(crate) traces: Vec<Arc<Source>>,
    kept: Mutex<VecDeque<Arc<Store>>>,
    warnings: Mutex<Vec<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is replaced whole: a panic elsewhere leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sources {
    /// Looks what is there. Nothing but names, and the checksums of sealed traces, is read yet.
    pub(crate) fn find(root: &str, runtime: &tokio::runtime::Runtime) -> Result<Sources, QueryError> {
        let failed = |reason: String| QueryError::Open { at: root.to_owned(), reason };
        let mut sources = Sources {
            root: root.to_owned(),
            url: ObjectStoreUrl::local_filesystem(),
            bucket: None,
            traces: Vec::new(),
            kept: Mutex::default(),
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
            sources.walk(&path, &mut found).map_err(|e| failed(e.to_string()))?;
            if found.is_empty() && !has_summaries(&path) {
                let kind = formats::sniff(&path).map_err(|e| failed(e.to_string()))?;
                let what =
                    if let FileKind::Unknown(what) = kind { what.to_string() } else { "no trace or logdir".into() };
                return Err(failed(what));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let source = |(label, place)| Arc::new(Source { label, place, open: Mutex::default() });
        sources.traces = found.into_iter().map(source).collect();
        Ok(sources)
    }

    fn walk(&self, root: &Path, found: &mut Vec<(String, Location)>) -> std::io::Result<()> {
        let lookup = locate::traces_below(root)?;
        for trace in lookup.traces {
            if trace.is_own() {
                found.push((label(root, &trace.path), self.place(trace.path)));
                continue;
            }
            // The ranks of a job have their own clocks here, and a label each.
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

    /// How the trace in a folder is read.
    fn place(&self, path: PathBuf) -> Location {
        let Some(folder) = trace_store::seal::whole_folder(&path) else { return Location::Folder(path) };
        match trace_store::seal::check(&folder) {
            Ok(()) => Location::Sealed(folder),
            Err(problem) => {
                self.warn(format!("{}: {problem}; what is damaged is left out", folder.display()));
                Location::Folder(path)
            }
        }
    }

    /// The store of a trace, opened unless it is.
    pub(crate) fn store(&self, source: &Source) -> Result<Arc<Store>, DataFusionError> {
        let mut open = lock(&source.open);
        if let Some(store) = open.upgrade() {
            return Ok(store);
        }
        let store = source
            .read()
            .map_err(|reason| DataFusionError::External(format!("{}: {reason}", self.at(source)).into()))?;
        for warning in store.warnings() {
            self.warn(format!("{}: {}", self.at(source), warning.text));
        }
        let store = Arc::new(store);
        *open = Arc::downgrade(&store);
        let mut kept = lock(&self.kept);
        kept.push_back(Arc::clone(&store));
        while kept.len() > 1 && kept.iter().map(|store| store.stats().memory_bytes).sum::<u64>() > KEPT_BYTES {
            kept.pop_front();
        }
        Ok(store)
    }

    /// Whether what is checked of a table's file in a bucket is as it was written; where it is not, that is a warning.
    ///
    /// # Errors
    /// The bucket does not give it.
    pub(crate) async fn is_good(&self, source: &Source, table: &str) -> object_store::Result<bool> {
        let Location::Objects(trace) = &source.place else { return Ok(true) };
        let damage = trace.damage(&format!("{table}.parquet")).await?;
        if let Some(problem) = &damage {
            self.warn(format!("{}: {problem}; what is damaged is left out", self.at(source)));
        }
        Ok(damage.is_none())
    }

    /// The name of a trace for messages.
    fn at(&self, source: &Source) -> String {
        if self.traces.len() == 1 { self.root.clone() } else { format!("{}: {}", self.root, source.label) }
    }

    /// Notes something that the user has to know.
    pub(crate) fn warn(&self, text: String) {
        let mut warnings = lock(&self.warnings);
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// The notes since the last call.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.warnings))
    }
}

impl Source {
    /// The Parquet file of a table of a sealed trace. `None` where the trace has to be read through a store; `Some(None)` where it
    /// has no such table.
    pub(crate) fn file(&self, table: &str) -> Option<Option<Parquet>> {
        let name = format!("{table}.parquet");
        match &self.place {
            Location::Sealed(folder) => {
                let path = folder.join(name);
                Some(path.is_file().then_some(Parquet::Local(path)))
            }
            Location::Objects(trace) => {
                let files = trace.sealed.as_ref()?;
                Some(files.get(&name).cloned().map(Parquet::Object))
            }
            Location::Folder(_) | Location::File(_) => None,
        }
    }

    fn read(&self) -> Result<Store, String> {
        match &self.place {
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
pub(crate) enum Parquet {
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

/// Whether there are event files, as the name says or somewhere below a folder.
fn has_summaries(path: &Path) -> bool {
    matches!(formats::sniff(path), Ok(FileKind::EventFile | FileKind::Logdir | FileKind::RunFolder))
}

/// The name of a trace: that of its run.
fn label(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let name = bucket::run_of(&below.to_string_lossy());
    match path.file_name() {
        Some(file) if name == "." && path.is_file() => file.to_string_lossy().into_owned(),
        _ => name,
    }
}
