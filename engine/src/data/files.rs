//! What the readers of data files share: their error, opening.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Why a file is no data set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be opened or read to its end.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or the decompressor says.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: Box<str>,
    },
}

impl FileError {
    pub(super) fn read(path: &Path, source: std::io::Error) -> FileError {
        FileError::Read { path: path.to_owned(), source }
    }

    pub(super) fn format(path: &Path, problem: impl Into<Box<str>>) -> FileError {
        FileError::Format { path: path.to_owned(), problem: problem.into() }
    }
}

pub(super) fn open(path: &Path) -> Result<File, FileError> {
    File::open(path).map_err(|e| FileError::read(path, e))
}
