//! The floors of the engine: a file imports names from its own floor and those below, never from above.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::circles::imports_of;
use super::{fail_with, rust_files};

/// A floor and its entries: folders and files below a member's `src`.
type Floors = &'static [(&'static str, &'static [&'static str])];

/// The engine's members with their floors, from the ground up. A file that has a line of its own is not on its folder's floor.
/// Between members cargo holds the order: `engine/core`, `engine/ops`, `engine`.
const FLOORS: &[(&str, Floors)] = &[("engine/core", CORE), ("engine/ops", OPS), ("engine", ENGINE)];

const CORE: Floors = &[
    (
        "values",
        &[
            "array.rs",
            "buffer.rs",
            "convert.rs",
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
    ("kernel interface", &["kernel"]),
    ("objects of kernels", &["lookup.rs", "queues", "readers"]),
];

const OPS: Floors = &[("op tables", &["ops"]), ("gradients", &["gradients"]), ("kernels", &["kernels"])];

const ENGINE: Floors = &[
    ("processor", &["denormals.rs"]),
    ("layers", &["layers", "optimizer.rs", "schedule.rs", "slices.rs"]),
    ("compile", &["compile"]),
    ("run", &["run"]),
    ("session", &["session"]),
    ("on sessions", &["checkpoint", "freeze.rs", "queues"]),
    ("models", &["data", "models"]),
    ("training", &["training"]),
    ("tasks", &["tasks"]),
    ("programs", &["error.rs", "prelude.rs"]),
];

/// The floor of a file below a member's `src`, by the longest entry that it is under.
fn floor_of(floors: Floors, path: &Path) -> Option<usize> {
    let entries = floors.iter().enumerate().flat_map(|(floor, (_, entries))| entries.iter().map(move |e| (floor, *e)));
    entries.filter(|(_, entry)| path.starts_with(entry)).max_by_key(|(_, entry)| entry.len()).map(|(floor, _)| floor)
}

#[test]
fn the_engine_imports_nothing_from_above() {
    let files: BTreeMap<PathBuf, String> = rust_files().into_iter().collect();
    let (mut unlisted, mut broken) = (Vec::new(), Vec::new());
    for (member, floors) in FLOORS {
        let source = Path::new(member).join("src");
        let below = |path: &Path| path.strip_prefix(&source).map(Path::to_path_buf).ok();
        let own = |path: &PathBuf| below(path).filter(|path| path != Path::new("lib.rs"));
        let homeless = files.keys().filter(|path| own(path).is_some_and(|path| floor_of(floors, &path).is_none()));
        unlisted.extend(homeless.map(|path| path.display().to_string()));
        for ((from, to), names) in imports_of(member, &files) {
            let (Some(importer), Some(definer)) = (own(&from), own(&to)) else { continue };
            let (Some(low), Some(high)) = (floor_of(floors, &importer), floor_of(floors, &definer)) else { continue };
            if high > low {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let floors = (floors[low].0, floors[high].0);
                let (from, to) = (from.display(), to.display());
                broken.push(format!("{} imports {}: {from} -> {to}: {}", floors.0, floors.1, names.join(", ")));
            }
        }
    }
    fail_with("files of the engine without a floor", &unlisted);
    fail_with("imports from a higher floor", &broken);
}

#[test]
fn each_entry_is_there() {
    let files: Vec<PathBuf> = rust_files().into_iter().map(|(path, _)| path).collect();
    let entries = FLOORS.iter().flat_map(|(member, floors)| {
        let source = Path::new(member).join("src");
        floors.iter().flat_map(|(_, entries)| entries.iter()).map(move |entry| source.join(entry))
    });
    let missing = entries.filter(|entry| !files.iter().any(|path| path.starts_with(entry)));
    let missing: Vec<String> = missing.map(|entry| entry.display().to_string()).collect();
    fail_with("floors of files that are not there", &missing);
}
