//! The floors of the engine: a file imports names from its own floor and those below, never from above.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::circles::imports_of;
use super::{fail_with, rust_files};

/// The folders and files of `engine/src`, from the ground up. A file that has a line of its own is not on its folder's floor.
const FLOORS: &[(&str, &[&str])] = &[
    (
        "values",
        &[
            "array.rs",
            "buffer.rs",
            "convert.rs",
            "denormals.rs",
            "dtype.rs",
            "memory.rs",
            "numpy.rs",
            "shape.rs",
            "tensor",
            "tensor_list.rs",
            "tensor_proto.rs",
            "trace.rs",
        ],
    ),
    ("values in files", &["checkpoint", "philox.rs"]),
    ("devices", &["checkpoint/keys.rs", "device", "resources.rs"]),
    ("ops", &["geometry", "ops", "strided.rs", "window.rs"]),
    ("graph", &["graph"]),
    ("functions", &["functions"]),
    ("gradients", &["gradients"]),
    ("layers", &["layers", "optimizer.rs", "schedule.rs", "slices.rs"]),
    ("kernel interface", &["kernel"]),
    ("objects of kernels", &["lookup.rs", "queues", "readers"]),
    ("kernels", &["kernels"]),
    ("compile", &["compile"]),
    ("run", &["run"]),
    ("session", &["session"]),
    (
        "on sessions",
        &["checkpoint/saver.rs", "checkpoint/snapshot.rs", "freeze.rs", "queues/pipeline.rs", "queues/runner.rs"],
    ),
    ("models", &["data", "models"]),
    ("training", &["training"]),
    ("tasks", &["tasks"]),
    ("programs", &["error.rs", "prelude.rs"]),
];

/// The floor of a file below `engine/src`, by the longest entry that it is under.
fn floor_of(path: &Path) -> Option<usize> {
    let entries = FLOORS.iter().enumerate().flat_map(|(floor, (_, entries))| entries.iter().map(move |e| (floor, *e)));
    entries.filter(|(_, entry)| path.starts_with(entry)).max_by_key(|(_, entry)| entry.len()).map(|(floor, _)| floor)
}

#[test]
fn the_engine_imports_nothing_from_above() {
    let files: BTreeMap<PathBuf, String> = rust_files().into_iter().collect();
    let below = |path: &Path| path.strip_prefix("engine/src").map(Path::to_path_buf).ok();
    let own = |path: &PathBuf| below(path).filter(|path| path != Path::new("lib.rs"));
    let unlisted = files.keys().filter_map(own).filter(|path| floor_of(path).is_none());
    let unlisted: Vec<String> = unlisted.map(|path| path.display().to_string()).collect();
    fail_with("files of engine/src without a floor", &unlisted);
    let mut broken = Vec::new();
    for ((from, to), names) in imports_of("engine", &files) {
        let (Some(importer), Some(definer)) = (own(&from), own(&to)) else { continue };
        let (Some(low), Some(high)) = (floor_of(&importer), floor_of(&definer)) else { continue };
        if high > low {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let floors = (FLOORS[low].0, FLOORS[high].0);
            let (from, to) = (importer.display(), definer.display());
            broken.push(format!("{} imports {}: {from} -> {to}: {}", floors.0, floors.1, names.join(", ")));
        }
    }
    fail_with("imports from a higher floor", &broken);
}

#[test]
fn each_entry_is_there() {
    let files: Vec<PathBuf> = rust_files().into_iter().map(|(path, _)| path).collect();
    let exists = |entry: &str| files.iter().any(|path| path.starts_with(Path::new("engine/src").join(entry)));
    let entries = FLOORS.iter().flat_map(|(_, entries)| entries.iter());
    let missing: Vec<String> = entries.filter(|entry| !exists(entry)).map(|entry| (*entry).to_owned()).collect();
    fail_with("floors of files that are not there", &missing);
}
