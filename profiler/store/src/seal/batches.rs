//! The tables of a store as record batches: the rows and columns that a sealed trace has in its files, for who asks by SQL.

use super::checksums::{Checksums, FILE_NAME, read_part};
use super::columns::read;
use super::names::Names;
use super::row_group::RowGroup;
use super::schema::{MetaRow, RingRow, SIDES, SLICES, TABLES, version_of};
use super::table::{StoredRow, Table};
use super::tables::{FINAL, Sink, Source, columns, give_sides};
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

/// Rows of a batch.
const ROWS: usize = 1 << 14;
/// Larger files of slices are not read to be checked.
const CHECKED: u64 = 1 << 30;

/// Takes a batch; false where no more are wanted.
pub type Take<'a> = &'a mut dyn FnMut(RecordBatch) -> bool;

/// The tables of a trace.
#[must_use]
pub fn tables() -> &'static [Table] {
    const { &TABLES }
}

/// The tables other than the slices, each as a Parquet file in memory, with its name.
///
/// # Errors
/// That the columns cannot be coded.
pub(crate) fn side_files(store: &Store) -> Result<Vec<(&'static str, Bytes)>, SealError> {
    let sides = TABLES.iter().filter(|table| table.name != SLICES.name);
    sides.map(|table| Ok((table.name, table_file(store, *table)?))).collect()
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

/// Gives all rows of a table of [`tables`](tables()), some at a time; none of another.
///
/// # Errors
/// That the columns do not fit together.
pub fn batches(store: &Store, table: &str, take: Take<'_>) -> Result<(), SealError> {
    let names = &Names::of(store);
    if table == SLICES.name {
        return slices(store, names, take);
    }
    if SIDES.iter().any(|side| side.name == table) {
        return give_sides(store, &mut OneTable { table, names, take });
    }
    let whole = if table == MetaRow::TABLE.name {
        Some((MetaRow::TABLE, columns::<MetaRow<'_>, _>(&writer::meta(store, store.stats().slices), names)))
    } else {
        FINAL.into_iter().find(|(whole, _)| whole.name == table).map(|(whole, columns)| (whole, columns(store, names)))
    };
    if let Some((whole, columns)) = whole {
        take(RecordBatch::try_new(whole.schema(), columns)?);
    }
    Ok(())
}

/// Takes the rows of a side table.
struct OneTable<'a> {
    table: &'a str,
    names: &'a Names,
    take: Take<'a>,
}

impl Sink for OneTable<'_> {
    fn take<T: Source>(&mut self, rows: impl Iterator<Item = T>) -> Result<(), SealError> {
        let table = T::Row::TABLE;
        if table.name != self.table {
            return Ok(());
        }
        give(table, rows, |rows| T::columns(rows, self.names), self.take)
    }
}

fn give<T>(
    table: Table,
    mut rows: impl Iterator<Item = T>,
    columns: impl Fn(&[T]) -> Vec<ArrayRef>,
    take: Take<'_>,
) -> Result<(), SealError> {
    let schema = table.schema();
    loop {
        let some: Vec<T> = rows.by_ref().take(ROWS).collect();
        if some.is_empty() || !take(RecordBatch::try_new(schema.clone(), columns(&some))?) {
            return Ok(());
        }
    }
}

/// Lane by lane, a part of the time after the other.
fn slices(store: &Store, names: &Names, take: Take<'_>) -> Result<(), SealError> {
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
            group.push(slice, SliceHeader::of(slice, store.sites()));
            store.args().get(slice.args)
        });
        let args: StringArray = args.collect();
        group.args = Some(Arc::new(args));
        group.arrays(store.sites(), names)
    };
    give(SLICES, rows, columns, take)
}

/// The folder with the files of a sealed trace, where it has all that the trace at `path` has: nothing was collected after
/// it was sealed.
#[must_use]
pub fn whole_folder(path: &Path) -> Option<PathBuf> {
    let folder = find_sealed(path).filter(|folder| folder.join(FILE_NAME).is_file())?;
    let is_inner = folder.file_name().is_some_and(|name| name == SEALED_FOLDER);
    let trace = if is_inner { folder.parent()? } else { return Some(folder) };
    let is_collected = |name: &str| is_chunk_file(name) || is_ring_file(name) || is_meta_file(name);
    let mut entries = std::fs::read_dir(trace).ok()?.flatten();
    let is_alone = !entries.any(|entry| entry.file_name().to_str().is_some_and(is_collected));
    is_alone.then_some(folder)
}

/// Checks the files of a sealed folder against its list of checksums; the slices up to 1 GiB, of larger ones the footer.
///
/// # Errors
/// The first file that is not what was written, and why.
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
    let parts = sums.parts(name).unwrap_or_default();
    let skipped = if file.metadata()?.len() > CHECKED { parts.len().saturating_sub(1) } else { 0 };
    parts[skipped..].iter().try_for_each(|part| read_part(&file, *part).map(|_| ()))
}
