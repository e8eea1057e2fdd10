//! Hints for commands that emitted no events, or recorded into other folders.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use events::control::ELSEWHERE_PREFIX;

/// Hints about a trace folder before it is sealed: programs that record into other folders, and a trace without events
/// of programs. The latter is left out where scheduling, samples or counters are recorded (`is_watched`).
pub fn hints(folder: &Path, is_watched: bool) -> Vec<String> {
    let mut hints: Vec<String> = other_folders(folder)
        .iter()
        .map(|(pid, other)| {
            format!(
                "process {pid} recorded into {} and not here: it calls `start` with a folder of its own; `start_from_env` records into \
                 the folder of `stepscope record`",
                other.display()
            )
        })
        .collect();
    if hints.is_empty() && !is_watched && !has_emitted(folder) {
        hints.push(
            "the command emitted no events: programs do that with the events crate (`start_from_env`), or with tracing and its layer; \
             `record --sched --sample 1000` records any program"
                .to_owned(),
        );
    }
    hints
}

/// Returns process ids with the other folders into which they record, and removes the notes about them.
fn other_folders(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(ELSEWHERE_PREFIX)) else { continue };
        if let Ok(other) = fs::read(entry.path()) {
            found.push((pid.to_owned(), PathBuf::from(OsStr::from_bytes(&other))));
            // A note that cannot be removed is only reported again.
            let _ = fs::remove_file(entry.path());
        }
    }
    found.sort();
    found
}

/// Whether a process began to record into the folder.
fn has_emitted(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| name.starts_with("meta-"))
}
