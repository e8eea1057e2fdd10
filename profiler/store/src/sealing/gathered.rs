//! Seals the traces of other hosts that were gathered into a trace folder, as parts of one sealed trace.
//!
//! `sources.txt` in the sealed folder lists the gathered folders that it includes. So folders that remain because the
//! process was killed are not read twice.

use crate::seal::{kill_point, sources_of, sync_folder};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use trace_model::clocks;
use trace_model::layout::{GATHERED_FILE, SOURCE_FILE};

/// Locks a gathered folder for sealing; `None` if the folder is not gathered.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another process gathers into it.
pub(super) fn lock(trace_dir: &Path) -> io::Result<Option<File>> {
    let file = match File::open(trace_dir.join(GATHERED_FILE)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    file.try_lock()?;
    Ok(Some(file))
}

/// Returns the names of the gathered folders `sources`, and of the folders that are sealed already.
pub(super) fn source_names(trace_dir: &Path, sources: &[PathBuf]) -> Vec<String> {
    let folder_name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    let mut names = sources_of(trace_dir);
    names.extend(sources.iter().filter_map(folder_name));
    // Folders that were removed need not be listed.
    names.retain(|name| trace_dir.join(name).is_dir());
    names
}

/// Removes the gathered folders, which are sealed. Returns the number of bytes removed.
pub(super) fn remove_sources(trace_dir: &Path) -> io::Result<u64> {
    let mut removed_bytes = 0;
    // This file is removed first, so that from now on only the sealed folder is read.
    fs::remove_file(trace_dir.join(GATHERED_FILE))?;
    for entry in fs::read_dir(trace_dir)? {
        let path = entry?.path();
        if path.join(SOURCE_FILE).is_file() {
            for file in fs::read_dir(&path)? {
                removed_bytes += file?.metadata()?.len();
            }
            fs::remove_dir_all(&path)?;
            kill_point("removed");
        } else if clocks::file::is_clock_file(&path) {
            removed_bytes += fs::metadata(&path)?.len();
            fs::remove_file(&path)?;
        }
    }
    sync_folder(trace_dir)?;
    Ok(removed_bytes)
}
