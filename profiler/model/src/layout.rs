//! Names and sizes on which everything that reads or writes a trace folder agrees.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Slices of a segment: the unit in which a lane evicts old ones, and over which each pyramid stands.
pub const SEGMENT: usize = 1 << 14;
/// Slices of a block of rows that another process sends; those of a node of the pyramids' fifth level.
pub const BLOCK: u64 = 1 << 12;

/// The sealed part of a trace folder.
pub const SEALED_FOLDER: &str = "sealed";
/// The table of a sealed folder that makes it one.
const SLICES_FILE: &str = "slices.parquet";
/// The file that makes a folder a gathered one.
pub const GATHERED_FILE: &str = "gathered.json";
/// The file of a gathered folder that says whose trace folder it is.
pub const SOURCE_FILE: &str = "source.json";

/// Why a folder cannot be read as a trace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// It holds no file of a trace (`gathered.json`, `slices.parquet`, `control`, `meta-*.bin`, `chunks-*.bin`, `ring-*.ring`).
    #[error("{0} holds no trace")]
    NoTrace(PathBuf),
}

/// The contents of `gathered.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatheredInfo {
    /// Of the folder's form: 1.
    pub version: u32,
    /// The collector's own clock.
    pub clock: String,
}

/// The contents of `source.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// The host's name.
    pub host: String,
    /// Its clock: machine, boot, time namespace.
    pub clock: String,
    /// The trace folder's own id.
    pub folder: String,
}

/// Whether it is a gathered folder.
#[must_use]
pub fn is_gathered(folder: &Path) -> bool {
    folder.join(GATHERED_FILE).is_file()
}

/// Reads a JSON file of a gathered folder.
///
/// # Errors
/// That it cannot be read, or says something else.
pub fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::from)
}

/// The sealed form of the trace at a path: the folder itself, or the one in it.
#[must_use]
pub fn find_sealed(path: &Path) -> Option<PathBuf> {
    let has_slices = |folder: &Path| folder.join(SLICES_FILE).is_file();
    let inner = path.join(SEALED_FOLDER);
    if has_slices(&inner) {
        return Some(inner);
    }
    has_slices(path).then(|| path.to_owned())
}

/// Whether a file name is a chunk file's.
#[must_use]
pub fn is_chunk_file(name: &str) -> bool {
    name.starts_with("chunks-") && name.ends_with(".bin")
}

/// Whether a file name is a ring's.
#[must_use]
pub fn is_ring_file(name: &str) -> bool {
    events::ring::parse_file_name(name).is_some()
}

/// Whether a file name is that of a process's names.
#[must_use]
pub fn is_meta_file(name: &str) -> bool {
    parse_meta_file(name).is_some()
}

/// The process of a meta file's name.
#[must_use]
pub fn parse_meta_file(name: &str) -> Option<u32> {
    name.strip_prefix("meta-")?.strip_suffix(".bin")?.parse().ok()
}
