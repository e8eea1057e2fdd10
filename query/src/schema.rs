//! The tables that a query can name: what a row is, and the columns with their types and units.

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use std::sync::Arc;

/// The column that every table of a trace ends with.
pub const TRACE: &str = "trace";

/// The meaning of a row of each table; `?` after a type: may be null.
const ABOUT: &[(&str, &str)] = &[
    ("slices", "work with a begin and an end"),
    ("tracks", "a row of the timeline: a thread, a stream, a CPU"),
    ("processes", "a process"),
    ("steps", "an execution of the graph"),
    ("nodes", "a node of the graph, on a device"),
    ("flows", "an arrow between two tracks; an end that did not come is null"),
    ("counters", "a value from a time on"),
    ("instants", "something at one time: a log message, a sample"),
    ("memory", "bytes allocated or (negative) freed"),
    ("transfers", "a value's way between devices, with its five stamps"),
    ("open_slices", "what had begun and not ended"),
    ("sites", "what slices, counters and instants are called"),
    ("stacks", "a call stack: its caller's and one more frame; a sample's arg is its stack_id"),
    ("frames", "a place in code"),
    ("functions", "the functions of a frame, of those inlined into each other the outer one first"),
    ("warnings", "what the user has to know of a trace"),
    ("meta", "a trace's origin, range, format and hosts, as text"),
];

/// A table of which rows can be asked for.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// As queries say it.
    pub name: &'static str,
    /// The meaning of a row.
    pub about: &'static str,
    /// The columns; texts are string views.
    pub schema: SchemaRef,
}

impl TableInfo {
    /// Each column with its type in SQL's words and its unit, which is empty where it has none.
    pub fn columns(&self) -> impl Iterator<Item = (&str, String, &'static str)> {
        self.schema.fields().iter().map(|field| (field.name().as_str(), type_name(field), unit(field.name())))
    }
}

/// The tables that a trace's files have, in the order in which they are listed.
pub(crate) fn stored() -> Vec<TableInfo> {
    let kept: Vec<(&str, SchemaRef)> = profiler::seal::tables().collect();
    let table = |(name, about): &(&'static str, &'static str)| {
        let (_, schema) = kept.iter().find(|(kept, _)| kept == name)?;
        Some(TableInfo { name, about, schema: of_trace(schema.fields()) })
    };
    ABOUT.iter().filter_map(table).collect()
}

/// The columns of a table whose rows come of traces: with strings as views, and the trace at the end.
pub(crate) fn of_trace(columns: &Fields) -> SchemaRef {
    let trace = Arc::new(trace_column());
    Arc::new(Schema::new(with_views(columns).iter().cloned().chain([trace]).collect::<Vec<_>>()))
}

/// Of texts views: DataFusion groups and compares them faster than dictionaries, and those of a file share its dictionary.
pub(crate) fn with_views(columns: &Fields) -> Fields {
    let view = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 | DataType::Dictionary(..) => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
        }
        _ => Arc::clone(field),
    };
    columns.iter().map(view).collect()
}

/// The same with texts as such: a batch of views takes the whole of its buffers along wherever it is sent.
pub(crate) fn without_views(schema: &Schema) -> SchemaRef {
    let plain = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8View => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>()))
}

pub(crate) fn trace_column() -> Field {
    Field::new(TRACE, DataType::Utf8View, false)
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
        "ns_per_tick" => "ns",
        "wall_time" | "last_wall_time" => "s since 1970",
        "bytes" => "bytes",
        "share" | "critical_share" => "0 to 1",
        _ if column.ends_with("ts_ns") => "ns from the trace's origin",
        "enqueued_ns" | "sent_ns" | "left_ns" | "arrived_ns" | "unblocked_ns" => "ns from the trace's origin",
        _ if column.ends_with("_ns") => "ns",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_table_is_told_of() {
        let listed: Vec<&str> = stored().iter().map(|table| table.name).collect();
        let mut kept: Vec<&str> = profiler::seal::tables().map(|(name, _)| name).collect();
        kept.retain(|name| !listed.contains(name));
        assert!(kept.is_empty(), "no line in ABOUT for {kept:?}");
        assert_eq!(listed.len(), ABOUT.len());
    }
}
