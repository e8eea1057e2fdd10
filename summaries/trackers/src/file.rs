//! What all readers ask of a file: its times, whether it may still be written, its bytes.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A file that changed within this time may still be being written.
const BUSY: Duration = Duration::from_secs(10);

/// Unix seconds; 0 where the system does not know.
pub(crate) fn seconds(time: Option<SystemTime>) -> f64 {
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0.0, |since| since.as_secs_f64())
}

/// Whether the last change is long enough ago that what is incomplete will stay so.
pub(crate) fn is_settled(metadata: &Metadata) -> bool {
    is_older(metadata, BUSY)
}

/// Whether the last change is longer ago than `age`. No time, or one in the future, is no proof of it.
pub(crate) fn is_older(metadata: &Metadata, age: Duration) -> bool {
    metadata.modified().ok().and_then(|time| time.elapsed().ok()).is_some_and(|elapsed| elapsed > age)
}

/// The number that distinguishes a file from another one of its name.
#[cfg(unix)]
pub(crate) fn identity(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// On systems without inode numbers a replaced file is recognised by its size alone.
#[cfg(not(unix))]
pub(crate) fn identity(_: &Metadata) -> u64 {
    0
}

/// Reads a file of at most `max` bytes.
///
/// # Errors
/// It cannot be read, or is larger.
pub(crate) fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let len = fs::metadata(path)?.len();
    let mut bytes = Vec::new();
    if len <= max {
        File::open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    }
    if len > max || bytes.len() as u64 > max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}
