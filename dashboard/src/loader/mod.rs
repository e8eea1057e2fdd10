//! Threads that follow files and commit what they read.

use crate::data::{Data, SourceInfo, SourceKind, Status};
use parking_lot::Mutex;
use std::{path::PathBuf, sync::Arc};

/// Called by loader threads when something new is to be shown.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Everything that is open, shared between the window and its loader threads.
pub struct Loader {
    sources: Mutex<Vec<SourceInfo>>,
    wake: Wake,
}

impl Loader {
    /// Nothing open. `wake` asks for a new frame.
    pub fn new(wake: Wake) -> Self {
        Self { sources: Mutex::default(), wake }
    }

    /// Opens a file or folder; what is wrong with it shows up as a failed source.
    pub fn open(&self, path: PathBuf) {
        let name = path.to_string_lossy().into();
        self.sources.lock().push(SourceInfo {
            kind: SourceKind::Unknown,
            name,
            path: path.into(),
            status: Status::Loading,
            error: None,
            warnings: Arc::from([]),
        });
        (self.wake)();
    }

    /// Holds everything still for one frame.
    pub fn frame(&self) -> Data {
        Data { sources: self.sources.lock().clone(), ..Data::default() }
    }
}
