//! Finds the event files, and other tools' logs, below a folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use formats::is_event_file_name;
use trackers::Log;

use crate::run::Problem;

/// The deepest level of folders that is searched.
const MAX_DEPTH: usize = 64;

/// The link by which Weights & Biases names the newest of the folders next to it: its run would be there twice.
const WANDB_LINK: &str = "latest-run";

/// What a run is read from, and the run that it belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunFile {
    /// The folder's name below the root, `.` for the root itself; of a log that has several runs, with the run's name.
    pub run: String,
    /// The folder.
    pub folder: PathBuf,
    pub source: RunSource,
}

/// What is read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RunSource {
    EventFile(PathBuf),
    /// What another tool logged.
    Log(Log),
}

impl RunSource {
    pub fn path(&self) -> &Path {
        match self {
            Self::EventFile(path) => path,
            Self::Log(log) => &log.path,
        }
    }
}

impl RunFile {
    pub fn event_file(root: &Path, folder: &Path, file: PathBuf) -> Self {
        Self { run: run_name(root, folder), folder: folder.to_owned(), source: RunSource::EventFile(file) }
    }

    pub fn log(root: &Path, log: Log) -> Self {
        let run = match (run_name(root, &log.folder), log.name.as_str()) {
            (folder, "") => folder,
            (folder, name) if folder == "." => name.to_owned(),
            (folder, name) => format!("{folder}/{name}"),
        };
        Self { run, folder: log.folder.clone(), source: RunSource::Log(log) }
    }
}

/// Finds the event files and the logs in and below `folder`, which is `root` or below it. The files of a folder are in
/// name order, which is the order of creation, since names contain the time. Follows symbolic links, but not in circles.
/// Adds folders that cannot be read to `problems`.
pub(crate) fn walk(root: &Path, folder: &Path, problems: &mut Vec<Problem>) -> Vec<RunFile> {
    let mut walk = Walk { root, problems, found: Vec::new(), ancestors: Vec::new() };
    walk.search(folder);
    walk.found
}

/// A search for event files and logs.
struct Walk<'a> {
    root: &'a Path,
    problems: &'a mut Vec<Problem>,
    found: Vec<RunFile>,
    /// The folders from the root to the current one.
    ancestors: Vec<Identity>,
}

impl Walk<'_> {
    fn search(&mut self, folder: &Path) {
        if let Err(e) = self.try_search(folder) {
            self.problems.push(Problem { path: folder.to_owned(), message: e.to_string() });
        }
    }

    fn try_search(&mut self, folder: &Path) -> io::Result<()> {
        let identity = identity(folder)?;
        if self.ancestors.len() >= MAX_DEPTH || self.ancestors.contains(&identity) {
            return Ok(());
        }
        let mut folders = Vec::new();
        let mut event_files = Vec::new();
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            // `is_dir` follows a link, to a folder or a file.
            let kind = entry.file_type()?;
            let is_folder = kind.is_dir() || kind.is_symlink() && path.is_dir();
            if kind.is_symlink() && entry.file_name() == WANDB_LINK {
                continue;
            }
            if is_folder {
                folders.push(path);
            } else if is_event_file_name(&path) {
                event_files.push(path);
            } else {
                files.push(path);
            }
        }
        event_files.sort_unstable();
        files.sort_unstable();
        folders.sort_unstable();
        self.found.extend(event_files.into_iter().map(|file| RunFile::event_file(self.root, folder, file)));
        let logs = trackers::logs_in(folder, &files, &folders);
        self.found.extend(logs.into_iter().map(|log| RunFile::log(self.root, log)));
        self.ancestors.push(identity);
        for folder in folders {
            self.search(&folder);
        }
        self.ancestors.pop();
        Ok(())
    }
}

/// The identity of a folder: the same for all paths to it.
#[cfg(unix)]
pub(crate) type Identity = (u64, u64);
/// The identity of a folder: the same for all paths to it.
#[cfg(not(unix))]
pub(crate) type Identity = PathBuf;

/// The folder's device and inode numbers.
#[cfg(unix)]
pub(crate) fn identity(folder: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(folder)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// The folder's canonical path.
#[cfg(not(unix))]
pub(crate) fn identity(folder: &Path) -> io::Result<Identity> {
    fs::canonicalize(folder)
}

/// Returns the folder's name below the root, with `/` on every system.
fn run_name(root: &Path, folder: &Path) -> String {
    // A log may belong to a folder above the root: that of a checkpoint to its run.
    let below = folder.strip_prefix(root).unwrap_or(Path::new(""));
    let parts: Vec<_> = below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_folders_with_event_files() {
        let dir = tempfile::tempdir().unwrap();
        for (folder, file) in
            [("", "x.tfevents.2"), ("", "x.tfevents.1"), ("a/b", "events.out.tfevents.9"), ("a/trace", "control")]
        {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
            fs::write(dir.path().join(folder).join(file), b"").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/circle")).unwrap();
        let mut problems = Vec::new();
        let found = walk(dir.path(), dir.path(), &mut problems);
        let file_name = |found: &RunFile| match &found.source {
            RunSource::EventFile(file) => file.file_name().unwrap().to_str().unwrap().to_owned(),
            RunSource::Log(log) => panic!("no log was written: {log:?}"),
        };
        let names: Vec<_> = found.iter().map(|found| (found.run.clone(), file_name(found))).collect();
        let expected = [(".", "x.tfevents.1"), (".", "x.tfevents.2"), ("a/b", "events.out.tfevents.9")];
        assert_eq!(names, expected.map(|(run, file)| (run.to_owned(), file.to_owned())));
        assert_eq!(problems, []);
    }

    #[test]
    fn a_missing_folder_is_a_problem() {
        let mut problems = Vec::new();
        assert_eq!(walk(Path::new("/nowhere"), Path::new("/nowhere/at/all"), &mut problems), []);
        assert_eq!(problems.len(), 1);
    }
}
