//! One Parquet file while it is written.

use super::SealError;
use super::checksums::{ChecksummedFile, FilePart};
use super::table::Table;
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions};
use parquet::file::writer::SerializedFileWriter;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

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
