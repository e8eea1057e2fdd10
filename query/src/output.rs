//! Writes rows as an aligned table, CSV, JSON or Parquet.

use crate::error::QueryError;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{Field, FieldRef, Float64Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{LineDelimited, NullableEncoder, WriterBuilder};
use datafusion::arrow::json::{Encoder, EncoderFactory, EncoderOptions};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::sync::Arc;
use text::{Align, Columns};

/// The most characters of a cell of a table; longer texts end with an ellipsis.
const MAX_CELL_CHARS: usize = 60;
/// The number of rows that determine the widths of a table's columns; wider cells in later rows shift their line.
const N_MEASURED_ROWS: usize = 1000;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns; numbers right-aligned, long texts cut, null empty.
    Table,
    /// A header line, then a line per row; quoted where necessary (RFC 4180), null empty.
    Csv,
    /// An object per line, with all columns; NaN and infinities, which JSON does not have, as strings.
    Json,
    /// A Parquet file, compressed with zstd.
    Parquet,
}

/// Rows as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryResult {
    /// The columns' names.
    pub columns: Vec<String>,
    /// Whether each column holds numbers.
    pub are_numbers: Vec<bool>,
    /// The rows, with a cell for each column; null is empty.
    pub rows: Vec<Vec<String>>,
    /// Whether the query has more rows.
    pub has_more: bool,
}

impl QueryResult {
    /// A result with the columns of a schema and no rows.
    pub(crate) fn with_schema(schema: &Schema) -> QueryResult {
        let fields = schema.fields();
        QueryResult {
            columns: fields.iter().map(|field| field.name().clone()).collect(),
            are_numbers: fields.iter().map(|field| field.data_type().is_numeric()).collect(),
            ..QueryResult::default()
        }
    }
}

/// The cells of each row as text; null is empty.
pub(crate) fn cells(batch: &RecordBatch) -> Result<Vec<Vec<String>>, QueryError> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(from_arrow_error)?;
    let row = |row| columns.iter().map(|column| column.value(row).try_to_string()).collect::<Result<_, _>>();
    (0..batch.num_rows()).map(row).collect::<Result<_, _>>().map_err(from_arrow_error)
}

/// Writes batches of one schema.
pub(crate) enum Writer<'a> {
    Table(AlignedColumns<'a>),
    Csv(Box<csv::Writer<&'a mut (dyn Write + Send)>>),
    Json(datafusion::arrow::json::Writer<&'a mut (dyn Write + Send), LineDelimited>),
    Parquet(Box<ArrowWriter<&'a mut (dyn Write + Send)>>),
}

impl<'a> Writer<'a> {
    pub(crate) fn new(format: Format, schema: SchemaRef, out: &'a mut (dyn Write + Send)) -> Result<Self, QueryError> {
        Ok(match format {
            Format::Table => Writer::Table(AlignedColumns::new(&schema, out)),
            Format::Csv => {
                let mut writer = csv::WriterBuilder::new().with_header(true).build(out);
                // An empty batch writes the header, which a result without rows has, too.
                writer.write(&RecordBatch::new_empty(schema)).map_err(from_arrow_error)?;
                Writer::Csv(Box::new(writer))
            }
            Format::Json => {
                let builder =
                    WriterBuilder::new().with_explicit_nulls(true).with_encoder_factory(Arc::new(FloatEncoderFactory));
                Writer::Json(builder.build(out))
            }
            Format::Parquet => Writer::Parquet(Box::new(parquet_writer(&schema, out).map_err(from_parquet_error)?)),
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        match self {
            Writer::Table(writer) => writer.write(batch),
            Writer::Csv(writer) => writer.write(batch).map_err(from_arrow_error),
            Writer::Json(writer) => writer.write(batch).map_err(from_arrow_error),
            Writer::Parquet(writer) => writer.write(batch).map_err(from_parquet_error),
        }
    }

    pub(crate) fn finish(self) -> Result<(), QueryError> {
        match self {
            Writer::Table(mut writer) => Ok(writer.flush()?),
            Writer::Csv(writer) => Ok(writer.into_inner().flush()?),
            Writer::Json(mut writer) => writer.finish().map_err(from_arrow_error),
            Writer::Parquet(writer) => writer.close().map(|_| ()).map_err(from_parquet_error),
        }
    }
}

fn parquet_writer<'a>(
    schema: &SchemaRef,
    out: &'a mut (dyn Write + Send),
) -> Result<ArrowWriter<&'a mut (dyn Write + Send)>, ParquetError> {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1)?);
    let properties = WriterProperties::builder().set_compression(zstd).set_created_by("stepscope".to_owned()).build();
    // Arrow's schema is left out: it forbids two columns of one name, and it would declare string views, which without
    // it are plain strings to other readers.
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    ArrowWriter::try_new_with_options(out, Arc::clone(schema), options)
}

fn from_arrow_error(error: ArrowError) -> QueryError {
    match error {
        ArrowError::IoError(_, error) => QueryError::Output(error),
        // The CSV writer reports the kind of an I/O error only in the text.
        ArrowError::CsvError(text) if text.contains("Broken pipe") => {
            QueryError::Output(io::Error::new(io::ErrorKind::BrokenPipe, text))
        }
        other => QueryError::Failed(other.to_string()),
    }
}

fn from_parquet_error(error: ParquetError) -> QueryError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => QueryError::Output(*error),
            Err(inner) => QueryError::Failed(inner.to_string()),
        },
        other => QueryError::Failed(other.to_string()),
    }
}

/// Writes floats in JSON: NaN and infinities, which JSON does not have, as strings.
#[derive(Debug)]
struct FloatEncoderFactory;

struct FloatEncoder<'a>(&'a [f64]);

impl EncoderFactory for FloatEncoderFactory {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let floats = array.as_primitive_opt::<Float64Type>();
        Ok(floats.map(|floats| NullableEncoder::new(Box::new(FloatEncoder(floats.values())), floats.nulls().cloned())))
    }
}

impl Encoder for FloatEncoder<'_> {
    fn encode(&mut self, idx: usize, out: &mut Vec<u8>) {
        let value = self.0[idx];
        let text = if value.is_finite() { format!("{value:?}") } else { format!("\"{value}\"") };
        out.extend_from_slice(text.as_bytes());
    }
}

/// Writes a table with aligned columns.
pub(crate) struct AlignedColumns<'a> {
    out: &'a mut (dyn Write + Send),
    titles: Vec<String>,
    columns: Columns,
    /// The rows that determine the widths; `None` once the widths are known.
    buffered_rows: Option<Vec<Vec<String>>>,
}

impl<'a> AlignedColumns<'a> {
    fn new(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Self {
        let fields = || schema.fields().iter().map(AsRef::as_ref);
        let align = |field: &Field| if field.data_type().is_numeric() { Align::Right } else { Align::Left };
        let titles: Vec<String> = fields().map(|field: &Field| cell_text(field.name())).collect();
        AlignedColumns { out, columns: Columns::new(fields().map(align)), titles, buffered_rows: Some(Vec::new()) }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        for cells in cells(batch)? {
            let cells: Vec<String> = cells.iter().map(|text| cell_text(text)).collect();
            match &mut self.buffered_rows {
                None => self.write_line(&cells)?,
                Some(buffered_rows) => {
                    buffered_rows.push(cells);
                    if buffered_rows.len() == N_MEASURED_ROWS {
                        self.write_buffered()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Determines the widths, and writes the titles and the rows so far.
    fn write_buffered(&mut self) -> io::Result<()> {
        let Some(rows) = self.buffered_rows.take() else { return Ok(()) };
        let titles = std::mem::take(&mut self.titles);
        std::iter::once(&titles).chain(&rows).for_each(|cells| self.columns.measure(cells));
        std::iter::once(&titles).chain(&rows).try_for_each(|cells| self.write_line(cells))
    }

    fn write_line(&mut self, cells: &[String]) -> io::Result<()> {
        writeln!(self.out, "{}", self.columns.line(cells))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_buffered()?;
        self.out.flush()
    }
}

/// A cell's text on one line, with control characters escaped, and cut at [`MAX_CELL_CHARS`].
fn cell_text(text: &str) -> String {
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == MAX_CELL_CHARS {
            out.pop();
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringViewArray};

    fn write_to_string(format: Format, batch: &RecordBatch) -> String {
        let mut out = Vec::new();
        let mut writer = Writer::new(format, batch.schema(), &mut out).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    fn batch() -> RecordBatch {
        let names: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a,\"b\""), None, Some("\u{1b}[2Jü")]));
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(-123_456), None]));
        let values: ArrayRef = Arc::new(Float64Array::from(vec![0.1, f64::NAN, f64::NEG_INFINITY]));
        RecordBatch::try_from_iter([("name", names), ("count", counts), ("value", values)]).unwrap()
    }

    #[test]
    fn rows_are_written_in_each_format() {
        let batch = batch();
        let table = [
            "name          count  value",
            "a,\"b\"             7    0.1",
            "            -123456    NaN",
            "\\u{1b}[2Jü            -inf\n",
        ]
        .join("\n");
        assert_eq!(write_to_string(Format::Table, &batch), table);
        assert_eq!(
            write_to_string(Format::Csv, &batch),
            "name,count,value\n\"a,\"\"b\"\"\",7,0.1\n,-123456,NaN\n\u{1b}[2Jü,,-inf\n"
        );
        let json = write_to_string(Format::Json, &batch);
        assert_eq!(json.lines().next(), Some(r#"{"name":"a,\"b\"","count":7,"value":0.1}"#));
        assert_eq!(json.lines().nth(1), Some(r#"{"name":null,"count":-123456,"value":"NaN"}"#));
    }

    #[test]
    fn no_rows_have_titles_too() {
        let empty = RecordBatch::new_empty(batch().schema());
        assert_eq!(write_to_string(Format::Table, &empty), "name  count  value\n");
        assert_eq!(write_to_string(Format::Csv, &empty), "name,count,value\n");
        assert_eq!(write_to_string(Format::Json, &empty), "");
    }

    #[test]
    fn long_cells_are_cut() {
        assert_eq!(cell_text(&"é".repeat(MAX_CELL_CHARS)).chars().count(), MAX_CELL_CHARS);
        let cut = cell_text(&"é".repeat(MAX_CELL_CHARS + 1));
        assert!(cut.chars().count() == MAX_CELL_CHARS && cut.ends_with('…'));
    }
}
