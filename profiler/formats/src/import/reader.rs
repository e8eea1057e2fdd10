//! A reader of a format, and why a file cannot be read by any.

use super::stage::Stage;
use std::io;
use std::path::PathBuf;

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("cannot read {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// Nothing at all could be read of it (of any of them, where there are several); what is wrong with it.
    #[error("nothing could be read of {0}: {1}")]
    Unreadable(PathBuf, String),
    /// It is no trace of a known format; what it is instead.
    #[error("{0} is no trace that can be imported ({1})")]
    Foreign(PathBuf, String),
}

/// Reads a file of one format into a stage.
pub(super) trait Reader {
    /// Reads on, some ten thousand events. False when all is read.
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool>;

    /// Bytes read so far, unpacked.
    fn position(&self) -> u64;

    /// After the last read: what can be said only when all is known.
    fn finish(&mut self, stage: &mut Stage) {
        let _ = stage;
    }
}
