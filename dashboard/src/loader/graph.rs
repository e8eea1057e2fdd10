//! Reads a graph file once, and the graph of a run.

use super::{Shared, SourceId, short_name};
use crate::data::{GraphData, SourceKind, Status};
use std::{path::Path, sync::Arc};

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

/// The graph of a run that its event files hold, or else its `graph.pb`. `None` where there is neither, or what is
/// there cannot be read: the event files' damage says so, and a `graph.pb` may be just being written.
pub(super) fn of_run(blob: Option<&summaries::GraphBlob>, folder: &Path) -> Option<Arc<formats::proto::GraphDef>> {
    match blob {
        Some(blob) => blob.decode().ok(),
        None => {
            let file = folder.join("graph.pb");
            if file.is_file() { formats::graph_file::read(&file).ok().map(Arc::new) } else { None }
        }
    }
}
