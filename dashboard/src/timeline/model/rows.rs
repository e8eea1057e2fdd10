//! The rows from top to bottom.
//!
//! Where there are several hosts each is a heading over its processes; a process is a heading over its tracks; a track
//! has a lane for each nesting depth in use; counters follow the tracks of their process. Pinned tracks come before all
//! others. Tracks are in the trace's order, then CPUs, threads, streams, copies, the network. No track disappears
//! without a sign: a folded process shows its number of tracks, a folded track keeps its outermost lane, and
//! [`Rows::hidden`] lists the tracks that the user hid.

use super::folding::Folding;
use trace_model::{Category, TrackId, TrackKind};
use trace_store::{Store, Track};
use ui::{
    format,
    natural::{self, Natural},
};

/// A row of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// A heading over the pinned tracks.
    Pins,
    /// A heading over the processes of a host.
    Host { host: String, n_processes: usize, folded: bool },
    /// A heading over the tracks of a process.
    Process {
        /// Row of the store's processes.
        process: u32,
        title: String,
        n_tracks: usize,
        folded: bool,
    },
    /// A track with its visible lanes.
    Track {
        track: TrackId,
        /// The visible lanes, outermost first.
        lanes: Vec<u32>,
        /// The outermost lane below the slices of steps. Stalls are gaps in this lane.
        work_lane: u32,
        folded: bool,
        foldable: bool,
        /// Height of the lanes, in tenths of the normal height.
        height_tenths: u16,
        pinned: bool,
    },
    /// A chart of a value over time.
    Counter {
        /// Row of the store's counters.
        counter: usize,
        title: String,
        /// Whether the values are bytes.
        bytes: bool,
    },
}

/// The rows in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub list: Vec<Row>,
    /// The tracks that the user hid.
    pub hidden: Vec<TrackId>,
    /// The number of tracks, neither hidden nor pinned, that the filter leaves out.
    pub n_filtered: usize,
}

impl Rows {
    /// The tracks with a row, in order.
    pub fn tracks(&self) -> Vec<TrackId> {
        let track_of = |row: &Row| if let Row::Track { track, .. } = row { Some(*track) } else { None };
        self.list.iter().filter_map(track_of).collect()
    }
}

/// The rows of a store in the user's arrangement.
pub fn rows(store: &Store, folding: &Folding) -> Rows {
    let mut out = Rows::default();
    let pinned = folding.pinned.iter().filter_map(|t| store.tracks().get(*t as usize)).filter(|t| is_listed(t));
    let pinned: Vec<Row> =
        pinned.filter(|t| !folding.hidden.contains(&t.id.0)).map(|t| track_row(store, t, folding)).collect();
    if !pinned.is_empty() {
        out.list.push(Row::Pins);
        out.list.extend(pinned);
    }
    // Hosts are in the order of their first processes.
    let mut hosts: Vec<&str> = Vec::new();
    for process in store.processes() {
        if !hosts.contains(&process.host.as_str()) {
            hosts.push(&process.host);
        }
    }
    for host in &hosts {
        let folded = folding.hosts.contains(*host);
        let heading_idx = out.list.len();
        let mut n_processes = 0;
        for (process, info) in (0_u32..).zip(store.processes()).filter(|(_, p)| p.host == **host) {
            let n_rows = out.list.len();
            n_processes += usize::from(process_rows(store, folding, process, info, &mut out));
            if folded {
                out.list.truncate(n_rows);
            }
        }
        if hosts.len() > 1 && n_processes > 0 {
            let host = if host.is_empty() { "no host".to_owned() } else { (*host).to_owned() };
            out.list.insert(heading_idx, Row::Host { host, n_processes, folded });
        }
    }
    out
}

/// Adds the rows of a process; returns whether it has any.
fn process_rows(store: &Store, folding: &Folding, process: u32, info: &trace_model::Process, out: &mut Rows) -> bool {
    let process_tracks = || store.tracks().iter().filter(move |t| t.process == process && is_listed(t));
    let folded = folding.processes.contains(&process);
    let n_tracks = process_tracks().count();
    let has_counters = store.counters().iter().any(|c| c.process == process);
    if n_tracks == 0 && !has_counters {
        return false;
    }
    let is_hidden = |t: &&Track| folding.hidden.contains(&t.id.0);
    let matches = |t: &&Track| folding.filter.matches(&t.name);
    let is_filtered = !folding.filter.text().is_empty();
    out.hidden.extend(process_tracks().filter(is_hidden).map(|t| t.id));
    let is_elsewhere = |t: &&Track| is_hidden(t) || folding.pinned.contains(&t.id.0);
    out.n_filtered += process_tracks().filter(|t| !is_elsewhere(t) && !matches(t)).count();
    let mut tracks: Vec<&Track> = process_tracks().filter(|t| !is_elsewhere(t) && matches(t)).collect();
    if is_filtered && tracks.is_empty() {
        return false;
    }
    out.list.push(Row::Process { process, title: process_title(info), n_tracks, folded });
    if folded {
        return true;
    }
    tracks.sort_by_key(|t| {
        let index = folding.order.get(&t.id.0).copied().unwrap_or(usize::MAX);
        (index, t.order, kind_order(t.kind), Natural(&*t.name), t.id)
    });
    out.list.extend(tracks.into_iter().map(|t| track_row(store, t, folding)));
    if !is_filtered {
        out.list.extend(counter_rows(store, process));
    }
    true
}

/// The program's name and its process id.
fn process_title(process: &trace_model::Process) -> String {
    let name = process.titled(short_command(&process.name));
    // A process on the trace's own clock needs no note about it.
    match process.clock.filter(|clock| clock.bound_ns > 0) {
        Some(clock) => format!("{name}, clock ±{}", format::duration_ns(clock.bound_ns.min(i64::MAX as u64) as i64)),
        None => name,
    }
}

/// The order of tracks for which the trace has none: CPUs, threads, then the devices that the threads use.
fn kind_order(kind: TrackKind) -> u8 {
    match kind {
        TrackKind::Cpu => 0,
        TrackKind::Thread | TrackKind::Worker => 1,
        TrackKind::Stream => 2,
        TrackKind::Copy => 3,
        TrackKind::Network => 4,
        _ => 5,
    }
}

/// The counters of a process, by name.
fn counter_rows(store: &Store, process: u32) -> Vec<Row> {
    let counters = store.counters().iter().enumerate().filter(|(_, c)| c.process == process);
    let mut rows: Vec<(String, usize, bool)> = counters
        .map(|(counter, c)| {
            let site = store.sites().get(c.site as usize);
            let bytes = site.is_some_and(|s| s.category == Category::Alloc);
            let name = site.map_or("?", |s| &s.name);
            let title = if bytes { format!("memory {}", short_device(name)) } else { store.counter_title(c) };
            (title, counter, bytes)
        })
        .collect();
    rows.sort_by(|a, b| natural::order(&a.0, &b.0).then(a.1.cmp(&b.1)));
    rows.into_iter().map(|(title, counter, bytes)| Row::Counter { counter, title, bytes }).collect()
}

/// The part of a device's name that is unique in its process: `CPU:0` of `/job:localhost/device:CPU:0`.
fn short_device(name: &str) -> &str {
    name.rsplit('/').next().map_or(name, |last| last.strip_prefix("device:").unwrap_or(last))
}

/// Whether a track has anything to show: slices (open ones too), instants or dropped events.
fn is_listed(track: &Track) -> bool {
    track.n_slices() > 0 || !track.open.is_empty() || !track.instants.is_empty() || track.dropped > 0
}

/// The row of a track, with its lanes in use.
fn track_row(store: &Store, track: &Track, folding: &Folding) -> Row {
    let n_open_lanes = track.open.iter().map(|o| u32::from(o.depth) + 1).max().unwrap_or(0);
    let n_lanes = n_open_lanes.max(track.lanes.len() as u32);
    let is_used = |lane: &u32| {
        track.lanes.get(*lane as usize).is_some_and(|l| !l.is_empty())
            || track.open.iter().any(|o| u32::from(o.depth) == *lane)
    };
    let mut lanes: Vec<u32> = (0..n_lanes).filter(is_used).collect();
    if lanes.is_empty() {
        lanes.push(0);
    }
    // Slices of steps, and a stream's annotations, cover the slices of work.
    let covers_work = |lane: &u32| {
        let first = track.lanes.get(*lane as usize).and_then(|l| l.slice(0));
        first.map(|s| store.category(&s)).is_some_and(|category| {
            category == Category::Step || (track.kind == TrackKind::Stream && category == Category::Other)
        })
    };
    let work_lane = lanes.iter().copied().find(|lane| !covers_work(lane)).unwrap_or(lanes[0]);
    let foldable = lanes.len() > 1;
    let folded = foldable && folding.tracks.contains(&track.id.0);
    if folded {
        lanes.truncate(1);
    }
    let (height_tenths, pinned) = (folding.height(track.id.0), folding.pinned.contains(&track.id.0));
    Row::Track { track: track.id, lanes, work_lane, folded, foldable, height_tenths, pinned }
}

/// The program's name without its folder, as headings are narrow.
fn short_command(command: &str) -> &str {
    let program = command.split_whitespace().next().unwrap_or(command);
    program.rsplit('/').next().filter(|p| !p.is_empty()).unwrap_or(command)
}

/// The timeline in one sentence, for assistive technology and tests.
pub fn summary(store: &Store, rows: &Rows, view: &str, n_paths: usize) -> String {
    use format::count_of;
    let n_tracks = rows.list.iter().filter(|r| matches!(r, Row::Track { .. })).count() as u64;
    let n_slices: usize = store.tracks().iter().map(Track::n_slices).sum();
    let paths = match n_paths {
        0 => String::new(),
        n => format!(", {} marked", count_of(n as u64, "critical path")),
    };
    format!("Timeline: {}, {}, view {view}{paths}", count_of(n_tracks, "track"), count_of(n_slices as u64, "slice"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::{demo, text_of_rows};

    #[test]
    fn processes_tracks_and_counters_in_order() {
        let store = demo(3);
        assert_eq!(
            text_of_rows(&store, &rows(&store, &Folding::default())),
            "demo (7): 3 tracks\n  main: lanes [0]\n  worker 2: lanes [0, 1]\n  worker 10: lanes [0, 1]\n  memory cpu:0\n"
        );
    }

    #[test]
    fn folding_says_what_it_hides() {
        let store = demo(3);
        let mut folding = Folding::default();
        folding.toggle_track(1);
        folding.hide(2);
        let rows_now = rows(&store, &folding);
        assert_eq!(rows_now.hidden, [TrackId(2)]);
        assert_eq!(
            text_of_rows(&store, &rows_now),
            "demo (7): 3 tracks\n  main: lanes [0]\n  worker 10: lanes [0] folded\n  memory cpu:0\n"
        );
        folding.toggle_process(0);
        assert_eq!(text_of_rows(&store, &rows(&store, &folding)), "demo (7): 3 tracks folded\n");
        folding.reveal(&store, 1);
        folding.show_all();
        assert_eq!(rows(&store, &folding), rows(&store, &Folding::default()));
    }

    #[test]
    fn tracks_are_pinned_moved_filtered_and_resized() {
        let store = demo(1);
        let mut folding = Folding::default();
        let check = |folding: &Folding| text_of_rows(&store, &rows(&store, folding));
        let shown = |folding: &Folding| rows(&store, folding).tracks();
        folding.toggle_pin(1);
        assert_eq!(
            check(&folding),
            "Pinned\n  worker 10: lanes [0, 1]\ndemo (7): 3 tracks\n  main: lanes [0]\n  worker 2: lanes [0, 1]\n  memory cpu:0\n"
        );
        folding.toggle_pin(1);
        folding.move_track(&store, &shown(&folding), 1, true);
        folding.move_track(&store, &shown(&folding), 1, true);
        folding.move_track(&store, &shown(&folding), 1, true);
        assert_eq!(shown(&folding), [TrackId(1), TrackId(0), TrackId(2)], "at the top it stays");
        folding.set_filter("worker");
        assert_eq!(shown(&folding), [TrackId(1), TrackId(2)]);
        assert_eq!(rows(&store, &folding).n_filtered, 1);
        folding.toggle_pin(0);
        assert_eq!(rows(&store, &folding).n_filtered, 0, "a pinned track is shown all the same");
        folding.toggle_pin(0);
        folding.reveal(&store, 0);
        assert_eq!(shown(&folding).len(), 3, "what a link leads to is shown");
        for _ in 0..9 {
            folding.resize(2, true);
        }
        assert_eq!((folding.height(2), folding.height(1)), (40, 10));
        for _ in 0..9 {
            folding.resize(2, false);
        }
        assert_eq!(folding.height(2), 6);
    }

    #[test]
    fn an_empty_store_has_no_rows() {
        let store = Store::new();
        let rows = rows(&store, &Folding::default());
        assert_eq!(rows, Rows::default());
        assert_eq!(summary(&store, &rows, "0 ns to 1 ns", 0), "Timeline: 0 tracks, 0 slices, view 0 ns to 1 ns");
    }
}
