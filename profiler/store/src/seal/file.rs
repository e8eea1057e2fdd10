//! One Parquet file while it is written.

use super::SealError;
use super::checksums::{ChecksummedFile, FilePart};
use super::names::Names;
use super::table::Table;
use super::tables::Source;
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions};
use parquet::file::writer::SerializedFileWriter;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Rows that are made into columns at a time.
const ROWS: usize = 1 << 16;

pub(super) struct TableFile {
    table: Table,
    path: PathBuf,
    writer: ArrowWriter<ChecksummedFile>,
}

/// What puts row groups into a file, and what makes writers of their columns.
pub(super) type Writers = (SerializedFileWriter<ChecksummedFile>, ArrowRowGroupWriterFactory);

impl TableFile {
    pub(super) fn create(folder: &Path, table: Table) -> Result<TableFile, SealError> {
        let path = folder.join(table.file_name());
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = ChecksummedFile::new(file.map_err(|e| SealError::Io(path.clone(), e))?);
        // Without it other programs see strings as what they are.
        let options = ArrowWriterOptions::new().with_properties(table.properties()?).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, table.schema(), options)?;
        Ok(TableFile { table, path, writer })
    }

    pub(super) fn table(&self) -> Table {
        self.table
    }

    /// Appends rows, some at a time.
    pub(super) fn append<T: Source>(
        &mut self,
        mut rows: impl Iterator<Item = T>,
        names: &Names,
    ) -> Result<(), SealError> {
        loop {
            let some: Vec<T> = rows.by_ref().take(ROWS).collect();
            if some.is_empty() {
                return Ok(());
            }
            self.write(T::columns(&some, names))?;
        }
    }

    /// Appends rows, given as columns in the table's order.
    pub(super) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), SealError> {
        Ok(self.writer.write(&RecordBatch::try_new(self.table.schema(), columns)?)?)
    }

    /// The parts to write row groups column by column.
    pub(super) fn into_parts(self) -> Result<(PathBuf, Writers), SealError> {
        Ok((self.path, self.writer.into_serialized_writer()?))
    }

    /// Writes the footer and waits until the file is on disk.
    pub(super) fn finish(self) -> Result<Vec<FilePart>, SealError> {
        self.writer.into_inner()?.finish().map_err(|e| SealError::Io(self.path, e))
    }
}
