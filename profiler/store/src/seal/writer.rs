//! Writes a sealed folder: from a store, or from batches as they come, with bounded memory.

use super::SealError;
use super::checksums::{Checksums, FILE_NAME};
use super::file::TableFile;
use super::names::Names;
use super::place::{kill_point, replace, scratch_next_to, sync_folder, write_synced};
use super::schema::{FORMAT, MetaRow, RingRow, SIDES, VERSION};
use super::slices::{Layout, MaybeReader, SliceFile};
use super::sources::SOURCES;
use super::table::{StoredRow, Table};
use super::tables::{FINAL, Sink, Source, columns, give_rows, give_sides};
use crate::store::{Lane, Store, StoreOptions, Update};
use arrow_array::ArrayRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::{Path, PathBuf};
use trace_model::RingPosition;

/// Flows and transfers whose other end may still come.
const PENDING: usize = 1 << 16;

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

/// Writes batches into a sealed folder. Give it batches in the order of their reading, as to a
/// [`Store`]; of each track the events in the order in which they ended, or of their starts.
///
/// In memory: names, steps, half a million slices that wait for their place, the pyramids' open ends. The folder appears
/// with [`SealedWriter::finish`], all at once; without it nothing stays.
pub struct SealedWriter {
    folder: PathBuf,
    scratch: Scratch,
    store: Store,
    names: Names,
    slices: SliceFile,
    /// The files of [`SIDES`].
    sides: Vec<TableFile>,
    rings: Vec<RingPosition>,
    /// Gathered folders that are in it.
    sources: Vec<String>,
}

/// A folder that goes away unless it is kept.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is overwritten by the next one who seals.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl SealedWriter {
    /// Begins a sealed folder at `folder`, which [`SealedWriter::finish`] makes or replaces.
    ///
    /// # Errors
    /// That nothing can be written next to it.
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
            slices: SliceFile::create(&scratch, layout)?,
            sides: SIDES.into_iter().map(|table| TableFile::create(&scratch, table)).collect::<Result<_, _>>()?,
            scratch: Scratch(scratch),
            store,
            rings: Vec::new(),
            sources: Vec::new(),
        })
    }

    /// Takes in a batch and writes what need not wait.
    ///
    /// # Errors
    /// That the disk is full or cannot be written.
    pub fn apply(&mut self, update: impl Into<Update>) -> Result<(), SealError> {
        self.store.apply(update);
        self.write_ready(PENDING)
    }

    /// The names, steps, warnings and counts so far. Its slices are gone.
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
        give_rows(side, &mut SideFiles(&mut self.sides, &self.names))
    }

    /// Notes how far the rings of a trace folder were read.
    pub(crate) fn set_rings(&mut self, rings: Vec<RingPosition>) {
        self.rings = rings;
    }

    /// Notes which gathered folders are in it.
    pub(crate) fn set_sources(&mut self, sources: Vec<String>) {
        self.sources = sources;
    }

    /// Writes the rest, reads everything back and compares, and puts the folder in place.
    ///
    /// # Errors
    /// As [`SealedWriter::apply`]; or that what was read back is not what was written. There is no new folder then, and
    /// one that was there before is untouched.
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
            whole(&path, table, of_store(store, &names), &mut sums)?;
        }
        whole(&path, MetaRow::TABLE, columns::<MetaRow<'_>, _>(&meta(store, written.rows), &names), &mut sums)?;
        whole(&path, RingRow::TABLE, columns::<RingRow, _>(&rings, &names), &mut sums)?;
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

/// Writes everything that a store holds to a new writer.
pub(crate) fn write_all(store: &Store, mut writer: SealedWriter) -> Result<Sealed, SealError> {
    writer.names = Names::of(store);
    let mut next: BinaryHeap<_> = BinaryHeap::new();
    let lanes: Vec<&Lane> = store.tracks().iter().flat_map(|track| &track.lanes).collect();
    // What cannot be read any more is left out; the store's warnings say so.
    let readable = |i: usize, from: usize| {
        (from..lanes[i].len()).find_map(|index| Some(Reverse((lanes[i].slice(index as u32)?.start, i, index))))
    };
    // A lane's slices some at a time, as many as the window orders again.
    let n_at_once = (writer.slices.slack() / lanes.len().max(1)).clamp(1, 256);
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
    give_sides(store, &mut SideFiles(&mut writer.sides, &writer.names))?;
    writer.commit(store, Some(&mut args))
}

/// The files of tables whose rows come, with the names that they have.
struct SideFiles<'a>(&'a mut [TableFile], &'a Names);

impl Sink for SideFiles<'_> {
    fn take<T: Source>(&mut self, rows: impl Iterator<Item = T>) -> Result<(), SealError> {
        let is_its = |file: &&mut TableFile| file.table().name == T::Row::TABLE.name;
        self.0.iter_mut().find(is_its).map_or(Ok(()), |file| file.append(rows, self.1))
    }
}

/// Writes a table of one piece.
fn whole(folder: &Path, table: Table, columns: Vec<ArrayRef>, sums: &mut Checksums) -> Result<(), SealError> {
    let mut file = TableFile::create(folder, table)?;
    file.write(columns)?;
    sums.add(&table.file_name(), file.finish()?);
    Ok(())
}

/// What the trace is, as keys and values.
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
