//! The gathered folders that a sealed trace holds: `sources.txt`, a name in each line.

use std::fs;
use std::path::Path;
use trace_model::layout::SEALED_FOLDER;

/// In a sealed folder: the gathered folders that are in it.
pub(super) const SOURCES: &str = "sources.txt";
/// Bytes of it, at most: a collector keeps 4,096 folders.
const MAX_BYTES: u64 = 4096 * 256;

/// The gathered folders that the sealed form of a trace holds.
pub(crate) fn sources_of(trace_dir: &Path) -> Vec<String> {
    let path = trace_dir.join(SEALED_FOLDER).join(SOURCES);
    let is_sound = fs::metadata(&path).is_ok_and(|file| file.len() <= MAX_BYTES);
    let text = is_sound.then(|| fs::read_to_string(&path).ok()).flatten().unwrap_or_default();
    text.lines().filter(|line| !line.is_empty() && !line.contains('/')).map(str::to_owned).collect()
}
