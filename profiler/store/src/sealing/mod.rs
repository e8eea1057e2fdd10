//! Seals the trace that a collector left in a folder, and removes the collected files.
//!
//! At every moment the folder is a readable trace. The sealed folder has the position of each ring, so that chunk files
//! that remain because the process was killed are not read twice; sealing again only removes them.

mod gathered;

use crate::follow::TraceReader;
use crate::seal::{SealError, SealedSizes, SealedWriter, kill_point, sync_folder, write_all};
use crate::store::{Store, StoreOptions};
use events::control::{ClaimError, Collector};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use trace_model::WarningKind;
use trace_model::layout::{SEALED_FOLDER, find_sealed, is_chunk_file, is_meta_file, is_ring_file};

/// The result of sealing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealReport {
    /// Sizes of the sealed folder that was written; `None` if everything was sealed before.
    pub sealed: Option<SealedSizes>,
    /// Bytes of collected files that were removed.
    pub removed_bytes: u64,
    /// Why the collected files were not removed; `None` if they were.
    pub removal_obstacle: Option<String>,
}

/// Seals the trace in a folder, with the traces that were gathered into it. No process may record or collect into the
/// folder meanwhile.
///
/// Memory is bounded as with [`SealedWriter`]. The collected files of a damaged trace are not removed, since another
/// program may recover more of them.
///
/// # Errors
/// Fails if a process records or collects, if files cannot be read or written, or if the written files do not read back
/// correctly. The trace then is as readable as before.
pub fn seal(trace_dir: &Path) -> Result<SealReport, SealError> {
    let mut reader = TraceReader::open_ended(trace_dir)?;
    let busy = |why: String| SealError::Busy(trace_dir.to_owned(), why);
    let claim = Collector::claim(trace_dir).map_err(|e| match e {
        ClaimError::Taken { pid } => busy(format!("process {pid} collects")),
        ClaimError::Control(e) => busy(e.to_string()),
    })?;
    if let Some(pid) = reader.live_process() {
        return Err(busy(format!("process {pid} lives")));
    }
    let gathered_lock = gathered::lock(trace_dir).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => busy("traces of other hosts are gathered into it".to_owned()),
        _ => SealError::Io(trace_dir.to_owned(), e),
    })?;
    let sealed_positions = if find_sealed(trace_dir).is_some() { Some(reader.positions()) } else { None };
    let folder = trace_dir.join(SEALED_FOLDER);
    let io_failed = |e| SealError::Io(trace_dir.to_owned(), e);
    let (sealed, removal_obstacle) = match sealed_positions {
        None => seal_stream(&mut reader, &folder).map(|(sealed, obstacle)| (Some(sealed), obstacle))?,
        Some(sealed_positions) => {
            let mut store = Store::with_options(StoreOptions::UNBOUNDED);
            reader.read_all(&mut store).map_err(io_failed)?;
            let obstacle = removal_obstacle(&reader, &store)?;
            let rings = reader.positions();
            if rings == sealed_positions && reader.sources().is_empty() {
                (None, obstacle)
            } else {
                let mut writer = SealedWriter::create(&folder)?;
                writer.set_rings(rings);
                writer.set_sources(gathered::source_names(trace_dir, &reader.sources()));
                (Some(write_all(&store, writer)?), obstacle)
            }
        }
    };
    kill_point("sealed");
    let mut removed_bytes = 0;
    if removal_obstacle.is_none() {
        removed_bytes = remove_collected(trace_dir).map_err(io_failed)?;
        if gathered_lock.is_some() {
            removed_bytes += gathered::remove_sources(trace_dir).map_err(io_failed)?;
        }
    }
    claim.finish();
    Ok(SealReport { sealed, removed_bytes, removal_obstacle })
}

/// Reads the trace batch by batch into a sealed folder.
fn seal_stream(reader: &mut TraceReader, folder: &Path) -> Result<(SealedSizes, Option<String>), SealError> {
    let mut writer = SealedWriter::create(folder)?;
    kill_point("begun");
    loop {
        let update = reader.poll_staged().map_err(|e| SealError::Io(reader.dir().to_owned(), e))?;
        let has_more = update.has_more();
        writer.apply(update)?;
        if !has_more {
            break;
        }
    }
    let obstacle = removal_obstacle(reader, writer.store())?;
    writer.set_rings(reader.positions());
    writer.set_sources(gathered::source_names(reader.dir(), &reader.sources()));
    kill_point("written");
    Ok((writer.finish()?, obstacle))
}

/// Returns the damage because of which the collected files cannot be removed. Fails if the files could not be read, or
/// are still being written.
fn removal_obstacle(reader: &TraceReader, store: &Store) -> Result<Option<String>, SealError> {
    if let Some(pid) = reader.writing_process() {
        return Err(SealError::Busy(reader.dir().to_owned(), format!("process {pid} writes")));
    }
    let find_warning = |kinds: &[WarningKind]| store.warnings().iter().find(|w| kinds.contains(&w.kind));
    if let Some(warning) = find_warning(&[WarningKind::Io]) {
        return Err(SealError::Io(PathBuf::from(&warning.source), io::Error::other(warning.text.clone())));
    }
    Ok(find_warning(&[WarningKind::Damage, WarningKind::UnknownName]).map(|warning| warning.text.clone()))
}

/// Removes chunks, then rings, then meta files, so that the remaining files are readable at every moment. Returns the
/// number of bytes removed.
fn remove_collected(trace_dir: &Path) -> io::Result<u64> {
    let mut removed_bytes = 0;
    for is_of_kind in [is_chunk_file as fn(&str) -> bool, is_ring_file, is_meta_file] {
        for entry in fs::read_dir(trace_dir)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_of_kind) {
                removed_bytes += entry.metadata()?.len();
                fs::remove_file(entry.path())?;
                kill_point("removed");
            }
        }
    }
    sync_folder(trace_dir)?;
    Ok(removed_bytes)
}
