//! Why a trace was not sealed.

use std::io;
use std::path::PathBuf;
use trace_model::layout::OpenError;

/// Why a trace was not sealed. What was there before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A file or folder cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The columns cannot be coded.
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The columns do not fit together.
    #[error("cannot make columns: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// What was read back is not what was written.
    #[error("{0}: what was read back is not what was written: {1}")]
    Verify(PathBuf, String),
    /// The trace cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Somebody collects into the folder, or a traced process lives.
    #[error("{0} is still being recorded: {1}")]
    Busy(PathBuf, String),
}
