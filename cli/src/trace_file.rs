//! Opening what a user calls a trace: a trace folder, a run's folder with one, another tool's file, or a folder with those
//! of a job.

use std::path::{Path, PathBuf};

use formats::FileKind;
use profiler::import::{self, ImportError};
use profiler::{Store, StoreOptions, TraceReader};

use crate::outcome::Failure;
use crate::progress;

/// The trace at `path`.
///
/// # Errors
/// `Failure::Use` when there is none, or it cannot be read.
pub fn open(path: &Path) -> Result<Store, Failure> {
    open_all(std::slice::from_ref(&path.to_path_buf()))
}

/// One trace, or other tools' files as the ranks of one job.
///
/// # Errors
/// `Failure::Use` when there is none, or it cannot be read.
pub fn open_all(paths: &[PathBuf]) -> Result<Store, Failure> {
    progress::doing("reading");
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let found = match paths {
        [folder] if !is_foreign(folder) && !has_own(folder) => only(folder)?,
        _ => None,
    };
    match (paths, found) {
        (_, Some(found)) => import(&found.files, &mut store)?,
        ([path], _) if !is_foreign(path) => {
            let fault = |error: String| Failure::wrong_use(format_args!("{}: {error}", path.display()));
            let mut reader = TraceReader::open(&find(path)).map_err(|error| fault(error.to_string()))?;
            reader.read_all(&mut store).map_err(|error| fault(error.to_string()))?;
        }
        _ => import(paths, &mut store)?,
    }
    progress::doing("analysing");
    Ok(store)
}

/// Other tools' trace that a folder holds, if it holds one.
fn only(folder: &Path) -> Result<Option<import::Files>, Failure> {
    let mut found = import::traces(folder);
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let all: Vec<String> = found.iter().map(|of| of.path.display().to_string()).collect();
    let (folder, all) = (folder.display(), all.join("\n  "));
    Err(Failure::wrong_use(format_args!("{folder} holds several traces: name one of them\n  {all}")))
}

fn import(paths: &[PathBuf], store: &mut Store) -> Result<(), Failure> {
    let failed = |error: ImportError| Failure::wrong_use(error);
    let mut import = import::open(paths).map_err(failed)?;
    loop {
        let batch = import.poll_staged().map_err(failed)?;
        let more = batch.more();
        store.apply(batch);
        let progress = import.progress();
        progress::share(progress.bytes as f64 / progress.of.max(1) as f64);
        if !more {
            return Ok(());
        }
    }
}

/// Whether it is a file: traces of our own are folders.
fn is_foreign(path: &Path) -> bool {
    path.is_file()
}

/// The trace folder of a run's folder, else the path itself.
fn find(path: &Path) -> PathBuf {
    let inner = path.join("trace");
    if inner.is_dir() { inner } else { path.to_path_buf() }
}

/// A trace of ours that may still be written, to be read as it grows.
///
/// # Errors
/// `Failure::Use` when there is none.
pub fn follow(path: &Path) -> Result<TraceReader, Failure> {
    let fault = |error| Failure::wrong_use(format_args!("{}: {error}", path.display()));
    TraceReader::open(&find(path)).map_err(fault)
}

/// Seals the trace that a recording left. Gives what keeps it from that: it is as readable then, only larger and slower.
pub fn seal(folder: &Path) -> Option<String> {
    match profiler::seal::seal(folder) {
        Ok(profiler::SealReport { kept, .. }) => {
            kept.map(|why| format!("the collected files stay beside the sealed trace: {why}"))
        }
        Err(error) => Some(format!("the trace was not sealed: {error}")),
    }
}

/// Tells the store's warnings on stderr.
pub fn warn(path: &Path, store: &Store) {
    for warning in store.warnings() {
        note!("warning: {}: {}", path.display(), warning.text);
    }
}

/// Whether there is a trace at `path`, and no other one.
pub fn has_trace(path: &Path) -> bool {
    has_own(path) || import::traces(path).len() == 1
}

/// Whether there is a trace of ours at `path`, or it is another tool's file.
fn has_own(path: &Path) -> bool {
    matches!(formats::sniff(&find(path)), Ok(FileKind::TraceFolder | FileKind::Trace(_)))
}
