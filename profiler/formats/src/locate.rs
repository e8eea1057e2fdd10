//! Finds the traces at a path, for every command and for the window.
//!
//! | at the path | the trace |
//! |---|---|
//! | a trace folder of our own | that folder |
//! | a run's folder: `trace/` in it is one | `trace/`, whatever else lies next to it |
//! | another tool's file | that file |
//! | other tools' files in a folder | what [`import::traces`] makes of them: sessions, rounds, the ranks of a job |
//! | folders below | each of their traces |
//!
//! Folders are searched in order of their names, except hidden ones, symbolic links, and trace folders of our own.

use crate::import;
use formats::{FileKind, sniff};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Entries that are examined, and depth of folders, at most: the search is for folders of runs, not for file systems.
const MAX_ENTRIES: usize = 100_000;
const MAX_DEPTH: usize = 16;

/// The location of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLocation {
    /// What names it: its folder, or its first file where the folder has others too.
    pub path: PathBuf,
    /// Of another tool's trace, its files, for [`import::open`]; none of a trace folder of our own, which `path` is.
    pub files: Vec<PathBuf>,
}

impl TraceLocation {
    /// Whether it is a trace folder of our own.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.files.is_empty()
    }

    fn own(path: PathBuf) -> TraceLocation {
        TraceLocation { path, files: Vec::new() }
    }
}

/// The traces at a path, and why the list may be incomplete.
#[derive(Debug, Default)]
pub struct Lookup {
    /// The traces, ordered by path.
    pub traces: Vec<TraceLocation>,
    /// Folders that could not be read.
    pub unreadable: Vec<(PathBuf, io::Error)>,
    /// Whether there are more entries than are examined.
    pub is_cut: bool,
}

/// Why a path does not name a single trace.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// The path does not exist, or cannot be read.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// There is no trace; for a file, what it is instead.
    #[error("{0}: {1}")]
    None(PathBuf, String),
    /// There are several traces.
    #[error("{} holds several traces: name one of them{}", .0.display(), list_text(.1))]
    Several(PathBuf, Vec<PathBuf>),
}

/// Paths that an error lists, at most.
const MAX_LISTED: usize = 20;

fn list_text(paths: &[PathBuf]) -> String {
    let mut lines: String = paths.iter().take(MAX_LISTED).map(|path| format!("\n  {}", path.display())).collect();
    if let Some(more @ 1..) = paths.len().checked_sub(MAX_LISTED) {
        lines.push_str(&format!("\n  and {more} more"));
    }
    lines
}

/// The one trace that a path names: itself, the one of a run's folder, else the only one below.
///
/// # Errors
/// [`LocateError`]: the path cannot be read, or has no trace, or several.
pub fn trace_at(path: &Path) -> Result<TraceLocation, LocateError> {
    let mut lookup = traces_below(path).map_err(|error| LocateError::Io(path.to_owned(), error))?;
    match lookup.traces.len() {
        0 => Err(LocateError::None(path.to_owned(), no_trace(path))),
        1 => Ok(lookup.traces.remove(0)),
        _ => Err(LocateError::Several(path.to_owned(), lookup.traces.into_iter().map(|trace| trace.path).collect())),
    }
}

fn no_trace(path: &Path) -> String {
    match sniff(path) {
        _ if path.is_dir() => "no trace in this folder or below".to_owned(),
        Ok(FileKind::Unknown(what)) => what.to_string(),
        Ok(_) => "not a trace".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// All traces at a path.
///
/// # Errors
/// Fails if the path itself cannot be read.
pub fn traces_below(path: &Path) -> io::Result<Lookup> {
    let mut lookup = Lookup::default();
    if !fs::metadata(path)?.is_dir() {
        if matches!(sniff(path)?, FileKind::Trace(_)) {
            lookup.traces.push(TraceLocation { path: path.to_owned(), files: vec![path.to_owned()] });
        }
        return Ok(lookup);
    }
    fs::read_dir(path)?;
    let mut todo = VecDeque::from([(path.to_owned(), 0)]);
    let mut n_left = MAX_ENTRIES;
    while let Some((folder, depth)) = todo.pop_front() {
        if let Some(own) = own_trace(&folder) {
            lookup.traces.push(TraceLocation::own(own));
            continue;
        }
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries.flatten(),
            Err(error) => {
                lookup.unreadable.push((folder, error));
                continue;
            }
        };
        for entry in entries {
            let Some(left) = n_left.checked_sub(1) else {
                lookup.is_cut = true;
                break;
            };
            n_left = left;
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // The type of a symbolic link is not that of a folder, so links are not followed.
            if depth < MAX_DEPTH && !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                todo.push_back((entry.path(), depth + 1));
            }
        }
        let imported = import::traces_in(&folder).into_iter();
        lookup.traces.extend(imported.map(|import::Files { path, files }| TraceLocation { path, files }));
    }
    lookup.traces.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(lookup)
}

/// The trace folder of our own that a folder is, or that it has as a run's folder.
fn own_trace(folder: &Path) -> Option<PathBuf> {
    let inner = folder.join("trace");
    let is_own = |path: &PathBuf| formats::is_trace_folder(path);
    Some(folder.to_owned()).filter(is_own).or_else(|| Some(inner).filter(is_own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1}]}"#;

    /// A folder with these files; those of `slices.parquet` are enough for a trace of ours.
    fn folder(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, TRACE).unwrap();
        }
        dir
    }

    fn texts_below(dir: &Path) -> Vec<String> {
        let path = |trace: &TraceLocation| {
            let path = trace.path.strip_prefix(dir).unwrap().display().to_string();
            if trace.is_own() { format!("{path} (own)") } else { format!("{path} ({} files)", trace.files.len()) }
        };
        traces_below(dir).unwrap().traces.iter().map(path).collect()
    }

    #[test]
    fn every_trace_below_is_found_once() {
        let dir = folder(&[
            "keras/train/plugins/profile/1/h.trace.json",
            "keras/train/events.out.tfevents.1",
            "ranks/rank0.json",
            "ranks/rank1.json",
            "run/run.json",
            "run/trace/sealed/slices.parquet",
            "run/other.json",
            ".hidden/rank0.json",
        ]);
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path().join("ranks"), dir.path().join("again")).unwrap();
        let all = ["keras/train/plugins/profile/1 (1 files)", "ranks (2 files)", "run/trace (own)"];
        assert_eq!(texts_below(dir.path()), all);
        let lookup = traces_below(dir.path()).unwrap();
        assert!(!lookup.is_cut && lookup.unreadable.is_empty());
    }

    #[test]
    fn a_folder_with_one_trace_somewhere_below_names_it() {
        let dir = folder(&["logs/keras/train/plugins/profile/1/h.trace.json", "logs/keras/notes.md"]);
        for folder in ["", "logs", "logs/keras", "logs/keras/train", "logs/keras/train/plugins/profile/1"] {
            let found = trace_at(&dir.path().join(folder)).unwrap();
            assert!(found.path.ends_with("plugins/profile/1"), "{folder}: {found:?}");
        }
        let file = dir.path().join("logs/keras/train/plugins/profile/1/h.trace.json");
        assert_eq!(trace_at(&file).unwrap().files, [file]);
        assert!(matches!(trace_at(&dir.path().join("nowhere")), Err(LocateError::Io(..))));
        fs::write(dir.path().join("notes"), "hello").unwrap();
        let error = trace_at(&dir.path().join("notes")).unwrap_err().to_string();
        assert!(error.contains("not an event file, graph or trace"), "{error}");
    }

    #[test]
    fn of_several_traces_one_has_to_be_named() {
        let dir = folder(&["a/x.json", "b/x.json"]);
        let error = trace_at(dir.path()).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 3, "{error}");
        assert!(error.contains("several traces") && error.contains("/a\n"), "{error}");
        let many: Vec<PathBuf> = (0..25).map(|i| PathBuf::from(format!("t{i}"))).collect();
        assert!(list_text(&many).ends_with("t19\n  and 5 more"));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(trace_at(empty.path()), Err(LocateError::None(..))));
    }
}
