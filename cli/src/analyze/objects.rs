//! What every object has that names a process, a track or a slice.

use serde_json::{Value, json};
use trace_model::{Process, SliceId};
use trace_store::Store;

use super::figures::{merged, track_name};

/// A process: its number, name, id, host and rank.
pub fn process(store: &Store, row: u32) -> Value {
    let process = store.processes().get(row as usize);
    json!({
        "process_id": row, "process": process.map(|p| &p.name), "pid": process.map(|p| p.pid),
        "host": process.map(|p| &p.host), "rank": process.and_then(Process::rank),
    })
}

/// An object with a track, its process, and `fields`.
pub fn on_track(store: &Store, id: u32, fields: Value) -> Value {
    let track = store.tracks().get(id as usize);
    let process_json = track.map_or_else(|| json!({}), |track| process(store, track.process));
    let device = track.map(|t| &t.device).filter(|device| !device.is_empty());
    let track = json!({ "track_id": id, "track": track_name(store, id), "device": device });
    merged(merged(process_json, track), fields)
}

/// A slice: its identity, name and time.
pub fn slice(store: &Store, id: SliceId) -> Value {
    let slice = store.slice(id);
    let fields = json!({
        "lane": id.lane, "ordinal": id.ordinal, "name": slice.map(|s| store.slice_name(&s).to_owned()),
        "start_ns": slice.map(|s| s.start), "dur_ns": slice.map(|s| s.dur()),
    });
    on_track(store, id.track, fields)
}
