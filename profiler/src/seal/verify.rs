//! Reads back what was written, before anything that it replaces is removed.

use super::SealError;
use super::open::Opened;
use super::slices::{Written, digest};
use std::path::Path;

/// Reads every file of a folder and compares each row group with what it was written from.
pub(super) fn verify(folder: &Path, written: &Written) -> Result<(), SealError> {
    let failed = |problem: String| SealError::Verify(folder.to_owned(), problem);
    let opened = Opened::read(folder).map_err(|e| failed(e.to_string()))?;
    if let Some(problem) = opened.problems.first() {
        return Err(failed(problem.clone()));
    }
    let file = opened.slices.ok_or_else(|| failed("slices.parquet is missing".to_owned()))?;
    if file.parts.len() != written.digests.len() {
        return Err(failed(format!("{} row groups instead of {}", file.parts.len(), written.digests.len())));
    }
    for (group, expected) in written.digests.iter().enumerate() {
        let decoded = file.read(group).and_then(|batch| super::group::Decoded::of(&batch, &opened.names, 0));
        let decoded = decoded.map_err(|e| failed(format!("row group {group}: {e}")))?;
        let keys = decoded.track.iter().zip(&decoded.lane).zip(&decoded.rows).enumerate();
        let found = digest(keys.map(|(i, ((track, lane), row))| (*track, *lane, row, decoded.args(i))));
        if found != *expected {
            return Err(failed(format!("row group {group} has other rows")));
        }
    }
    Ok(())
}
