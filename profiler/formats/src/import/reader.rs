//! A reader of a format, and why a file cannot be read by any.

use super::stage::Stage;
use std::io;
use std::path::PathBuf;

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// Nothing could be read of the file (of several: of any file); and what is wrong with it.
    #[error("nothing could be read of {0}: {1}")]
    Unreadable(PathBuf, String),
    /// The file is not a trace in a known format; and what it is instead.
    #[error("{0} is no trace that can be imported ({1})")]
    Foreign(PathBuf, String),
}

/// Reads a file of one format into a stage.
pub(super) trait Reader {
    /// Reads the next events, some ten thousand. Returns false at the end of the file.
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool>;

    /// Bytes read so far, unpacked.
    fn position(&self) -> u64;

    /// Stages what needs all events; called after the last read.
    fn finish(&mut self, stage: &mut Stage) {
        let _ = stage;
    }
}
