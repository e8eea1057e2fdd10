//! Places for the files of checkpoints that are no folders.

#[cfg(feature = "s3")]
mod objects;

use std::path::Path;

#[cfg(feature = "s3")]
pub use objects::ObjectStoreFiles;

use super::CheckpointError;

/// A flat place for files: an object store's bucket below a prefix.
pub trait FileStore: Send + Sync {
    /// The names of the files that are there.
    ///
    /// # Errors
    /// The store does not answer, or refuses.
    fn list(&self) -> Result<Vec<String>, CheckpointError>;

    /// Puts a copy of `file` there under `name`, in the place of what had the name: the entire file or, after an error, nothing.
    ///
    /// # Errors
    /// The file cannot be read, or the store refuses.
    fn put(&self, name: &str, file: &Path) -> Result<(), CheckpointError>;

    /// Makes `file` a copy of what is there under `name`.
    ///
    /// # Errors
    /// There is nothing of this name, or the file cannot be written.
    fn get(&self, name: &str, file: &Path) -> Result<(), CheckpointError>;

    /// Deletes what has this name; nothing is nothing to delete.
    ///
    /// # Errors
    /// The store refuses.
    fn delete(&self, name: &str) -> Result<(), CheckpointError>;
}
