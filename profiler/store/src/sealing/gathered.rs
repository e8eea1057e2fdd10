//! Seals the traces of other hosts that were gathered into a trace folder; they become part of the one sealed trace.
//!
//! The sealed folder lists the gathered folders that it includes in `sources.txt`. If the process is killed before all
//! of them are removed, the others are not read twice.

use crate::seal::{kill_point, sources_of, sync_folder};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use trace_model::clocks;
use trace_model::layout::{GATHERED_FILE, SOURCE_FILE};

/// Locks a gathered folder for sealing; `None` if it is not a gathered one.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another process gathers into it.
pub(super) fn claim(trace_dir: &Path) -> io::Result<Option<File>> {
    let file = match File::open(trace_dir.join(GATHERED_FILE)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    file.try_lock()?;
    Ok(Some(file))
}

/// The names of the gathered folders `sources`, and of those that are sealed already.
pub(super) fn names(trace_dir: &Path, sources: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    let mut names = sources_of(trace_dir);
    names.extend(sources.iter().filter_map(name));
    // Folders that were removed need not be listed.
    names.retain(|name| trace_dir.join(name).is_dir());
    names
}

/// Removes the gathered folders once they are sealed. Returns the bytes removed.
pub(super) fn remove(trace_dir: &Path) -> io::Result<u64> {
    let mut removed = 0;
    // First, so that from now on only the sealed folder is read.
    fs::remove_file(trace_dir.join(GATHERED_FILE))?;
    for entry in fs::read_dir(trace_dir)? {
        let path = entry?.path();
        if path.join(SOURCE_FILE).is_file() {
            for file in fs::read_dir(&path)? {
                removed += file?.metadata()?.len();
            }
            fs::remove_dir_all(&path)?;
            kill_point("removed");
        } else if clocks::file::is_clock_file(&path) {
            removed += fs::metadata(&path)?.len();
            fs::remove_file(&path)?;
        }
    }
    sync_folder(trace_dir)?;
    Ok(removed)
}
