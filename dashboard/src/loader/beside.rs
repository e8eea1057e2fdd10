//! What lies beside the scalars of each run: its trace, the traces that other profilers left there, its graph, and the graphs and
//! profiles that TensorFlow and Keras wrote into its event files.

use super::{Shared, SourceId, graph, short_name, trace};
use crate::data::{GraphData, SourceKind, Warning};
use events::clock;
use profiler::{import, locate};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::UNIX_EPOCH,
};
use summaries::{GraphBlob, Logdir, NamedGraph, Run, TaggedGraph};

/// Traces of one logdir that are opened by themselves; more on request only, since each costs a thread and memory.
const MAX_TRACES: usize = 8;
/// A file that was written to within this time may not be whole yet, and a folder may not have all of its files.
const SETTLES_NS: i64 = 2_000_000_000;

/// See the module's notes.
pub(super) struct Beside {
    shared: Arc<Shared>,
    /// The logdir.
    source: SourceId,
    root: PathBuf,
    root_name: Arc<str>,
    /// Folders that hold traces and are no runs, as they were when the logdir was opened, with their names.
    others: Vec<(PathBuf, Arc<str>)>,
    /// By run folder: what was found.
    found: FxHashMap<PathBuf, Found>,
    threads: Vec<JoinHandle<()>>,
    /// Traces that are not opened by themselves.
    left_out: FxHashSet<PathBuf>,
    /// Graphs and profiles that cannot be shown.
    unreadable: Vec<Warning>,
}

#[derive(Default)]
struct Found {
    has_trace: bool,
    /// When the folder and its sessions had changed last, when other profilers' traces were looked for last; none while there
    /// may be more of them at any time.
    looked: Option<i64>,
    /// The graph shown, and the blob it came from (none for `graph.pb`).
    graph: Option<Option<Arc<GraphBlob>>>,
    /// Of each tag whose graphs are shown, or cannot be, how many values it had.
    tagged: FxHashMap<String, usize>,
    /// How many profiles were there when they were read; the later ones are not shown.
    n_profiles: Option<usize>,
    n_later_profiles: usize,
}

/// A run as it is looked at.
struct RunHere {
    folder: PathBuf,
    name: Arc<str>,
    graph: Option<Arc<GraphBlob>>,
    tagged: Vec<TaggedGraph>,
    n_profiles: usize,
}

impl Beside {
    pub(super) fn new(shared: Arc<Shared>, source: SourceId, root: &Path) -> Self {
        let root_name = short_name(root);
        Self {
            shared,
            source,
            root: root.to_owned(),
            root_name,
            others: others(root),
            found: FxHashMap::default(),
            threads: Vec::new(),
            left_out: FxHashSet::default(),
            unreadable: Vec::new(),
        }
    }

    /// Opens traces and graphs that are new; whether there are any.
    pub(super) fn look(&mut self, logdir: &Logdir) -> bool {
        let here = |run: &Run| RunHere {
            folder: run.path.clone(),
            name: self.name_of(run),
            graph: run.graph.clone(),
            tagged: run.tagged_graphs().collect(),
            n_profiles: run.profiles().count(),
        };
        let mut all: Vec<RunHere> = logdir.runs().by_name.values().map(here).collect();
        let root = self.root.is_dir().then(|| (self.root.clone(), self.root_name.clone()));
        for (folder, name) in root.into_iter().chain(self.others.iter().cloned()) {
            if !all.iter().any(|run| run.folder == folder) {
                all.push(RunHere { folder, name, graph: None, tagged: Vec::new(), n_profiles: 0 });
            }
        }
        let mut is_changed = false;
        for run in all {
            is_changed |= self.look_for_trace(&run.folder, &run.name);
            is_changed |= self.look_for_others(&run.folder, &run.name);
            is_changed |= self.look_for_profiles(&run, logdir);
            is_changed |= self.look_for_tagged_graphs(&run);
            is_changed |= self.look_for_graph(&run.folder, &run.name, run.graph);
        }
        is_changed
    }

    /// What is not opened by itself, and what cannot be shown.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let mut all = self.unreadable.clone();
        if let Some(first) = self.left_out.iter().min() {
            let text = format!("not opened by itself, as {MAX_TRACES} traces are open: {} and others", first.display());
            all.push(Warning { count: self.left_out.len() as u64, text });
        }
        for (folder, found) in self.found.iter().filter(|(_, found)| found.n_later_profiles > 0) {
            let text = format!("{}: profiles of steps written since it was opened: open it again", folder.display());
            all.push(Warning { count: found.n_later_profiles as u64, text });
        }
        all.sort_by(|a, b| a.text.cmp(&b.text));
        all
    }

    /// A run is called by its name; the logdir itself by its folder's.
    fn name_of(&self, run: &Run) -> Arc<str> {
        if run.name == "." { self.root_name.clone() } else { run.name.as_str().into() }
    }

    fn look_for_trace(&mut self, folder: &Path, name: &str) -> bool {
        let found = self.found.entry(folder.to_owned()).or_default();
        let path = folder.join("trace");
        if found.has_trace || !matches!(formats::sniff(&path), Ok(formats::FileKind::TraceFolder)) {
            return false;
        }
        found.has_trace = true;
        self.open(path.clone(), name, move |shared, source| trace::follow(shared, source, &path))
    }

    /// Looks for what TensorFlow's, JAX's and PyTorch's profilers leave in a logdir.
    fn look_for_others(&mut self, folder: &Path, name: &str) -> bool {
        let found = self.found.entry(folder.to_owned()).or_default();
        let changed = changed_ns([folder, &folder.join("plugins/profile")]);
        if found.looked.is_some() && found.looked == changed {
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
        let found = self.found.entry(folder.to_owned()).or_default();
        found.looked = if may_be_more { None } else { changed };
        is_changed
    }

    /// Reads a trace in a thread of its own, unless it is open already; whether it does.
    fn open(&mut self, path: PathBuf, name: &str, read: impl FnOnce(&Shared, SourceId) + Send + 'static) -> bool {
        if self.threads.len() >= MAX_TRACES {
            return self.left_out.insert(path);
        }
        let Some(source) = self.shared.slots.add_source(&path, Some(self.source)) else {
            return false;
        };
        self.shared.slots.set_kind(source, SourceKind::Trace, Some(name));
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("load trace".to_owned());
        match thread.spawn(move || read(&shared, source)) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => self.shared.slots.fail(source, &format!("cannot start a thread: {error}")),
        }
        true
    }

    fn look_for_graph(&mut self, folder: &Path, name: &Arc<str>, blob: Option<Arc<GraphBlob>>) -> bool {
        let found = self.found.entry(folder.to_owned()).or_default();
        let is_shown = match (&found.graph, &blob) {
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
            found.graph = blob.map(Some);
            return false;
        };
        found.graph = Some(blob);
        self.shared.slots.put_graph(GraphData { name: name.clone(), path: folder.into(), def });
        true
    }

    /// Shows the graphs under tags of the event files; a tag's newest.
    fn look_for_tagged_graphs(&mut self, run: &RunHere) -> bool {
        let mut is_changed = false;
        for graph in &run.tagged {
            let found = self.found.entry(run.folder.clone()).or_default();
            if found.tagged.insert(graph.tag.clone(), graph.n_rows) == Some(graph.n_rows) {
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

    /// Opens the profiles of steps that TensorFlow wrote into the event files, as one trace.
    fn look_for_profiles(&mut self, run: &RunHere, logdir: &Logdir) -> bool {
        let found = self.found.entry(run.folder.clone()).or_default();
        if let Some(n) = found.n_profiles {
            let n_later = run.n_profiles.saturating_sub(n);
            return std::mem::replace(&mut found.n_later_profiles, n_later) != n_later;
        }
        if run.n_profiles == 0 {
            return false;
        }
        found.n_profiles = Some(run.n_profiles);
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

/// The folders below a logdir that hold traces.
fn others(root: &Path) -> Vec<(PathBuf, Arc<str>)> {
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

/// When the last of these changed, wall clock ns; none where none is there.
fn changed_ns<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Option<i64> {
    let changed = |path: &Path| {
        let at = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(at.as_nanos()).ok()
    };
    paths.into_iter().filter_map(changed).max()
}
