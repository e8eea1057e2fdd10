//! Follows a folder with runs: their event files, and the traces and graphs next to them.

use super::{
    artifacts::RunArtifacts,
    shared::{POLL, Shared},
    slots::SourceId,
};
use crate::data::{SourceKind, Status, Warning};
use events::clock;
use std::{path::Path, sync::Arc};
use summaries::{Logdir, Runs};

/// A logdir that has not grown for this long counts as finished until it grows again.
const QUIET_NS: i64 = 10_000_000_000;
/// Pause between two searches for traces and graphs next to the event files.
const SEARCH_NS: i64 = 500_000_000;
/// Damaged places that are listed one by one.
const MAX_LISTED: usize = 20;

/// Follows `path` until the window closes.
pub(super) fn follow(shared: &Arc<Shared>, source: SourceId, path: &Path) {
    shared.slots.set_kind(source, SourceKind::Logdir, None);
    let mut logdir = match Logdir::open(&[path.to_owned()]) {
        Ok(logdir) => logdir,
        Err(error) => return shared.slots.fail(source, &error.to_string()),
    };
    shared.slots.add_logdir(source, logdir.shared());
    let loader = std::thread::current();
    logdir.on_activity(move || loader.unpark());
    let mut artifacts = RunArtifacts::new(shared.clone(), source, path);
    let mut grew_ns = i64::MIN;
    let mut searched_ns = i64::MIN;
    let mut is_read = false;
    loop {
        let changes = logdir.poll();
        let now_ns = clock::mono_now();
        // The first read says nothing about a writer.
        if is_read && !changes.is_empty() {
            grew_ns = now_ns;
        }
        let is_settled = is_read && now_ns.saturating_sub(grew_ns) > QUIET_NS;
        let status = if changes.has_more && !is_read {
            Status::Loading
        } else if is_settled {
            Status::Finished
        } else {
            Status::Live
        };
        is_read |= !changes.has_more;
        let mut is_changed = !changes.is_empty() | shared.slots.set_status(source, status);
        let is_first = searched_ns == i64::MIN;
        if is_read && now_ns - searched_ns.max(-SEARCH_NS) >= SEARCH_NS {
            searched_ns = now_ns;
            is_changed |= artifacts.update(&logdir);
        }
        if is_changed || is_first {
            let warnings = warnings(&logdir.runs()).into_iter().chain(artifacts.warnings()).collect();
            is_changed |= shared.slots.set_warnings(source, warnings);
        }
        if is_changed {
            (shared.wake)();
        }
        let goes_on = if changes.has_more { !shared.is_stopping(source) } else { shared.pause(source, POLL) };
        if !goes_on {
            break;
        }
    }
    artifacts.stop();
}

/// Damage and problems as counted lines.
fn warnings(runs: &Runs) -> Vec<Warning> {
    let mut out: Vec<Warning> = Vec::new();
    for problem in &runs.problems {
        out.push(Warning { count: 1, text: format!("{}: {}", problem.path.display(), problem.message) });
    }
    for run in runs.by_name.values() {
        let n_listed = run.damage.len().min(MAX_LISTED);
        out.extend(run.damage[..n_listed].iter().map(|damage| Warning { count: 1, text: damage.to_string() }));
        let n_more = run.n_damaged.saturating_sub(n_listed as u64);
        if n_more > 0 {
            out.push(Warning { count: n_more, text: format!("run {}: more damaged places", run.name) });
        }
        for file in &run.files {
            if let summaries::FileState::Unreadable(reason) = &file.state {
                out.push(Warning { count: 1, text: format!("{}: {reason}", file.path.display()) });
            }
        }
    }
    out
}
