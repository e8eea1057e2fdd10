//! Declares the tables of a sealed trace. Schema, encoding, writer, reader, SQL listing and documentation of a table
//! follow from its declaration.

use super::columns::{Floats, Ints, TableError, Texts};
use super::names::{Names, text_column};
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;
use trace_model::TrackId;

/// Number of rows of a row group of `slices.parquet`.
pub(super) const GROUP_ROWS: usize = 1 << 17;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A floating-point number of 64 bits.
    F64,
    /// Text that repeats, and therefore has a dictionary.
    Text,
    /// Text that hardly repeats, and therefore has no dictionary.
    LongText,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Type of the values.
    pub kind: Kind,
    /// Whether values may be null.
    pub is_nullable: bool,
    /// Meaning of a value, and after a semicolon its unit.
    about: &'static str,
}

impl Column {
    pub(super) const fn new(name: &'static str, kind: Kind, is_nullable: bool, about: &'static str) -> Column {
        Column { name, kind, is_nullable, about }
    }

    /// Meaning of a value.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.about.split_once("; ").map_or(self.about, |(about, _)| about)
    }

    /// Unit of a value, empty where it has none.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.about.split_once("; ").map_or("", |(_, unit)| unit)
    }

    /// Whether values mostly grow, so that they are delta-encoded.
    fn is_delta(&self) -> bool {
        self.name.ends_with("_ns") || ["step", "correlation", "arg", "number", "ordinal"].contains(&self.name)
    }

    fn field(&self) -> Field {
        let data = match self.kind {
            Kind::I32 => DataType::Int32,
            Kind::I64 => DataType::Int64,
            Kind::U32 => DataType::UInt32,
            Kind::U64 => DataType::UInt64,
            Kind::F64 => DataType::Float64,
            Kind::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Kind::LongText => DataType::Utf8,
        };
        Field::new(self.name, data, self.is_nullable)
    }
}

/// A table and its columns.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name, which with `.parquet` is also the name of the file.
    pub name: &'static str,
    /// Meaning of a row.
    pub about: &'static str,
    /// The columns in order.
    pub columns: &'static [Column],
    /// First version of the format that has the table.
    pub(super) since: u32,
}

impl Table {
    /// Name of the file.
    pub(super) fn file_name(&self) -> String {
        format!("{}.parquet", self.name)
    }

    /// The columns as an Arrow schema.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.columns.iter().map(Column::field).collect::<Vec<_>>()))
    }

    /// The encoding of the columns: differences for numbers that grow, a dictionary for repeating values, zstd for all.
    pub(super) fn properties(&self) -> ParquetResult<WriterProperties> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by("stepscope".to_owned());
        for column in self.columns {
            let path = ColumnPath::from(column.name);
            if column.is_delta() {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
            }
            if column.kind == Kind::LongText || (column.kind == Kind::F64 && !column.is_nullable) {
                properties = properties.set_column_dictionary_enabled(path.clone(), false);
            }
            if column.name.ends_with("ts_ns") {
                properties = properties.set_column_statistics_enabled(path, EnabledStatistics::Page);
            }
        }
        Ok(properties.build())
    }
}

/// A row of a table, one field per column.
pub(super) trait StoredRow<'a>: Sized {
    const TABLE: Table;

    /// Returns the columns of these rows.
    fn arrays(rows: &[Self], names: &Names) -> Vec<ArrayRef>;

    /// Reads the rows of a batch.
    fn read(batch: &'a RecordBatch) -> Result<Vec<Self>, TableError>;
}

/// A value of a column.
pub(super) trait Cell<'a>: Copy {
    const KIND: Kind;
    const IS_NULLABLE: bool = false;
    type Reader;

    fn array(values: impl Iterator<Item = Self> + Clone, names: &Names) -> ArrayRef;
    fn reader(batch: &'a RecordBatch, name: &'static str) -> Result<Self::Reader, TableError>;
    fn read(reader: &Self::Reader, row: usize) -> Self;
}

/// A row of another table; `u32::MAX` for none, which is null in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Id(pub(super) u32);

/// Implements [`Cell`] for types, each with its kind, whether values may be null, the expression that makes an array,
/// the reader, the function that opens a reader, and the expression that reads a row.
macro_rules! cells {
    ($($type:ty: $kind:ident, $is_nullable:literal, |$values:ident| $array:expr, $reader:ty, $open:expr, |$column:ident, $row:ident| $value:expr;)*) => {$(
        impl<'a> Cell<'a> for $type {
            const KIND: Kind = Kind::$kind;
            const IS_NULLABLE: bool = $is_nullable;
            type Reader = $reader;

            fn array($values: impl Iterator<Item = Self> + Clone, _: &Names) -> ArrayRef {
                $array
            }

            fn reader(batch: &'a RecordBatch, name: &'static str) -> Result<Self::Reader, TableError> {
                $open(batch, name)
            }

            #[inline]
            fn read($column: &Self::Reader, $row: usize) -> Self {
                $value
            }
        }
    )*};
}

cells! {
    u32: U32, false, |v| Arc::new(UInt32Array::from_iter_values(v)), Ints, Ints::open, |ints, row| ints.id(row);
    u64: U64, false, |v| Arc::new(UInt64Array::from_iter_values(v)), Ints, Ints::open, |ints, row| ints.value(row).cast_unsigned();
    i32: I32, false, |v| Arc::new(Int32Array::from_iter_values(v)), Ints, Ints::open, |ints, row| ints.value(row) as i32;
    i64: I64, false, |v| Arc::new(Int64Array::from_iter_values(v)), Ints, Ints::open, |ints, row| ints.value(row);
    f64: F64, false, |v| Arc::new(Float64Array::from_iter_values(v)), Floats<'a>, Floats::open, |floats, row| floats.get(row).unwrap_or(0.0);
    Option<u64>: U64, true, |v| Arc::new(UInt64Array::from_iter(v)), Ints, Ints::open_or_null, |ints, row| ints.get(row).map(i64::cast_unsigned);
    Option<i64>: I64, true, |v| Arc::new(Int64Array::from_iter(v)), Ints, Ints::open_or_null, |ints, row| ints.get(row);
    Option<f64>: F64, true, |v| Arc::new(Float64Array::from_iter(v)), Option<Floats<'a>>, Floats::open_or_null, |floats, row| floats.as_ref()?.get(row);
    Id: U32, true, |v| Arc::new(UInt32Array::from_iter(v.map(Id::get))), Ints, Ints::open_or_null, |ints, row| Id(ints.id(row));
    &'a str: Text, false, |v| text_column(v.map(Some)), Texts<'a>, Texts::open, |texts, row| texts.value(row);
    Option<&'a str>: Text, true, |v| text_column(v), Texts<'a>, Texts::open_or_null, |texts, row| texts.get(row);
}

impl Id {
    /// The row, if there is one.
    pub(super) fn get(self) -> Option<u32> {
        (self.0 != u32::MAX).then_some(self.0)
    }
}

impl From<Option<TrackId>> for Id {
    fn from(track: Option<TrackId>) -> Id {
        Id(track.map_or(u32::MAX, |track| track.0))
    }
}

/// Defines cells with names for other programs. This program reads the row of the site or node instead of the name.
macro_rules! name_cells {
    ($($(#[$about:meta])* $type:ident, $is_nullable:literal, $names:ident;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $type(pub(super) u32);

        impl<'a> Cell<'a> for $type {
            const KIND: Kind = Kind::Text;
            const IS_NULLABLE: bool = $is_nullable;
            type Reader = ();

            fn array(values: impl Iterator<Item = Self> + Clone, names: &Names) -> ArrayRef {
                names.$names.column(values.map(|row| row.0))
            }

            fn reader(_: &'a RecordBatch, _: &'static str) -> Result<(), TableError> {
                Ok(())
            }

            fn read(_: &(), _: usize) -> Self {
                $type(u32::MAX)
            }
        }
    )*};
}

name_cells! {
    /// Name of a site.
    SiteName, false, site_names;
    /// Category of a site.
    SiteCategory, false, site_categories;
    /// Name of a node.
    NodeName, true, node_names;
}

/// Declares a table by the type of its rows: the value that a row is made from, the table's name, the meaning of a row,
/// the first version that has the table; and for each column type, value, meaning, and after a semicolon the unit.
macro_rules! table {
    ($row:ident $(<$life:lifetime>)?, $from:ty as $source:pat, $name:literal, $about:literal, since $since:literal, {
        $($field:ident: $type:ty = $value:expr, $meaning:literal;)*
    }) => {
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $row $(<$life>)? {
            $(pub(super) $field: $type,)*
        }

        impl<'a> From<$from> for $row $(<$life>)? {
            fn from($source: $from) -> Self {
                Self { $($field: $value,)* }
            }
        }

        impl<'a> StoredRow<'a> for $row $(<$life>)? {
            const TABLE: Table = Table {
                name: $name,
                about: $about,
                since: $since,
                columns: &[$(Column::new(
                    stringify!($field),
                    <$type as Cell<'a>>::KIND,
                    <$type as Cell<'a>>::IS_NULLABLE,
                    $meaning,
                )),*],
            };

            fn arrays(rows: &[Self], names: &Names) -> Vec<ArrayRef> {
                vec![$(<$type as Cell<'a>>::array(rows.iter().map(|row| row.$field), names)),*]
            }

            fn read(batch: &'a RecordBatch) -> Result<Vec<Self>, TableError> {
                $(let $field = <$type as Cell<'a>>::reader(batch, stringify!($field))?;)*
                let row = |i| $row { $($field: <$type as Cell<'a>>::read(&$field, i)),* };
                Ok((0..batch.num_rows()).map(row).collect())
            }
        }
    };
}
pub(super) use table;
