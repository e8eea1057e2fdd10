//! The error of sealing.

use std::io;
use std::path::PathBuf;
use trace_model::layout::OpenError;

/// Why a trace was not sealed. A sealed folder that existed before is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A file or folder cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The columns cannot be encoded.
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The columns differ in length or type from their table's.
    #[error("cannot make columns: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// The files that were read back differ from what was written.
    #[error("{0}: what was read back is not what was written: {1}")]
    Verify(PathBuf, String),
    /// The trace cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A collector writes into the folder, or a traced process is running.
    #[error("{0} is still being recorded: {1}")]
    Busy(PathBuf, String),
}
