//! Column readers that accept integers of any width and strings of any Arrow type, so that files of other programs can
//! be
//! read.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use std::sync::Arc;

/// Why a table cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum TableError {
    #[error(transparent)]
    Part(#[from] super::checksums::PartError),
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
    #[error("its column {0} is missing or of another type")]
    Column(&'static str),
    #[error("its rows make no sense: {0}")]
    Rows(&'static str),
}

/// Reads the metadata of a Parquet file so that strings, except `args`, are read as dictionaries.
pub(super) fn open<R: ChunkReader>(reader: &R) -> Result<ArrowReaderMetadata, TableError> {
    let metadata = ArrowReaderMetadata::load(reader, ArrowReaderOptions::new().with_skip_arrow_metadata(true))?;
    let with_dictionary = |field: &Field| match field.data_type() {
        DataType::Utf8 if field.name() != "args" => {
            let by_dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            field.clone().with_data_type(by_dictionary)
        }
        _ => field.clone(),
    };
    let fields: Vec<Field> = metadata.schema().fields().iter().map(|field| with_dictionary(field)).collect();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
    Ok(ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?)
}

/// Reads all rows of a file that fits into memory.
pub(super) fn read(bytes: Bytes) -> Result<Vec<RecordBatch>, TableError> {
    let metadata = open(&bytes)?;
    let reader =
        ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata).with_batch_size(1 << 16).build()?;
    Ok(reader.collect::<Result<_, _>>()?)
}

/// A column of integers, widened to `i64`; a `u64` keeps its bits.
#[derive(Clone)]
pub(super) struct Ints {
    values: Vec<i64>,
    /// Whether each row is not null; `None` if no row is null.
    validity: Option<arrow_array::BooleanArray>,
}

impl Ints {
    pub(super) fn open(batch: &RecordBatch, name: &'static str) -> Result<Ints, TableError> {
        let column = batch.column_by_name(name).ok_or(TableError::Column(name))?;
        macro_rules! widen {
            ($type:ty) => {
                column.as_primitive::<$type>().values().iter().map(|v| *v as i64).collect()
            };
        }
        let values = match column.data_type() {
            DataType::Int8 => widen!(Int8Type),
            DataType::Int16 => widen!(Int16Type),
            DataType::Int32 => widen!(Int32Type),
            DataType::Int64 => column.as_primitive::<Int64Type>().values().to_vec(),
            DataType::UInt8 => widen!(UInt8Type),
            DataType::UInt16 => widen!(UInt16Type),
            DataType::UInt32 => widen!(UInt32Type),
            DataType::UInt64 => widen!(UInt64Type),
            _ => return Err(TableError::Column(name)),
        };
        let validity = column.nulls().map(|nulls| arrow_array::BooleanArray::new(nulls.inner().clone(), None));
        Ok(Ints { values, validity })
    }

    /// Opens a column; if the file lacks the column, all rows are null.
    pub(super) fn open_or_null(batch: &RecordBatch, name: &'static str) -> Result<Ints, TableError> {
        match batch.column_by_name(name) {
            Some(_) => Ints::open(batch, name),
            None => Ok(Ints { values: Vec::new(), validity: None }),
        }
    }

    /// The value of a row; `None` for null.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<i64> {
        if self.validity.as_ref().is_some_and(|validity| !validity.value(row)) {
            None
        } else {
            self.values.get(row).copied()
        }
    }

    /// The value of a row; 0 for null.
    #[inline]
    pub(super) fn value(&self, row: usize) -> i64 {
        self.get(row).unwrap_or(0)
    }

    /// The values of all rows; 0 for null.
    pub(super) fn or_zero(self) -> Vec<i64> {
        match &self.validity {
            Some(_) => (0..self.values.len()).map(|row| self.value(row)).collect(),
            None => self.values,
        }
    }

    /// The values of all rows as `u32`; `u32::MAX` for null.
    pub(super) fn ids(&self) -> Vec<u32> {
        match &self.validity {
            Some(_) => (0..self.values.len()).map(|row| self.id(row)).collect(),
            None => self.values.iter().map(|v| *v as u32).collect(),
        }
    }

    /// The value of a row as `u32`; `u32::MAX` for null.
    #[inline]
    pub(super) fn id(&self, row: usize) -> u32 {
        self.get(row).map_or(u32::MAX, |v| v as u32)
    }
}

/// Opens several columns with the same function.
pub(super) fn open_columns<'a, T, const N: usize>(
    batch: &'a RecordBatch,
    names: [&'static str; N],
    open: fn(&'a RecordBatch, &'static str) -> Result<T, TableError>,
) -> Result<[T; N], TableError> {
    let columns: Vec<T> = names.into_iter().map(|name| open(batch, name)).collect::<Result<_, _>>()?;
    columns.try_into().map_err(|_| TableError::Rows("columns are missing"))
}

/// A column of floating-point numbers.
pub(super) struct Floats<'a>(&'a Float64Array);

impl<'a> Floats<'a> {
    pub(super) fn open(batch: &'a RecordBatch, name: &'static str) -> Result<Floats<'a>, TableError> {
        let column = batch.column_by_name(name).ok_or(TableError::Column(name))?;
        Ok(Floats(column.as_primitive_opt::<Float64Type>().ok_or(TableError::Column(name))?))
    }

    /// Opens a column; `None` if the file lacks the column.
    pub(super) fn open_or_null(batch: &'a RecordBatch, name: &'static str) -> Result<Option<Floats<'a>>, TableError> {
        batch.column_by_name(name).map(|_| Floats::open(batch, name)).transpose()
    }

    /// The value of a row; `None` for null.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<f64> {
        self.0.is_valid(row).then(|| self.0.value(row))
    }
}

/// A column of strings.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    /// `None` if the file lacks the column, so that all rows are null.
    column: Option<&'a ArrayRef>,
}

impl<'a> Texts<'a> {
    pub(super) fn open(batch: &'a RecordBatch, name: &'static str) -> Result<Texts<'a>, TableError> {
        let column = batch.column_by_name(name).ok_or(TableError::Column(name))?;
        let is_text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        match column.data_type() {
            DataType::Dictionary(key, value) if **key == DataType::Int32 && is_text(value) => {}
            data_type if is_text(data_type) => {}
            _ => return Err(TableError::Column(name)),
        }
        Ok(Texts { column: Some(column) })
    }

    /// Opens a column; if the file lacks the column, all rows are null.
    pub(super) fn open_or_null(batch: &'a RecordBatch, name: &'static str) -> Result<Texts<'a>, TableError> {
        if batch.column_by_name(name).is_some() { Texts::open(batch, name) } else { Ok(Texts { column: None }) }
    }

    /// The text of a row; `None` for null.
    pub(super) fn get(&self, row: usize) -> Option<&'a str> {
        let column = self.column?;
        match column.as_dictionary_opt::<Int32Type>() {
            Some(by_dictionary) => text(by_dictionary.values(), by_dictionary.key(row)?),
            None => text(column, row),
        }
    }

    /// The text of a row; empty for null.
    pub(super) fn value(&self, row: usize) -> &'a str {
        self.get(row).unwrap_or("")
    }

    /// The dictionary and, for each row, the key into it, `u32::MAX` for null; `None` if the column has no dictionary.
    /// With the dictionary a reader resolves each distinct text once.
    pub(super) fn keys(&self) -> Option<(Vec<u32>, &'a ArrayRef)> {
        let by_dictionary = self.column?.as_dictionary_opt::<Int32Type>()?;
        let (keys, values) = (by_dictionary.keys(), by_dictionary.keys().values());
        let keys = match keys.nulls() {
            Some(nulls) => {
                values.iter().zip(nulls).map(|(key, is_valid)| if is_valid { *key as u32 } else { u32::MAX }).collect()
            }
            None => values.iter().map(|key| *key as u32).collect(),
        };
        Some((keys, by_dictionary.values()))
    }
}

/// The text of a row of a column of strings without a dictionary; `None` for null and past the end.
pub(super) fn text(column: &ArrayRef, row: usize) -> Option<&str> {
    if row >= column.len() || column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8 => Some(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(column.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(column.as_string_view().value(row)),
        _ => None,
    }
}
