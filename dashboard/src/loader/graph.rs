//! Reads a graph file once, a folder of them, and the graph of a run.

use super::{
    shared::Shared,
    slots::{SourceId, short_name},
};
use crate::data::{GraphData, SourceKind, Status, Warning};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Graphs of a folder that are opened, in the order of their names.
const MAX_GRAPHS: usize = 64;

/// Reads a graph file into the window.
pub(super) fn load(shared: &Shared, source: SourceId, path: &Path) {
    shared.slots.set_kind(source, SourceKind::Graph, None);
    match formats::graph_file::read(path) {
        Ok(def) => {
            shared.slots.put_graph(GraphData { name: short_name(path), path: path.into(), def: Arc::new(def) });
            shared.slots.set_status(source, Status::Finished);
        }
        Err(error) => shared.slots.fail(source, &error.to_string()),
    }
}

/// Reads all graphs of a folder into the window; unreadable ones become warnings.
pub(super) fn load_all(shared: &Shared, source: SourceId, files: &[PathBuf]) {
    shared.slots.set_kind(source, SourceKind::Graph, None);
    let mut warnings = Vec::new();
    for path in files.iter().take(MAX_GRAPHS) {
        if shared.is_stopping(source) {
            break;
        }
        match formats::graph_file::read(path) {
            Ok(def) => {
                let path: Arc<Path> = path.as_path().into();
                shared.slots.put_graph(GraphData { name: short_name(&path), path, def: Arc::new(def) });
                (shared.wake)();
            }
            Err(error) => warnings.push(Warning { count: 1, text: format!("{}: {error}", path.display()) }),
        }
    }
    if files.len() > MAX_GRAPHS {
        let text = format!("graphs beyond the first {MAX_GRAPHS} are not opened: open them one by one");
        warnings.push(Warning { count: (files.len() - MAX_GRAPHS) as u64, text });
    }
    shared.slots.set_warnings(source, warnings);
    shared.slots.set_status(source, Status::Finished);
}

/// The graph of a run from its event files, or else from its `graph.pb`. `None` where there is neither or it cannot be
/// read: damaged event files have their own warning, and a `graph.pb` may still be being written.
pub(super) fn of_run(blob: Option<&summaries::GraphBlob>, folder: &Path) -> Option<Arc<formats::proto::GraphDef>> {
    match blob {
        Some(blob) => blob.decode().ok(),
        None => {
            let file = folder.join("graph.pb");
            if file.is_file() { formats::graph_file::read(&file).ok().map(Arc::new) } else { None }
        }
    }
}
