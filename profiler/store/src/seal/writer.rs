//! Writes a sealed folder from a store, or from batches of events with bounded memory.

use super::SealError;
use super::checksums::{Checksums, FILE_NAME};
use super::names::Names;
use super::place::{kill_point, replace, scratch_next_to, sync_folder, write_synced};
use super::schema::{FORMAT, MetaRow, RingRow, SIDES, VERSION};
use super::slice_writer::{Layout, SliceWriter, StoreArgs};
use super::sources::SOURCES;
use super::table::{StoredRow, Table};
use super::table_columns::{FINAL_TABLES, RowSink, RowSource, columns, write_rows, write_sides};
use super::table_file::TableFile;
use crate::store::{Lane, Store, StoreOptions, Update};
use arrow_array::ArrayRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::{Path, PathBuf};
use trace_model::RingPosition;

/// Maximum number of flows, and of transfers, that wait for their other end.
const MAX_PENDING: usize = 1 << 16;

/// The sizes of a sealed folder that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedSizes {
    /// Number of slices.
    pub slices: u64,
    /// Bytes of the Parquet files.
    pub parquet_bytes: u64,
    /// Bytes of the sidecar with the pyramids.
    pub sidecar_bytes: u64,
}

/// Writes batches into a sealed folder. Batches are applied in the order in which they were read, as to a [`Store`].
/// The events of a track are in the order of their ends, or of their starts.
///
/// In memory are names, steps, half a million slices that are not written yet, and the open segments of the pyramids.
/// [`SealedWriter::finish`] makes the folder appear in one step. A writer that is dropped earlier leaves no files.
pub struct SealedWriter {
    folder: PathBuf,
    scratch: ScratchGuard,
    store: Store,
    names: Names,
    slices: SliceWriter,
    /// The files of [`SIDES`].
    side_files: Vec<TableFile>,
    rings: Vec<RingPosition>,
    /// Gathered folders that are sealed into the trace.
    sources: Vec<String>,
}

/// Removes the folder in which the files are written when it is dropped.
struct ScratchGuard(PathBuf);

impl Drop for ScratchGuard {
    fn drop(&mut self) {
        // If this fails, the next writer removes the folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl SealedWriter {
    /// Begins to write a sealed folder, which [`SealedWriter::finish`] puts at `folder`.
    ///
    /// # Errors
    /// Fails if no folder can be written next to `folder`.
    pub fn create(folder: &Path) -> Result<SealedWriter, SealError> {
        SealedWriter::with_layout(folder, Layout::default())
    }

    pub(super) fn with_layout(folder: &Path, layout: Layout) -> Result<SealedWriter, SealError> {
        let scratch = scratch_next_to(folder);
        let failed = |e| SealError::Io(scratch.clone(), e);
        if scratch.exists() {
            fs::remove_dir_all(&scratch).map_err(failed)?;
        }
        fs::create_dir_all(&scratch).map_err(failed)?;
        let store = Store::with_options(StoreOptions::UNBOUNDED);
        Ok(SealedWriter {
            folder: folder.to_owned(),
            names: Names::from_store(&store),
            slices: SliceWriter::create(&scratch, layout)?,
            side_files: SIDES.into_iter().map(|table| TableFile::create(&scratch, table)).collect::<Result<_, _>>()?,
            scratch: ScratchGuard(scratch),
            store,
            rings: Vec::new(),
            sources: Vec::new(),
        })
    }

    /// Applies a batch, and writes the rows that no later batch can change.
    ///
    /// # Errors
    /// Fails if the disk is full or cannot be written.
    pub fn apply(&mut self, update: impl Into<Update>) -> Result<(), SealError> {
        self.store.apply(update);
        self.write_ready(MAX_PENDING)
    }

    /// The names, steps, warnings and counts so far. The store has no slices: they were drained to be written.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Moves the slices into the window, which writes the earliest row groups if it is full, and writes the side rows
    /// but the last `n_pending` flows and transfers.
    fn write_ready(&mut self, n_pending: usize) -> Result<(), SealError> {
        let (store, slices) = (&mut self.store, &mut self.slices);
        let side = store.drain_side(n_pending);
        store.drain_slices(|slice, args| slices.push(slice, args));
        self.names.refresh(store);
        slices.write_ready(store, &self.names, None)?;
        write_rows(side, &mut SideFiles(&mut self.side_files, &self.names))
    }

    /// Sets the position up to which each ring of a trace folder was read.
    pub(crate) fn set_rings(&mut self, rings: Vec<RingPosition>) {
        self.rings = rings;
    }

    /// Sets the gathered folders that are sealed into the trace.
    pub(crate) fn set_sources(&mut self, sources: Vec<String>) {
        self.sources = sources;
    }

    /// Writes the remaining rows, reads all files back to compare them, and puts the folder in place.
    ///
    /// # Errors
    /// As [`SealedWriter::apply`]; or if the files that are read back differ from the written rows. Then no folder
    /// appears, and an existing folder is unchanged.
    pub fn finish(mut self) -> Result<SealedSizes, SealError> {
        self.write_ready(0)?;
        let store = std::mem::take(&mut self.store);
        self.commit(&store, None)
    }

    /// Ends all files, verifies them, and puts the folder in place.
    fn commit(self, store: &Store, args: StoreArgs<'_, '_>) -> Result<SealedSizes, SealError> {
        let SealedWriter { folder, scratch, names, slices, side_files, rings, sources, .. } = self;
        let path = scratch.0.clone();
        let written = slices.finish(store, &names, args)?;
        let mut sums = Checksums::default();
        sums.add(&super::schema::SLICES.file_name(), written.slices.clone());
        for file in side_files {
            sums.add(&file.table().file_name(), file.finish()?);
        }
        for (table, make_columns) in FINAL_TABLES {
            write_table(&path, table, make_columns(store, &names), &mut sums)?;
        }
        write_table(
            &path,
            MetaRow::TABLE,
            columns::<MetaRow<'_>, _>(&meta_rows(store, written.rows), &names),
            &mut sums,
        )?;
        write_table(&path, RingRow::TABLE, columns::<RingRow, _>(&rings, &names), &mut sums)?;
        let failed = |e| SealError::Io(path.clone(), e);
        if !sources.is_empty() {
            write_synced(&path.join(SOURCES), sources.join("\n").as_bytes()).map_err(failed)?;
        }
        write_synced(&path.join(FILE_NAME), sums.text().as_bytes()).map_err(failed)?;
        sync_folder(&path).map_err(failed)?;
        kill_point("files");
        super::verify::verify(&path, &written)?;
        kill_point("verified");
        replace(&path, &folder).map_err(|e| SealError::Io(folder, e))?;
        kill_point("placed");
        Ok(SealedSizes {
            slices: written.rows,
            parquet_bytes: sums.total_bytes(),
            sidecar_bytes: written.sidecar_bytes,
        })
    }
}

/// Writes the contents of a store as a sealed folder. Replaces an existing sealed folder.
///
/// # Errors
/// As [`SealedWriter::finish`].
pub fn write(store: &Store, folder: &Path) -> Result<SealedSizes, SealError> {
    write_all(store, SealedWriter::create(folder)?)
}

/// Maximum number of slices of one lane that are copied from a store in a row.
const MAX_RUN_LEN: usize = 256;

/// Writes the contents of a store with a new writer.
pub(crate) fn write_all(store: &Store, mut writer: SealedWriter) -> Result<SealedSizes, SealError> {
    writer.names = Names::from_store(store);
    let mut next_slices: BinaryHeap<_> = BinaryHeap::new();
    let lanes: Vec<&Lane> = store.tracks().iter().flat_map(|track| &track.lanes).collect();
    // Slices whose row group is damaged are left out; the store has a warning about them.
    let first_readable = |i: usize, from: usize| {
        (from..lanes[i].len()).find_map(|index| Some(Reverse((lanes[i].slice(index as u32)?.start, i, index))))
    };
    // Slices of a lane that are pushed in a row: as many as the window can still sort.
    let run_len = (writer.slices.max_disorder() / lanes.len().max(1)).clamp(1, MAX_RUN_LEN);
    let mut args = store.args().reader();
    next_slices.extend((0..lanes.len()).filter_map(|i| first_readable(i, 0)));
    while let Some(Reverse((_, i, from))) = next_slices.pop() {
        let lane = lanes[i];
        let to = (from + run_len).min(lane.len());
        for slice in (from..to).filter_map(|index| lane.slice(index as u32)) {
            writer.slices.push_from_store(slice);
        }
        writer.slices.write_ready(store, &writer.names, Some(&mut args))?;
        next_slices.extend(first_readable(i, to));
    }
    write_sides(store, &mut SideFiles(&mut writer.side_files, &writer.names))?;
    writer.commit(store, Some(&mut args))
}

/// The files of the side tables, and the names that their rows refer to.
struct SideFiles<'a>(&'a mut [TableFile], &'a Names);

impl RowSink for SideFiles<'_> {
    fn append_rows<T: RowSource>(&mut self, rows: impl Iterator<Item = T>) -> Result<(), SealError> {
        let has_table = |file: &&mut TableFile| file.table().name == T::Row::TABLE.name;
        self.0.iter_mut().find(has_table).map_or(Ok(()), |file| file.append(rows, self.1))
    }
}

/// Writes a table in one piece.
fn write_table(folder: &Path, table: Table, columns: Vec<ArrayRef>, sums: &mut Checksums) -> Result<(), SealError> {
    let mut file = TableFile::create(folder, table)?;
    file.write(columns)?;
    sums.add(&table.file_name(), file.finish()?);
    Ok(())
}

/// The rows of the table `meta`: keys and values.
pub(super) fn meta_rows(store: &Store, slices: u64) -> Vec<(String, String)> {
    let range = store.range();
    let mut hosts: Vec<&str> = store.processes().iter().map(|p| p.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let rows = [
        ("format", format!("{FORMAT} {VERSION}")),
        ("clock", "CLOCK_MONOTONIC_RAW, ns".to_owned()),
        ("origin_ns", store.origin_ns().to_string()),
        ("first_ns", range.start.to_string()),
        ("last_ns", range.end.to_string()),
        ("slices", slices.to_string()),
        ("hosts", hosts.join(" ")),
    ];
    rows.map(|(key, value)| (key.to_owned(), value)).to_vec()
}
