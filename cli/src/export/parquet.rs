//! `stepscope export LOGDIR --format parquet`: every scalar point of the chosen runs and tags, one row each.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use anyhow::Context;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::{arrow::ArrowWriter, errors::ParquetError};
use summaries::{Runs, ScalarSeries};

use crate::args::Export;
use crate::logdir;
use crate::outcome::{Failure, Outcome};

use super::files::write_file;
use super::rows::SelectedTags;

/// Rows per batch of the Parquet writer.
const BATCH_ROWS: usize = 1 << 16;

/// Reads, filters, writes.
pub fn run(args: &Export) -> Outcome {
    let [path] = &args.paths[..] else {
        return Err(Failure::wrong_use("rows are exported of one logdir at a time"));
    };
    let Some(out) = &args.out else { return Err(Failure::wrong_use("Parquet needs a file: -o FILE")) };
    let chosen = SelectedTags::from_args(args)?;
    let complete = logdir::read(path)?;
    let runs = complete.logdir.runs();
    let written = write_file(out, |out| write_parquet(&chosen, &runs, out).map_err(io::Error::other));
    Ok(written.with_context(|| format!("writing {}", out.display()))?)
}

fn write_parquet(chosen: &SelectedTags, runs: &Runs, out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let empty = ScalarSeries::default();
    let mut writer = ArrowWriter::try_new(out, batch("", "", &empty, 0..0)?.schema(), None)?;
    for (run, tag, scalars) in chosen.series(runs) {
        for begin in (0..scalars.len()).step_by(BATCH_ROWS) {
            let end = scalars.len().min(begin + BATCH_ROWS);
            writer.write(&batch(run, tag, scalars, begin..end)?)?;
        }
    }
    writer.close()?;
    Ok(())
}

/// A range of rows of a series, as columns.
fn batch(run: &str, tag: &str, scalars: &ScalarSeries, rows: Range<usize>) -> Result<RecordBatch, ParquetError> {
    let n = rows.len();
    let points = || rows.clone().map(|row| scalars.point(row));
    let columns: [(&str, ArrayRef); 5] = [
        ("run", Arc::new(StringArray::from_iter_values(std::iter::repeat_n(run, n)))),
        ("tag", Arc::new(StringArray::from_iter_values(std::iter::repeat_n(tag, n)))),
        ("step", Arc::new(Int64Array::from_iter_values(points().map(|p| p.step)))),
        ("wall_time", Arc::new(Float64Array::from_iter_values(points().map(|p| p.wall)))),
        ("value", Arc::new(Float64Array::from_iter_values(points().map(|p| p.value)))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
