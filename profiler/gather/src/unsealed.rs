//! The original files of a sealed trace, restored for sending: a sender sends folders as collectors write them.

use crate::error::SendError;
use crate::identity::FolderId;
use std::io;
use std::path::{Path, PathBuf};
use trace_store::Store;

/// The name of the folder with the restored files, in the trace folder.
const SCRATCH: &str = "unsealed";

/// The files that a sealed trace was made from, restored, with the trace folder's own id. They are removed when this is
/// dropped.
///
/// Restored twice they have the same bytes, so that a collector that has some of them continues where it was.
#[derive(Debug)]
pub struct Unsealed {
    scratch: PathBuf,
    /// The id, with the lock that keeps others from sending the trace.
    id: FolderId,
}

impl Unsealed {
    /// Restores the files from the store of a trace folder, into a folder in the trace folder.
    ///
    /// # Errors
    /// Another process sends the folder, or it cannot be written.
    pub fn create(trace_dir: &Path, store: &Store) -> Result<Unsealed, SendError> {
        let failed = |e: io::Error| SendError::Folder(trace_dir.to_owned(), e);
        let id = FolderId::claim(trace_dir)?;
        let made = Unsealed { scratch: trace_dir.join(SCRATCH), id };
        // A killed process may have left a folder behind.
        match std::fs::remove_dir_all(made.dir()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        std::fs::create_dir(made.dir()).map_err(failed)?;
        trace_store::seal::unseal(store, made.dir()).and_then(|()| made.id.copy_to(made.dir())).map_err(failed)?;
        Ok(made)
    }

    /// The folder to be sent.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.scratch
    }
}

impl Drop for Unsealed {
    fn drop(&mut self) {
        // A folder that cannot be removed is removed by the next `create`.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
