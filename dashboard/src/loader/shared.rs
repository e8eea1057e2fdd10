//! State shared by the loader threads and the window.

use super::{
    slots::{Slots, SourceId},
    url::OpenRemote,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

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
            std::thread::park_timeout(time);
        }
        !self.is_stopping(source)
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
