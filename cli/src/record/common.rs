//! Common parts of recordings: the watch options, the folder, and the report at the end.

use std::path::{Path, PathBuf};

use anyhow::Context;
use trace_record::CollectorReport;
use trace_record::watch::{WatchOptions, WatchReport};
use train::{RunFolder, TraceTarget};

use crate::args;
use crate::outcome::Failure;

/// The watch options of the command line.
pub fn watch_options(args: &args::Record) -> WatchOptions {
    WatchOptions { sched: args.sched, sample_hz: args.sample, counters: args.counters.unwrap_or_default() }
}

/// Creates the trace's folder, empty. Its path is absolute, because the command may change its working directory.
pub fn trace_folder(out: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = match out {
        Some(folder) => {
            train::refuse_if_used(folder)?;
            folder.to_path_buf()
        }
        None => RunFolder::create("record", None, &TraceTarget::RunFolder, false)?
            .trace()
            .context("a new run has a trace")?
            .to_path_buf(),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(std::path::absolute(&folder).with_context(|| format!("finding {}", folder.display()))?)
}

/// Prints a report on the recording.
pub fn print_report(folder: &Path, wall_ns: i64, watch_report: &WatchReport, collector_report: &CollectorReport) {
    for (what, remedy) in &watch_report.unavailable {
        note!("warning: {what}: not recorded on this machine; {remedy}");
    }
    let lost = collector_report.dropped + watch_report.lost;
    let mut parts = vec![
        format!("{} in {}", text::bytes(collector_report.bytes), text::duration(wall_ns)),
        format!("{} events", text::count(collector_report.records)),
        format!("{} dropped", text::count(lost)),
    ];
    if let Some(source) = watch_report.sched_source {
        let (switches, wakeups) = (text::count(watch_report.switches), text::count(watch_report.wakeups));
        parts.push(format!("{switches} switches and {wakeups} wake-ups ({source})"));
    }
    if watch_report.samples > 0 {
        parts.push(format!("{} samples", text::count(watch_report.samples)));
    }
    if watch_report.readings > 0 {
        parts.push(format!("{} readings of counters", text::count(watch_report.readings)));
    }
    if collector_report.write_errors > 0 {
        parts.push(format!("{} failed writes", text::count(collector_report.write_errors)));
    }
    if collector_report.limit_reached {
        parts.push("the size limit ended the trace".to_owned());
    }
    note!("stepscope: recorded {}: {}", folder.display(), parts.join(", "));
}
