//! `stepscope export`: converts a trace to another tool's format, or writes the points of a logdir as rows.

mod files;
mod parquet;
mod rows;

use std::path::Path;

use anyhow::Context;
use trace_formats::export;
use trace_formats::export::ExportFormat;

use crate::args::{Export, ExportAs, Import, Verbosity};
use crate::import;
use crate::outcome::{Failure, Outcome};
use crate::{out, progress, trace_file};

pub use files::write_file;

use files::is_logdir;
use rows::RowFormat;

/// Reads, converts, writes.
pub fn run(args: &Export, verbosity: Verbosity) -> Outcome {
    if let Some(out) = &args.out
        && out.exists()
        && !args.force
    {
        return Err(Failure::wrong_use(format_args!("{} exists; --force writes over it", out.display())));
    }
    let is_logdir = is_logdir(&args.paths);
    let format = args.format.or_else(|| format_from_name(args.out.as_deref()?, is_logdir));
    if args.follow {
        refuse_to_follow(args, format)?;
    }
    match format {
        Some(ExportAs::Csv) => rows::run(args, RowFormat::Csv),
        Some(ExportAs::Json) => rows::run(args, RowFormat::Json),
        None if is_logdir || args.follow => rows::run(args, RowFormat::Csv),
        Some(ExportAs::Parquet) if is_logdir => parquet::run(args),
        Some(ExportAs::Parquet) => export_tables(args, verbosity),
        Some(ExportAs::Chrome) => export_trace(args, ExportFormat::Chrome),
        Some(ExportAs::Perfetto) => export_trace(args, ExportFormat::Perfetto),
        Some(ExportAs::Firefox) => export_trace(args, ExportFormat::Firefox),
        None => export_trace(args, ExportFormat::Chrome),
    }
}

/// Refuses `--follow` for formats other than rows, which cannot be written piece by piece.
fn refuse_to_follow(args: &Export, format: Option<ExportAs>) -> Outcome {
    let is_rows = format.is_none_or(|format| matches!(format, ExportAs::Csv | ExportAs::Json));
    let is_packed = args.out.as_ref().is_some_and(|out| out.extension().is_some_and(|ext| ext == "gz"));
    if !is_rows || is_packed {
        return Err(Failure::wrong_use("--follow writes rows as they come: --format csv or json, not compressed"));
    }
    Ok(())
}

/// Writes a trace as a folder of Parquet tables: a sealed trace.
fn export_tables(args: &Export, verbosity: Verbosity) -> Outcome {
    let Some(out) = args.out.clone() else {
        return Err(Failure::wrong_use("a trace as Parquet is a folder of tables: name it with -o FOLDER"));
    };
    import::run(&Import { files: args.paths.clone(), out, force: args.force, json: false }, verbosity)
}

fn export_trace(args: &Export, format: ExportFormat) -> Outcome {
    if args.run.is_some() || args.tag.is_some() {
        return Err(Failure::wrong_use("--run and --tag choose among a logdir's rows: --format csv, json or parquet"));
    }
    let store = trace_file::open_all(&args.paths)?;
    progress::set_activity("writing");
    let mut share = progress::set_share;
    match &args.out {
        None => out::rows(|out| export::export(&store, format, out, &mut share))?,
        Some(path) => {
            write_file(path, |out| export::export(&store, format, out, &mut share)).context("writing the trace")?;
        }
    }
    for warning in store.warnings() {
        note!("warning: {}: {}", warning.source, warning.text);
    }
    Ok(())
}

/// The format by the extension of a file's name.
fn format_from_name(path: &Path, is_logdir: bool) -> Option<ExportAs> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    match name.rsplit_once('.')?.1 {
        "json" if name.ends_with(".firefox.json") => Some(ExportAs::Firefox),
        "json" if !is_logdir => Some(ExportAs::Chrome),
        "json" | "jsonl" => Some(ExportAs::Json),
        "csv" => Some(ExportAs::Csv),
        "parquet" => Some(ExportAs::Parquet),
        "pftrace" | "perfetto-trace" => Some(ExportAs::Perfetto),
        _ => None,
    }
}
