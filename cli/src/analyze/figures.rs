//! Figures of an analysis for text, JSON and report.

use serde_json::Value;
use trace_analysis::breakdown::Breakdown;
use trace_analysis::critical::{CriticalPath, PathKind};
use trace_store::Store;

/// The version of the JSON of `analyze` and `diff` (docs/formats/json.md): grows when a field is removed or changes its
/// meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Sum of the lengths of critical paths, ns.
pub fn path_ns(paths: &[CriticalPath]) -> i64 {
    paths.iter().map(|p| p.range.end - p.range.start).sum()
}

/// The time on critical paths by kind, the longest first.
pub fn path_kinds(paths: &[CriticalPath]) -> Vec<(String, i64)> {
    let mut kinds: Vec<(String, i64)> = Vec::new();
    for segment in paths.iter().flat_map(|p| &p.segments) {
        let name = kind_name(segment.kind);
        match kinds.iter_mut().find(|(kind, _)| *kind == name) {
            Some((_, ns)) => *ns += segment.dur(),
            None => kinds.push((name, segment.dur())),
        }
    }
    kinds.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    kinds
}

fn kind_name(kind: PathKind) -> String {
    match kind {
        PathKind::Stall(cause) => format!("stall: {cause}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// The names and durations (ns) of the parts of a breakdown.
pub fn named_parts(times: &Breakdown) -> [(&'static str, i64); 8] {
    [
        ("compute", times.compute_ns),
        ("communication_exposed", times.communication_exposed_ns),
        ("communication_overlapped", times.communication_overlapped_ns),
        ("copy_exposed", times.copy_exposed_ns),
        ("copy_overlapped", times.copy_overlapped_ns),
        ("input", times.input_ns),
        ("host", times.host_ns),
        ("idle", times.idle_ns),
    ]
}

/// Adds the fields of a JSON object to another one.
pub fn merged(mut object: Value, extra: Value) -> Value {
    if let (Some(object), Value::Object(extra)) = (object.as_object_mut(), extra) {
        object.extend(extra);
    }
    object
}

/// A track's name without surrounding blanks, which some files have.
pub fn track_name(store: &Store, id: u32) -> &str {
    store.tracks().get(id as usize).map_or("?", |t| t.name.trim())
}

/// Processes whose clocks were aligned, with their offsets.
pub fn clocks(store: &Store) -> impl Iterator<Item = (&trace_model::Process, trace_model::ClockOffset)> {
    store.processes().iter().filter_map(|process| Some((process, process.clock?)))
}
