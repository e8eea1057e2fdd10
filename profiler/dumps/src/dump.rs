//! A file of either kind.

use std::io::Read;

use crate::{
    error::Error,
    open,
    recording::{Recording, is_recording, recording_of},
    snapshot::{Snapshot, snapshot_of},
};

/// What a file is.
#[derive(Debug)]
pub enum Dump {
    /// A memory snapshot.
    Snapshot(Snapshot),
    /// The dump of a rank's flight recorder.
    Recording(Recording),
}

/// Reads a file of either kind, by its content: as [`crate::read_snapshot`] or, with this rank, [`crate::read_recording`].
///
/// # Errors
///
/// As those.
pub fn read_dump(reader: impl Read, rank: u32) -> Result<Dump, Error> {
    let document = open::read(reader)?;
    if is_recording(&document) {
        return recording_of(document, rank).map(Dump::Recording);
    }
    snapshot_of(document).map(Dump::Snapshot)
}
