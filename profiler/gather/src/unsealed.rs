//! The original files of a sealed trace, restored for sending: a sender sends folders as collectors write them.

use crate::error::SendError;
use crate::identity::FolderId;
use std::io;
use std::path::{Path, PathBuf};
use trace_store::Store;

/// The name of the folder with the restored files, in the trace folder.
const SCRATCH: &str = "unsealed";

/// The restored files from which a sealed trace was made, with the trace folder's id. They are removed when this is
/// dropped.
///
/// Every restoration gives the same bytes, so that a collector that has some of them continues where it was.
#[derive(Debug)]
pub struct Unsealed {
    scratch: PathBuf,
    /// The id, with the lock that keeps other processes from sending the trace.
    id: FolderId,
}

impl Unsealed {
    /// Restores the files from the store of a trace folder, into a folder in the trace folder.
    ///
    /// # Errors
    /// Another process sends the folder, or it cannot be written.
    pub fn create(trace_dir: &Path, store: &Store) -> Result<Unsealed, SendError> {
        let folder_error = |e: io::Error| SendError::Folder(trace_dir.to_owned(), e);
        let id = FolderId::claim(trace_dir)?;
        let unsealed = Unsealed { scratch: trace_dir.join(SCRATCH), id };
        // A killed process may have left a folder behind.
        match std::fs::remove_dir_all(unsealed.dir()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(folder_error(e)),
            _ => {}
        }
        std::fs::create_dir(unsealed.dir()).map_err(folder_error)?;
        trace_store::seal::unseal(store, unsealed.dir())
            .and_then(|()| unsealed.id.copy_to(unsealed.dir()))
            .map_err(folder_error)?;
        Ok(unsealed)
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
