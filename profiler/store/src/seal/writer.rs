//! Writes a sealed folder from a store, or from batches of events with bounded memory.

use super::SealError;
use super::checksums::{Checksums, FILE_NAME};
use super::names::Names;
use super::place::{kill_point, replace, scratch_next_to, sync_folder, write_synced};
use super::schema::{FORMAT, MetaRow, RingRow, SIDES, VERSION};
use super::slice_writer::{Layout, MaybeReader, SliceWriter};
use super::sources::SOURCES;
use super::table::{StoredRow, Table};
use super::table_columns::{FINAL, Sink, Source, columns, write_rows, write_sides};
use super::table_file::TableFile;
use crate::store::{Lane, Store, StoreOptions, Update};
use arrow_array::ArrayRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::{Path, PathBuf};
use trace_model::RingPosition;

/// Flows and transfers that wait for their other end, at most.
const MAX_PENDING: usize = 1 << 16;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Slices.
    pub slices: u64,
    /// Bytes of the Parquet files.
    pub parquet_bytes: u64,
    /// Bytes of the sidecar with the pyramids.
    pub sidecar_bytes: u64,
}

/// Writes batches into a sealed folder. Batches are applied in the order of their reading, as to a [`Store`]; the
/// events of a track are in the order of their ends, or of their starts.
///
/// In memory are names, steps, half a million slices that are not written yet, and the open segments of the pyramids.
/// [`SealedWriter::finish`] makes the folder appear in one step; a writer that is dropped before leaves no files.
pub struct SealedWriter {
    folder: PathBuf,
    scratch: Scratch,
    store: Store,
    names: Names,
    slices: SliceWriter,
    /// The files of [`SIDES`].
    sides: Vec<TableFile>,
    rings: Vec<RingPosition>,
    /// Gathered folders that are sealed into it.
    sources: Vec<String>,
}

/// The folder in which the files are written; removed when it is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, the next writer removes the folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl SealedWriter {
    /// Begins a sealed folder at `folder`, which [`SealedWriter::finish`] makes or replaces.
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
            names: Names::of(&store),
            slices: SliceWriter::create(&scratch, layout)?,
            sides: SIDES.into_iter().map(|table| TableFile::create(&scratch, table)).collect::<Result<_, _>>()?,
            scratch: Scratch(scratch),
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

    fn write_ready(&mut self, pending: usize) -> Result<(), SealError> {
        let (store, slices) = (&mut self.store, &mut self.slices);
        let side = store.drain_side(pending);
        store.drain_slices(|slice, args| slices.push(slice, args));
        self.names.refresh(store);
        slices.write_ready(store, &self.names, None)?;
        write_rows(side, &mut SideFiles(&mut self.sides, &self.names))
    }

    /// Sets up to which record the rings of a trace folder were read.
    pub(crate) fn set_rings(&mut self, rings: Vec<RingPosition>) {
        self.rings = rings;
    }

    /// Sets which gathered folders are sealed into it.
    pub(crate) fn set_sources(&mut self, sources: Vec<String>) {
        self.sources = sources;
    }

    /// Writes the remaining rows, reads all files back to compare them, and puts the folder in place.
    ///
    /// # Errors
    /// As [`SealedWriter::apply`]; or if the files that are read back differ from what was written. No folder appears
    /// then, and an existing one is unchanged.
    pub fn finish(mut self) -> Result<Sealed, SealError> {
        self.write_ready(0)?;
        let store = std::mem::take(&mut self.store);
        self.commit(&store, None)
    }

    /// Ends all files, verifies them, puts the folder in place.
    fn commit(self, store: &Store, args: MaybeReader<'_, '_>) -> Result<Sealed, SealError> {
        let SealedWriter { folder, scratch, names, slices, sides, rings, sources, .. } = self;
        let path = scratch.0.clone();
        let written = slices.finish(store, &names, args)?;
        let mut sums = Checksums::default();
        sums.add(&super::schema::SLICES.file_name(), written.slices.clone());
        for file in sides {
            sums.add(&file.table().file_name(), file.finish()?);
        }
        for (table, of_store) in FINAL {
            write_table(&path, table, of_store(store, &names), &mut sums)?;
        }
        write_table(&path, MetaRow::TABLE, columns::<MetaRow<'_>, _>(&meta(store, written.rows), &names), &mut sums)?;
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
        Ok(Sealed { slices: written.rows, parquet_bytes: sums.total(), sidecar_bytes: written.sidecar_bytes })
    }
}

/// Writes everything that a store holds as a sealed folder, which is made or replaced.
///
/// # Errors
/// As [`SealedWriter::finish`].
pub fn write(store: &Store, folder: &Path) -> Result<Sealed, SealError> {
    write_all(store, SealedWriter::create(folder)?)
}

/// Slices of one lane that are copied from a store in a row, at most.
const MAX_RUN: usize = 256;

/// Writes everything that a store holds to a new writer.
pub(crate) fn write_all(store: &Store, mut writer: SealedWriter) -> Result<Sealed, SealError> {
    writer.names = Names::of(store);
    let mut next: BinaryHeap<_> = BinaryHeap::new();
    let lanes: Vec<&Lane> = store.tracks().iter().flat_map(|track| &track.lanes).collect();
    // Slices whose row group is damaged are left out; the store has a warning about them.
    let readable = |i: usize, from: usize| {
        (from..lanes[i].len()).find_map(|index| Some(Reverse((lanes[i].slice(index as u32)?.start, i, index))))
    };
    // Slices of a lane that are pushed at a time: as many as the window can still sort.
    let n_at_once = (writer.slices.slack() / lanes.len().max(1)).clamp(1, MAX_RUN);
    let mut args = store.args().reader();
    next.extend((0..lanes.len()).filter_map(|i| readable(i, 0)));
    while let Some(Reverse((_, i, from))) = next.pop() {
        let lane = lanes[i];
        let to = (from + n_at_once).min(lane.len());
        for slice in (from..to).filter_map(|index| lane.slice(index as u32)) {
            writer.slices.push_of_store(slice);
        }
        writer.slices.write_ready(store, &writer.names, Some(&mut args))?;
        next.extend(readable(i, to));
    }
    write_sides(store, &mut SideFiles(&mut writer.sides, &writer.names))?;
    writer.commit(store, Some(&mut args))
}

/// The files of the side tables, and the names that their rows refer to.
struct SideFiles<'a>(&'a mut [TableFile], &'a Names);

impl Sink for SideFiles<'_> {
    fn take<T: Source>(&mut self, rows: impl Iterator<Item = T>) -> Result<(), SealError> {
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
pub(super) fn meta(store: &Store, slices: u64) -> Vec<(String, String)> {
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
