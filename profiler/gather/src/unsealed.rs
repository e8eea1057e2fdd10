//! A sealed trace, as what it was sealed from: a sender sends folders that collectors wrote.

use crate::error::SendError;
use crate::identity::FolderId;
use std::io;
use std::path::{Path, PathBuf};
use trace_store::Store;

/// The folder in the trace's, for as long as it is sent.
const SCRATCH: &str = "unsealed";

/// The files that a sealed trace was made from, made again, with the trace folder's own id. Removed when it is dropped.
///
/// Sent twice they are the same bytes, so that a collector that has some of them goes on where it was.
#[derive(Debug)]
pub struct Unsealed {
    scratch: PathBuf,
    /// Nobody else sends the trace meanwhile.
    id: FolderId,
}

impl Unsealed {
    /// Makes them of a trace folder and the store that was read of it, in a folder in it.
    ///
    /// # Errors
    /// Another process sends the folder, or it cannot be written.
    pub fn create(trace_dir: &Path, store: &Store) -> Result<Unsealed, SendError> {
        let failed = |e: io::Error| SendError::Folder(trace_dir.to_owned(), e);
        let id = FolderId::claim(trace_dir)?;
        let made = Unsealed { scratch: trace_dir.join(SCRATCH), id };
        // One that was killed may have left it.
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
        // What stays is removed by the next one.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
