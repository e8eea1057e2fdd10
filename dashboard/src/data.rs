//! The data that views see in one frame: runs, traces, graphs and the status of their sources.
//!
//! Loader threads own the readers. Each commits to a [`Shared`] value in short critical sections; at the start of a
//! frame [`crate::loader::Loader::frame`] takes read guards on all of them, so that a [`Data`] does not change while
//! views look at it, nothing is copied, and a loader waits at most one frame.

use parking_lot::{ArcRwLockReadGuard, RawRwLock, RwLock};
use rustc_hash::FxHashMap;
use std::{ops::Deref, path::Path, sync::Arc};

/// A value that one loader thread writes and frames read.
pub type Shared<T> = Arc<RwLock<T>>;

/// A read guard that a frame holds on a shared value.
pub struct ReadGuard<T>(ArcRwLockReadGuard<RawRwLock, T>);

impl<T> ReadGuard<T> {
    /// Waits for the loader's commit in progress, if any, and locks the value against further ones.
    pub fn lock(shared: &Shared<T>) -> Self {
        // Recursive: where a background reader holds the lock and a loader waits for it, a frame is not blocked by the
        // loader.
        Self(RwLock::read_arc_recursive(shared))
    }

    /// The shared value, for a background thread to read later.
    pub fn shared(&self) -> Shared<T> {
        Arc::clone(ArcRwLockReadGuard::rwlock(&self.0))
    }

    /// Wraps a value that nobody else writes (tests, finished files).
    pub fn owned(value: T) -> Self {
        Self::lock(&Arc::new(RwLock::new(value)))
    }
}

impl<T> Deref for ReadGuard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The status of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// The existing contents are being read.
    #[default]
    Loading,
    /// Everything is read, and the writer goes on.
    Live,
    /// Everything is read, and the writer has ended.
    Finished,
    /// The user stopped the reader; what was read until then stays.
    Stopped,
    /// Everything is read; the writer died without closing its files.
    Crashed,
    /// The source could not be opened; see [`SourceInfo::error`].
    Failed,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Live => "live",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Crashed => "crashed",
            Self::Failed => "failed",
        }
    }
}

/// The kind of a source's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// Event files: runs with summaries.
    Logdir,
    /// A trace folder.
    Trace,
    /// A graph file.
    Graph,
    /// A memory snapshot.
    Snapshot,
    /// Unknown, as the source could not be opened.
    Unknown,
}

impl SourceKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Logdir => "summaries",
            Self::Trace => "trace",
            Self::Graph => "graph",
            Self::Snapshot => "memory snapshot",
            Self::Unknown => "path",
        }
    }
}

/// A counted loss or damage of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The number of times.
    pub count: u64,
    /// What happened and where, on one line.
    pub text: String,
}

/// An open file or folder with its status.
#[derive(Clone, Debug)]
pub struct SourceInfo {
    /// The kind of the contents.
    pub kind: SourceKind,
    /// Short name for lists.
    pub name: Arc<str>,
    /// The path or URL.
    pub path: Arc<Path>,
    pub status: Status,
    /// The share that is read, 0..=1; `None` where it is unknown.
    pub progress: Option<f32>,
    /// The error of a failed source, on one line.
    pub error: Option<Arc<str>>,
    pub warnings: Arc<[Warning]>,
}

impl SourceInfo {
    /// Creates a source of which nothing is read yet.
    pub fn new(kind: SourceKind, name: Arc<str>, path: &Path) -> Self {
        let (path, status, warnings) = (path.into(), Status::Loading, Arc::from([]));
        Self { kind, name, path, status, progress: None, error: None, warnings }
    }
}

/// One logdir: folders (or a file) with runs.
pub struct LogdirData {
    /// Short name, for lists.
    pub name: Arc<str>,
    /// The folder or event file.
    pub path: Arc<Path>,
    pub status: Status,
    pub runs: ReadGuard<summaries::Runs>,
    /// The name of each run in the window, unique, in the order of `runs.by_name`.
    pub labels: Arc<[Arc<str>]>,
}

/// A run with the name it has in the window.
#[derive(Clone, Copy)]
pub struct RunRef<'a> {
    /// Unique in the window.
    pub label: &'a Arc<str>,
    /// Index into [`Data::logdirs`].
    pub logdir_idx: usize,
    /// The run's series.
    pub run: &'a summaries::Run,
}

/// Names for the runs of a logdir: a run's folder below the logdir, or the logdir's own name for runs at its top. Where
/// several logdirs are open, the logdir's name comes before the folder's.
pub(crate) fn unique_labels(logdir: &LogdirData, has_neighbours: bool) -> Arc<[Arc<str>]> {
    let label = |name: &String| match (name.as_str(), has_neighbours) {
        (".", _) => logdir.name.clone(),
        (name, false) => name.into(),
        (name, true) => format!("{}/{name}", logdir.name).into(),
    };
    logdir.runs.by_name.keys().map(label).collect()
}

pub struct TraceData {
    /// Short name, unique among the open traces.
    pub name: Arc<str>,
    /// The trace folder.
    pub path: Arc<Path>,
    pub status: Status,
    /// Everything read so far. A value that a view derives from it is valid while [`trace_store::Store::version`] is
    /// the same.
    pub store: ReadGuard<trace_store::Store>,
}

impl TraceData {
    /// The number of slices, as text.
    pub fn n_slices(&self) -> String {
        let n = self.store.tracks().iter().map(|t| t.n_slices() as u64).sum();
        ui::format::count_of(n, "slice")
    }
}

#[derive(Clone)]
pub struct GraphData {
    /// Short name, unique among the open graphs: the run's, or the file's.
    pub name: Arc<str>,
    /// The graph file, or the run's folder.
    pub path: Arc<Path>,
    /// The graph. A value that a view derives from it is valid while this is the same allocation ([`Arc::ptr_eq`]).
    pub def: Arc<formats::proto::GraphDef>,
}

/// A memory snapshot, with what is derived from it once.
#[derive(Clone)]
pub struct SnapshotData {
    /// The file's name.
    pub name: Arc<str>,
    /// The file.
    pub path: Arc<Path>,
    /// What it contains.
    pub snapshot: Arc<torch_dumps::Snapshot>,
    /// What is derived of each device with contents, by number.
    pub devices: Arc<[DeviceHistory]>,
}

/// What is derived of a device of a memory snapshot.
pub struct DeviceHistory {
    /// The device's number.
    pub device: usize,
    pub allocations: Vec<torch_dumps::Allocation>,
    pub history: torch_dumps::History,
    /// The moment with most live bytes.
    pub peak: Option<torch_dumps::LivePoint>,
    /// The allocations that are live at the end, by address: their indices.
    pub live_by_address: FxHashMap<u64, usize>,
    /// The allocations that failed.
    pub out_of_memory: Vec<torch_dumps::OutOfMemory>,
    /// The usage of each segment.
    pub usage: Vec<torch_dumps::Usage>,
    /// The usage of each pool.
    pub pools: Vec<torch_dumps::PoolUsage>,
}

/// Everything open, unchanged during one frame.
#[derive(Default)]
pub struct Data {
    /// Every source, in the order of opening.
    pub sources: Vec<SourceInfo>,
    /// Every logdir; indices stay valid while the window is open.
    pub logdirs: Vec<LogdirData>,
    /// Every trace; indices stay valid while the window is open.
    pub traces: Vec<TraceData>,
    /// Every graph; a growing session replaces its graph in place.
    pub graphs: Vec<GraphData>,
    /// Every memory snapshot; indices stay valid while the window is open.
    pub snapshots: Vec<SnapshotData>,
}

impl Data {
    /// Every run of every logdir.
    pub fn runs(&self) -> impl Iterator<Item = RunRef<'_>> {
        self.logdirs.iter().enumerate().flat_map(|(logdir_idx, logdir)| {
            let runs = logdir.labels.iter().zip(logdir.runs.by_name.values());
            runs.map(move |(label, run)| RunRef { label, logdir_idx, run })
        })
    }

    /// Adds a logdir, for benchmarks and tests.
    #[cfg(test)]
    #[must_use]
    pub fn with_runs(mut self, name: &str, runs: summaries::Runs) -> Self {
        let (path, runs) = (Path::new(name).into(), ReadGuard::owned(runs));
        let mut logdir = LogdirData { name: name.into(), path, status: Status::Finished, runs, labels: Arc::from([]) };
        logdir.labels = unique_labels(&logdir, !self.logdirs.is_empty());
        self.logdirs.push(logdir);
        self
    }

    /// Adds a trace, for benchmarks and tests.
    #[must_use]
    pub fn with_trace(mut self, name: &str, store: trace_store::Store) -> Self {
        let path = Path::new(name).into();
        self.traces.push(TraceData {
            name: name.into(),
            path,
            status: Status::Finished,
            store: ReadGuard::owned(store),
        });
        self
    }

    /// Adds a graph, for benchmarks and tests.
    #[must_use]
    pub fn with_graph(mut self, name: &str, def: formats::proto::GraphDef) -> Self {
        self.graphs.push(GraphData { name: name.into(), path: Path::new(name).into(), def: Arc::new(def) });
        self
    }
}
