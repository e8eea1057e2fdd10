//! What the timeline shows: its rows from top to bottom, independent of time, zoom and pixels.
//!
//! A process is a heading over its tracks; a track has a lane per nesting depth in use; counters come after the tracks
//! of their process. Tracks come in the order that the trace asks for, then CPUs, threads, devices' streams, copies, the network. Folding never loses a track silently: a folded process says how many tracks it holds, a folded
//! track keeps its outermost lane, and tracks that the user hid are listed in [`Rows::hidden`].

use profiler::{Category, Store, Track, TrackId, TrackKind};
use rustc_hash::FxHashSet;

/// What the user folded or hid. Rows of the store's tables, which stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folding {
    /// Processes of which only the heading shows.
    pub processes: FxHashSet<u32>,
    /// Tracks that show their outermost lane only.
    pub tracks: FxHashSet<u32>,
    /// Tracks that do not show.
    pub hidden: FxHashSet<u32>,
    /// Grows with every change.
    revision: u64,
}

impl Folding {
    /// Folds or unfolds a process.
    pub fn toggle_process(&mut self, process: u32) {
        toggle(&mut self.processes, process);
        self.revision += 1;
    }

    /// Folds or unfolds a track.
    pub fn toggle_track(&mut self, track: u32) {
        toggle(&mut self.tracks, track);
        self.revision += 1;
    }

    /// Hides a track.
    pub fn hide(&mut self, track: u32) {
        self.hidden.insert(track);
        self.revision += 1;
    }

    /// Shows every hidden track.
    pub fn show_all(&mut self) {
        self.hidden.clear();
        self.revision += 1;
    }

    /// Makes sure that a track's lanes show: a search or a link leads there.
    pub fn reveal(&mut self, track: u32, process: u32) {
        let removed = [self.processes.remove(&process), self.tracks.remove(&track), self.hidden.remove(&track)];
        self.revision += u64::from(removed.contains(&true));
    }

    /// Grows with every change.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

fn toggle(set: &mut FxHashSet<u32>, row: u32) {
    if !set.remove(&row) {
        set.insert(row);
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// A heading over the tracks of a process.
    Process {
        /// Row of the store's processes.
        process: u32,
        /// Its name and id.
        title: String,
        /// How many tracks it has.
        n_tracks: usize,
        /// Whether its tracks are folded away.
        folded: bool,
    },
    /// A track.
    Track {
        /// Which.
        track: TrackId,
        /// The lanes that show, outermost first.
        lanes: Vec<u32>,
        /// The lane of what runs, below the slices of whole steps: stalls are gaps of it.
        work_lane: u32,
        /// Whether only the outermost one shows.
        folded: bool,
        /// Whether there is anything to fold.
        foldable: bool,
    },
    /// A value over time.
    Counter {
        /// Row of the store's counters.
        counter: usize,
        /// What it counts.
        title: String,
        /// Whether its values are bytes.
        bytes: bool,
    },
}

/// The rows in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// Tracks that the user hid.
    pub hidden: Vec<TrackId>,
}

/// The rows of a store.
pub fn rows(store: &Store, folding: &Folding) -> Rows {
    let mut out = Rows::default();
    let several_hosts = store.processes().windows(2).any(|two| two[0].host != two[1].host);
    for (process, info) in (0_u32..).zip(store.processes()) {
        let of_process = || store.tracks().iter().filter(move |t| t.process == process && has_anything(t));
        let folded = folding.processes.contains(&process);
        let n_tracks = of_process().count();
        let counters = store.counters().iter().any(|c| c.process == process);
        if n_tracks == 0 && !counters {
            continue;
        }
        let title = process_title(info, several_hosts);
        out.rows.push(Row::Process { process, title, n_tracks, folded });
        out.hidden.extend(of_process().map(|t| t.id).filter(|id| folding.hidden.contains(&id.0)));
        if folded {
            continue;
        }
        let mut tracks: Vec<&Track> = of_process().filter(|t| !folding.hidden.contains(&t.id.0)).collect();
        tracks.sort_by_cached_key(|t| (t.order, kind_order(t.kind), natural_key(&t.name), t.id));
        out.rows.extend(tracks.into_iter().map(|t| track_row(store, t, folding)));
        out.rows.extend(counter_rows(store, process));
    }
    out
}

/// The program with its id, on several hosts the host's name too.
fn process_title(process: &profiler::Process, several_hosts: bool) -> String {
    let title = format!("{} ({})", short_command(&process.name), process.pid);
    if several_hosts && !process.host.is_empty() { format!("{}: {title}", process.host) } else { title }
}

/// Where the trace asks for no order: what the processors did, the threads, then what they gave work to.
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
    let of_process = store.counters().iter().enumerate().filter(|(_, c)| c.process == process);
    let mut rows: Vec<(String, usize, bool)> = of_process
        .map(|(counter, c)| {
            let site = store.sites().get(c.site as usize);
            let bytes = site.is_some_and(|s| s.category == Category::Alloc);
            let name = site.map_or("?", |s| &s.name);
            let title = if bytes { format!("memory {}", short_device(name)) } else { name.to_owned() };
            (title, counter, bytes)
        })
        .collect();
    rows.sort_by_cached_key(|(title, counter, _)| (natural_key(title), *counter));
    rows.into_iter().map(|(title, counter, bytes)| Row::Counter { counter, title, bytes }).collect()
}

/// The part of a device's name that tells devices of one process apart: `CPU:0` of `/job:localhost/device:CPU:0`.
fn short_device(name: &str) -> &str {
    name.rsplit('/').next().map_or(name, |last| last.strip_prefix("device:").unwrap_or(last))
}

fn has_anything(track: &Track) -> bool {
    track.n_slices() > 0 || !track.open.is_empty() || !track.instants.is_empty() || track.dropped > 0
}

fn track_row(store: &Store, track: &Track, folding: &Folding) -> Row {
    let deepest_open = track.open.iter().map(|o| u32::from(o.depth) + 1).max().unwrap_or(0);
    let n = deepest_open.max(track.lanes.len() as u32);
    let in_use = |lane: &u32| {
        track.lanes.get(*lane as usize).is_some_and(|l| !l.is_empty())
            || track.open.iter().any(|o| u32::from(o.depth) == *lane)
    };
    let mut lanes: Vec<u32> = (0..n).filter(in_use).collect();
    if lanes.is_empty() {
        lanes.push(0);
    }
    let is_step = |lane: &u32| {
        let first = track.lanes.get(*lane as usize).and_then(|l| l.slice(0));
        first.is_some_and(|s| store.category(&s) == Category::Step)
    };
    let work_lane = lanes.iter().copied().find(|lane| !is_step(lane)).unwrap_or(lanes[0]);
    let foldable = lanes.len() > 1;
    let folded = foldable && folding.tracks.contains(&track.id.0);
    if folded {
        lanes.truncate(1);
    }
    Row::Track { track: track.id, lanes, work_lane, folded, foldable }
}

/// The program's name without its folder: what tells processes apart in a narrow heading.
fn short_command(command: &str) -> &str {
    let program = command.split_whitespace().next().unwrap_or(command);
    program.rsplit('/').next().filter(|p| !p.is_empty()).unwrap_or(command)
}

/// So that `worker 2` comes before `worker 10`.
fn natural_key(name: &str) -> (String, u64) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (head, tail) = name.split_at(name.len() - digits);
    (head.to_owned(), tail.parse().unwrap_or(0))
}

/// The timeline in one sentence, for assistive technology and tests.
pub fn summary(store: &Store, rows: &Rows, view: &str) -> String {
    use crate::format::counted;
    let shown = rows.rows.iter().filter(|r| matches!(r, Row::Track { .. })).count() as u64;
    let slices: usize = store.tracks().iter().map(Track::n_slices).sum();
    format!("Timeline: {}, {}, view {view}", counted(shown, "track"), counted(slices as u64, "slice"))
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
        folding.reveal(1, 0);
        folding.show_all();
        assert_eq!(rows(&store, &folding), rows(&store, &Folding::default()));
    }

    #[test]
    fn an_empty_store_has_no_rows() {
        let store = Store::new();
        let rows = rows(&store, &Folding::default());
        assert_eq!(rows, Rows::default());
        assert_eq!(summary(&store, &rows, "0 ns to 1 ns"), "Timeline: 0 tracks, 0 slices, view 0 ns to 1 ns");
    }
}
