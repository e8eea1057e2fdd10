//! The tables of a logdir: `scalars`, its points, and `summaries`, its series.

use crate::schema::TableInfo;
use crate::source::Sources;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::error::{DataFusionError, Result};
use std::sync::Arc;
use summaries::{Logdir, Point, Remote, Run, Series};

/// Rows per batch.
const BATCH_ROWS: usize = 1 << 14;

/// Receives a batch; returns false where no further batches are needed.
pub(crate) type BatchSink<'a> = &'a mut dyn FnMut(RecordBatch) -> bool;

/// A table, and the function that computes its rows from a run and returns false where no further rows are needed.
pub(crate) struct LogdirTable {
    pub(crate) info: TableInfo,
    pub(crate) rows: fn(&TableInfo, &str, &Run, BatchSink<'_>) -> Result<bool>,
}

/// The tables of a logdir.
pub(crate) fn tables() -> [LogdirTable; 2] {
    let field = |(name, kind): (&str, DataType)| Field::new(name, kind, false);
    let scalars = [
        ("run", DataType::Utf8View),
        ("tag", DataType::Utf8View),
        ("step", DataType::Int64),
        ("wall_time", DataType::Float64),
        ("value", DataType::Float64),
    ];
    let series = [("run", DataType::Utf8View), ("tag", DataType::Utf8View), ("kind", DataType::Utf8View)];
    let mut series_fields: Vec<Field> = series.map(field).into();
    series_fields.extend([
        Field::new("node", DataType::Utf8View, true),
        Field::new("points", DataType::UInt64, false),
        Field::new("last_step", DataType::Int64, true),
        Field::new("last_wall_time", DataType::Float64, true),
        Field::new("last_value", DataType::Float64, true),
    ]);
    let info = |name, about, fields: Vec<Field>| TableInfo { name, about, schema: Arc::new(Schema::new(fields)) };
    [
        LogdirTable {
            info: info("scalars", "a point of a scalar, every one", scalars.map(field).into()),
            rows: scalar_rows,
        },
        LogdirTable { info: info("summaries", "what a run has under a tag", series_fields), rows: series_rows },
    ]
}

/// Reads the logdir at the root, and passes the rows of each run to `sink`.
pub(crate) fn read(sources: &Sources, table: &LogdirTable, sink: BatchSink<'_>) -> Result<()> {
    let failed = |text: String| DataFusionError::External(text.into());
    let bucket = match &sources.bucket {
        None => None,
        Some(_) => {
            let mut bucket = Remote::open(&sources.root).map_err(|e| failed(e.to_string()))?;
            let fetched = bucket.fetch().map_err(|e| failed(e.to_string()))?;
            fetched.failed.iter().for_each(|error| sources.warn(error.to_string()));
            Some(bucket)
        }
    };
    let path = bucket.as_ref().map_or_else(|| sources.root.clone().into(), |bucket| bucket.folder().to_owned());
    let is_log = || formats::is_event_file_name(&path) || formats::is_run_log(&path);
    if path.is_file() && !is_log() && !sources.traces.is_empty() {
        return Ok(());
    }
    let mut logdir = Logdir::open(&[path]).map_err(|e| failed(e.to_string()))?;
    logdir.read_all();
    let runs = logdir.runs();
    for problem in &runs.problems {
        sources.warn(format!("{}: {}", problem.path.display(), problem.message));
    }
    for (name, run) in &runs.by_name {
        run.damage.iter().for_each(|damage| sources.warn(damage.to_string()));
        if !(table.rows)(&table.info, name, run, sink)? {
            break;
        }
    }
    Ok(())
}

fn repeated(text: &str, n: usize) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(text, n)))
}

fn scalar_rows(info: &TableInfo, name: &str, run: &Run, sink: BatchSink<'_>) -> Result<bool> {
    for (tag, series) in &run.series {
        let Series::Scalar(scalars) = series else { continue };
        for begin in (0..scalars.len()).step_by(BATCH_ROWS) {
            let rows: Vec<Point> =
                (begin..scalars.len().min(begin + BATCH_ROWS)).map(|row| scalars.point(row)).collect();
            let columns = vec![
                repeated(name, rows.len()),
                repeated(tag, rows.len()),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|p| p.step))),
                Arc::new(Float64Array::from_iter_values(rows.iter().map(|p| p.wall))),
                Arc::new(Float64Array::from_iter_values(rows.iter().map(|p| p.value))),
            ];
            if !sink(RecordBatch::try_new(Arc::clone(&info.schema), columns)?) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn series_rows(info: &TableInfo, name: &str, run: &Run, sink: BatchSink<'_>) -> Result<bool> {
    let all_series = || run.series.values();
    let columns: Vec<ArrayRef> = vec![
        repeated(name, run.series.len()),
        Arc::new(StringViewArray::from_iter_values(run.series.keys())),
        Arc::new(StringViewArray::from_iter_values(all_series().map(Series::kind))),
        Arc::new(
            all_series().map(|s| Some(s.node_name()).filter(|node| !node.is_empty())).collect::<StringViewArray>(),
        ),
        Arc::new(UInt64Array::from_iter_values(all_series().map(|s| s.n_points() as u64))),
        Arc::new(all_series().map(|s| s.last().map(|(step, _)| step)).collect::<Int64Array>()),
        Arc::new(all_series().map(|s| s.last().map(|(_, wall)| wall)).collect::<Float64Array>()),
        Arc::new(all_series().map(last_value).collect::<Float64Array>()),
    ];
    Ok(sink(RecordBatch::try_new(Arc::clone(&info.schema), columns)?))
}

fn last_value(series: &Series) -> Option<f64> {
    match series {
        Series::Scalar(scalars) => scalars.last().map(|point| point.value),
        _ => None,
    }
}
