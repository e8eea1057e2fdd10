//! A logdir that is followed: new runs, new files, growing and vanishing files.
//!
//! A loader thread calls [`Logdir::poll`] whenever [`Logdir::on_activity`] wakes it, and now and then besides. A poll
//! reads new data without any lock, at most [`POLL_BYTES`] per processor, and then commits them to the shared [`Runs`]
//! in one short step, so that a window that reads them waits for milliseconds at most. Runs take turns, so that a large
//! one does not hold up the others.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use events::clock;
use formats::{is_event_file_name, is_run_log};
use parking_lot::{RwLock, RwLockReadGuard};
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use trackers::Log;

use crate::{
    run::{Problem, Runs},
    stage::point_pool,
    walk::{Identity, RunFile, RunSource, identity, walk},
    watch::{Watch, WatchTarget},
};
pub use follow_run::Changes;
use follow_run::{PollTurn, RunFollower};

/// The most bytes that a poll reads per processor: its points are committed while they are in the processor's caches,
/// and a window waits for milliseconds.
const POLL_BYTES: u64 = 4 << 20;
/// The most processors that are counted for the size of a poll, since the window waits for its commit.
const MAX_PROCESSORS: usize = 16;
/// The fewest bytes that are read of a run in its turn.
const TURN_BYTES: u64 = 1 << 20;
/// The pause between walks of the folders, as a multiple of the last walk's duration: walking costs under 5 %.
const WALK_PAUSE: i64 = 20;
/// The same multiple where the system reports new files, and a walk only finds files that it missed.
const WATCHED_WALK_PAUSE: i64 = 200;
/// The time for which every poll looks into a new folder.
const FRESH_FOLDER_NS: i64 = 100_000_000;
/// Maximum number of idle files that a poll checks; more files take turns.
const MAX_IDLE_FILES: usize = 256;

/// Why a logdir cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogdirError {
    /// A path does not exist or cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The runs below some folders, in single event files, or in other tools' logs, that are followed.
#[derive(Debug)]
pub struct Logdir {
    roots: Vec<Root>,
    runs: Vec<RunFollower>,
    by_name: BTreeMap<String, usize>,
    shared: Arc<RwLock<Runs>>,
    next_walk_ns: i64,
    /// The begin and the duration of the last walk, nanoseconds.
    last_walk: (i64, i64),
    problems: Vec<Problem>,
    /// The run whose turn is next.
    cursor: usize,
    n_polls: usize,
    watch: Watch,
    /// The identities of the roots when watching began: a root that was deleted and created again must be watched
    /// again.
    watched_identities: Option<Vec<Option<Identity>>>,
    /// New folders, and the time until which each poll looks into them, ns: the system does not report files that were
    /// created before it watched the folder.
    fresh_folders: Vec<(PathBuf, i64)>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// The prefix of run names when there are several roots.
    prefix: Option<String>,
}

impl Root {
    /// The folder to watch for this root.
    fn watch_target(&self) -> WatchTarget {
        match self.path.parent() {
            Some(folder) if self.path.is_file() => WatchTarget { folder: folder.to_owned(), is_recursive: false },
            _ => WatchTarget { folder: self.path.clone(), is_recursive: true },
        }
    }
}

impl Logdir {
    /// Follows the event files and other tools' logs below `paths`, which are folders or single files. Reads nothing before the first
    /// [`poll`](Self::poll). With one path, runs are named by their folder below it, `.` for the path itself; with
    /// several, the path's last part comes first.
    ///
    /// # Errors
    /// When a path does not exist or cannot be read.
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
            last_walk: (0, 0),
            problems: Vec::new(),
            cursor: 0,
            n_polls: 0,
            watch: Watch::default(),
            watched_identities: None,
            fresh_folders: Vec::new(),
        })
    }

    /// Calls `wake`, from another thread, whenever the system reports a change below the logdir: time for a
    /// [`poll`](Self::poll). Watching begins when everything has been read. Without this call the logdir is not
    /// watched. Where the system cannot report changes (see [`is_watching`](Self::is_watching)), `wake` is never
    /// called.
    pub fn on_activity(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.watch.on_activity(Box::new(wake));
    }

    /// Whether the system reports changes in all folders; otherwise only frequent polls find changes.
    pub fn is_watching(&self) -> bool {
        self.watch.is_complete() && self.problems.is_empty()
    }

    /// Returns the runs as of the last commit. Hold the guard briefly: the next poll's commit waits for it.
    pub fn runs(&self) -> RwLockReadGuard<'_, Runs> {
        self.shared.read()
    }

    /// The runs, to share with a window while this logdir stays with its loader thread.
    pub fn shared(&self) -> Arc<RwLock<Runs>> {
        self.shared.clone()
    }

    /// Reads new data, up to [`POLL_BYTES`] per processor, and commits them.
    pub fn poll(&mut self) -> Changes {
        let now_ns = clock::mono_now();
        let file_changes = self.watch.take();
        self.add_created(file_changes.created, now_ns);
        if file_changes.is_incomplete {
            self.next_walk_ns = self.next_walk_ns.min(self.last_walk.0 + self.last_walk.1 * WALK_PAUSE);
        }
        let problems_changed = now_ns >= self.next_walk_ns && self.walk(now_ns);
        let mut changes = Changes::default();
        self.read_files(now_ns, &file_changes.files, &mut changes);
        self.commit(problems_changed, &mut changes);
        if !changes.has_more {
            point_pool::clear();
            self.watch_roots();
        }
        self.n_polls += 1;
        changes
    }

    /// Polls until everything is read; for tools that do not follow.
    pub fn read_all(&mut self) {
        while self.poll().has_more {}
    }

    /// Watches the roots, if notifications are requested and the roots are not watched yet.
    fn watch_roots(&mut self) {
        if !self.watch.is_requested() {
            return;
        }
        let places: Vec<WatchTarget> = self.roots.iter().map(Root::watch_target).collect();
        let identities = places.iter().map(|place| identity(&place.folder).ok()).collect();
        if self.watched_identities.as_ref() != Some(&identities) {
            self.watch.start(places);
            self.watched_identities = Some(identities);
        }
    }

    /// Finds new files; returns whether the problems have changed.
    fn walk(&mut self, now_ns: i64) -> bool {
        let mut problems = Vec::new();
        for idx in 0..self.roots.len() {
            let root = &self.roots[idx];
            let found =
                if root.path.is_file() { single_file(root) } else { walk(&root.path, &root.path, &mut problems) };
            let prefix = root.prefix.clone();
            for found in found {
                self.add(found, prefix.as_deref(), now_ns);
            }
        }
        let duration_ns = clock::mono_now() - now_ns;
        self.last_walk = (now_ns, duration_ns);
        let pause = if self.is_watching() { WATCHED_WALK_PAUSE } else { WALK_PAUSE };
        self.next_walk_ns = now_ns + duration_ns * pause;
        let is_changed = problems != self.problems;
        self.problems = problems;
        is_changed
    }

    /// Adds the files and folders that the system reported as new, without a walk over all folders.
    fn add_created(&mut self, created: FxHashSet<PathBuf>, now_ns: i64) {
        self.fresh_folders.retain(|(folder, until_ns)| now_ns < *until_ns && !created.contains(folder));
        let still_fresh = self.fresh_folders.clone();
        for path in created.into_iter().chain(still_fresh.into_iter().map(|(folder, _)| folder)) {
            let Some(root) = self.roots.iter().find(|root| path.starts_with(&root.path) && root.path != *path) else {
                continue;
            };
            let found = if path.is_dir() {
                // The next walk over all folders reports the problems.
                walk(&root.path, &path, &mut Vec::new())
            } else if let (true, Some(folder)) = (is_event_file_name(&path), path.parent()) {
                vec![RunFile::event_file(&root.path, folder, path.clone())]
            } else if let (true, Some(folder)) = (is_run_log(&path), path.parent()) {
                let logs = trackers::logs_in(folder, std::slice::from_ref(&path), &[]);
                logs.into_iter().map(|log| RunFile::log(&root.path, log)).collect()
            } else {
                continue;
            };
            let prefix = root.prefix.clone();
            for found in found {
                self.add(found, prefix.as_deref(), now_ns);
            }
            if path.is_dir() && !self.fresh_folders.iter().any(|(folder, _)| *folder == path) {
                self.fresh_folders.push((path, now_ns + FRESH_FOLDER_NS));
            }
        }
    }

    fn add(&mut self, found: RunFile, prefix: Option<&str>, now_ns: i64) {
        let name = match (prefix, found.run.as_str()) {
            (None, run) => run.to_owned(),
            (Some(prefix), ".") => prefix.to_owned(),
            (Some(prefix), run) => format!("{prefix}/{run}"),
        };
        let idx = *self.by_name.entry(name).or_insert_with_key(|name| {
            self.runs.push(RunFollower::new(name.clone(), found.folder));
            self.runs.len() - 1
        });
        self.runs[idx].add(found.source, now_ns);
    }

    /// Gives each run its turns until the allowance is used up or nothing is new.
    fn read_files(&mut self, now_ns: i64, changed_files: &FxHashSet<PathBuf>, changes: &mut Changes) {
        let n_files: usize = self.runs.iter().map(|run| run.files.len()).sum();
        let n_turns = n_files.div_ceil(MAX_IDLE_FILES).max(1);
        let turn = PollTurn { now_ns, n_polls: self.n_polls, n_turns, changed_files };
        let cursor = self.cursor.min(self.runs.len());
        let (before, behind) = self.runs.split_at_mut(cursor);
        let in_turn = behind.iter_mut().zip(cursor..).chain(before.iter_mut().zip(0..));
        let mut waiting: Vec<(&mut RunFollower, usize)> =
            in_turn.filter(|(run, idx)| run.is_due(&turn, *idx)).collect();
        let poll_bytes = poll_bytes();
        while !waiting.is_empty() && changes.n_bytes < poll_bytes {
            let left = poll_bytes - changes.n_bytes;
            let allowance = (left / waiting.len() as u64).max(TURN_BYTES);
            let (n_bytes, unfinished) = read_runs(waiting, left, allowance, &turn);
            changes.n_bytes += n_bytes;
            waiting = unfinished;
        }
        changes.has_more = !waiting.is_empty();
        self.cursor = waiting.first().map_or(0, |(_, idx)| *idx);
    }

    fn commit(&mut self, problems_changed: bool, changes: &mut Changes) {
        if !problems_changed && !self.runs.iter().any(RunFollower::is_dirty) {
            return;
        }
        let mut shared = self.shared.write();
        shared.version += 1;
        if problems_changed {
            shared.problems.clone_from(&self.problems);
        }
        let version = shared.version;
        for follower in self.runs.iter_mut().filter(|run| run.is_dirty()) {
            let run = shared.by_name.get_or_default(&follower.name);
            run.version = version;
            follower.commit(run, changes);
            changes.runs.push(follower.name.clone());
        }
    }
}

/// Gives each run a turn, in parallel, until `left` bytes are read in all. Returns the number of bytes, and the runs
/// that may have more, in the order of their next turns.
fn read_runs<'a>(
    runs: Vec<(&'a mut RunFollower, usize)>,
    left: u64,
    allowance: u64,
    turn: &PollTurn<'_>,
) -> (u64, Vec<(&'a mut RunFollower, usize)>) {
    let n_read = AtomicU64::new(0);
    let read_run = |(place, (run, idx)): (usize, (&'a mut RunFollower, usize))| {
        if n_read.load(Ordering::Relaxed) >= left {
            return Some((false, place, run, idx));
        }
        let (n_bytes, has_more) = run.read_new(turn, idx, allowance);
        n_read.fetch_add(n_bytes, Ordering::Relaxed);
        has_more.then_some((true, place, run, idx))
    };
    let mut unfinished: Vec<_> = match runs.len() {
        // On this thread, which then takes part in decoding the run's blocks.
        1 => runs.into_iter().enumerate().filter_map(read_run).collect(),
        // `par_bridge` hands the runs out in order, so that those whose turn is next come first.
        _ => runs.into_iter().enumerate().par_bridge().filter_map(read_run).collect(),
    };
    unfinished.sort_unstable_by_key(|(had_turn, place, ..)| (*had_turn, *place));
    (n_read.into_inner(), unfinished.into_iter().map(|(_, _, run, idx)| (run, idx)).collect())
}

/// The most bytes that a poll reads.
fn poll_bytes() -> u64 {
    POLL_BYTES * rayon::current_num_threads().min(MAX_PROCESSORS) as u64
}

/// Returns the run of a root that is a file, which has the file's name, or the runs of another tool's log.
fn single_file(root: &Root) -> Vec<RunFile> {
    let path = &root.path;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let own_name = if root.prefix.is_some() { "." } else { &*name };
    let folder = path.parent().unwrap_or(path);
    let logs = if is_event_file_name(path) { Vec::new() } else { trackers::logs_of_file(path) };
    if logs.is_empty() {
        let source = RunSource::EventFile(path.clone());
        return vec![RunFile { run: own_name.to_owned(), folder: folder.to_owned(), source }];
    }
    let run = |log: Log| {
        let run = if log.name.is_empty() { own_name.to_owned() } else { log.name.clone() };
        RunFile { run, folder: log.folder.clone(), source: RunSource::Log(log) }
    };
    logs.into_iter().map(run).collect()
}

/// Returns the prefix of a root's run names: none for the only root, the last part of its path if no other root has the
/// same, else the full path.
fn prefix_of(path: &Path, all: &[PathBuf]) -> Option<String> {
    let is_same = |other: &&PathBuf| other.file_name() == path.file_name();
    match (all.len(), path.file_name()) {
        (1, _) => None,
        (_, Some(name)) if all.iter().filter(is_same).count() == 1 => Some(name.to_string_lossy().into_owned()),
        _ => Some(path.to_string_lossy().into_owned()),
    }
}

mod follow_run;
mod source_follower;
#[cfg(test)]
mod tests;
