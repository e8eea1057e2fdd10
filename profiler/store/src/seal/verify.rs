//! Verifies a written folder by reading it back, before the folder that it replaces is removed.

use super::SealError;
use super::open::FolderContents;
use super::row_group::RowGroup;
use super::slice_writer::WrittenFiles;
use std::path::Path;

/// Reads every file of a folder, and compares the checksum of each row group with that of the slices that were written.
pub(super) fn verify(folder: &Path, written: &WrittenFiles) -> Result<(), SealError> {
    let failed = |problem: String| SealError::Verify(folder.to_owned(), problem);
    let opened = FolderContents::read(folder).map_err(|e| failed(e.to_string()))?;
    if let Some(problem) = opened.problems.first() {
        return Err(failed(problem.clone()));
    }
    let file = opened.slices.ok_or_else(|| failed("slices.parquet is missing".to_owned()))?;
    if file.parts.len() != written.checksums.len() {
        return Err(failed(format!("{} row groups instead of {}", file.parts.len(), written.checksums.len())));
    }
    for (group, expected) in written.checksums.iter().enumerate() {
        let read = file.read(group).and_then(|batch| RowGroup::from_batch(&batch, &opened.names));
        let actual = read.map_err(|e| failed(format!("row group {group}: {e}")))?.checksum();
        if actual != *expected {
            return Err(failed(format!("row group {group} has other rows")));
        }
    }
    Ok(())
}
