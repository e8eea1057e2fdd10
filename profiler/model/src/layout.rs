//! Names of files and sizes that readers and writers of trace folders share.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Slices of a segment, the unit of eviction in a lane; each segment has a pyramid.
pub const SEGMENT: usize = 1 << 14;
/// Slices of a block, the unit in which a remote trace sends slices: as many as a node of a pyramid's fifth level
/// covers.
pub const BLOCK: u64 = 1 << 12;

/// The sealed part of a trace folder.
pub const SEALED_FOLDER: &str = "sealed";
/// The table by which a sealed folder is recognised.
const SLICES_FILE: &str = "slices.parquet";
/// The file by which a gathered folder is recognised.
pub const GATHERED_FILE: &str = "gathered.json";
/// The file in a gathered trace folder that names the folder's source.
pub const SOURCE_FILE: &str = "source.json";

/// Why a folder cannot be read as a trace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder cannot be read.
    #[error("cannot read {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The folder has no file of a trace (`gathered.json`, `slices.parquet`, `control`, `meta-*.bin`, `chunks-*.bin`,
    /// `ring-*.ring`).
    #[error("{0} holds no trace")]
    NoTrace(PathBuf),
}

/// The contents of `gathered.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatheredInfo {
    /// Version of the folder's format: 1.
    pub version: u32,
    /// Id of the collector's clock.
    pub clock: String,
}

/// The contents of `source.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// The host's name.
    pub host: String,
    /// Id of the host's clock: machine, boot, time namespace.
    pub clock: String,
    /// Id of the trace folder.
    pub folder: String,
}

/// Whether a folder is a gathered one.
#[must_use]
pub fn is_gathered(folder: &Path) -> bool {
    folder.join(GATHERED_FILE).is_file()
}

/// Reads a JSON file of a gathered folder.
///
/// # Errors
/// Fails if the file cannot be read, or has other contents.
pub fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::from)
}

/// The folder with the sealed trace at a path: the path itself, or the folder `sealed` in it.
#[must_use]
pub fn find_sealed(path: &Path) -> Option<PathBuf> {
    let has_slices = |folder: &Path| folder.join(SLICES_FILE).is_file();
    let inner = path.join(SEALED_FOLDER);
    if has_slices(&inner) {
        return Some(inner);
    }
    has_slices(path).then(|| path.to_owned())
}

/// Whether a file name is that of a chunk file.
#[must_use]
pub fn is_chunk_file(name: &str) -> bool {
    name.starts_with("chunks-") && name.ends_with(".bin")
}

/// Whether a file name is that of a ring.
#[must_use]
pub fn is_ring_file(name: &str) -> bool {
    events::ring::parse_file_name(name).is_some()
}

/// Whether a file name is that of a meta file, which has the names of a process.
#[must_use]
pub fn is_meta_file(name: &str) -> bool {
    parse_meta_file(name).is_some()
}

/// The process id in the name of a meta file.
#[must_use]
pub fn parse_meta_file(name: &str) -> Option<u32> {
    name.strip_prefix("meta-")?.strip_suffix(".bin")?.parse().ok()
}
