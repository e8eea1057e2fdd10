//! Reads a log from where the last call ended.

use std::{fmt::Debug, io, ops::Range};

use crate::entry::Entry;

/// Follows one log.
pub trait Reader: Debug + Send + Sync {
    /// Adds to `batch` what was logged since the last call, until about `allowance` bytes of the log are read. A part
    /// that is still being written is left for a later call. A log that was rewritten (its file shortened or replaced)
    /// hands out only what is new in it.
    ///
    /// # Errors
    /// When the log cannot be read at present; a later call tries again.
    fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()>;
}

/// What one call of [`Reader::read`] found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The new values, in the order in which they were logged.
    pub entries: Vec<Entry>,
    /// What could not be read, and was skipped.
    pub problems: Vec<Problem>,
    /// The number of bytes that were read (of a database: an estimate).
    pub n_bytes: u64,
    /// Whether there is more to read now.
    pub has_more: bool,
}

/// A part of a log that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What it is, as the end of a sentence: `a line that is no JSON`.
    pub what: &'static str,
    /// The range in bytes from the file's beginning; empty where the log is no single file.
    pub bytes: Range<u64>,
}

/// Hands out what was read before an error; the next call meets the error again.
pub(crate) fn keep_entries(result: io::Result<()>, batch: &mut Batch) -> io::Result<()> {
    if result.is_err() && !batch.entries.is_empty() {
        batch.has_more = false;
        return Ok(());
    }
    result
}
