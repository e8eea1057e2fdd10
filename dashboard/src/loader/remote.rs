//! Opens URLs: traces and logdirs of other machines. Traces are fetched as far as they are shown.

use super::{logdir, shared::Shared, slots::SourceId, url::RemoteSource};
use crate::data::{SourceKind, Warning};
use events::clock;
use parking_lot::RwLock;
use std::{
    path::Path,
    sync::{Arc, mpsc::RecvTimeoutError},
    time::Duration,
};
use trace_model::Batch;
use trace_store::remote::{Transport, Viewer};
use trace_store::{Store, StoreOptions};

/// Pause between two checks for requested pages: less than a frame.
const PAGE_REQUESTS: Duration = Duration::from_millis(10);
/// Pause between two checks for a new source or a closing window.
const APPEARS: Duration = Duration::from_millis(100);
/// Least pause between two polls of a trace that grows, of one that is finished, and as a multiple of the last poll's
/// time.
const LIVE_NS: i64 = 150_000_000;
const FINISHED_NS: i64 = 2_000_000_000;
const REST: i64 = 10;

/// Follows everything that is or appears at a URL until the window closes, each source in a thread of its own. The
/// first one takes the row of the URL.
pub(super) fn open(shared: &Arc<Shared>, source: SourceId, url: &str) {
    let sources = match (shared.open_remote)(url) {
        Ok(sources) => sources,
        Err(error) => return shared.slots.fail(source, &error),
    };
    let (mut own_row, mut threads) = (Some(source), Vec::new());
    while !shared.is_stopping(source) {
        let (url, remote) = match sources.recv_timeout(APPEARS) {
            Ok(appeared) => appeared,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let Some(id) = own_row.take().or_else(|| shared.slots.add_source(Path::new(&url), Some(source))) else {
            continue;
        };
        let theirs = Arc::clone(shared);
        threads.extend(shared.spawn("load", id, move || follow_any(&theirs, id, remote)));
    }
    if own_row.is_some() && !shared.is_stopping(source) {
        shared.slots.fail(source, "nothing there can be shown");
    }
    for thread in threads {
        // One that panicked has shown what it could.
        let _ = thread.join();
    }
}

fn follow_any(shared: &Arc<Shared>, source: SourceId, remote: RemoteSource) {
    match remote {
        RemoteSource::Trace(ask) => follow(shared, source, ask),
        RemoteSource::Logdir(folder) => logdir::follow(shared, source, &folder),
    }
    (shared.wake)();
}

/// Follows a remote trace until the window closes. A broken connection is made again.
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
                    is_changed |= shared.set_state(source, &store.read(), is_read);
                }
                // Contents that were read before the error stay visible.
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
            // Pages that arrived, or warnings why they did not.
            store.write().apply(Batch::new());
            shared.set_state(source, &store.read(), is_read);
        }
        if is_changed {
            (shared.wake)();
        }
        if !shared.pause(source, PAGE_REQUESTS) {
            return;
        }
    }
}
