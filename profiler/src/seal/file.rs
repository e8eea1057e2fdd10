//! One Parquet file while it is written.

use super::SealError;
use super::checksums::{Part, Summed};
use super::schema::Table;
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// See the module's notes.
pub(super) struct TableFile {
    table: Table,
    path: PathBuf,
    writer: ArrowWriter<Summed>,
}

impl TableFile {
    pub(super) fn create(folder: &Path, table: Table) -> Result<TableFile, SealError> {
        let path = folder.join(table.file_name());
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = Summed::new(file.map_err(|e| SealError::Io(path.clone(), e))?);
        // Without it other programs see strings as what they are.
        let options = ArrowWriterOptions::new().with_properties(table.properties()?).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, table.schema(), options)?;
        Ok(TableFile { table, path, writer })
    }

    /// Appends rows, given as columns in the table's order.
    pub(super) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), SealError> {
        Ok(self.writer.write(&RecordBatch::try_new(self.table.schema(), columns)?)?)
    }

    /// What was written since the last call is a row group, and a part of its own in the list of checksums.
    pub(super) fn end_group(&mut self) -> Result<(), SealError> {
        self.writer.flush()?;
        self.writer.sync().map_err(|e| SealError::Io(self.path.clone(), e))?;
        self.writer.inner_mut().cut();
        Ok(())
    }

    /// Writes the footer and waits until the file is on disk.
    pub(super) fn finish(self) -> Result<Vec<Part>, SealError> {
        self.writer.into_inner()?.finish().map_err(|e| SealError::Io(self.path, e))
    }
}
