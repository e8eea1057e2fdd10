//! A remote logdir, copied to a temporary folder as it grows: every byte of an event file is needed to verify its records, so what is
//! copied is what is read.

use crate::connection::{Connection, ViewError};
use crate::remote::MAX_READ;
use crate::scratch::Scratch;
use crate::wire::FilePlace;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The copy; removed with this, or by the next one where the process is killed.
pub struct LogdirCopy {
    connection: Arc<Connection>,
    scratch: Scratch,
    folder: PathBuf,
    /// The copied part of each file: its identity, and how many bytes.
    known: BTreeMap<String, (u64, u64)>,
}

/// The result of one poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files that are there.
    pub n_files: usize,
    /// Bytes that were new.
    pub n_bytes: u64,
    /// Paths of the traces that are there, below what is served.
    pub traces: Vec<String>,
    /// More files or folders are there than are looked at.
    pub is_cut: bool,
}

/// Why a copy is not up to date.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The other side does not answer.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The copy cannot be written.
    #[error("the copy of {0}: {1}")]
    Write(String, #[source] io::Error),
    /// The other side names a file as none is named.
    #[error("the other side has a file that is called {0:?}")]
    Name(String),
}

impl LogdirCopy {
    /// An empty copy.
    ///
    /// # Errors
    /// There is no place for temporary files.
    pub fn new(connection: Arc<Connection>) -> io::Result<LogdirCopy> {
        let scratch = Scratch::new("stepscope-far-")?;
        // What is copied may be called as it likes.
        let folder = scratch.path().join("files");
        fs::create_dir(&folder)?;
        Ok(LogdirCopy { connection, scratch, folder, known: BTreeMap::new() })
    }

    /// The folder with the files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder to remove where the process ends without dropping this: the files, and what is around them.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Copies what is new. What was copied before an error stays.
    ///
    /// # Errors
    /// The other side does not answer, or the copy cannot be written.
    pub fn fetch(&mut self) -> Result<Copied, CopyError> {
        let listing = self.connection.list()?;
        let mut copied = Copied {
            n_files: listing.files.len(),
            n_bytes: 0,
            traces: listing.traces.into_iter().map(|trace| trace.path).collect(),
            is_cut: listing.is_cut,
        };
        for file in &listing.files {
            copied.n_bytes += self.fetch_file(file)?;
        }
        Ok(copied)
    }

    fn fetch_file(&mut self, file: &FilePlace) -> Result<u64, CopyError> {
        let path = self.path_of(&file.path)?;
        let failed = |error| CopyError::Write(file.path.clone(), error);
        let known = self.known.get(&file.path).copied();
        let is_grown = known.is_some_and(|(identity, n)| identity == file.identity && n <= file.length);
        let mut at = known.filter(|_| is_grown).map_or(0, |(_, n)| n);
        let begin = at;
        if at == file.length && is_grown {
            return Ok(0);
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut copy = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        if !is_grown {
            copy.set_len(0).map_err(failed)?;
        }
        while at < file.length {
            let wanted = (file.length - at).min(u64::from(MAX_READ)) as u32;
            let bytes = self.connection.read(&file.path, at, wanted)?;
            if bytes.is_empty() {
                break; // It became shorter: the next listing says so.
            }
            copy.write_all(&bytes[..bytes.len().min(wanted as usize)]).map_err(failed)?;
            at += bytes.len().min(wanted as usize) as u64;
            self.known.insert(file.path.clone(), (file.identity, at));
        }
        Ok(at - begin)
    }

    /// The path of a file's copy: below the folder, whatever the other side says.
    fn path_of(&self, name: &str) -> Result<PathBuf, CopyError> {
        let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if is_plain && !name.is_empty() { Ok(self.folder.join(name)) } else { Err(CopyError::Name(name.to_owned())) }
    }
}
