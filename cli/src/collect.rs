//! `stepscope collect`: gathers the traces of many processes and hosts until Ctrl-C or SIGTERM.

use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::Context;
use gather::{ServeError, Server, ServerOptions, ServerReport};
use serde_json::json;

use crate::args::{self, Verbosity};
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::signals;
use train::{RunFolder, TraceTarget};

/// The time between two progress reports.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// Gathers until Ctrl-C or SIGTERM.
///
/// # Errors
/// `Failure::Usage` when the folder has other files or is in use, or listening at the address fails.
pub fn run(args: &args::Collect, verbosity: Verbosity) -> Outcome {
    let folder = folder(args)?;
    let options = ServerOptions { sync: !args.no_sync, ..ServerOptions::default() };
    let stopped = signals::stop_signals()?;
    let server = Server::start(&folder, args.listen, &options).map_err(|error| match error {
        ServeError::Threads(_) | ServeError::Folder(..) => Failure::Work(error.into()),
        _ => Failure::wrong_use(error),
    })?;
    let address = server.address();
    if args.json {
        out::announce(1, json!({ "address": address.to_string(), "folder": folder.display().to_string() }))?;
    }
    if verbosity > Verbosity::Quiet {
        note!("stepscope: gathering into {} at {address}; Ctrl-C ends it", folder.display());
    }
    if !address.ip().is_loopback() {
        note!("warning: {address} is not a loopback address: anyone who reaches it can add and read traces");
    }
    let mut last_progress = ServerReport::default();
    while stopped.recv_timeout(REPORT_PERIOD) == Err(RecvTimeoutError::Timeout) {
        let progress = server.progress();
        if verbosity > Verbosity::Quiet
            && (progress.folders, progress.open) != (last_progress.folders, last_progress.open)
        {
            let (folders, open) = (text::count_of(progress.folders, "trace folder"), text::count(progress.open));
            note!("stepscope: {folders}, {open} being sent, {}", text::bytes(progress.bytes));
        }
        last_progress = progress;
    }
    print_result(&server.stop(), args.json, verbosity);
    Ok(())
}

fn folder(args: &args::Collect) -> Result<PathBuf, Failure> {
    match &args.out {
        Some(folder) => Ok(folder.clone()),
        None => {
            let run = RunFolder::create("collect", None, &TraceTarget::RunFolder, false)?;
            Ok(run.trace().context("a new run has a trace")?.to_path_buf())
        }
    }
}

fn print_result(report: &ServerReport, as_json: bool, verbosity: Verbosity) {
    let counts = [
        ("connections refused", report.refused),
        ("connections turned away: there were too many", report.turned_away),
        ("writes failed", report.failed_writes),
    ];
    for (what, n) in counts.iter().filter(|(_, n)| *n > 0) {
        note!("warning: {what}: {}", text::count(*n));
    }
    if as_json {
        let report = json!({
            "folders": report.folders,
            "connections": report.connections,
            "bytes": report.bytes,
            "repeated_bytes": report.repeated,
            "refused": report.refused,
            "turned_away": report.turned_away,
            "clock_exchanges": report.exchanges,
            "failed_writes": report.failed_writes,
        });
        out::object(1, report);
    } else if verbosity > Verbosity::Quiet {
        let (folders, bytes) = (text::count_of(report.folders, "trace folder"), text::bytes(report.bytes));
        note!("stepscope: gathered {bytes} of {folders}");
    }
}
