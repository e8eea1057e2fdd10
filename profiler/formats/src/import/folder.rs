//! Finds other tools' traces in a folder, and which files are one trace.

use formats::{FileKind, sniff};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Entries of a folder that are examined, at most.
const MAX_ENTRIES: usize = 10_000;
/// Extensions of traces, which may be compressed. Other files are not opened, since a folder may have thousands of
/// them.
const EXTENSIONS: [&str; 8] =
    [".json", ".xplane.pb", ".pftrace", ".perfetto-trace", ".trace", ".sqlite", ".dat", ".txt"];
/// Path in a run's folder with a folder for each session of TensorFlow's and JAX's profilers.
const SESSIONS: &str = "plugins/profile";
/// End of the file names of PyTorch's handler for TensorBoard: `WORKER.TIME.pt.trace.json`.
const TORCH: &str = ".pt.trace.json";

/// The files of one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The session's folder; or the folder itself if all its files are this trace; else the first file.
    pub path: PathBuf,
    /// A file for each process or host, ordered by name; [`open`](super::open) leaves out those that repeat another.
    pub files: Vec<PathBuf>,
}

/// The traces in a folder, by path: each session of a profiler below `plugins/profile`, each round of files of
/// PyTorch's handler, and all other files together, which are taken to be those of the processes of one job.
#[must_use]
pub fn traces(folder: &Path) -> Vec<Files> {
    let sessions = entries(&folder.join(SESSIONS)).into_iter().filter(|path| path.is_dir());
    let sessions = sessions.map(|path| Files { files: files(&path), path }).filter(|session| !session.files.is_empty());
    traces_in(folder).into_iter().chain(sessions).collect()
}

/// As [`traces`], without those in `plugins/profile`.
pub(crate) fn traces_in(folder: &Path) -> Vec<Files> {
    let (torch, others): (Vec<_>, Vec<_>) = files(folder).into_iter().partition(|file| worker(file).is_some());
    let mut all = rounds(torch);
    let is_one = all.len() + usize::from(!others.is_empty()) == 1;
    if !others.is_empty() {
        all.insert(0, others);
    }
    let path = |files: &[PathBuf]| files.first().filter(|_| !is_one).map_or(folder, PathBuf::as_path).to_owned();
    all.into_iter().map(|files| Files { path: path(&files), files }).collect()
}

/// Other tools' traces in a folder itself.
fn files(folder: &Path) -> Vec<PathBuf> {
    let is_trace = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        EXTENSIONS.iter().any(|end| name.ends_with(end))
            && path.is_file()
            && matches!(sniff(path), Ok(FileKind::Trace(_)))
    };
    entries(folder).into_iter().filter(is_trace).collect()
}

/// The entries of a folder, ordered by name; none if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

/// The worker that a file of PyTorch's handler is from.
fn worker(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let (before, _) = name.split_once(TORCH)?;
    let (worker, time) = before.rsplit_once('.')?;
    time.bytes().all(|b| b.is_ascii_digit()).then(|| worker.to_owned())
}

/// Groups the first files of all workers, the second ones, and so on: a worker writes a file in each round of its
/// schedule.
fn rounds(files: Vec<PathBuf>) -> Vec<Vec<PathBuf>> {
    let mut n_of: BTreeMap<String, usize> = BTreeMap::new();
    let mut rounds: Vec<Vec<PathBuf>> = Vec::new();
    // The order by name is that by time, since all times have as many digits.
    for file in files {
        let n = n_of.entry(worker(&file).unwrap_or_default()).or_default();
        if rounds.len() <= *n {
            rounds.push(Vec::new());
        }
        rounds[*n].push(file);
        *n += 1;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1}]}"#;

    fn names(of: &Files) -> Vec<&str> {
        of.files.iter().filter_map(|file| file.file_name()?.to_str()).collect()
    }

    #[test]
    fn a_folders_files_are_one_trace_and_each_session_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for (path, text) in [
            ("rank1.json", TRACE),
            ("rank0.json", TRACE),
            ("package.json", r#"{"name":"no trace"}"#),
            ("notes.md", TRACE),
            ("plugins/profile/2026_01_02/a.trace.json", TRACE),
            ("plugins/profile/2026_01_02/b.trace.json", TRACE),
            ("plugins/profile/2026_01_01/a.trace.json", TRACE),
            ("plugins/profile/empty/readme", ""),
        ] {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
        let found = traces(root);
        let paths: Vec<_> = found.iter().map(|of| of.path.strip_prefix(root).unwrap().to_str().unwrap()).collect();
        assert_eq!(paths, ["", "plugins/profile/2026_01_01", "plugins/profile/2026_01_02"]);
        assert_eq!(names(&found[0]), ["rank0.json", "rank1.json"]);
        assert_eq!(names(&found[2]), ["a.trace.json", "b.trace.json"]);
        assert_eq!(traces(&root.join("nowhere")), []);
    }

    #[test]
    fn each_round_of_pytorchs_workers_is_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(dir.path().join(name), TRACE).unwrap();
        for worker in ["host_1", "host_2.domain"] {
            write(&format!("{worker}.1621401187223005.pt.trace.json"));
        }
        let found = traces(dir.path());
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].path, found[0].files.len()), (dir.path(), 2), "one round is the folder's trace");
        write("host_1.1621401190000000.pt.trace.json");
        let found = traces(dir.path());
        assert_eq!(names(&found[1]), ["host_1.1621401190000000.pt.trace.json"]);
        assert_eq!((found.len(), &found[0].path), (2, &found[0].files[0]), "several have paths of their own");
        let mut paths: Vec<_> = found.iter().map(|of| &of.path).collect();
        paths.dedup();
        assert_eq!(paths.len(), 2);
    }
}
