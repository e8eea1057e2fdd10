//! The tables that a query can name: the meaning of a row, and the columns with their types and units.

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use std::sync::Arc;

/// The name of the last column of every table of a trace.
pub const TRACE_COLUMN: &str = "trace";

/// A table that a query can name.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// The name in queries.
    pub name: &'static str,
    /// The meaning of a row.
    pub about: &'static str,
    /// The columns; texts are string views.
    pub schema: SchemaRef,
}

impl TableInfo {
    /// The name, the SQL type and the unit of each column; the unit is empty where there is none.
    pub fn columns(&self) -> impl Iterator<Item = (&str, String, &'static str)> {
        let declared = trace_store::seal::tables().iter().find(|table| table.name == self.name);
        let unit = move |name: &str| {
            let column = declared.and_then(|table| table.columns.iter().find(|column| column.name == name));
            column.map_or_else(|| unit(name), trace_store::seal::Column::unit)
        };
        self.schema.fields().iter().map(move |field| (field.name().as_str(), type_name(field), unit(field.name())))
    }
}

/// The tables that a sealed trace stores, in the order of listings.
pub(crate) fn stored_tables() -> Vec<TableInfo> {
    let table = |table: &trace_store::seal::Table| TableInfo {
        name: table.name,
        about: table.about,
        schema: with_trace_column(table.schema().fields()),
    };
    trace_store::seal::tables().iter().map(table).collect()
}

/// The schema of a table of traces: string views for strings, and the column of the trace at the end.
pub(crate) fn with_trace_column(columns: &Fields) -> SchemaRef {
    let trace = Arc::new(trace_column());
    Arc::new(Schema::new(with_views(columns).iter().cloned().chain([trace]).collect::<Vec<_>>()))
}

/// Replaces strings and dictionaries by string views: DataFusion groups and compares views faster, and the views of a
/// file share its dictionary.
pub(crate) fn with_views(columns: &Fields) -> Fields {
    let view = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 | DataType::Dictionary(..) => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
        }
        _ => Arc::clone(field),
    };
    columns.iter().map(view).collect()
}

/// Replaces string views by strings: a batch of views that is sent takes its whole buffers along.
pub(crate) fn without_views(schema: &Schema) -> SchemaRef {
    let plain = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8View => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>()))
}

pub(crate) fn trace_column() -> Field {
    Field::new(TRACE_COLUMN, DataType::Utf8View, false)
}

fn type_name(field: &Field) -> String {
    let name = match field.data_type() {
        DataType::Int32 => "int",
        DataType::Int64 => "bigint",
        DataType::UInt32 => "int unsigned",
        DataType::UInt64 => "bigint unsigned",
        DataType::Float64 => "double",
        DataType::Utf8View | DataType::Utf8 => "text",
        other => return other.to_string(),
    };
    format!("{name}{}", if field.is_nullable() { "?" } else { "" })
}

/// The unit of a column, by its name.
fn unit(column: &str) -> &'static str {
    match column {
        "wall_time" | "last_wall_time" => "s since 1970",
        "bytes" => "bytes",
        "share" | "critical_share" => "0 to 1",
        _ if column.ends_with("ts_ns") => "ns from the trace's origin",
        _ if column.ends_with("_ns") => "ns",
        _ => "",
    }
}
