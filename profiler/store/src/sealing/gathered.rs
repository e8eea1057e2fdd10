//! Sealing what was gathered into a trace folder: the traces of other hosts, which become part of the one sealed trace.
//!
//! The sealed form says which folders it holds what they have of (`sources.txt`, a name in each line): where a kill leaves some of them
//! next to it nothing comes twice.

use crate::seal::{kill_point, sources_of, sync_folder};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use trace_model::clocks;
use trace_model::layout::{GATHERED_FILE, SOURCE_FILE};

/// The right to seal what was gathered, where anything was.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] where somebody gathers.
pub(super) fn claim(trace_dir: &Path) -> io::Result<Option<File>> {
    let file = match File::open(trace_dir.join(GATHERED_FILE)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    file.try_lock()?;
    Ok(Some(file))
}

/// The names of gathered folders, and of those that the sealed form has already.
pub(super) fn names(trace_dir: &Path, sources: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    let mut names = sources_of(trace_dir);
    names.extend(sources.iter().filter_map(name));
    // Those that are gone need no mention.
    names.retain(|name| trace_dir.join(name).is_dir());
    names
}

/// Removes what was gathered, once the sealed form has it. Gives the bytes.
pub(super) fn remove(trace_dir: &Path) -> io::Result<u64> {
    let mut removed = 0;
    // First: from now on the sealed form is all there is.
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
