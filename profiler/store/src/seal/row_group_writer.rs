//! Writes `slices.parquet`, one row group at a time.

use super::SealError;
use super::checksums::{ChecksummedFile, FilePart};
use super::dictionary::DictionaryEncoder;
use super::row_group::Column;
use super::schema::SLICES;
use super::table_file::TableFile;
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use std::path::{Path, PathBuf};

/// A `slices.parquet` that is being written.
pub(super) struct RowGroupWriter {
    path: PathBuf,
    schema: SchemaRef,
    descrs: Vec<ColumnDescPtr>,
    writer: SerializedFileWriter<ChecksummedFile>,
    factory: ArrowRowGroupWriterFactory,
    encoder: DictionaryEncoder,
}

impl RowGroupWriter {
    pub(super) fn create(folder: &Path) -> Result<RowGroupWriter, SealError> {
        let (path, (writer, factory)) = TableFile::create(folder, SLICES)?.into_parts()?;
        let descrs = writer.schema_descr().columns().to_vec();
        Ok(RowGroupWriter {
            path,
            schema: SLICES.schema(),
            descrs,
            writer,
            factory,
            encoder: DictionaryEncoder::new()?,
        })
    }

    /// Writes a row group from columns in the table's order, as a part of its own in the list of checksums.
    pub(super) fn write(&mut self, columns: [Column<'_>; 14]) -> Result<(), SealError> {
        let RowGroupWriter { path, schema, descrs, writer, factory, encoder } = self;
        let arrow_writers = factory.create_column_writers(writer.flushed_row_groups().len())?;
        let mut group = writer.next_row_group()?;
        let targets = descrs.iter().zip(schema.fields()).zip(arrow_writers);
        for (column, ((descr, field), mut arrow_writer)) in columns.into_iter().zip(targets) {
            if let Some(chunk) = column.encode(encoder, descr)? {
                group.append_column(&chunk.bytes, chunk.close)?;
            } else if let Column::Values(values) = column {
                for leaf in compute_leaves(field, &values)? {
                    arrow_writer.write(&leaf)?;
                }
                arrow_writer.close()?.append_to_row_group(&mut group)?;
            }
        }
        group.close()?;
        writer.flush().map_err(|e| SealError::Io(path.clone(), e))?;
        writer.inner_mut().end_part();
        Ok(())
    }

    /// Writes the footer and waits until the file is on disk.
    pub(super) fn finish(self) -> Result<Vec<FilePart>, SealError> {
        self.writer.into_inner()?.finish().map_err(|e| SealError::Io(self.path, e))
    }
}
