//! Replaces a sealed folder in one step, so that at every moment either the old or the new folder exists.

use super::checksums;
use super::sidecar::SIDECAR;
use super::sources::SOURCES;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the path at which a folder is built: next to `folder`, on the same disk.
pub(super) fn scratch_next_to(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    folder.with_file_name(name)
}

/// Writes a file and waits until it is on disk.
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits until the folder's directory entries are on disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Moves `new` to `folder`. Removes an existing folder that is empty or sealed; fails if another folder is there.
pub(super) fn replace(new: &Path, folder: &Path) -> io::Result<()> {
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if folder.exists() {
        if !is_replaceable(folder)? {
            let text = "there is something else than a sealed trace; it was left alone";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        exchange(new, folder)?;
        sync_folder(parent)?;
        return fs::remove_dir_all(new);
    }
    fs::rename(new, folder)?;
    sync_folder(parent)
}

/// Whether all files of a folder are those of a sealed trace.
fn is_replaceable(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.ends_with(".parquet") && name != SIDECAR && name != checksums::FILE_NAME && name != SOURCES {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Exchanges two folders in one step.
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    let c_path = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput);
    let (a, b) = (c_path(a)?, c_path(b)?);
    // SAFETY: both pointers are to strings that end with a zero and live through the call.
    let rc = unsafe { libc::renameat2(libc::AT_FDCWD, a.as_ptr(), libc::AT_FDCWD, b.as_ptr(), libc::RENAME_EXCHANGE) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the process if a test wants it at this point, by `STEPSCOPE_TEST_KILL_AT`.
pub(crate) fn kill_point(name: &str) {
    #[cfg(test)]
    if std::env::var("STEPSCOPE_TEST_KILL_AT").is_ok_and(|at| at == name) {
        std::process::abort();
    }
    let _ = name;
}
