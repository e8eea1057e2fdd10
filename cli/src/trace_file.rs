//! Opening what a user calls a trace.

use std::path::{Path, PathBuf};

use profiler::{Store, StoreOptions, TraceReader};

use crate::outcome::Failure;

/// The trace at `path`: a trace folder, or a run's folder with one.
///
/// # Errors
/// `Failure::Use` when there is none, or it cannot be read.
pub fn open(path: &Path) -> Result<Store, Failure> {
    let folder = find(path);
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let fault = |error: String| Failure::wrong_use(format_args!("{}: {error}", path.display()));
    let mut reader = TraceReader::open(&folder).map_err(|error| fault(error.to_string()))?;
    reader.read_all(&mut store).map_err(|error| fault(error.to_string()))?;
    Ok(store)
}

/// The trace folder of a run's folder, else the path itself.
fn find(path: &Path) -> PathBuf {
    let inner = path.join("trace");
    if inner.is_dir() { inner } else { path.to_path_buf() }
}

/// Tells the store's warnings on stderr.
pub fn warn(path: &Path, store: &Store) {
    for warning in store.warnings() {
        eprintln!("warning: {}: {}", path.display(), warning.text);
    }
}

/// Whether there is a trace at `path`.
pub fn has_trace(path: &Path) -> bool {
    matches!(formats::sniff(&find(path)), Ok(formats::FileKind::TraceFolder))
}
