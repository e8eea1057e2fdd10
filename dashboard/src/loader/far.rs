//! Opens URLs: what another machine has. Of its traces comes what is shown.

use super::{Shared, SourceId, logdir, trace};
use crate::data::{SourceKind, Warning};
use events::clock;
use parking_lot::RwLock;
use profiler::{
    Batch, Store, StoreOptions,
    far::{Transport, Viewer},
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

/// Between two looks for what the last picture lacked: less than a frame.
const WISHES: Duration = Duration::from_millis(10);
/// Between two looks whether something appeared, or the window closes.
const APPEARS: Duration = Duration::from_millis(100);
/// Between two questions what has changed, at least; of a trace that is finished; and how many times what the last took.
const LIVE_NS: i64 = 150_000_000;
const FINISHED_NS: i64 = 2_000_000_000;
const REST: i64 = 10;

/// What there is at a URL.
pub enum Far {
    /// A trace, of which what is shown is asked for.
    Trace(Arc<dyn Transport>),
    /// A copy of a logdir, which somebody keeps up to date.
    Logdir(PathBuf),
}

/// What there is at a URL, each with its own, as it appears there. It ends where no more is looked for.
pub type Found = mpsc::Receiver<(String, Far)>;

/// Looks at a URL; waits for the other machine. An error is a sentence for the user.
pub type OpenFar = Arc<dyn Fn(&str) -> Result<Found, String> + Send + Sync>;

/// Whether a path is a URL.
pub fn is_url(path: &Path) -> bool {
    path.to_str()
        .and_then(|path| path.split_once("://"))
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// Follows all that there is and comes to be at a URL until the window closes, each in a thread of its own. The first
/// one has the URL's own place.
pub(super) fn open(shared: &Arc<Shared>, source: SourceId, url: &str) {
    let found = match (shared.open_far)(url) {
        Ok(found) => found,
        Err(error) => return shared.slots.fail(source, &error),
    };
    let (mut place, mut threads) = (Some(source), Vec::new());
    while !shared.is_stopping(source) {
        let (url, far) = match found.recv_timeout(APPEARS) {
            Ok(appeared) => appeared,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let Some(id) = place.take().or_else(|| shared.slots.add_source(Path::new(&url), Some(source))) else {
            continue;
        };
        let theirs = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("load".to_owned());
        match thread.spawn(move || follow_any(&theirs, id, far)) {
            Ok(thread) => threads.push(thread),
            Err(error) => shared.slots.fail(id, &format!("cannot start a thread: {error}")),
        }
    }
    if place.is_some() && !shared.is_stopping(source) {
        shared.slots.fail(source, "nothing there can be shown");
    }
    for thread in threads {
        // One that panicked has shown what it could.
        let _ = thread.join();
    }
}

fn follow_any(shared: &Arc<Shared>, source: SourceId, far: Far) {
    match far {
        Far::Trace(ask) => follow(shared, source, ask),
        Far::Logdir(folder) => logdir::follow(shared, source, &folder),
    }
    (shared.wake)();
}

/// Follows a distant trace until the window closes. A connection that breaks is made again.
fn follow(shared: &Shared, source: SourceId, ask: Arc<dyn Transport>) {
    shared.slots.set_kind(source, SourceKind::Trace, Some(&ask.location()));
    let store = Arc::new(RwLock::new(Store::with_options(StoreOptions::UNBOUNDED)));
    shared.slots.add_trace(source, store.clone());
    let mut viewer = Viewer::new(ask);
    let (mut due_ns, mut is_read) = (i64::MIN, false);
    loop {
        let pages = store.read().pager().cloned();
        let mut is_changed = pages.is_some_and(|pages| pages.has_requests() && pages.load_requested());
        let now_ns = clock::mono_now();
        if now_ns >= due_ns {
            match viewer.poll() {
                Ok(batch) => {
                    is_changed |= store.write().apply(batch);
                    is_read = true;
                    let (status, warnings) = trace::state(&store.read(), is_read);
                    is_changed |= shared.slots.set_status(source, status);
                    is_changed |= shared.slots.set_warnings(source, warnings);
                }
                // What is known can still be looked at.
                Err(error) if is_read => {
                    let warning = Warning { count: 1, text: format!("{error}; trying again") };
                    is_changed |= shared.slots.set_warnings(source, vec![warning]);
                }
                Err(error) => return shared.slots.fail(source, &error.to_string()),
            }
            let least = if store.read().is_live() { LIVE_NS } else { FINISHED_NS };
            let took = clock::mono_now() - now_ns;
            due_ns = now_ns.saturating_add(least.max(took.saturating_mul(REST)));
        } else if is_changed {
            // What was brought, or why it was not.
            store.write().apply(Batch::new());
            let (status, warnings) = trace::state(&store.read(), is_read);
            shared.slots.set_status(source, status);
            shared.slots.set_warnings(source, warnings);
        }
        if is_changed {
            (shared.wake)();
        }
        if !shared.pause(source, WISHES) {
            return;
        }
    }
}
