//! A logdir that is followed: new runs, new files, growing and vanishing files.
//!
//! A loader thread calls [`Logdir::poll`] every 30 ms or so. A poll stages what is new without any lock, at most
//! [`POLL_BYTES`] of it, and then commits it to the shared [`Runs`] in one short step, so that a window that reads them
//! waits for microseconds. Runs take turns, so that a large one does not hold up the others.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use events::clock;
use parking_lot::{RwLock, RwLockReadGuard};

use crate::{
    follow::FileFollower,
    run::{Problem, Run, Runs},
    stage::RunStage,
    walk::{Found, walk},
};

/// How much one poll reads at most: about 20 ms of decoding.
const POLL_BYTES: u64 = 8 << 20;
/// How much of one run is read before the next one's turn.
const TURN_BYTES: u64 = 1 << 20;
/// The folders are walked again after this many times the time that the last walk took, so walking costs under 5 %.
const WALK_PAUSE: i64 = 20;
/// Up to this many idle files are looked at in one poll; more take turns.
const IDLE_LOOKS: usize = 256;

/// Why a logdir cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogdirError {
    /// A path that is not there or cannot be looked at.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What a poll changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The runs that are new or have something new, by name.
    pub runs: Vec<String>,
    /// How many points were added.
    pub n_points: u64,
    /// How many bytes were read.
    pub n_bytes: u64,
    /// How many damaged ranges were found.
    pub n_damaged: u64,
    /// There is more to read now: poll again at once.
    pub has_more: bool,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

/// Folders (and single event files) that are followed.
#[derive(Debug)]
pub struct Logdir {
    roots: Vec<Root>,
    runs: Vec<RunFollower>,
    by_name: BTreeMap<String, usize>,
    shared: Arc<RwLock<Runs>>,
    next_walk_ns: i64,
    problems: Vec<Problem>,
    /// The run whose turn is next.
    cursor: usize,
    n_polls: usize,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// What run names begin with when there are several roots.
    prefix: Option<String>,
}

#[derive(Debug)]
struct RunFollower {
    name: String,
    folder: PathBuf,
    /// In name order.
    files: Vec<FileFollower>,
    stage: RunStage,
    is_changed: bool,
}

impl Logdir {
    /// Follows what is below `paths`: folders, or single event files. Nothing is read before the first
    /// [`poll`](Self::poll). With one path, runs are named by their folder below it, `.` for the path itself; with several,
    /// the path's last part comes first.
    ///
    /// # Errors
    /// When a path is not there.
    pub fn open(paths: &[PathBuf]) -> Result<Self, LogdirError> {
        for path in paths {
            std::fs::metadata(path).map_err(|source| LogdirError::Unreadable { path: path.clone(), source })?;
        }
        let roots = paths.iter().map(|path| Root { path: path.clone(), prefix: prefix_of(path, paths) }).collect();
        Ok(Self {
            roots,
            runs: Vec::new(),
            by_name: BTreeMap::new(),
            shared: Arc::default(),
            next_walk_ns: i64::MIN,
            problems: Vec::new(),
            cursor: 0,
            n_polls: 0,
        })
    }

    /// What was read so far. Hold the guard briefly: the next poll's commit waits for it.
    pub fn runs(&self) -> RwLockReadGuard<'_, Runs> {
        self.shared.read()
    }

    /// The runs, to share with a window while this logdir stays with its loader thread.
    pub fn shared(&self) -> Arc<RwLock<Runs>> {
        self.shared.clone()
    }

    /// Reads what is new, up to a bound, and commits it.
    pub fn poll(&mut self) -> Changes {
        let now_ns = clock::mono_now();
        let problems_changed = now_ns >= self.next_walk_ns && self.walk(now_ns);
        let mut changes = Changes::default();
        self.look_at_files(now_ns, &mut changes);
        self.commit(problems_changed, &mut changes);
        self.n_polls += 1;
        changes
    }

    /// Polls until everything there is was read; for tools that do not follow.
    pub fn read_all(&mut self) {
        while self.poll().has_more {}
    }

    /// Finds new files; whether the problems are other ones than before.
    fn walk(&mut self, now_ns: i64) -> bool {
        let mut problems = Vec::new();
        for idx in 0..self.roots.len() {
            let root = &self.roots[idx];
            let found = if root.path.is_file() { vec![single_file(root)] } else { walk(&root.path, &mut problems) };
            let prefix = root.prefix.clone();
            for found in found {
                self.add(found, prefix.as_deref(), now_ns);
            }
        }
        let took_ns = clock::mono_now() - now_ns;
        self.next_walk_ns = now_ns + took_ns * WALK_PAUSE;
        let is_changed = problems != self.problems;
        self.problems = problems;
        is_changed
    }

    fn add(&mut self, found: Found, prefix: Option<&str>, now_ns: i64) {
        let name = match (prefix, found.run.as_str()) {
            (None, run) => run.to_owned(),
            (Some(prefix), ".") => prefix.to_owned(),
            (Some(prefix), run) => format!("{prefix}/{run}"),
        };
        let idx = *self.by_name.entry(name).or_insert_with_key(|name| {
            self.runs.push(RunFollower::new(name.clone(), found.folder));
            self.runs.len() - 1
        });
        self.runs[idx].add(found.file, now_ns);
    }

    /// Gives each run its turns until the allowance is used up or nothing is new.
    fn look_at_files(&mut self, now_ns: i64, changes: &mut Changes) {
        let n_files: usize = self.runs.iter().map(|run| run.files.len()).sum();
        let turn = Turn { now_ns, n_polls: self.n_polls, n_turns: n_files.div_ceil(IDLE_LOOKS).max(1) };
        let n_runs = self.runs.len();
        let mut waiting: Vec<usize> = (0..n_runs).map(|i| (self.cursor + i) % n_runs).collect();
        while !waiting.is_empty() && changes.n_bytes < POLL_BYTES {
            let mut with_more = Vec::new();
            for (i, &idx) in waiting.iter().enumerate() {
                if changes.n_bytes >= POLL_BYTES {
                    with_more.extend_from_slice(&waiting[i..]);
                    break;
                }
                let (n_bytes, has_more) = self.runs[idx].look(&turn, idx);
                changes.n_bytes += n_bytes;
                if has_more {
                    with_more.push(idx);
                }
            }
            waiting = with_more;
        }
        changes.has_more = !waiting.is_empty();
        self.cursor = waiting.first().copied().unwrap_or(0);
    }

    fn commit(&mut self, problems_changed: bool, changes: &mut Changes) {
        let is_dirty = |run: &RunFollower| run.is_changed || run.stage.is_dirty();
        if !problems_changed && !self.runs.iter().any(is_dirty) {
            return;
        }
        let mut shared = self.shared.write();
        shared.version += 1;
        if problems_changed {
            shared.problems.clone_from(&self.problems);
        }
        let version = shared.version;
        for follower in self.runs.iter_mut().filter(|run| is_dirty(run)) {
            let run = shared.by_name.entry(follower.name.clone()).or_default();
            run.version = version;
            follower.commit(run, changes);
            changes.runs.push(follower.name.clone());
        }
    }
}

/// Which files are due in this poll.
struct Turn {
    now_ns: i64,
    n_polls: usize,
    /// In how many polls every idle file is looked at once.
    n_turns: usize,
}

impl RunFollower {
    fn new(name: String, folder: PathBuf) -> Self {
        Self { name, folder, files: Vec::new(), stage: RunStage::default(), is_changed: true }
    }

    fn add(&mut self, file: PathBuf, now_ns: i64) {
        if let Err(idx) = self.files.binary_search_by(|known| (**known.path()).cmp(&file)) {
            self.files.insert(idx, FileFollower::new(file, now_ns));
            self.is_changed = true;
        }
    }

    /// Reads one turn's worth of the first file that has more; how much, and whether there is more.
    fn look(&mut self, turn: &Turn, run_idx: usize) -> (u64, bool) {
        let mut n_bytes = 0;
        for (i, file) in self.files.iter_mut().enumerate() {
            let is_due = file.is_active(turn.now_ns) || (turn.n_polls + run_idx + i).is_multiple_of(turn.n_turns);
            if !is_due {
                continue;
            }
            let look = file.look(TURN_BYTES - n_bytes, turn.now_ns, &mut self.stage);
            self.is_changed |= look.is_changed;
            n_bytes += look.n_bytes;
            if look.has_more || n_bytes >= TURN_BYTES {
                return (n_bytes, true);
            }
        }
        (n_bytes, false)
    }

    fn commit(&mut self, run: &mut Run, changes: &mut Changes) {
        run.name.clone_from(&self.name);
        run.path.clone_from(&self.folder);
        changes.n_points += self.stage.commit(run);
        for file in &mut self.files {
            let n_new = file.log().take(&mut run.damage);
            run.n_damaged += n_new;
            changes.n_damaged += n_new;
        }
        run.files.clear();
        run.files.extend(self.files.iter().map(FileFollower::status));
        self.is_changed = false;
    }
}

/// A root that is a file is a run by itself, named by the file.
fn single_file(root: &Root) -> Found {
    let path = &root.path;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let run = if root.prefix.is_some() { ".".to_owned() } else { name };
    Found { run, folder: path.parent().unwrap_or(path).to_owned(), file: path.clone() }
}

/// What tells a root from the others: nothing if it is the only one, its last part if no other has the same, else all of it.
fn prefix_of(path: &Path, all: &[PathBuf]) -> Option<String> {
    let is_same = |other: &&PathBuf| other.file_name() == path.file_name();
    match (all.len(), path.file_name()) {
        (1, _) => None,
        (_, Some(name)) if all.iter().filter(is_same).count() == 1 => Some(name.to_string_lossy().into_owned()),
        _ => Some(path.to_string_lossy().into_owned()),
    }
}

#[cfg(test)]
mod tests;
