//! A temporary folder that is removed with its process, also after the process was killed.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Attempts to create a folder that another process may sweep, or to remove one into which another process may write.
const ATTEMPTS: usize = 10;

/// A temporary folder that only this user can read, removed when this is dropped. The folder of a killed process is
/// removed when the next folder with its prefix is created.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The lock on the folder itself, which shows other processes that the folder is in use.
    _lock: File,
}

impl Scratch {
    /// Creates an empty folder with a unique name that begins with `prefix`.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(prefix: &str) -> io::Result<Scratch> {
        Scratch::create_in(&std::env::temp_dir(), prefix)
    }

    fn create_in(temp_dir: &Path, prefix: &str) -> io::Result<Scratch> {
        sweep(temp_dir, prefix);
        for _ in 0..ATTEMPTS {
            let path = temp_dir.join(format!("{prefix}{}-{}", std::process::id(), events::clock::wall_now_ns()));
            let created = Scratch::create(&path);
            let created =
                created.map_err(|error| io::Error::new(error.kind(), format!("making {}: {error}", path.display())))?;
            if let Some(scratch) = created {
                return Ok(scratch);
            }
        }
        Err(io::Error::other(format!("a folder in {} went as soon as it was made", temp_dir.display())))
    }

    /// Creates and locks a folder; `None` where another process removed the folder before it was locked.
    fn create(path: &Path) -> io::Result<Option<Scratch>> {
        // No other user may read the folder's files.
        DirBuilder::new().mode(0o700).create(path)?;
        let lock = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        lock.lock()?;
        Ok(path.exists().then(|| Scratch { path: path.to_owned(), _lock: lock }))
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes the folders of ended processes, which are not locked any more. Folders of other users cannot be opened, and
/// stay.
fn sweep(temp_dir: &Path, prefix: &str) {
    for entry in fs::read_dir(temp_dir).into_iter().flatten().flatten() {
        let has_prefix = entry.file_name().to_string_lossy().starts_with(prefix);
        let lock = has_prefix.then(|| File::open(entry.path()).ok()).flatten();
        // Locked until the folder is removed, so that a process that has just created the folder notices.
        if lock.as_ref().is_some_and(|lock| lock.try_lock().is_ok()) {
            remove(&entry.path());
        }
    }
}

/// Removes a folder; files that cannot be removed stay until the next sweep.
fn remove(folder: &Path) {
    for _ in 0..ATTEMPTS {
        match fs::remove_dir_all(folder) {
            // A process that is about to end wrote into it meanwhile.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_processes_that_are_gone_are_swept() {
        let all = tempfile::tempdir().unwrap();
        let at = |name: &str| all.path().join(name);
        for name in ["one-gone", "one-alive", "two-gone"] {
            fs::create_dir(at(name)).unwrap();
        }
        // What a process leaves that was killed while it removed the folder.
        fs::create_dir(at("one-gone").join("files")).unwrap();
        let alive = File::open(at("one-alive")).unwrap();
        alive.lock().unwrap();
        let scratch = Scratch::create_in(all.path(), "one-").unwrap();
        assert!(!at("one-gone").exists() && at("one-alive").exists(), "only what nobody holds goes");
        assert!(at("two-gone").exists(), "of another kind");
        let other = Scratch::create_in(all.path(), "one-").unwrap();
        assert!(scratch.path().exists() && other.path() != scratch.path());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists() && other.path().exists());
    }
}
