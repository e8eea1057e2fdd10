//! Notifications of the operating system about changes below a logdir (inotify on Linux), so that a write is noticed at
//! once.
//!
//! Notifications are not reliable: events may be dropped, network file systems send none, and the number of folders is
//! limited (`fs.inotify.max_user_watches`). Polls therefore still look at every file in turn, and walk the folders now
//! and then.
//!
//! A separate thread sets the watches up, since this takes a while for thousands of folders, and only for logdirs that
//! are followed.

use std::{
    fmt, mem,
    path::{self, Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, ModifyKind},
};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

/// Maximum number of changed paths that are collected between two polls. Of further ones, a walk finds the new files,
/// and polls in turn find the written ones.
const MAX_CHANGES: usize = 1 << 16;

/// The changes since the last poll.
#[derive(Debug, Default)]
pub(crate) struct FileChanges {
    /// Files that were written to.
    pub files: FxHashSet<PathBuf>,
    /// Paths that were created or deleted.
    pub created: FxHashSet<PathBuf>,
    /// Whether events were lost, or watching has just begun: time for a walk, which finds new files.
    pub is_incomplete: bool,
}

/// A folder to watch.
#[derive(Debug, Clone)]
pub(crate) struct WatchTarget {
    pub folder: PathBuf,
    /// Whether the folders below it are watched, too.
    pub is_recursive: bool,
}

/// The notifications of a logdir.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    state: Arc<WatchState>,
}

/// The state of one [`Watch::start`]. Each call has its own state, so that a late thread does not report for a later
/// call.
#[derive(Debug, Default)]
struct WatchState {
    /// Ends the watching when it is dropped; `None` before everything is watched.
    watcher: Mutex<Option<RecommendedWatcher>>,
    is_complete: AtomicBool,
}

#[derive(Default)]
struct Shared {
    file_changes: Mutex<FileChanges>,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

/// The receiver of one watcher's events.
struct Listener {
    shared: Arc<Shared>,
    /// Pairs of absolute path, which events have, and relative path, for the roots that are relative.
    relative: Vec<(PathBuf, PathBuf)>,
}

impl Watch {
    pub fn on_activity(&mut self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.shared.wake.lock() = Some(wake);
    }

    /// Whether notifications are requested.
    pub fn is_requested(&self) -> bool {
        self.shared.wake.lock().is_some()
    }

    /// Whether every folder is watched.
    pub fn is_complete(&self) -> bool {
        self.state.is_complete.load(Ordering::Acquire)
    }

    /// Begins to watch these folders instead of the previous ones; returns at once. Where the system refuses, polls
    /// alone find changes.
    pub fn start(&mut self, places: Vec<WatchTarget>) {
        self.state = Arc::default();
        let (shared, state) = (self.shared.clone(), self.state.clone());
        let watch = move || {
            let path_pairs = places.iter().map(|place| (absolute(&place.folder), place.folder.clone()));
            let relative = path_pairs.filter(|(absolute, given)| absolute != given).collect();
            let listener = Listener { shared: shared.clone(), relative };
            let Ok(mut watcher) = notify::recommended_watcher(move |event| listener.handle(event)) else { return };
            let mut watches = |place: &WatchTarget| {
                let mode = if place.is_recursive { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
                watcher.watch(&absolute(&place.folder), mode).is_ok()
            };
            // `filter` and `count` watch every folder, even after one that the system refuses.
            let n_watched = places.iter().filter(|place| watches(place)).count();
            *state.watcher.lock() = Some(watcher);
            state.is_complete.store(n_watched == places.len(), Ordering::Release);
            // Changes before a folder was watched were not reported: a walk finds them.
            shared.file_changes.lock().is_incomplete = true;
            shared.wake();
        };
        // Where no thread can be started, polls alone find changes.
        let _ = thread::Builder::new().name("watch logdir".to_owned()).spawn(watch);
    }

    /// Takes the changes since the last call.
    pub fn take(&mut self) -> FileChanges {
        mem::take(&mut *self.shared.file_changes.lock())
    }
}

impl Shared {
    fn wake(&self) {
        if let Some(wake) = &*self.wake.lock() {
            wake();
        }
    }
}

impl Listener {
    fn handle(&self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) if matches!(event.kind, EventKind::Access(kind) if !matches!(kind, AccessKind::Close(_))) => {
                return;
            }
            event => event,
        };
        let mut changes = self.shared.file_changes.lock();
        match event {
            Ok(event) if !event.need_rescan() && changes.files.len() + changes.created.len() < MAX_CHANGES => {
                let is_write = is_write(&event.kind);
                for path in event.paths {
                    let path = self.to_root_form(path);
                    match is_write {
                        true => drop(changes.files.insert(path)),
                        false => drop(changes.created.insert(path)),
                    }
                }
            }
            Ok(_) | Err(_) => changes.is_incomplete = true,
        }
        drop(changes);
        self.shared.wake();
    }

    /// Converts an absolute path to the form of its root, which may be relative.
    fn to_root_form(&self, path: PathBuf) -> PathBuf {
        let below = |(absolute, given): &(PathBuf, PathBuf)| Some(given.join(path.strip_prefix(absolute).ok()?));
        self.relative.iter().find_map(below).unwrap_or(path)
    }
}

/// Returns the absolute path by which events name a folder; the empty path is the current folder.
fn absolute(given: &Path) -> PathBuf {
    let path = if given.as_os_str().is_empty() { Path::new(".") } else { given };
    path::absolute(path).unwrap_or_else(|_| given.to_owned())
}

fn is_write(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any) | EventKind::Access(AccessKind::Close(_)))
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("file_changes", &self.file_changes).finish_non_exhaustive()
    }
}
