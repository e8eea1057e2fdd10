//! Follows a trace that another machine has: what is shown of it comes from there.

use super::{Shared, SourceId, trace};
use crate::data::{SourceKind, Warning};
use events::clock;
use parking_lot::RwLock;
use profiler::{
    Batch, Store, StoreOptions,
    far::{Ask, Viewer},
};
use std::{sync::Arc, time::Duration};

/// Between two looks for what the last picture lacked: less than a frame.
const WISHES: Duration = Duration::from_millis(10);
/// Between two questions what has changed, at least; of a trace that is finished; and how many times what the last took.
const LIVE_NS: i64 = 150_000_000;
const FINISHED_NS: i64 = 2_000_000_000;
const REST: i64 = 10;

/// Follows a distant trace until the window closes. A connection that breaks is made again.
pub(super) fn follow(shared: &Shared, source: SourceId, ask: Arc<dyn Ask>) {
    shared.slots.set_kind(source, SourceKind::Trace, Some(&ask.place()));
    let store = Arc::new(RwLock::new(Store::with_options(StoreOptions::UNBOUNDED)));
    shared.slots.add_trace(source, store.clone());
    let mut viewer = Viewer::new(ask);
    let (mut due_ns, mut is_read) = (i64::MIN, false);
    loop {
        let pages = store.read().pager().cloned();
        let mut is_changed = pages.is_some_and(|pages| pages.has_wishes() && pages.load_wished());
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
