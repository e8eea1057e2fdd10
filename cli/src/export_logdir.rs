//! `stepscope export LOGDIR`: every scalar point of the chosen runs and tags, one row each.

use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use formats::FileKind;
use parquet::{arrow::ArrowWriter, errors::ParquetError};
use regex::Regex;
use serde_json::json;
use summaries::{Point, Runs, ScalarSeries, Series};

use crate::args::Export;
use crate::export;
use crate::logdir;
use crate::outcome::{Failure, Outcome};
use crate::source;

/// Rows that are handed to the Parquet writer at a time.
const BATCH: usize = 1 << 16;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// `run,tag,step,wall_time,value` with a header line; fields with commas, quotes or line ends are quoted (RFC 4180).
    Csv,
    /// One object per line. NaN and infinities are strings.
    Json,
    /// Columns of these names.
    Parquet,
}

/// Whether what is to be exported is one logdir: an event file, a folder of them that is no run folder with a trace, or a bucket.
pub fn is_logdir(paths: &[PathBuf]) -> bool {
    let is_logdir = |path| matches!(formats::sniff(path), Ok(FileKind::EventFile | FileKind::Logdir));
    matches!(paths, [path] if source::is_url(path) || is_logdir(path))
}

/// Reads, filters, writes.
pub fn run(args: &Export, format: RowFormat) -> Outcome {
    let [path] = &args.paths[..] else {
        return Err(Failure::wrong_use("rows are exported of one logdir at a time"));
    };
    if format == RowFormat::Parquet && args.out.is_none() {
        return Err(Failure::wrong_use("Parquet needs a file: -o FILE"));
    }
    let (run, tag) = (logdir::pattern("--run", args.run.as_deref())?, logdir::pattern("--tag", args.tag.as_deref())?);
    let whole = logdir::read(path)?;
    let runs = whole.logdir.runs();
    let chosen = Chosen { runs: &runs, run, tag };
    logdir::written(match &args.out {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write_lines(&chosen, format, &mut out).and_then(|()| out.flush())
        }
        Some(path) => export::write(path, |out| match format {
            RowFormat::Parquet => write_parquet(&chosen, out).map_err(io::Error::other),
            RowFormat::Csv | RowFormat::Json => write_lines(&chosen, format, out),
        }),
    })
}

/// The series whose run and tag are asked for.
struct Chosen<'a> {
    runs: &'a Runs,
    run: Option<Regex>,
    tag: Option<Regex>,
}

impl Chosen<'_> {
    fn series(&self) -> impl Iterator<Item = (&str, &str, &ScalarSeries)> {
        let matches = |pattern: &Option<Regex>, name: &str| pattern.as_ref().is_none_or(|p| p.is_match(name));
        let runs = self.runs.by_name.iter().filter(move |(name, _)| matches(&self.run, name));
        let tags = runs.flat_map(|(run, data)| data.series.iter().map(move |(tag, series)| (run, tag, series)));
        tags.filter_map(move |(run, tag, series)| match series {
            Series::Scalar(scalars) if matches(&self.tag, tag) => Some((run.as_str(), tag.as_str(), &**scalars)),
            _ => None,
        })
    }
}

fn write_lines(chosen: &Chosen<'_>, format: RowFormat, out: &mut dyn Write) -> io::Result<()> {
    if format == RowFormat::Csv {
        writeln!(out, "run,tag,step,wall_time,value")?;
    }
    for (run, tag, scalars) in chosen.series() {
        let (quoted_run, quoted_tag) = (quoted(run), quoted(tag));
        for Point { step, wall, value } in scalars.points() {
            if format == RowFormat::Csv {
                writeln!(out, "{quoted_run},{quoted_tag},{step},{wall},{value}")?;
            } else {
                let (wall, value) = (logdir::json_number(wall), logdir::json_number(value));
                writeln!(out, "{}", json!({"run": run, "tag": tag, "step": step, "wall_time": wall, "value": value}))?;
            }
        }
    }
    Ok(())
}

fn write_parquet(chosen: &Chosen<'_>, out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let empty = ScalarSeries::default();
    let mut writer = ArrowWriter::try_new(out, batch("", "", &empty, 0..0)?.schema(), None)?;
    for (run, tag, scalars) in chosen.series() {
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

/// A CSV field.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn fields_with_special_characters_are_quoted() {
        let fields = ["a/b", "a,b", "say \"x\"", "two\nlines"].map(quoted);
        assert_eq!(fields, ["a/b", "\"a,b\"", "\"say \"\"x\"\"\"", "\"two\nlines\""]);
    }
}
