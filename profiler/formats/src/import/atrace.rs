//! Parses the marks that programs write into the kernel's trace: `B|pid|name`, `E|pid`, `C|pid|name|value`,
//! `S|pid|name|cookie`.

use super::sched::Sched;
use super::stage::Stage;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use trace_model::NO_ARGS;

/// Stages the mark that thread `tid` wrote; any other text is an instant.
pub(super) fn take(text: &str, tid: i64, time: i64, sched: &mut Sched, stage: &mut Stage) {
    let text = text.trim_end_matches(['\n', '\0']);
    let mut parts = text.splitn(3, '|');
    let kind = parts.next().unwrap_or("");
    let pid = parts.next().and_then(|pid| pid.trim().parse::<i64>().ok());
    let rest = parts.next().unwrap_or("");
    if let Some(pid) = pid.filter(|_| matches!(kind, "B" | "E" | "S" | "F")) {
        // The thread that writes such a mark belongs to the process in it.
        sched.process_of.entry(tid).or_insert(pid);
    }
    match (kind, pid) {
        ("B", _) => {
            let (site, track) = (stage.site("", rest), stage.thread_of_any(tid));
            stage.mark(track, time, false, Some(site), NO_ARGS);
        }
        ("E", _) => {
            let track = stage.thread_of_any(tid);
            stage.mark(track, time, true, None, NO_ARGS);
        }
        ("C", Some(pid)) => counter(rest, pid, time, stage),
        ("S" | "F", Some(pid)) => {
            let (name, cookie) = rest.rsplit_once('|').unwrap_or((rest, "0"));
            let site = stage.site("", name);
            let id = FxBuildHasher.hash_one((name, cookie));
            let key = (stage.process(pid), stage.flows.space(b"atrace"), id);
            stage.async_mark(key, time, kind == "F", site, NO_ARGS);
        }
        _ => {
            let (site, track) = (stage.site("print", text), stage.thread_of_any(tid));
            stage.instant(track, time, site, NO_ARGS);
        }
    }
}

fn counter(rest: &str, pid: i64, time: i64, stage: &mut Stage) {
    let (name, value) = rest.split_once('|').unwrap_or((rest, ""));
    if let Ok(value) = value.split('|').next().unwrap_or("").trim().parse() {
        let site = stage.site("counter", name);
        let process = stage.process(pid);
        stage.counter(process, time, site, value);
    }
}
