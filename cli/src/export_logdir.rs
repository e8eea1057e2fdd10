//! `stepscope export LOGDIR --format parquet`: every scalar point of the chosen runs and tags, one row each.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use formats::FileKind;
use parquet::{arrow::ArrowWriter, errors::ParquetError};
use summaries::{Runs, ScalarSeries};

use crate::args::Export;
use crate::export;
use crate::export_rows::Chosen;
use crate::logdir;
use crate::outcome::{Failure, Outcome};
use crate::source;

/// Rows that are handed to the Parquet writer at a time.
const BATCH: usize = 1 << 16;

/// Whether what is to be exported is one logdir: an event file, a folder of them that is no run folder with a trace, or a bucket.
pub fn is_logdir(paths: &[PathBuf]) -> bool {
    let is_logdir = |path| matches!(formats::sniff(path), Ok(FileKind::EventFile | FileKind::Logdir));
    matches!(paths, [path] if source::is_url(path) || is_logdir(path))
}

/// Whether rows of a path are its scalars: of a logdir, or of a run's folder; else they are slices of a trace.
pub fn has_scalars(path: &Path) -> bool {
    let is_trace = |path| matches!(formats::sniff(path), Ok(FileKind::TraceFolder | FileKind::Trace(_)));
    source::is_url(path) || !is_trace(path)
}

/// Reads, filters, writes.
pub fn run(args: &Export) -> Outcome {
    let [path] = &args.paths[..] else {
        return Err(Failure::wrong_use("rows are exported of one logdir at a time"));
    };
    let Some(out) = &args.out else { return Err(Failure::wrong_use("Parquet needs a file: -o FILE")) };
    let chosen = Chosen::of(args)?;
    let whole = logdir::read(path)?;
    let runs = whole.logdir.runs();
    let written = export::write(out, |out| write_parquet(&chosen, &runs, out).map_err(io::Error::other));
    Ok(written.with_context(|| format!("writing {}", out.display()))?)
}

fn write_parquet(chosen: &Chosen, runs: &Runs, out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let empty = ScalarSeries::default();
    let mut writer = ArrowWriter::try_new(out, batch("", "", &empty, 0..0)?.schema(), None)?;
    for (run, tag, scalars) in chosen.series(runs) {
        for begin in (0..scalars.len()).step_by(BATCH) {
            let end = scalars.len().min(begin + BATCH);
            writer.write(&batch(run, tag, scalars, begin..end)?)?;
        }
    }
    writer.close()?;
    Ok(())
}

/// Some rows of a series as columns.
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
