//! Follows a folder with runs: their event files, and the traces and graphs beside them.

use super::{POLL, Shared, SourceId, graph, short_name, trace};
use crate::data::{GraphData, SourceKind, Status, Warning};
use events::clock;
use rustc_hash::FxHashMap;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};
use summaries::{Logdir, Run, Runs};

/// Traces of one logdir that are opened by themselves; more on request only, since each costs a thread and memory.
const MAX_TRACES: usize = 8;
/// A logdir that has not grown for this long is taken as finished until it grows again.
const QUIET_NS: i64 = 10_000_000_000;
/// Between two looks for traces and graphs beside the event files.
const LOOK_NS: i64 = 500_000_000;
/// Damaged places that are listed one by one.
const MAX_LISTED: usize = 20;

/// Follows `path` until the window closes.
pub(super) fn follow(shared: &Arc<Shared>, source: SourceId, path: &Path) {
    shared.slots.set_kind(source, SourceKind::Logdir, None);
    let mut logdir = match Logdir::open(&[path.to_owned()]) {
        Ok(logdir) => logdir,
        Err(error) => return shared.slots.fail(source, &error.to_string()),
    };
    shared.slots.add_logdir(source, logdir.shared());
    let loader = std::thread::current();
    logdir.on_activity(move || loader.unpark());
    let mut beside = Beside::new(shared.clone(), source, path);
    let mut grew_ns = i64::MIN;
    let mut looked_ns = i64::MIN;
    let mut is_read = false;
    loop {
        let changes = logdir.poll();
        let now_ns = clock::mono_now();
        // What was there already says nothing about a writer.
        if is_read && !changes.is_empty() {
            grew_ns = now_ns;
        }
        let is_settled = is_read && now_ns.saturating_sub(grew_ns) > QUIET_NS;
        let status = if changes.has_more && !is_read {
            Status::Loading
        } else if is_settled {
            Status::Finished
        } else {
            Status::Live
        };
        is_read |= !changes.has_more;
        let mut is_changed = !changes.is_empty() | shared.slots.set_status(source, status);
        if is_changed || looked_ns == i64::MIN {
            is_changed |= shared.slots.set_warnings(source, warnings(&logdir.runs()));
        }
        if is_read && now_ns - looked_ns.max(-LOOK_NS) >= LOOK_NS {
            looked_ns = now_ns;
            is_changed |= beside.look(&logdir);
        }
        if is_changed {
            (shared.wake)();
        }
        let goes_on = if changes.has_more { !shared.is_stopping(source) } else { shared.pause(source, POLL) };
        if !goes_on {
            break;
        }
    }
    beside.stop();
}

/// What lies beside the event files of each run.
struct Beside {
    shared: Arc<Shared>,
    /// The logdir.
    source: SourceId,
    root: PathBuf,
    root_name: Arc<str>,
    /// By run folder: what was found.
    found: FxHashMap<PathBuf, Found>,
    threads: Vec<JoinHandle<()>>,
    n_left_out: usize,
}

#[derive(Default)]
struct Found {
    has_trace: bool,
    /// The graph shown, and the blob it came from (none for `graph.pb`).
    graph: Option<Option<Arc<summaries::GraphBlob>>>,
}

impl Beside {
    fn new(shared: Arc<Shared>, source: SourceId, root: &Path) -> Self {
        let root_name = short_name(root);
        Self {
            shared,
            source,
            root: root.to_owned(),
            root_name,
            found: FxHashMap::default(),
            threads: Vec::new(),
            n_left_out: 0,
        }
    }

    /// Opens traces and graphs that are new; whether there are any.
    fn look(&mut self, logdir: &Logdir) -> bool {
        let mut folders: Vec<(PathBuf, Arc<str>, Option<Arc<summaries::GraphBlob>>)> = {
            let runs = logdir.runs();
            runs.by_name.values().map(|run| (run.path.clone(), self.name_of(run), run.graph.clone())).collect()
        };
        if self.root.is_dir() && !folders.iter().any(|(path, ..)| *path == self.root) {
            folders.push((self.root.clone(), self.root_name.clone(), None));
        }
        let mut is_changed = false;
        for (folder, name, blob) in folders {
            is_changed |= self.look_for_trace(&folder, &name);
            is_changed |= self.look_for_graph(&folder, &name, blob);
        }
        is_changed
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
        if self.threads.len() >= MAX_TRACES {
            self.n_left_out += 1;
            return false;
        }
        let Some(source) = self.shared.slots.add_source(&path, Some(self.source)) else {
            return false;
        };
        self.shared.slots.set_kind(source, SourceKind::Trace, Some(name));
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("load trace".to_owned());
        match thread.spawn(move || trace::follow(&shared, source, &path)) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => self.shared.slots.fail(source, &format!("cannot start a thread: {error}")),
        }
        true
    }

    fn look_for_graph(&mut self, folder: &Path, name: &Arc<str>, blob: Option<Arc<summaries::GraphBlob>>) -> bool {
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

    fn stop(self) {
        for thread in self.threads {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Damage and problems as counted lines.
fn warnings(runs: &Runs) -> Vec<Warning> {
    let mut out: Vec<Warning> = Vec::new();
    for problem in &runs.problems {
        out.push(Warning { count: 1, text: format!("{}: {}", problem.path.display(), problem.message) });
    }
    for run in runs.by_name.values() {
        let n_listed = run.damage.len().min(MAX_LISTED);
        out.extend(run.damage[..n_listed].iter().map(|damage| Warning { count: 1, text: damage.to_string() }));
        let n_more = run.n_damaged.saturating_sub(n_listed as u64);
        if n_more > 0 {
            out.push(Warning { count: n_more, text: format!("run {}: more damaged places", run.name) });
        }
        for file in &run.files {
            if let summaries::FileState::Unreadable(reason) = &file.state {
                out.push(Warning { count: 1, text: format!("{}: {reason}", file.path.display()) });
            }
        }
    }
    out
}
