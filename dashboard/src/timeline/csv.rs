//! The slices in the selected range, or else in the view, as CSV.

use super::state::State;
use std::fmt::Write as _;
use trace_store::Store;
use ui::export::csv_field;

/// Rows of the table, at most; a table that is cut has a note in its last line.
const MAX_ROWS: usize = 1_000_000;

/// Returns a table with one line per slice, by track and time; its first line names the columns.
pub(super) fn csv(store: &Store, state: &State) -> String {
    let range = state.range.clone().unwrap_or_else(|| state.eased.target().range());
    let mut out = String::from("process,track,lane,start_ns,dur_ns,name,category,node,step\n");
    let visible_tracks = store.tracks().iter().filter(|t| !state.folding.hidden.contains(&t.id.0));
    let mut n_left = MAX_ROWS;
    for track in visible_tracks {
        let process = store.processes().get(track.process as usize).map_or("", |p| &p.name);
        let (process, track_name) = (csv_field(process), csv_field(&track.name));
        for (lane_idx, lane) in track.lanes.iter().enumerate() {
            for slice in lane.slices(&range) {
                if n_left == 0 {
                    let _ = writeln!(out, "# cut after {MAX_ROWS} slices: select a shorter range");
                    return out;
                }
                n_left -= 1;
                let site = store.sites().get(slice.site as usize);
                let (name, category) = site.map_or(("", ""), |s| (&s.name, &s.category_name));
                let node = store.node_of(&slice).map_or("", |n| &n.name);
                let step = store.step_id_of(&slice).map_or_else(String::new, |s| s.to_string());
                let (start, dur) = (slice.start, slice.dur());
                let (name, category, node) = (csv_field(name), csv_field(category), csv_field(node));
                let _ =
                    writeln!(out, "{process},{track_name},{lane_idx},{start},{dur},{name},{category},{node},{step}");
            }
        }
    }
    out
}
