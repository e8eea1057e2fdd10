//! Sending a trace to a collector while it is recorded, and sealing it at its end.

use std::path::Path;
use std::time::Duration;

use gather::{SendError, Sender, SenderOptions};
use trace_store::sealing::SealReport;

/// How long the end of a recording waits for a collector to take the rest of the trace.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of a recording waits for a collector that was never reached.
const TIMEOUT_UNREACHABLE: Duration = Duration::from_secs(1);

/// The collector's address: `option` (the command line's), else the value of `STEPSCOPE_COLLECTOR`.
pub fn collector_address(option: Option<&str>) -> Option<String> {
    let variable = || std::env::var(events::control::COLLECTOR_ENV).ok().filter(|address| !address.is_empty());
    option.map(str::to_owned).or_else(variable)
}

/// Starts sending a trace folder, if there is an address.
///
/// # Errors
/// The address is invalid, or the folder is being sent already or cannot be sent.
pub fn start(folder: &Path, address: Option<&str>) -> Result<Option<Sender>, SendError> {
    address.map(|address| Sender::start(folder, address, SenderOptions::default())).transpose()
}

/// Sends the rest of the trace; returns a warning where a part did not arrive.
pub fn end(sender: Option<Sender>, folder: &Path) -> Option<String> {
    let sender = sender?;
    let progress = sender.progress();
    let is_unreachable = progress.connections == 0 && progress.problem.is_some();
    let report = sender.finish(if is_unreachable { TIMEOUT_UNREACHABLE } else { TIMEOUT });
    if report.finished {
        return None;
    }
    let problem = report.problem.map_or_else(String::new, |problem| format!(" ({problem})"));
    let (path, sent) = (folder.display(), text::bytes(report.acknowledged));
    Some(format!(
        "the collector has {sent} of the trace and not the rest{problem}; \
         send it with: stepscope record --attach {path} --collector HOST:PORT"
    ))
}

/// Sends the rest and seals the trace. A trace that the collector has not received completely stays unsealed: sealing
/// would give its events a second identity. Returns a warning where either failed.
pub fn end_and_seal(sender: Option<Sender>, folder: &Path) -> Option<String> {
    end(sender, folder).or_else(|| seal(folder))
}

/// Seals the trace of a recording. Returns a warning where that failed: an unsealed trace can be read too, but is
/// larger and slower.
pub fn seal(folder: &Path) -> Option<String> {
    match trace_store::sealing::seal(folder) {
        Ok(SealReport { removal_obstacle, .. }) => {
            removal_obstacle.map(|why| format!("the collected files stay next to the sealed trace: {why}"))
        }
        Err(error) => Some(format!("the trace was not sealed: {error}")),
    }
}

/// Whether a process on this machine still writes to a ring of the folder.
pub fn has_live_writer(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let rings = entries.flatten().filter_map(|entry| {
        let (pid, _) = events::ring::parse_file_name(entry.file_name().to_str()?)?;
        Some((pid, entry.path()))
    });
    let is_alive = |pid: u32| Path::new("/proc").join(pid.to_string()).exists();
    let mut live_rings = rings.filter(|(pid, _)| is_alive(*pid));
    live_rings.any(|(_, path)| events::ring::peek(&path).is_ok_and(|header| !header.finished))
}
