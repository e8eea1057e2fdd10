//! `stepscope export --format csv|json`: writes a logdir's scalars or a trace's slices as rows; with `--follow` also
//! those that are added later.

mod scalars;
mod slices;
mod source;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use crate::args::Export;
use crate::outcome::{Failure, Outcome};
use crate::{out, progress, signals};

use super::files::{has_scalars, write_file};

use scalars::Scalars;
pub use scalars::SelectedTags;
use slices::Slices;
use source::RowSource;

/// The time between two reads of a source that grows.
const POLL_PERIOD: Duration = Duration::from_millis(200);

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// A header line, then a line per row; fields with commas, quotes or line ends are quoted (RFC 4180).
    Csv,
    /// One object per line. NaN and infinities are strings.
    Json,
}

/// Writes the rows; with `--follow` until their writer ends.
pub fn run(args: &Export, format: RowFormat) -> Outcome {
    let mut source = open(args)?;
    let source = source.as_mut();
    if args.follow {
        follow(source, args, format)?;
    } else {
        progress::set_activity("reading");
        while source.read()? {}
        progress::set_activity("writing");
        match &args.out {
            None => out::rows(|out| write_all(source, format, out))?,
            Some(path) => {
                write_file(path, |out| write_all(source, format, out)).with_context(|| writing_context(path))?;
            }
        }
    }
    source.warn();
    Ok(())
}

fn open(args: &Export) -> Result<Box<dyn RowSource>, Failure> {
    let [path] = &args.paths[..] else {
        return Err(Failure::wrong_use("rows are exported of one logdir or trace at a time"));
    };
    if has_scalars(path) {
        return Ok(Box::new(Scalars::open(path, args)?));
    }
    if args.run.is_some() || args.tag.is_some() {
        return Err(Failure::wrong_use("--run and --tag choose among a logdir's rows"));
    }
    Ok(Box::new(Slices::open(path, args.follow)?))
}

fn writing_context(path: &Path) -> String {
    format!("writing {}", path.display())
}

/// Writes the header and all rows.
fn write_all(source: &mut dyn RowSource, format: RowFormat, out: &mut dyn Write) -> io::Result<()> {
    write_header(source, format, out)?;
    write_rows(source, format, out)
}

fn write_header(source: &dyn RowSource, format: RowFormat, out: &mut dyn Write) -> io::Result<()> {
    match format {
        RowFormat::Csv => writeln!(out, "{}", source.columns().join(",")),
        RowFormat::Json => Ok(()),
    }
}

/// Writes the rows that are new.
fn write_rows(source: &mut dyn RowSource, format: RowFormat, out: &mut dyn Write) -> io::Result<()> {
    let columns = source.columns();
    source.take_rows(&mut |cells| match format {
        RowFormat::Csv => {
            let fields: Vec<String> = cells.iter().map(csv_field).collect();
            writeln!(out, "{}", fields.join(","))
        }
        RowFormat::Json => {
            let names = columns.iter().map(|name| (*name).to_owned());
            let object: serde_json::Map<_, _> = names.zip(cells.iter().cloned()).collect();
            writeln!(out, "{}", Value::Object(object))
        }
    })
}

/// A cell as a CSV field.
fn csv_field(cell: &Value) -> String {
    match cell {
        Value::String(text) if text.contains([',', '"', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        // `f64` displays as 1, like in spreadsheets; a JSON number as 1.0.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or(f64::NAN).to_string(),
        other => other.to_string(),
    }
}

/// Writes rows as they come, until their writer has ended, or a signal asks for the end.
fn follow(source: &mut dyn RowSource, args: &Export, format: RowFormat) -> Outcome {
    let stopped = signals::stop_signals()?;
    let _quiet = progress::HiddenGuard::begin();
    match &args.out {
        None => {
            let mut out = BufWriter::new(out::Results);
            // `out` stores the failure, which ends the command.
            follow_into(source, format, &mut out, &stopped, |_| Failure::Output)
        }
        Some(path) => {
            let file = if args.force { File::create(path) } else { File::create_new(path) };
            let mut out = BufWriter::new(file.with_context(|| writing_context(path))?);
            let failed = |error| Failure::Work(anyhow::Error::new(error).context(writing_context(path)));
            follow_into(source, format, &mut out, &stopped, failed)
        }
    }
}

fn follow_into(
    source: &mut dyn RowSource,
    format: RowFormat,
    out: &mut dyn Write,
    stopped: &Receiver<()>,
    failed: impl Fn(io::Error) -> Failure,
) -> Outcome {
    write_header(source, format, out).map_err(&failed)?;
    let mut is_last = false;
    loop {
        // Checked before the read, so that the read includes everything that was written before the end.
        is_last |= source.is_over();
        loop {
            let has_more = source.read()?;
            write_rows(source, format, out).map_err(&failed)?;
            if !has_more {
                break;
            }
        }
        out.flush().map_err(&failed)?;
        if is_last {
            return Ok(());
        }
        // The read after a signal is the last one.
        is_last = stopped.recv_timeout(POLL_PERIOD) != Err(RecvTimeoutError::Timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_special_characters_are_quoted() {
        let fields = ["a/b", "a,b", "say \"x\"", "two\nlines"].map(|text| csv_field(&text.into()));
        assert_eq!(fields, ["a/b", "\"a,b\"", "\"say \"\"x\"\"\"", "\"two\nlines\""]);
        assert_eq!(
            [Value::Null, 1.0.into(), 7.into(), "NaN".into()].map(|cell| csv_field(&cell)),
            ["", "1", "7", "NaN"]
        );
    }
}
