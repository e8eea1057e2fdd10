//! What is open, as the loader threads tell it and a frame reads it.

use crate::data::{
    Data, GraphData, Held, LogdirData, Shared, SourceInfo, SourceKind, Status, TraceData, Warning, unique_labels,
};
use parking_lot::Mutex;
use std::{path::Path, sync::Arc};

/// A row of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceId(usize);

#[derive(Default)]
pub(super) struct Slots(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    sources: Vec<SourceInfo>,
    logdirs: Vec<LogdirSlot>,
    traces: Vec<TraceSlot>,
    graphs: Vec<GraphData>,
}

struct LogdirSlot {
    source: SourceId,
    runs: Shared<summaries::Runs>,
    labels: Arc<[Arc<str>]>,
}

struct TraceSlot {
    source: SourceId,
    store: Shared<profiler::Store>,
}

impl Slots {
    pub(super) fn n_sources(&self) -> usize {
        self.0.lock().sources.len()
    }

    /// A new source; `None` if the path is open already. One that failed takes its old row.
    pub(super) fn add_source(&self, path: &Path) -> Option<SourceId> {
        let mut rows = self.0.lock();
        let fresh = SourceInfo {
            kind: SourceKind::Unknown,
            name: super::short_name(path),
            path: path.into(),
            status: Status::Loading,
            error: None,
            warnings: Arc::from([]),
        };
        match rows.sources.iter_mut().enumerate().find(|(_, s)| *s.path == *path) {
            Some((idx, failed)) if failed.status == Status::Failed => {
                *failed = fresh;
                Some(SourceId(idx))
            }
            Some(_) => None,
            None => {
                rows.sources.push(fresh);
                Some(SourceId(rows.sources.len() - 1))
            }
        }
    }

    pub(super) fn fail(&self, source: SourceId, error: &str) {
        let row = &mut self.0.lock().sources[source.0];
        row.status = Status::Failed;
        // One line, whatever the reader had to say.
        row.error = Some(error.split_whitespace().collect::<Vec<_>>().join(" ").into());
    }

    /// Sets the status; whether it is another one than before.
    pub(super) fn set_status(&self, source: SourceId, status: Status) -> bool {
        let row = &mut self.0.lock().sources[source.0];
        std::mem::replace(&mut row.status, status) != status
    }

    /// Sets the warnings; whether they are other ones than before.
    pub(super) fn set_warnings(&self, source: SourceId, warnings: Vec<Warning>) -> bool {
        let row = &mut self.0.lock().sources[source.0];
        let is_changed = *row.warnings != warnings[..];
        if is_changed {
            row.warnings = warnings.into();
        }
        is_changed
    }

    pub(super) fn set_kind(&self, source: SourceId, kind: SourceKind, name: Option<&str>) {
        let row = &mut self.0.lock().sources[source.0];
        row.kind = kind;
        if let Some(name) = name {
            row.name = name.into();
        }
    }

    pub(super) fn add_logdir(&self, source: SourceId, runs: Shared<summaries::Runs>) {
        self.0.lock().logdirs.push(LogdirSlot { source, runs, labels: Arc::from([]) });
    }

    pub(super) fn add_trace(&self, source: SourceId, store: Shared<profiler::Store>) {
        self.0.lock().traces.push(TraceSlot { source, store });
    }

    /// Adds a graph or replaces the one of the same path and name.
    pub(super) fn put_graph(&self, graph: GraphData) {
        let graphs = &mut self.0.lock().graphs;
        match graphs.iter_mut().find(|g| g.path == graph.path && g.name == graph.name) {
            Some(old) => *old = graph,
            None => graphs.push(graph),
        }
    }

    /// Takes a read guard on everything.
    pub(super) fn frame(&self) -> Data {
        // Copies of the handles: the slots' lock is free again before the first guard is waited for.
        let (sources, logdirs, traces, graphs) = {
            let rows = self.0.lock();
            let logdirs: Vec<_> = rows.logdirs.iter().map(|l| (l.source, l.runs.clone(), l.labels.clone())).collect();
            let traces: Vec<_> = rows.traces.iter().map(|t| (t.source, t.store.clone())).collect();
            (rows.sources.clone(), logdirs, traces, rows.graphs.clone())
        };
        let n_logdirs = logdirs.len();
        let mut data = Data { sources, graphs, ..Data::default() };
        for (source, runs, labels) in logdirs {
            let info = &data.sources[source.0];
            let (name, path, status) = (info.name.clone(), info.path.clone(), info.status);
            data.logdirs.push(LogdirData { name, path, status, runs: Held::of(&runs), labels });
        }
        for (source, store) in traces {
            let info = &data.sources[source.0];
            let (name, path, status) = (info.name.clone(), info.path.clone(), info.status);
            data.traces.push(TraceData { name, path, status, store: Held::of(&store) });
        }
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
