//! The tables of a store as Arrow record batches, for SQL, with the rows and columns of a sealed trace's files.

use super::checksums::{Checksums, FILE_NAME, read_part};
use super::columns::read;
use super::names::Names;
use super::row_group::RowGroup;
use super::schema::{MetaRow, RingRow, SIDES, SLICES, TABLES, version_of};
use super::table::{StoredRow, Table};
use super::table_columns::{FINAL_TABLES, RowSink, RowSource, columns, write_sides};
use super::{SealError, writer};
use crate::store::Store;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace_model::layout::{SEALED_FOLDER, find_sealed, is_chunk_file, is_meta_file, is_ring_file};
use trace_model::{SliceHeader, SliceRef};

/// Maximum number of rows of a record batch.
const BATCH_ROWS: usize = 1 << 14;
/// [`check`] reads files of up to this many bytes entirely, and only the last checksummed part of larger ones.
const MAX_CHECKED_BYTES: u64 = 1 << 30;

/// A callback that is given a batch and returns whether it accepts another one.
pub type BatchVisitor<'a> = &'a mut dyn FnMut(RecordBatch) -> bool;

/// All tables of a trace, except `rings`, which only this program reads.
#[must_use]
pub fn tables() -> &'static [Table] {
    const { &TABLES }
}

/// Writes every table but the slices as a Parquet file in memory; returns the names of the tables with their files.
///
/// # Errors
/// Fails if a table's columns cannot be encoded.
pub(crate) fn side_files(store: &Store) -> Result<Vec<(&'static str, Bytes)>, SealError> {
    let side_tables = TABLES.iter().filter(|table| table.name != SLICES.name);
    side_tables.map(|table| Ok((table.name, table_file(store, *table)?))).collect()
}

fn table_file(store: &Store, table: Table) -> Result<Bytes, SealError> {
    let options = ArrowWriterOptions::new().with_properties(table.properties()?).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), table.schema(), options)?;
    let mut written = Ok(());
    batches(store, table.name, &mut |batch| {
        written = writer.write(&batch);
        written.is_ok()
    })?;
    written?;
    Ok(writer.into_inner()?.into())
}

/// Passes all rows of a table to `take`, batch by batch; no rows if [`tables`](tables()) lacks the table.
///
/// # Errors
/// Fails if the columns of a batch differ in length.
pub fn batches(store: &Store, table: &str, take: BatchVisitor<'_>) -> Result<(), SealError> {
    let names = &Names::from_store(store);
    if table == SLICES.name {
        return slices(store, names, take);
    }
    if SIDES.iter().any(|side| side.name == table) {
        return write_sides(store, &mut OneTable { table, names, take });
    }
    let final_table = if table == MetaRow::TABLE.name {
        Some((MetaRow::TABLE, columns::<MetaRow<'_>, _>(&writer::meta_rows(store, store.stats().slices), names)))
    } else {
        FINAL_TABLES.into_iter().find(|(t, _)| t.name == table).map(|(table, columns)| (table, columns(store, names)))
    };
    if let Some((table, columns)) = final_table {
        take(RecordBatch::try_new(table.schema(), columns)?);
    }
    Ok(())
}

/// A sink that passes on the rows of one side table and ignores all other rows.
struct OneTable<'a> {
    table: &'a str,
    names: &'a Names,
    take: BatchVisitor<'a>,
}

impl RowSink for OneTable<'_> {
    fn append_rows<T: RowSource>(&mut self, rows: impl Iterator<Item = T>) -> Result<(), SealError> {
        let table = T::Row::TABLE;
        if table.name != self.table {
            return Ok(());
        }
        take_batches(table, rows, |rows| T::columns(rows, self.names), self.take)
    }
}

/// Passes `rows` to `take` as batches of at most [`BATCH_ROWS`], until `take` accepts no more.
fn take_batches<T>(
    table: Table,
    mut rows: impl Iterator<Item = T>,
    columns: impl Fn(&[T]) -> Vec<ArrayRef>,
    take: BatchVisitor<'_>,
) -> Result<(), SealError> {
    let schema = table.schema();
    loop {
        let chunk: Vec<T> = rows.by_ref().take(BATCH_ROWS).collect();
        if chunk.is_empty() || !take(RecordBatch::try_new(schema.clone(), columns(&chunk))?) {
            return Ok(());
        }
    }
}

/// Passes all slices to `take`, one part of the time range after another, and within a part lane by lane.
fn slices(store: &Store, names: &Names, take: BatchVisitor<'_>) -> Result<(), SealError> {
    let range = store.range();
    let parts = store.parts(range.start..range.end.saturating_add(1));
    let begins_in = |part: &Range<i64>, slice: &SliceRef| slice.start >= part.start || part.start == range.start;
    let lanes = || store.tracks().iter().flat_map(|track| &track.lanes);
    let rows = parts
        .iter()
        .flat_map(|part| lanes().flat_map(move |lane| lane.slices(part).filter(move |slice| begins_in(part, slice))));
    let columns = |rows: &[SliceRef]| {
        let mut group = RowGroup::with_capacity(rows.len());
        let args = rows.iter().map(|slice| {
            group.push(slice, SliceHeader::from_event(slice, store.sites()));
            store.args().get(slice.args)
        });
        let args: StringArray = args.collect();
        group.args = Some(Arc::new(args));
        group.arrays(store.sites(), names)
    };
    take_batches(SLICES, rows, columns, take)
}

/// Returns the folder with the files of the sealed trace at `path`, if it has the entire trace; `None` if there are
/// rings or chunk files next to the folder, whose events were collected after it was sealed.
#[must_use]
pub fn complete_folder(path: &Path) -> Option<PathBuf> {
    let folder = find_sealed(path).filter(|folder| folder.join(FILE_NAME).is_file())?;
    let is_inner = folder.file_name().is_some_and(|name| name == SEALED_FOLDER);
    let trace = if is_inner { folder.parent()? } else { return Some(folder) };
    let is_collected = |name: &str| is_chunk_file(name) || is_ring_file(name) || is_meta_file(name);
    let mut entries = std::fs::read_dir(trace).ok()?.flatten();
    let has_collected = entries.any(|entry| entry.file_name().to_str().is_some_and(is_collected));
    (!has_collected).then_some(folder)
}

/// Checks the files of a sealed folder against its list of checksums. Of files over 1 GiB only the footer is checked.
///
/// # Errors
/// Fails with the first file that differs from the written one, and the difference.
pub fn check(folder: &Path) -> Result<(), String> {
    let list = std::fs::read_to_string(folder.join(FILE_NAME)).map_err(|e| format!("{FILE_NAME}: {e}"))?;
    let sums = Checksums::parse(&list).ok_or_else(|| format!("{FILE_NAME}: it is damaged"))?;
    let meta = read(
        sums.read(folder, &MetaRow::TABLE.file_name()).map_err(|e| format!("{}: {e}", MetaRow::TABLE.file_name()))?,
    );
    let format = meta.ok().and_then(|rows| format_of(&rows)).unwrap_or_default();
    let version = version_of(&format)
        .ok_or_else(|| format!("{}: this program does not know the format {format:?}", MetaRow::TABLE.file_name()))?;
    for table in TABLES.iter().chain([&RingRow::TABLE]).filter(|table| table.since <= version) {
        let name = table.file_name();
        check_file(&sums, folder, &name).map_err(|e| format!("{name}: {e}"))?;
    }
    Ok(())
}

fn format_of(meta: &[RecordBatch]) -> Option<String> {
    let rows = meta.iter().filter_map(|batch| MetaRow::read(batch).ok()).flatten();
    rows.into_iter().find(|row| row.key == "format").map(|row| row.value.to_owned())
}

fn check_file(sums: &Checksums, folder: &Path, name: &str) -> Result<(), super::checksums::PartError> {
    let file = File::open(folder.join(name))?;
    sums.check_len(&file, name)?;
    let parts = sums.file_parts(name).unwrap_or_default();
    let n_skipped = if file.metadata()?.len() > MAX_CHECKED_BYTES { parts.len().saturating_sub(1) } else { 0 };
    parts[n_skipped..].iter().try_for_each(|part| read_part(&file, *part).map(|_| ()))
}
