//! A remote logdir, copied to a temporary folder as it grows: verifying an event file's records needs every byte, so
//! files are copied entirely.

use crate::connection::{Connection, ViewError};
use crate::remote::MAX_READ;
use crate::scratch::Scratch;
use crate::wire::FilePlace;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The copy of a remote logdir, removed when this is dropped, or after a kill when the next copy is created.
pub struct LogdirCopy {
    connection: Arc<Connection>,
    scratch: Scratch,
    folder: PathBuf,
    /// The identity and the number of copied bytes of each file.
    copied: BTreeMap<String, (u64, u64)>,
}

/// The result of one [`LogdirCopy::fetch`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyResult {
    /// Files in the listing.
    pub n_files: usize,
    /// Bytes that were copied.
    pub n_bytes: u64,
    /// Paths of the traces in the listing, relative to the served folder.
    pub traces: Vec<String>,
    /// Whether the listing lacks files, because the served folder has too many.
    pub is_cut: bool,
}

/// Why a copy is not up to date.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The server does not answer.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The copy cannot be written.
    #[error("the copy of {0}: {1}")]
    Write(String, #[source] io::Error),
    /// The server sent an invalid file name.
    #[error("the server has a file that is called {0:?}")]
    Name(String),
}

impl LogdirCopy {
    /// Creates an empty copy.
    ///
    /// # Errors
    /// The temporary folder cannot be created.
    pub fn new(connection: Arc<Connection>) -> io::Result<LogdirCopy> {
        let scratch = Scratch::new("stepscope-far-")?;
        // The files have a subfolder, since a copied file may have any name, also that of the lock.
        let folder = scratch.path().join("files");
        fs::create_dir(&folder)?;
        Ok(LogdirCopy { connection, scratch, folder, copied: BTreeMap::new() })
    }

    /// The folder with the files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The temporary folder around the files, to be removed by a process that ends without dropping this.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Copies new bytes. Bytes that were copied before an error stay.
    ///
    /// # Errors
    /// The server does not answer, or the copy cannot be written.
    pub fn fetch(&mut self) -> Result<CopyResult, CopyError> {
        let listing = self.connection.list()?;
        let mut result = CopyResult {
            n_files: listing.files.len(),
            n_bytes: 0,
            traces: listing.traces.into_iter().map(|trace| trace.path).collect(),
            is_cut: listing.is_cut,
        };
        for file in &listing.files {
            result.n_bytes += self.fetch_file(file)?;
        }
        Ok(result)
    }

    fn fetch_file(&mut self, file: &FilePlace) -> Result<u64, CopyError> {
        let path = self.local_path(&file.path)?;
        let write_error = |error| CopyError::Write(file.path.clone(), error);
        let known = self.copied.get(&file.path).copied();
        let has_only_grown = known.is_some_and(|(identity, n)| identity == file.identity && n <= file.length);
        let mut n_copied = known.filter(|_| has_only_grown).map_or(0, |(_, n)| n);
        let n_before = n_copied;
        if n_copied == file.length && has_only_grown {
            return Ok(0);
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(write_error)?;
        }
        let mut copy = OpenOptions::new().create(true).append(true).open(&path).map_err(write_error)?;
        if !has_only_grown {
            copy.set_len(0).map_err(write_error)?;
        }
        while n_copied < file.length {
            let length = (file.length - n_copied).min(u64::from(MAX_READ)) as u32;
            let bytes = self.connection.read(&file.path, n_copied, length)?;
            if bytes.is_empty() {
                break; // The file became shorter: the next listing has its new length.
            }
            copy.write_all(&bytes[..bytes.len().min(length as usize)]).map_err(write_error)?;
            n_copied += bytes.len().min(length as usize) as u64;
            self.copied.insert(file.path.clone(), (file.identity, n_copied));
        }
        Ok(n_copied - n_before)
    }

    /// Returns the path of a file's copy, always below the folder; names that lead out of the folder are an error.
    fn local_path(&self, name: &str) -> Result<PathBuf, CopyError> {
        let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if is_plain && !name.is_empty() { Ok(self.folder.join(name)) } else { Err(CopyError::Name(name.to_owned())) }
    }
}
