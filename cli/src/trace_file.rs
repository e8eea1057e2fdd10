//! Opens traces: a trace folder, a run's folder with a trace, a file of another tool, or a folder with the files of a
//! job.

use std::path::{Path, PathBuf};

use trace_formats::import;
use trace_formats::import::ImportError;
use trace_formats::locate;
use trace_store::{Store, StoreOptions, TraceReader};

use crate::outcome::Failure;
use crate::progress;

/// Opens the trace at `path`.
///
/// # Errors
/// `Failure::Usage` when there is no trace, or it cannot be read.
pub fn open(path: &Path) -> Result<Store, Failure> {
    open_all(std::slice::from_ref(&path.to_path_buf()))
}

/// Opens one trace, or several files of other tools as the ranks of one job.
///
/// # Errors
/// `Failure::Usage` when there is no trace, or it cannot be read.
pub fn open_all(paths: &[PathBuf]) -> Result<Store, Failure> {
    progress::set_activity("reading");
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let [path] = paths else {
        import(paths, &mut store)?;
        return Ok(store);
    };
    let trace = locate::trace_at(path).map_err(Failure::wrong_use)?;
    if trace.is_own() {
        let fault = |error| Failure::wrong_use(format_args!("{}: {error}", trace.path.display()));
        // The error names the path.
        let mut reader = TraceReader::open(&trace.path).map_err(Failure::wrong_use)?;
        reader.read_all(&mut store).map_err(fault)?;
    } else {
        import(&trace.files, &mut store)?;
    }
    progress::set_activity("analysing");
    Ok(store)
}

fn import(paths: &[PathBuf], store: &mut Store) -> Result<(), Failure> {
    let failed = |error: ImportError| Failure::wrong_use(error);
    let mut import = import::open(paths).map_err(failed)?;
    loop {
        let batch = import.poll_staged().map_err(failed)?;
        let has_more = batch.has_more();
        store.apply(batch);
        let progress = import.progress();
        progress::set_share(progress.bytes as f64 / progress.of.max(1) as f64);
        if !has_more {
            return Ok(());
        }
    }
}

/// Opens a trace of stepscope that may still be written, to be read as it grows.
///
/// # Errors
/// `Failure::Usage` when there is no such trace.
pub fn follow(path: &Path) -> Result<TraceReader, Failure> {
    let trace = locate::trace_at(path).map_err(Failure::wrong_use)?;
    TraceReader::open(&trace.path).map_err(Failure::wrong_use)
}

/// Prints the store's warnings on stderr.
pub fn warn(path: &Path, store: &Store) {
    for warning in store.warnings() {
        note!("warning: {}: {}", path.display(), warning.text);
    }
}

/// Whether there is exactly one trace at `path`.
pub fn has_trace(path: &Path) -> bool {
    locate::trace_at(path).is_ok()
}
