//! State shared by the loader threads and the window.

use super::{
    slots::{Slots, SourceId},
    url::OpenRemote,
};
use crate::data::{Status, Warning};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};
use trace_model::WarningKind;
use trace_store::Store;

/// Called by loader threads when something new is to be shown.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Pause between two polls of growing files: half of what a frame may lag behind a write.
pub(super) const POLL: Duration = Duration::from_millis(30);

/// State shared by the threads and the window.
pub(super) struct Shared {
    pub slots: Slots,
    pub wake: Wake,
    pub open_remote: OpenRemote,
    pub stop: AtomicBool,
}

impl Shared {
    /// Sleeps for a while; returns whether to go on with the source.
    pub fn pause(&self, source: SourceId, time: Duration) -> bool {
        if !self.is_stopping(source) {
            thread::park_timeout(time);
        }
        !self.is_stopping(source)
    }

    /// Reads a source in a thread of its own; without one the source fails.
    pub fn spawn(&self, name: &str, source: SourceId, read: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
        let started = thread::Builder::new().name(name.to_owned()).spawn(read);
        started.map_err(|error| self.slots.fail(source, &format!("cannot start a thread: {error}"))).ok()
    }

    /// Sets the status of a trace and its warnings; returns whether they changed.
    pub fn set_state(&self, source: SourceId, store: &Store, is_read: bool) -> bool {
        let is_recovered = store.warnings().iter().any(|w| w.kind == WarningKind::Recovered);
        let status = match (is_read, store.is_live(), is_recovered) {
            (false, ..) => Status::Loading,
            (true, true, _) => Status::Live,
            (true, false, true) => Status::Crashed,
            (true, false, false) => Status::Finished,
        };
        let warnings = store.warnings().iter().map(|w| Warning { count: w.count, text: text_of(w) });
        self.slots.set_status(source, status) | self.slots.set_warnings(source, warnings.collect())
    }

    /// Whether the window closes.
    pub fn is_closing(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the window closes, or the user stopped this source.
    pub fn is_stopping(&self, source: SourceId) -> bool {
        self.is_closing() || self.slots.is_stopped(source)
    }
}

/// A warning with its source, which some texts contain already.
fn text_of(warning: &trace_model::Warning) -> String {
    match warning.text.starts_with(&warning.source) {
        true => warning.text.clone(),
        false => format!("{}: {}", warning.source, warning.text),
    }
}
