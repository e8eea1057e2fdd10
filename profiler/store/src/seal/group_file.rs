//! `slices.parquet` while it is written, a row group at a time.

use super::SealError;
use super::checksums::{ChecksummedFile, FilePart};
use super::dictionary::Coder;
use super::file::TableFile;
use super::row_group::Column;
use super::schema::SLICES;
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use std::path::{Path, PathBuf};

pub(super) struct GroupFile {
    path: PathBuf,
    schema: SchemaRef,
    descrs: Vec<ColumnDescPtr>,
    writer: SerializedFileWriter<ChecksummedFile>,
    factory: ArrowRowGroupWriterFactory,
    coder: Coder,
}

impl GroupFile {
    pub(super) fn create(folder: &Path) -> Result<GroupFile, SealError> {
        let (path, (writer, factory)) = TableFile::create(folder, SLICES)?.into_parts()?;
        let descrs = writer.schema_descr().columns().to_vec();
        Ok(GroupFile { path, schema: SLICES.schema(), descrs, writer, factory, coder: Coder::new()? })
    }

    /// Writes rows, given as columns in the table's order, as a row group and a part of its own in the list of checksums.
    pub(super) fn write(&mut self, columns: [Column<'_>; 14]) -> Result<(), SealError> {
        let GroupFile { path, schema, descrs, writer, factory, coder } = self;
        let general = factory.create_column_writers(writer.flushed_row_groups().len())?;
        let mut group = writer.next_row_group()?;
        let places = descrs.iter().zip(schema.fields()).zip(general);
        for (column, ((descr, field), mut general)) in columns.into_iter().zip(places) {
            if let Some(chunk) = column.coded(coder, descr)? {
                group.append_column(&chunk.bytes, chunk.close)?;
            } else if let Column::Values(values) = column {
                for leaf in compute_leaves(field, &values)? {
                    general.write(&leaf)?;
                }
                general.close()?.append_to_row_group(&mut group)?;
            }
        }
        group.close()?;
        writer.flush().map_err(|e| SealError::Io(path.clone(), e))?;
        writer.inner_mut().cut();
        Ok(())
    }

    /// Writes the footer and waits until the file is on disk.
    pub(super) fn finish(self) -> Result<Vec<FilePart>, SealError> {
        self.writer.into_inner()?.finish().map_err(|e| SealError::Io(self.path, e))
    }
}
