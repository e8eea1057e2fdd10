//! Notifications of the operating system about changes below a logdir (inotify on Linux), so that a write is noticed at
//! once.
//!
//! Notifications are not reliable: events may be dropped, network file systems send none, and the number of folders is
//! limited (`fs.inotify.max_user_watches`). Polls therefore still look at every file in turn, and walk the folders now
//! and then.
//!
//! A separate thread begins to watch, since that takes a while for thousands of folders; and only for logdirs that are
//! followed.

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

/// The most paths that are collected between two polls; a walk finds further ones.
const MAX_TOUCHED: usize = 1 << 16;

/// The changes since the last poll.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Files that were written to.
    pub files: FxHashSet<PathBuf>,
    /// Paths that were created or deleted.
    pub created: FxHashSet<PathBuf>,
    /// Whether events were lost, or watching has just begun: time for a walk.
    pub is_lost: bool,
}

/// A folder that is watched.
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
    started: Arc<Started>,
}

/// The watching that one thread began. Each thread has its own, so that a late one does not report for a watching that
/// began after it.
#[derive(Debug, Default)]
struct Started {
    /// Ends the watching when it is dropped; `None` before everything is watched.
    watcher: Mutex<Option<RecommendedWatcher>>,
    is_complete: AtomicBool,
}

#[derive(Default)]
struct Shared {
    touched: Mutex<Touched>,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

/// The state of one watcher.
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
        self.started.is_complete.load(Ordering::Acquire)
    }

    /// Begins to watch these folders instead of the previous ones; returns at once. Where the system refuses, polls
    /// alone find changes.
    pub fn start(&mut self, places: Vec<WatchTarget>) {
        self.started = Arc::default();
        let (shared, started) = (self.shared.clone(), self.started.clone());
        let watch = move || {
            let forms = places.iter().map(|place| (absolute(&place.folder), place.folder.clone()));
            let relative = forms.filter(|(absolute, given)| absolute != given).collect();
            let listener = Listener { shared: shared.clone(), relative };
            let Ok(mut watcher) = notify::recommended_watcher(move |event| listener.take(event)) else { return };
            let mut watches = |place: &WatchTarget| {
                let mode = if place.is_recursive { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
                watcher.watch(&absolute(&place.folder), mode).is_ok()
            };
            // `filter` and `count` watch every folder, even after one that the system refuses.
            let n_watched = places.iter().filter(|place| watches(place)).count();
            *started.watcher.lock() = Some(watcher);
            started.is_complete.store(n_watched == places.len(), Ordering::Release);
            // Changes before a folder was watched were not reported: a walk finds them.
            shared.touched.lock().is_lost = true;
            shared.wake();
        };
        // Where no thread can be started, polls alone find changes.
        let _ = thread::Builder::new().name("watch logdir".to_owned()).spawn(watch);
    }

    /// The changes since the last call.
    pub fn take(&mut self) -> Touched {
        mem::take(&mut *self.shared.touched.lock())
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
    fn take(&self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) if matches!(event.kind, EventKind::Access(kind) if !matches!(kind, AccessKind::Close(_))) => {
                return;
            }
            event => event,
        };
        let mut touched = self.shared.touched.lock();
        match event {
            Ok(event) if !event.need_rescan() && touched.files.len() + touched.created.len() < MAX_TOUCHED => {
                let is_write = is_write(&event.kind);
                for path in event.paths {
                    let path = self.in_root_form(path);
                    match is_write {
                        true if formats::is_event_file_name(&path) => drop(touched.files.insert(path)),
                        true => {}
                        false => drop(touched.created.insert(path)),
                    }
                }
            }
            Ok(_) | Err(_) => touched.is_lost = true,
        }
        drop(touched);
        self.shared.wake();
    }

    /// The path in the relative or absolute form of its root.
    fn in_root_form(&self, path: PathBuf) -> PathBuf {
        let below = |(absolute, given): &(PathBuf, PathBuf)| Some(given.join(path.strip_prefix(absolute).ok()?));
        self.relative.iter().find_map(below).unwrap_or(path)
    }
}

/// The absolute path by which events name a folder; the empty path is the current folder.
fn absolute(given: &Path) -> PathBuf {
    let path = if given.as_os_str().is_empty() { Path::new(".") } else { given };
    path::absolute(path).unwrap_or_else(|_| given.to_owned())
}

fn is_write(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any) | EventKind::Access(AccessKind::Close(_)))
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("touched", &self.touched).finish_non_exhaustive()
    }
}
