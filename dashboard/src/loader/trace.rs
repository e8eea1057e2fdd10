//! Follows a trace folder into a store, and reads other tools' traces.

use super::{
    shared::{POLL, Shared},
    slots::SourceId,
};
use crate::data::SourceKind;
use parking_lot::RwLock;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use trace_formats::import;
use trace_model::PageLoader;
use trace_store::{Store, StoreOptions, TraceReader};

/// Follows `path` until the window closes. Batches are staged without the store's lock and applied in about a
/// millisecond each, so a frame waits for at most that.
pub(super) fn follow(shared: &Shared, source: SourceId, path: &Path) {
    shared.slots.set_kind(source, SourceKind::Trace, None);
    let mut reader = match TraceReader::open(path) {
        Ok(reader) => reader,
        Err(error) => return shared.slots.fail(source, &error.to_string()),
    };
    let store = Arc::new(RwLock::new(Store::new()));
    shared.slots.add_trace(source, store.clone());
    let mut is_read = false;
    let mut pager: Option<Arc<dyn PageLoader>> = None;
    loop {
        // Pages of a sealed trace that the last picture requested come first.
        if pager.as_ref().is_some_and(|pager| pager.load_requested()) {
            (shared.wake)();
        }
        let batch = match reader.poll_staged() {
            Ok(batch) => batch,
            Err(error) => return shared.slots.fail(source, &format!("cannot be read any more: {error}")),
        };
        let has_more = batch.has_more();
        is_read |= !has_more;
        let mut is_changed = store.write().apply(batch);
        is_changed |= shared.set_state(source, &store.read(), is_read);
        pager = store.read().pager().cloned();
        if is_changed {
            (shared.wake)();
        }
        let goes_on = if has_more { !shared.is_stopping(source) } else { shared.pause(source, POLL) };
        if !goes_on {
            return;
        }
    }
}

/// Reads another tool's trace, or those of a job's processes as one.
pub(super) fn import(shared: &Shared, source: SourceId, paths: &[PathBuf]) {
    shared.slots.set_kind(source, SourceKind::Trace, None);
    match import::open(paths) {
        Ok(import) => read(shared, source, import),
        Err(error) => shared.slots.fail(source, &error.to_string()),
    }
}

/// Reads an import; the window shows what has been read so far.
pub(super) fn read(shared: &Shared, source: SourceId, mut import: import::Import) {
    let store = Arc::new(RwLock::new(Store::with_options(StoreOptions::UNBOUNDED)));
    shared.slots.add_trace(source, store.clone());
    let (mut has_more, mut is_stopped) = (true, false);
    while has_more && !shared.is_closing() {
        if !is_stopped && shared.is_stopping(source) {
            is_stopped = true;
            import.stop();
        }
        let batch = match import.poll_staged() {
            Ok(batch) => batch,
            Err(error) => return shared.slots.fail(source, &error.to_string()),
        };
        has_more = batch.has_more();
        let mut is_changed = store.write().apply(batch);
        let progress = import.progress();
        is_changed |= shared.slots.set_progress(source, progress.bytes as f32 / progress.of.max(1) as f32);
        is_changed |= shared.set_state(source, &store.read(), !has_more);
        if is_changed {
            (shared.wake)();
        }
    }
}
