//! Tables of the profiler's analyses, which are computed when a query names them.

use crate::schema::{TableInfo, with_trace_column};
use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;
use trace_analysis::ops::{OpRow, critical_paths, op_table};
use trace_analysis::stalls;
use trace_analysis::stalls::Stall;
use trace_model::SliceId;
use trace_store::Store;

/// A table, and the function that computes its rows from a store, without the column of the trace.
pub(crate) struct DerivedTable {
    pub(crate) info: TableInfo,
    pub(crate) rows: fn(&Store) -> Result<RecordBatch, ArrowError>,
}

/// The derived tables.
pub(crate) fn tables() -> Result<[DerivedTable; 3], ArrowError> {
    // The schema of a table is that of its rows for an empty trace.
    let empty_store = Store::new();
    let table = |name, about, rows: fn(&Store) -> Result<RecordBatch, ArrowError>| {
        Ok::<_, ArrowError>(DerivedTable {
            info: TableInfo { name, about, schema: with_trace_column(rows(&empty_store)?.schema().fields()) },
            rows,
        })
    };
    Ok([
        table("stalls", "a part of a gap on a busy track, with its cause (analyze has the same)", stall_rows)?,
        table("ops", "what took time under one name on one device, over the whole trace", op_rows)?,
        table(
            "op_counters",
            "what a counter of threads (record --counters) counted in an op's self time; null names: outside all ops",
            op_counter_rows,
        )?,
    ])
}

fn full_range(store: &Store) -> Range<i64> {
    let range = store.range();
    range.start..range.end.max(range.start.saturating_add(1))
}

fn batch(columns: Vec<(&str, bool, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, may_be_null, values)| (name, values, may_be_null)),
    )
}

fn i64s(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn f64s(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringViewArray>())
}

fn stall_rows(store: &Store) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<Stall> = if store.tracks().is_empty() { Vec::new() } else { stalls(store, full_range(store)) };
    let ids = |f: fn(&Stall) -> Option<u32>| -> ArrayRef { Arc::new(rows.iter().map(f).collect::<UInt32Array>()) };
    let slice = |id: Option<SliceId>| id.and_then(|id| store.slice(id));
    let name = |id: fn(&Stall) -> Option<SliceId>| {
        texts(rows.iter().map(|stall| slice(id(stall)).map(|slice| store.slice_name(&slice))))
    };
    let begin = |id: fn(&Stall) -> Option<SliceId>| -> ArrayRef {
        Arc::new(rows.iter().map(|stall| slice(id(stall)).map(|slice| slice.start)).collect::<Int64Array>())
    };
    batch(vec![
        ("track_id", false, Arc::new(UInt32Array::from_iter_values(rows.iter().map(|s| s.track.0)))),
        ("step", true, ids(|s| s.step_id)),
        ("ts_ns", false, i64s(rows.iter().map(|s| s.start))),
        ("dur_ns", false, i64s(rows.iter().map(Stall::dur))),
        ("gap_ts_ns", false, i64s(rows.iter().map(|s| s.gap.start))),
        ("gap_dur_ns", false, i64s(rows.iter().map(|s| s.gap.end - s.gap.start))),
        ("cause", false, texts(rows.iter().map(|s| Some(s.cause.name())))),
        ("culprit", true, name(|s| s.culprit)),
        ("culprit_track_id", true, ids(|s| s.culprit.map(|id| id.track))),
        ("culprit_lane", true, ids(|s| s.culprit.map(|id| id.lane))),
        ("culprit_ts_ns", true, begin(|s| s.culprit)),
        ("blocked", true, name(|s| s.blocked)),
        ("blocked_track_id", true, ids(|s| s.blocked.map(|id| id.track))),
        ("blocked_ts_ns", true, begin(|s| s.blocked)),
    ])
}

fn op_counter_rows(store: &Store) -> Result<RecordBatch, ArrowError> {
    let (totals, ops) = op_table(store, full_range(store), &[]);
    let mut rows: Vec<(Option<&OpRow>, &str, u64)> = Vec::new();
    for op in &ops {
        let values = totals.names.iter().zip(&op.counts).filter(|(_, value)| **value > 0);
        rows.extend(values.map(|(name, value)| (Some(op), name.as_str(), *value)));
    }
    rows.extend(totals.names.iter().zip(&totals.outside).map(|(name, value)| (None, name.as_str(), *value)));
    let text = |f: fn(&OpRow) -> &str| texts(rows.iter().map(|(op, ..)| op.map(f)));
    let device = rows.iter().map(|(op, ..)| op.map(|op| op.device.as_str()).filter(|device| !device.is_empty()));
    batch(vec![
        ("name", true, text(|op| &op.name)),
        ("category", true, text(|op| &op.category)),
        ("device", true, texts(device)),
        ("counter", false, texts(rows.iter().map(|(_, counter, _)| Some(*counter)))),
        ("value", false, Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(.., value)| *value)))),
    ])
}

fn op_rows(store: &Store) -> Result<RecordBatch, ArrowError> {
    let rows = if store.tracks().is_empty() {
        Vec::new()
    } else {
        op_table(store, full_range(store), &critical_paths(store, full_range(store))).1
    };
    let figures = || rows.iter().map(|row| row.figures);
    batch(vec![
        ("name", false, texts(rows.iter().map(|row| Some(row.name.as_str())))),
        ("category", false, texts(rows.iter().map(|row| Some(row.category.as_str())))),
        ("device", true, texts(rows.iter().map(|row| (!row.device.is_empty()).then_some(row.device.as_str())))),
        ("count", false, Arc::new(UInt64Array::from_iter_values(figures().map(|f| f.count)))),
        ("total_ns", false, i64s(figures().map(|f| f.total_ns))),
        ("self_ns", false, i64s(figures().map(|f| f.self_ns))),
        ("mean_ns", false, f64s(figures().map(|f| f.mean_ns))),
        ("p50_ns", false, i64s(figures().map(|f| f.p50_ns))),
        ("p99_ns", false, i64s(figures().map(|f| f.p99_ns))),
        ("min_ns", false, i64s(figures().map(|f| f.min_ns))),
        ("max_ns", false, i64s(figures().map(|f| f.max_ns))),
        ("share", false, f64s(figures().map(|f| f.share))),
        ("critical_ns", false, i64s(rows.iter().map(|row| row.critical_ns))),
        ("critical_share", false, f64s(rows.iter().map(|row| row.critical_share))),
    ])
}
