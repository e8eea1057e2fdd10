//! Graphs that a folder without runs holds and that open together: before and after each pass, versions of a model.

use formats::{FileKind, Foreign, sniff};
use std::path::{Path, PathBuf};
use ui::natural;

/// Entries of a folder that are considered.
const MAX_ENTRIES: usize = 10_000;
/// Extensions of graph files, compressed or not: a folder of thousands of other files is not opened file by file.
const GRAPHS: [&str; 3] = [".pb", ".pbtxt", ".onnx"];

/// Whether a path is a folder without runs whose files open together.
pub fn opens_whole(path: &Path) -> bool {
    matches!(sniff(path), Ok(FileKind::Unknown(Foreign::NothingInFolder)))
        && (files_named(path, &GRAPHS).any(|file| is_graph(&file)) || has_trace(path))
}

fn has_trace(path: &Path) -> bool {
    trace_formats::locate::traces_below(path).is_ok_and(|lookup| !lookup.traces.is_empty())
}

/// Graph files that lie in a folder itself, by name.
pub(super) fn graphs(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = files_named(folder, &GRAPHS).filter(|file| is_graph(file)).collect();
    files.sort_by(|a, b| natural::order(&a.to_string_lossy(), &b.to_string_lossy()));
    files
}

fn files_named(folder: &Path, ends: &'static [&'static str]) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        ends.iter().any(|end| name.ends_with(end)) && path.is_file()
    })
}

fn is_graph(path: &Path) -> bool {
    matches!(sniff(path), Ok(FileKind::GraphDef | FileKind::GraphDefText))
}
