//! Artifacts of runs next to their scalars: traces of stepscope and of other profilers, graphs, and the graphs and
//! profiles that TensorFlow and Keras wrote into the event files.

use super::{
    graph,
    shared::Shared,
    slots::{SourceId, short_name},
    trace,
};
use crate::data::{GraphData, SourceKind, Warning};
use events::clock;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::UNIX_EPOCH,
};
use summaries::{GraphBlob, Logdir, NamedGraph, Run, TaggedGraph};
use trace_formats::{import, locate};

/// Traces of one logdir that are opened automatically, at most: each costs a thread and memory.
const MAX_TRACES: usize = 8;
/// A file that was written to within this time may be incomplete, and a folder may lack files.
const SETTLES_NS: i64 = 2_000_000_000;

/// The artifacts of a logdir's runs.
pub(super) struct RunArtifacts {
    shared: Arc<Shared>,
    /// The logdir.
    source: SourceId,
    root: PathBuf,
    root_name: Arc<str>,
    /// Folders with traces that are not runs, as of when the logdir was opened, with their names.
    trace_folders: Vec<(PathBuf, Arc<str>)>,
    /// State by run folder.
    folders: FxHashMap<PathBuf, FolderState>,
    threads: Vec<JoinHandle<()>>,
    /// Traces that are not opened automatically.
    left_out: FxHashSet<PathBuf>,
    /// Graphs and profiles that cannot be shown.
    unreadable: Vec<Warning>,
}

#[derive(Default)]
struct FolderState {
    has_trace: bool,
    /// Modification time of the folder and its sessions at the last search for other profilers' traces; none while more
    /// may appear at any time.
    searched: Option<i64>,
    /// The graph shown, and the blob it came from (none for `graph.pb`).
    graph: Option<Option<Arc<GraphBlob>>>,
    /// The number of values of each tag whose graphs were read.
    tagged: FxHashMap<String, usize>,
    /// The number of profiles when they were read; later ones are not shown.
    n_profiles: Option<usize>,
    n_later_profiles: usize,
}

/// A run at the time of an update.
struct RunSnapshot {
    folder: PathBuf,
    name: Arc<str>,
    graph: Option<Arc<GraphBlob>>,
    tagged: Vec<TaggedGraph>,
    n_profiles: usize,
}

impl RunArtifacts {
    pub(super) fn new(shared: Arc<Shared>, source: SourceId, root: &Path) -> Self {
        let root_name = short_name(root);
        Self {
            shared,
            source,
            root: root.to_owned(),
            root_name,
            trace_folders: trace_folders(root),
            folders: FxHashMap::default(),
            threads: Vec::new(),
            left_out: FxHashSet::default(),
            unreadable: Vec::new(),
        }
    }

    /// Opens new traces and graphs; returns whether there are any.
    pub(super) fn update(&mut self, logdir: &Logdir) -> bool {
        let snapshot = |run: &Run| RunSnapshot {
            folder: run.path.clone(),
            name: self.name_of(run),
            graph: run.graph.clone(),
            tagged: run.tagged_graphs().collect(),
            n_profiles: run.profiles().count(),
        };
        let mut all: Vec<RunSnapshot> = logdir.runs().by_name.values().map(snapshot).collect();
        let root = self.root.is_dir().then(|| (self.root.clone(), self.root_name.clone()));
        for (folder, name) in root.into_iter().chain(self.trace_folders.iter().cloned()) {
            if !all.iter().any(|run| run.folder == folder) {
                all.push(RunSnapshot { folder, name, graph: None, tagged: Vec::new(), n_profiles: 0 });
            }
        }
        let mut is_changed = false;
        for run in all {
            is_changed |= self.open_trace(&run.folder, &run.name);
            is_changed |= self.open_foreign_traces(&run.folder, &run.name);
            is_changed |= self.open_profiles(&run, logdir);
            is_changed |= self.show_tagged_graphs(&run);
            is_changed |= self.show_graph(&run.folder, &run.name, run.graph);
        }
        is_changed
    }

    /// Traces that are not opened automatically, and artifacts that cannot be shown.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let mut all = self.unreadable.clone();
        if let Some(first) = self.left_out.iter().min() {
            let text =
                format!("not opened automatically, as {MAX_TRACES} traces are open: {} and others", first.display());
            all.push(Warning { count: self.left_out.len() as u64, text });
        }
        for (folder, state) in self.folders.iter().filter(|(_, state)| state.n_later_profiles > 0) {
            let text = format!("{}: profiles of steps written since it was opened: open it again", folder.display());
            all.push(Warning { count: state.n_later_profiles as u64, text });
        }
        all.sort_by(|a, b| a.text.cmp(&b.text));
        all
    }

    /// The name of a run; of the logdir itself the name of its folder.
    fn name_of(&self, run: &Run) -> Arc<str> {
        if run.name == "." { self.root_name.clone() } else { run.name.as_str().into() }
    }

    fn open_trace(&mut self, folder: &Path, name: &str) -> bool {
        let state = self.folders.entry(folder.to_owned()).or_default();
        let path = folder.join("trace");
        if state.has_trace || !matches!(formats::sniff(&path), Ok(formats::FileKind::TraceFolder)) {
            return false;
        }
        state.has_trace = true;
        self.open(path.clone(), name, move |shared, source| trace::follow(shared, source, &path))
    }

    /// Opens traces that the profilers of TensorFlow, JAX and PyTorch wrote into a logdir.
    fn open_foreign_traces(&mut self, folder: &Path, name: &str) -> bool {
        let state = self.folders.entry(folder.to_owned()).or_default();
        let changed = changed_ns([folder, &folder.join("plugins/profile")]);
        if state.searched.is_some() && state.searched == changed {
            return false;
        }
        let now = clock::wall_now_ns();
        let settles = |changed: Option<i64>| changed.is_some_and(|at| (0..SETTLES_NS).contains(&(now - at)));
        let mut may_be_more = settles(changed);
        let mut is_changed = false;
        for import::Files { path, files } in import::traces(folder) {
            if settles(changed_ns(files.iter().map(PathBuf::as_path).chain([&*path]))) {
                may_be_more = true;
                continue;
            }
            let Some(first) = files.first().cloned() else { continue };
            let own = path.file_name().filter(|_| path != folder);
            let name = own.map_or_else(|| name.to_owned(), |own| format!("{name} · {}", own.to_string_lossy()));
            // The folder itself may be a source of its own.
            let path = if path == folder { first } else { path };
            is_changed |= self.open(path, &name, move |shared, source| trace::import(shared, source, &files));
        }
        let state = self.folders.entry(folder.to_owned()).or_default();
        state.searched = if may_be_more { None } else { changed };
        is_changed
    }

    /// Reads a trace in a thread of its own, unless it is open already; returns whether it does.
    fn open(&mut self, path: PathBuf, name: &str, read: impl FnOnce(&Shared, SourceId) + Send + 'static) -> bool {
        if self.threads.len() >= MAX_TRACES {
            return self.left_out.insert(path);
        }
        let Some(source) = self.shared.slots.add_source(&path, Some(self.source)) else {
            return false;
        };
        self.shared.slots.set_kind(source, SourceKind::Trace, Some(name));
        let shared = self.shared.clone();
        self.threads.extend(self.shared.spawn("load trace", source, move || read(&shared, source)));
        true
    }

    fn show_graph(&mut self, folder: &Path, name: &Arc<str>, blob: Option<Arc<GraphBlob>>) -> bool {
        let state = self.folders.entry(folder.to_owned()).or_default();
        let is_shown = match (&state.graph, &blob) {
            (None, _) => false,
            (Some(Some(old)), Some(new)) => Arc::ptr_eq(old, new),
            (Some(None), Some(_)) => false,
            (Some(_), None) => true,
        };
        if is_shown {
            return false;
        }
        let Some(def) = graph::of_run(blob.as_deref(), folder) else {
            // A blob that does not decode never will; a missing file may still come.
            state.graph = blob.map(Some);
            return false;
        };
        state.graph = Some(blob);
        self.shared.slots.put_graph(GraphData { name: name.clone(), path: folder.into(), def });
        true
    }

    /// Shows the newest graph of each tag of the event files.
    fn show_tagged_graphs(&mut self, run: &RunSnapshot) -> bool {
        let mut is_changed = false;
        for graph in &run.tagged {
            let state = self.folders.entry(run.folder.clone()).or_default();
            if state.tagged.insert(graph.tag.clone(), graph.n_rows) == Some(graph.n_rows) {
                continue;
            }
            is_changed = true;
            let name = format!("{} · {}", run.name, graph.tag);
            match graph.read() {
                Ok(graphs) => {
                    for NamedGraph { part, graph } in graphs {
                        let name =
                            if part.is_empty() { name.as_str().into() } else { format!("{name} · {part}").into() };
                        let graph = GraphData { name, path: run.folder.as_path().into(), def: Arc::new(graph) };
                        self.shared.slots.put_graph(graph);
                    }
                }
                Err(error) => self.unreadable.push(Warning { count: 1, text: format!("graph {name}: {error}") }),
            }
        }
        is_changed
    }

    /// Opens the profiles that TensorFlow wrote into the event files of a run, as one trace.
    fn open_profiles(&mut self, run: &RunSnapshot, logdir: &Logdir) -> bool {
        let state = self.folders.entry(run.folder.clone()).or_default();
        if let Some(n) = state.n_profiles {
            let n_later = run.n_profiles.saturating_sub(n);
            return std::mem::replace(&mut state.n_later_profiles, n_later) != n_later;
        }
        if run.n_profiles == 0 {
            return false;
        }
        state.n_profiles = Some(run.n_profiles);
        let mut steps = Vec::new();
        for profile in logdir.runs().by_name.values().filter(|of| of.path == run.folder).flat_map(Run::profiles) {
            match profile.read() {
                // A trace counts steps from 0.
                Ok(Some(message)) => steps.push((u32::try_from(profile.step()).unwrap_or_default(), message)),
                Ok(None) => {}
                Err(error) => {
                    let text = format!("profile of step {} of {}: {error}", profile.step(), run.name);
                    self.unreadable.push(Warning { count: 1, text });
                }
            }
        }
        if steps.is_empty() {
            return false;
        }
        let name = format!("{} · profiles", run.name);
        let source = name.clone();
        self.open(run.folder.join("profiles of steps"), &name, move |shared, id| {
            trace::read(shared, id, import::run_metadata(&source, steps));
        })
    }

    pub(super) fn stop(self) {
        for thread in self.threads {
            thread.thread().unpark();
            // One that panicked has shown what it could.
            let _ = thread.join();
        }
    }
}

/// The folders below a logdir that contain traces.
fn trace_folders(root: &Path) -> Vec<(PathBuf, Arc<str>)> {
    let traces = locate::traces_below(root).map(|lookup| lookup.traces).unwrap_or_default();
    let folder_of = |trace: locate::TraceLocation| {
        // `trace` in a run's folder, a session below `plugins/profile` in it, or files that lie in the folder itself.
        let inside = |path: &Path| path.strip_prefix(root).ok().map(|_| path.to_owned());
        let (parent, session) = (trace.path.parent(), trace.path.parent().filter(|p| p.ends_with("plugins/profile")));
        match () {
            () if trace.is_own() || trace.path.is_file() => inside(parent?),
            () if session.is_some() => inside(session?.parent()?.parent()?),
            () => inside(&trace.path),
        }
    };
    let mut folders: Vec<PathBuf> = traces.into_iter().filter_map(folder_of).filter(|folder| folder != root).collect();
    folders.sort_unstable();
    folders.dedup();
    let name = |folder: &PathBuf| folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into();
    folders.into_iter().map(|folder| (folder.clone(), name(&folder))).collect()
}

/// The latest modification time of the paths, wall clock ns; none where none exists.
fn changed_ns<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Option<i64> {
    let changed = |path: &Path| {
        let at = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(at.as_nanos()).ok()
    };
    paths.into_iter().filter_map(changed).max()
}
