//! The list `sources.txt`: the names of the gathered folders that were sealed into a trace, one per line.

use std::fs;
use std::path::Path;
use trace_model::layout::SEALED_FOLDER;

/// File name of the list, in the sealed folder.
pub(super) const SOURCES: &str = "sources.txt";
/// Maximum size of a list that is read, bytes: a collector has up to 4,096 folders, whose names have up to 255 bytes.
const MAX_BYTES: u64 = 4096 * 256;

/// Returns the gathered folders that were sealed into the trace in `trace_dir`; none without a list of valid length.
pub(crate) fn sources_of(trace_dir: &Path) -> Vec<String> {
    let path = trace_dir.join(SEALED_FOLDER).join(SOURCES);
    let is_small = fs::metadata(&path).is_ok_and(|file| file.len() <= MAX_BYTES);
    let text = is_small.then(|| fs::read_to_string(&path).ok()).flatten().unwrap_or_default();
    text.lines().filter(|line| !line.is_empty() && !line.contains('/')).map(str::to_owned).collect()
}
