//! A temporary folder that is removed with its process, also after the process was killed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Attempts to create a folder before another process sweeps it.
const ATTEMPTS: usize = 10;

/// A folder that only this user can read, among the temporary files. It is removed when this is dropped; the folder of
/// a killed process is removed when the next folder with its prefix is created.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The lock by which other processes see that the folder is in use.
    _lock: File,
}

impl Scratch {
    /// Creates a folder with a unique name that begins with `prefix`. It holds a file `lock`, and nothing else.
    ///
    /// # Errors
    /// No folder can be created among the temporary files.
    pub fn new(prefix: &str) -> io::Result<Scratch> {
        Scratch::create_in(&std::env::temp_dir(), prefix)
    }

    fn create_in(all: &Path, prefix: &str) -> io::Result<Scratch> {
        sweep(all, prefix);
        for _ in 0..ATTEMPTS {
            let path = all.join(format!("{prefix}{}-{}", std::process::id(), events::clock::wall_now_ns()));
            let made = Scratch::create(&path);
            let made =
                made.map_err(|error| io::Error::new(error.kind(), format!("making {}: {error}", path.display())))?;
            if let Some(scratch) = made {
                return Ok(scratch);
            }
        }
        Err(io::Error::other(format!("a folder in {} went as soon as it was made", all.display())))
    }

    /// Creates and locks a folder; `None` where another process removed it before it was locked.
    fn create(path: &Path) -> io::Result<Option<Scratch>> {
        // Other users cannot reach the folder's files.
        DirBuilder::new().mode(0o700).create(path)?;
        let file = path.join("lock");
        let lock = File::create(&file)?;
        lock.lock()?;
        Ok(file.exists().then(|| Scratch { path: path.to_owned(), _lock: lock }))
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed stays until the next sweep.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of processes that have ended, which nobody locks. Folders of other users cannot be opened and
/// stay.
fn sweep(all: &Path, prefix: &str) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let has_prefix = entry.file_name().to_string_lossy().starts_with(prefix);
        let lock = has_prefix.then(|| File::open(entry.path().join("lock")).ok()).flatten();
        // The lock is held until the folder is removed, so that a process that has just created it notices.
        if lock.as_ref().is_some_and(|lock| lock.try_lock().is_ok()) {
            // Another process may have removed it already.
            let _ = fs::remove_dir_all(entry.path());
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
        for name in ["one-gone", "one-alive", "one-other", "two-gone"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::create_dir(at("one-gone").join("files")).unwrap();
        for name in ["one-gone", "two-gone"] {
            File::create(at(name).join("lock")).unwrap();
        }
        let alive = File::create(at("one-alive").join("lock")).unwrap();
        alive.lock().unwrap();
        let scratch = Scratch::create_in(all.path(), "one-").unwrap();
        assert!(!at("one-gone").exists() && at("one-alive").exists(), "only what nobody holds goes");
        assert!(at("one-other").exists(), "what has no lock is another's, or only begins to be one");
        assert!(at("two-gone").exists(), "of another kind");
        let other = Scratch::create_in(all.path(), "one-").unwrap();
        assert!(scratch.path().join("lock").exists() && other.path() != scratch.path());
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists() && other.path().exists());
    }
}
