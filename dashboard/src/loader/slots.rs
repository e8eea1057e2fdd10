//! The open sources, written by the loader threads and read by frames.

use crate::data::{
    Data, GraphData, LogdirData, ReadGuard, Shared, SnapshotData, SourceInfo, SourceKind, Status, TraceData, Warning,
    unique_labels,
};
use parking_lot::Mutex;
use std::{path::Path, sync::Arc};

/// A row of the sources as opened by one reader: updates of a reader that was replaced by another are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceId {
    row: usize,
    reader: u32,
}

#[derive(Default)]
pub(super) struct Slots(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    sources: Vec<SourceInfo>,
    /// For each source that was found in another one, the row of the other one.
    found_in: Vec<Option<usize>>,
    /// The number of readers that each source has had.
    readers: Vec<u32>,
    logdirs: Vec<LogdirSlot>,
    traces: Vec<TraceSlot>,
    graphs: Vec<GraphData>,
    snapshots: Vec<SnapshotData>,
}

impl Rows {
    /// Rows of the sources in the order in which they were opened, each followed by those found in it, whichever thread
    /// was faster.
    fn in_order(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.sources.len()).collect();
        rows.sort_by_key(|&row| (self.found_in[row].unwrap_or(row), row));
        rows
    }

    /// The row of a source, unless another reader took it over.
    fn row(&mut self, source: SourceId) -> Option<&mut SourceInfo> {
        let is_current = self.readers.get(source.row) == Some(&source.reader);
        self.sources.get_mut(source.row).filter(|_| is_current)
    }
}

#[derive(Clone)]
struct LogdirSlot {
    source: SourceId,
    runs: Shared<summaries::Runs>,
    labels: Arc<[Arc<str>]>,
}

#[derive(Clone)]
struct TraceSlot {
    source: SourceId,
    store: Shared<trace_store::Store>,
}

impl Slots {
    pub(super) fn n_sources(&self) -> usize {
        self.0.lock().sources.len()
    }

    /// A new source, opened by the user or found in another one; `None` if the path is open already. One that failed or
    /// was stopped takes its old row.
    pub(super) fn add_source(&self, path: &Path, found_in: Option<SourceId>) -> Option<SourceId> {
        let mut rows = self.0.lock();
        let fresh = SourceInfo::new(SourceKind::Unknown, short_name(path), path);
        match rows.sources.iter_mut().enumerate().find(|(_, s)| *s.path == *path) {
            Some((row, old)) if matches!(old.status, Status::Failed | Status::Stopped) => {
                *old = fresh;
                rows.readers[row] += 1;
                Some(SourceId { row, reader: rows.readers[row] })
            }
            Some(_) => None,
            None => {
                rows.sources.push(fresh);
                rows.found_in.push(found_in.map(|source| source.row));
                rows.readers.push(0);
                Some(SourceId { row: rows.sources.len() - 1, reader: 0 })
            }
        }
    }

    /// Changes the row of a source, unless another reader took it over.
    fn update<T: Default>(&self, source: SourceId, change: impl FnOnce(&mut SourceInfo) -> T) -> T {
        self.0.lock().row(source).map(change).unwrap_or_default()
    }

    pub(super) fn fail(&self, source: SourceId, error: &str) {
        // One line, whatever the reader had to say.
        let line = error.split_whitespace().collect::<Vec<_>>().join(" ").into();
        self.update(source, |row| (row.status, row.error) = (Status::Failed, Some(line)));
    }

    /// Sets the status, unless the source was stopped; returns whether it changed.
    pub(super) fn set_status(&self, source: SourceId, status: Status) -> bool {
        self.update(source, |row| row.status != Status::Stopped && std::mem::replace(&mut row.status, status) != status)
    }

    /// Sets the share that is read; returns whether that is worth a frame.
    pub(super) fn set_progress(&self, source: SourceId, share: f32) -> bool {
        self.update(source, |row| {
            let is_visible = row.progress.is_none_or(|known| (share - known).abs() >= 0.01);
            if is_visible {
                row.progress = Some(share.clamp(0.0, 1.0));
            }
            is_visible
        })
    }

    /// Stops a source that is being read or followed.
    pub(super) fn stop(&self, path: &Path) {
        for row in self.0.lock().sources.iter_mut().filter(|s| *s.path == *path) {
            if matches!(row.status, Status::Loading | Status::Live) {
                row.status = Status::Stopped;
            }
        }
    }

    pub(super) fn is_stopped(&self, source: SourceId) -> bool {
        self.0.lock().row(source).is_none_or(|row| row.status == Status::Stopped)
    }

    /// Sets the warnings; returns whether they changed.
    pub(super) fn set_warnings(&self, source: SourceId, warnings: Vec<Warning>) -> bool {
        self.update(source, |row| {
            let is_changed = *row.warnings != warnings[..];
            if is_changed {
                row.warnings = warnings.into();
            }
            is_changed
        })
    }

    pub(super) fn set_kind(&self, source: SourceId, kind: SourceKind, name: Option<&str>) {
        self.update(source, |row| {
            row.kind = kind;
            row.name = name.map_or_else(|| row.name.clone(), Into::into);
        });
    }

    pub(super) fn add_logdir(&self, source: SourceId, runs: Shared<summaries::Runs>) {
        let slot = LogdirSlot { source, runs, labels: Arc::from([]) };
        insert_or_replace(&mut self.0.lock().logdirs, slot, |old, new| old.source.row == new.source.row);
    }

    pub(super) fn add_trace(&self, source: SourceId, store: Shared<trace_store::Store>) {
        let slot = TraceSlot { source, store };
        insert_or_replace(&mut self.0.lock().traces, slot, |old, new| old.source.row == new.source.row);
    }

    /// Adds a graph or replaces the one of the same path and name.
    pub(super) fn put_graph(&self, graph: GraphData) {
        insert_or_replace(&mut self.0.lock().graphs, graph, |old, new| old.path == new.path && old.name == new.name);
    }

    /// Adds a memory snapshot or replaces the one of the same path.
    pub(super) fn put_snapshot(&self, snapshot: SnapshotData) {
        insert_or_replace(&mut self.0.lock().snapshots, snapshot, |old, new| old.path == new.path);
    }

    /// Takes read guards on all values.
    pub(super) fn frame(&self) -> Data {
        // Copies of the handles: the slots' lock is free again before the first guard is waited for.
        let (in_order, sources, logdirs, traces, graphs, snapshots) = {
            let rows = self.0.lock();
            let (logdirs, traces) = (rows.logdirs.clone(), rows.traces.clone());
            let (graphs, snapshots) = (rows.graphs.clone(), rows.snapshots.clone());
            (rows.in_order(), rows.sources.clone(), logdirs, traces, graphs, snapshots)
        };
        let n_logdirs = logdirs.len();
        let mut data = Data { sources, graphs, snapshots, ..Data::default() };
        let about = |sources: &[SourceInfo], source: SourceId| {
            let info = &sources[source.row];
            (info.name.clone(), info.path.clone(), info.status)
        };
        for LogdirSlot { source, runs, labels } in logdirs {
            let (name, path, status) = about(&data.sources, source);
            data.logdirs.push(LogdirData { name, path, status, runs: ReadGuard::lock(&runs), labels });
        }
        for TraceSlot { source, store } in traces {
            let (name, path, status) = about(&data.sources, source);
            data.traces.push(TraceData { name, path, status, store: ReadGuard::lock(&store) });
        }
        data.sources = in_order.into_iter().map(|row| data.sources[row].clone()).collect();
        for idx in 0..n_logdirs {
            if data.logdirs[idx].labels.len() != data.logdirs[idx].runs.by_name.len() {
                let labels = unique_labels(&data.logdirs[idx], n_logdirs > 1);
                data.logdirs[idx].labels = labels.clone();
                self.0.lock().logdirs[idx].labels = labels;
            }
        }
        data
    }
}

/// Adds an element or replaces the same one, which keeps its index.
fn insert_or_replace<T>(all: &mut Vec<T>, new: T, is_same: impl Fn(&T, &T) -> bool) {
    match all.iter_mut().find(|old| is_same(old, &new)) {
        Some(old) => *old = new,
        None => all.push(new),
    }
}

/// The last part of a path, for lists; the full path where it has none.
pub(super) fn short_name(path: &Path) -> Arc<str> {
    let full = || path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match path.file_name() {
        Some(name) => name.to_string_lossy().into(),
        None => full().file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into(),
    }
}
