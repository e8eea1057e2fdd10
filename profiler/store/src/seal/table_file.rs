//! Writes the Parquet file of one table.

use super::SealError;
use super::checksums::{ChecksummedFile, FilePart};
use super::names::Names;
use super::table::Table;
use super::table_columns::RowSource;
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions};
use parquet::file::writer::SerializedFileWriter;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Rows that are converted to columns at a time.
const CHUNK_ROWS: usize = 1 << 16;

/// A Parquet file that is being written, with its checksums.
pub(super) struct TableFile {
    table: Table,
    path: PathBuf,
    writer: ArrowWriter<ChecksummedFile>,
}

/// The writer of a file's row groups, and the factory of writers for their columns.
pub(super) type Writers = (SerializedFileWriter<ChecksummedFile>, ArrowRowGroupWriterFactory);

impl TableFile {
    pub(super) fn create(folder: &Path, table: Table) -> Result<TableFile, SealError> {
        let path = folder.join(table.file_name());
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = ChecksummedFile::new(file.map_err(|e| SealError::Io(path.clone(), e))?);
        // With Arrow's metadata other programs would see strings as dictionaries.
        let options = ArrowWriterOptions::new().with_properties(table.properties()?).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, table.schema(), options)?;
        Ok(TableFile { table, path, writer })
    }

    pub(super) fn table(&self) -> Table {
        self.table
    }

    /// Appends rows, [`CHUNK_ROWS`] at a time.
    pub(super) fn append<T: RowSource>(
        &mut self,
        mut rows: impl Iterator<Item = T>,
        names: &Names,
    ) -> Result<(), SealError> {
        loop {
            let chunk: Vec<T> = rows.by_ref().take(CHUNK_ROWS).collect();
            if chunk.is_empty() {
                return Ok(());
            }
            self.write(T::columns(&chunk, names))?;
        }
    }

    /// Appends rows from columns in the table's order.
    pub(super) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), SealError> {
        Ok(self.writer.write(&RecordBatch::try_new(self.table.schema(), columns)?)?)
    }

    /// The path, and the writers with which row groups are written column by column.
    pub(super) fn into_parts(self) -> Result<(PathBuf, Writers), SealError> {
        Ok((self.path, self.writer.into_serialized_writer()?))
    }

    /// Writes the footer and waits until the file is on disk.
    pub(super) fn finish(self) -> Result<Vec<FilePart>, SealError> {
        self.writer.into_inner()?.finish().map_err(|e| SealError::Io(self.path, e))
    }
}
