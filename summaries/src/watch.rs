//! Notifications of the operating system about changes below a logdir (inotify on Linux), so that a write is seen at once.
//!
//! It is a help, not the truth: events may be dropped, network disks send none, and the number of folders is limited
//! (`fs.inotify.max_user_watches`). So polls still look at every file in turn, and walk the folders now and then.
//!
//! Thousands of folders take a while to watch, so that is done by a thread of its own, and only for those who follow.

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

/// More paths than this between two polls are not distinguished: a walk finds them.
const MAX_TOUCHED: usize = 1 << 16;

/// The changes since the last poll.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Files that were written to.
    pub files: FxHashSet<PathBuf>,
    /// Paths that appeared, or have gone.
    pub created: FxHashSet<PathBuf>,
    /// Events were lost, or watching has just begun: time for a walk.
    pub is_lost: bool,
}

/// A folder that is watched.
#[derive(Debug, Clone)]
pub(crate) struct WatchTarget {
    pub folder: PathBuf,
    /// With all that is below it.
    pub is_recursive: bool,
}

/// The notifications that are requested.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    started: Arc<Started>,
}

/// What one thread began to watch: of its own, so that one that comes late says nothing of what was begun after it.
#[derive(Debug, Default)]
struct Started {
    /// Ends the watching when it is dropped; not there before everything is watched.
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
    /// Watched folders that were given in a relative form, with the form in which events name them.
    relative: Vec<(PathBuf, PathBuf)>,
}

impl Watch {
    pub fn on_activity(&mut self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.shared.wake.lock() = Some(wake);
    }

    /// Whether somebody wants notifications.
    pub fn is_wanted(&self) -> bool {
        self.shared.wake.lock().is_some()
    }

    /// Whether every folder is watched.
    pub fn is_complete(&self) -> bool {
        self.started.is_complete.load(Ordering::Acquire)
    }

    /// Begins to watch these places, instead of those before; returns at once. Where the system refuses, polls go on
    /// without its help.
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
            // Every one of them, even after one that is refused.
            let n_watched = places.iter().filter(|place| watches(place)).count();
            *started.watcher.lock() = Some(watcher);
            started.is_complete.store(n_watched == places.len(), Ordering::Release);
            // Nobody reported what came before a folder was watched.
            shared.touched.lock().is_lost = true;
            shared.wake();
        };
        // Without a thread to spare, polls do it alone.
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
                    let path = self.as_given(path);
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

    /// The path in the form in which its folder was given.
    fn as_given(&self, path: PathBuf) -> PathBuf {
        let below = |(absolute, given): &(PathBuf, PathBuf)| Some(given.join(path.strip_prefix(absolute).ok()?));
        self.relative.iter().find_map(below).unwrap_or(path)
    }
}

/// As events name a folder; the empty path is the current one.
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
