//! The tables of a sealed trace: their columns, and how Parquet codes them.

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// What `meta` says that the tables are, before the version.
pub(super) const FORMAT: &str = "stepscope trace";
/// The version that is written. Version 1 has no call stacks, and no arguments of instants.
pub(super) const VERSION: u32 = 2;
/// Rows of a row group of `slices.parquet`.
pub(super) const GROUP_ROWS: usize = 1 << 17;

/// A table: the name of its file without `.parquet`, and its columns. `?` after a type: may be null.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    columns: &'static [(&'static str, &'static str)],
}

pub(super) const SLICES: Table = Table {
    name: "slices",
    columns: &[
        ("ts_ns", "i64"),
        ("dur_ns", "i64"),
        ("track_id", "u32"),
        ("lane", "u32"),
        ("name", "text"),
        ("category", "text"),
        ("op", "text?"),
        ("node", "text?"),
        ("device", "text?"),
        ("step", "u32?"),
        ("correlation", "u32"),
        ("depth", "u32"),
        ("arg", "u64"),
        ("args", "long text?"),
    ],
};
pub(super) const TRACKS: Table = Table {
    name: "tracks",
    columns: &[
        ("track_id", "u32"),
        ("host", "text"),
        ("process", "text"),
        ("thread", "text?"),
        ("device", "text?"),
        ("stream", "u64?"),
        ("kind", "text"),
        ("name", "text"),
        ("process_id", "u32"),
        ("pid", "u32"),
        ("ring", "u32"),
        ("tid", "u32"),
        ("position", "i32"),
        ("dropped", "u64"),
        ("overlapped", "u64"),
        ("clipped", "u64"),
    ],
};
pub(super) const PROCESSES: Table = Table {
    name: "processes",
    columns: &[
        ("process_id", "u32"),
        ("pid", "u32"),
        ("host", "text"),
        ("name", "text"),
        ("ns_per_tick", "f64"),
        // Of a trace of several hosts; null in others, and missing in traces of before.
        ("clock_offset_ns", "i64?"),
        ("clock_drift_ppb", "f64?"),
        ("clock_bound_ns", "u64?"),
    ],
};
pub(super) const SITES: Table =
    Table { name: "sites", columns: &[("site_id", "u32"), ("category", "text"), ("name", "text")] };
pub(super) const NODES: Table =
    Table { name: "nodes", columns: &[("node_id", "u32"), ("name", "text"), ("op", "text"), ("device", "text")] };
pub(super) const STEPS: Table = Table {
    name: "steps",
    columns: &[
        ("step", "u32"),
        ("summary_step", "i64"),
        ("name", "text"),
        ("ts_ns", "i64"),
        ("dur_ns", "i64"),
        ("site_id", "u32"),
        ("track_id", "u32"),
        ("lane", "u32"),
        ("ordinal", "u64"),
    ],
};
pub(super) const FLOWS: Table = Table {
    name: "flows",
    columns: &[
        ("category", "text"),
        ("name", "text"),
        ("correlation", "u32"),
        ("process_id", "u32?"),
        ("from_track_id", "u32?"),
        ("from_ts_ns", "i64?"),
        ("to_track_id", "u32?"),
        ("to_ts_ns", "i64?"),
        ("site_id", "u32"),
    ],
};
pub(super) const COUNTERS: Table = Table {
    name: "counters",
    columns: &[
        ("process_id", "u32"),
        ("category", "text"),
        ("name", "text"),
        ("ts_ns", "i64"),
        ("value", "f64"),
        ("site_id", "u32"),
        // Of a counter of one thread; null in others, and missing in traces of before.
        ("track_id", "u32?"),
    ],
};
pub(super) const INSTANTS: Table = Table {
    name: "instants",
    columns: &[
        ("track_id", "u32"),
        ("ts_ns", "i64"),
        ("category", "text"),
        ("name", "text"),
        ("arg", "u64"),
        ("site_id", "u32"),
        ("args", "text?"),
    ],
};
pub(super) const MEMORY: Table = Table {
    name: "memory",
    columns: &[
        ("ts_ns", "i64"),
        ("track_id", "u32"),
        ("category", "text"),
        ("name", "text"),
        ("node", "text?"),
        ("bytes", "i64"),
        ("site_id", "u32"),
        ("node_id", "u32?"),
    ],
};
pub(super) const TRANSFERS: Table = Table {
    name: "transfers",
    columns: &[
        ("process_id", "u32?"),
        ("number", "u32"),
        ("step", "u32"),
        ("bytes", "u32"),
        ("sender_node_id", "u32?"),
        ("receiver_node_id", "u32?"),
        ("from_track_id", "u32?"),
        ("to_track_id", "u32?"),
        ("enqueued_ns", "i64?"),
        ("sent_ns", "i64?"),
        ("left_ns", "i64?"),
        ("arrived_ns", "i64?"),
        ("unblocked_ns", "i64?"),
    ],
};
pub(super) const OPEN: Table = Table {
    name: "open_slices",
    columns: &[
        ("track_id", "u32"),
        ("ts_ns", "i64"),
        ("depth", "u32"),
        ("category", "text"),
        ("name", "text"),
        ("node", "text?"),
        ("site_id", "u32"),
        ("node_id", "u32?"),
    ],
};
/// A stack is its caller's and one more frame; a sample's `arg` is a `stack_id`.
pub(super) const STACKS: Table =
    Table { name: "stacks", columns: &[("stack_id", "u32"), ("parent_id", "u32?"), ("frame_id", "u32")] };
pub(super) const FRAMES: Table =
    Table { name: "frames", columns: &[("frame_id", "u32"), ("module", "text"), ("address", "u64")] };
/// The functions of frames: of those inlined into each other the outer one first.
pub(super) const FUNCTIONS: Table =
    Table { name: "functions", columns: &[("frame_id", "u32"), ("name", "text"), ("file", "text"), ("line", "u32")] };
pub(super) const WARNINGS: Table =
    Table { name: "warnings", columns: &[("kind", "text"), ("source", "text"), ("count", "u64"), ("text", "text")] };
/// Which events of the rings are in here: what a trace folder has beside them is newer.
pub(super) const RINGS: Table = Table {
    name: "rings",
    columns: &[("pid", "u32"), ("ring", "u32"), ("made", "u64"), ("next", "u64"), ("dropped", "u64")],
};
pub(super) const META: Table = Table { name: "meta", columns: &[("key", "text"), ("value", "text")] };

impl Table {
    /// The file.
    pub(super) fn file_name(&self) -> String {
        format!("{}.parquet", self.name)
    }

    /// The version of the format that had it first.
    pub(super) fn since(&self) -> u32 {
        let is_of_stacks = [STACKS.name, FRAMES.name, FUNCTIONS.name].contains(&self.name);
        if is_of_stacks { 2 } else { 1 }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        let field = |(name, kind): &(&str, &str)| {
            let is_nullable = kind.ends_with('?');
            let data = match kind.trim_end_matches('?') {
                "i32" => DataType::Int32,
                "i64" => DataType::Int64,
                "u32" => DataType::UInt32,
                "u64" => DataType::UInt64,
                "f64" => DataType::Float64,
                "text" => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                _ => DataType::Utf8,
            };
            Field::new(*name, data, is_nullable)
        };
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Times and numbers that grow as differences, what repeats by dictionary, zstd over all.
    pub(super) fn properties(&self) -> Result<WriterProperties> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by("stepscope".to_owned());
        for (name, kind) in self.columns {
            let path = ColumnPath::from(*name);
            let is_delta = name.ends_with("_ns") || ["step", "correlation", "arg", "number", "ordinal"].contains(name);
            if is_delta {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
            }
            if kind.starts_with("long") || *kind == "f64" {
                properties = properties.set_column_dictionary_enabled(path.clone(), false);
            }
            if name.ends_with("ts_ns") {
                properties = properties.set_column_statistics_enabled(path, EnabledStatistics::Page);
            }
        }
        Ok(properties.build())
    }
}
