//! What the operating system tells of changes below a logdir (inotify on Linux), so that a write is seen at once.
//!
//! It is a help, not the truth: events may be dropped, network disks send none, and the number of folders is limited
//! (`fs.inotify.max_user_watches`). So polls still look at every file in turn, and walk the folders now and then.

use std::{
    fmt, mem,
    path::{self, PathBuf},
    sync::Arc,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, ModifyKind},
};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

/// More paths than this between two polls are not told apart: a walk finds them.
const MAX_TOUCHED: usize = 1 << 16;

/// What changed since the last poll.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Files that were written to.
    pub files: FxHashSet<PathBuf>,
    /// Paths that appeared, or have gone.
    pub created: FxHashSet<PathBuf>,
    /// Events were lost: time for a walk.
    pub is_lost: bool,
}

/// The folders that the system watches.
#[derive(Debug)]
pub(crate) struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: FxHashSet<PathBuf>,
    /// A folder could not be watched.
    is_incomplete: bool,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    touched: Mutex<Touched>,
    /// Watched folders that were given in a relative form, by the form in which events name them.
    relative: Mutex<FxHashMap<PathBuf, PathBuf>>,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

impl Watch {
    pub fn new() -> Self {
        let shared = Arc::<Shared>::default();
        let of_thread = shared.clone();
        let watcher = notify::recommended_watcher(move |event| of_thread.take(event)).ok();
        Self { is_incomplete: watcher.is_none(), watcher, folders: FxHashSet::default(), shared }
    }

    pub fn on_activity(&mut self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.shared.wake.lock() = Some(wake);
    }

    /// Whether every folder is watched.
    pub fn is_complete(&self) -> bool {
        !self.is_incomplete && !self.folders.is_empty()
    }

    /// Forgets the folders that are not among these: one that is made anew must be watched anew.
    pub fn retain(&mut self, folders: &[PathBuf]) {
        let folders: FxHashSet<&PathBuf> = folders.iter().collect();
        self.folders.retain(|old| folders.contains(old));
        self.is_incomplete = self.watcher.is_none();
    }

    /// Watches these folders as well.
    pub fn add(&mut self, folders: Vec<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        for folder in folders {
            if self.folders.contains(&folder) {
                continue;
            }
            let absolute = path::absolute(&folder).unwrap_or_else(|_| folder.clone());
            if watcher.watch(&absolute, RecursiveMode::NonRecursive).is_err() {
                self.is_incomplete = true;
                continue;
            }
            if absolute != folder {
                self.shared.relative.lock().insert(absolute, folder.clone());
            }
            self.folders.insert(folder);
        }
    }

    /// What changed since the last call.
    pub fn take(&mut self) -> Touched {
        mem::take(&mut *self.shared.touched.lock())
    }
}

impl Shared {
    fn take(&self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) if matches!(event.kind, EventKind::Access(kind) if !matches!(kind, AccessKind::Close(_))) => {
                return;
            }
            event => event,
        };
        let mut touched = self.touched.lock();
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
        if let Some(wake) = &*self.wake.lock() {
            wake();
        }
    }

    /// The path in the form in which its folder was given.
    fn as_given(&self, path: PathBuf) -> PathBuf {
        let relative = self.relative.lock();
        let folder = path.parent().and_then(|folder| relative.get(folder));
        folder.zip(path.file_name()).map(|(folder, name)| folder.join(name)).unwrap_or(path)
    }
}

fn is_write(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any) | EventKind::Access(AccessKind::Close(_)))
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("touched", &self.touched).finish_non_exhaustive()
    }
}
