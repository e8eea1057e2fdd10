//! The user's arrangement of the rows: folded, hidden, pinned, moved and filtered tracks, and the height of lanes.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use trace_model::TrackId;
use trace_store::Store;
use ui::{
    address::{AddressState, Params},
    address_fields,
    filter::Filter,
};

/// Heights of a track's lanes that the user can choose, in tenths of the normal height.
const HEIGHTS: [u16; 5] = [6, 10, 16, 26, 40];

/// The user's arrangement of the rows. Processes and tracks are rows of the store's tables, which stay valid as a trace
/// grows.
#[derive(Clone, Debug, Default)]
pub struct Folding {
    /// Hosts that are folded to their heading.
    pub hosts: FxHashSet<String>,
    /// Processes that are folded to their heading.
    pub processes: BTreeSet<u32>,
    /// Tracks that are folded to their outermost lane.
    pub tracks: BTreeSet<u32>,
    /// Hidden tracks.
    pub hidden: BTreeSet<u32>,
    /// Pinned tracks, in order.
    pub pinned: Vec<u32>,
    /// Tracks with another height than the normal one, with the index of [`HEIGHTS`].
    pub heights: BTreeMap<u32, u32>,
    /// Tracks that were moved, with their index in their process.
    pub order: FxHashMap<u32, usize>,
    /// The filter of the tracks' names.
    pub filter: Filter,
    /// Incremented with every change.
    revision: u64,
}

// Addresses do not contain order and hosts: following a link does not change them.
address_fields!(Folding {
    "tracks" = filter: Filter,
    "hidden" = hidden: BTreeSet<u32>,
    "folded" = tracks: BTreeSet<u32>,
    "processes" = processes: BTreeSet<u32>,
    "pinned" = pinned: Vec<u32>,
    "heights" = heights: BTreeMap<u32, u32>,
});

impl Folding {
    /// Folds a host, or unfolds it.
    pub fn toggle_host(&mut self, host: &str) {
        if !self.hosts.remove(host) {
            self.hosts.insert(host.to_owned());
        }
        self.revision += 1;
    }

    /// Pins a track above all others, or unpins it.
    pub fn toggle_pin(&mut self, track: u32) {
        match self.pinned.iter().position(|t| *t == track) {
            Some(i) => _ = self.pinned.remove(i),
            None => self.pinned.push(track),
        }
        self.revision += 1;
    }

    /// Makes a track's lanes taller or shorter.
    pub fn resize(&mut self, track: u32, taller: bool) {
        let current = self.heights.get(&track).copied().unwrap_or(NORMAL_HEIGHT);
        let next = if taller { (current + 1).min(HEIGHTS.len() as u32 - 1) } else { current.saturating_sub(1) };
        self.heights.insert(track, next);
        self.heights.retain(|_, height| *height != NORMAL_HEIGHT);
        self.revision += 1;
    }

    /// The height of a track's lanes, in tenths of the normal height.
    pub fn height(&self, track: u32) -> u16 {
        HEIGHTS[(self.heights.get(&track).copied().unwrap_or(NORMAL_HEIGHT) as usize).min(HEIGHTS.len() - 1)]
    }

    /// Moves a track by one row among the pinned tracks or within its process. `row_tracks`: the tracks of all rows,
    /// in order.
    pub fn move_track(&mut self, store: &Store, row_tracks: &[TrackId], track: u32, up: bool) {
        let swap = |list: &mut [u32]| {
            let Some(i) = list.iter().position(|t| *t == track) else { return false };
            let other = if up { i.checked_sub(1) } else { Some(i + 1).filter(|i| *i < list.len()) };
            other.is_some_and(|other| {
                list.swap(i, other);
                true
            })
        };
        let is_changed = if self.pinned.contains(&track) {
            swap(&mut self.pinned)
        } else {
            let Some(process) = store.tracks().get(track as usize).map(|t| t.process) else { return };
            let is_of_process =
                |id: &&TrackId| store.track(**id).is_some_and(|t| t.process == process) && !self.pinned.contains(&id.0);
            let mut order: Vec<u32> = row_tracks.iter().filter(is_of_process).map(|id| id.0).collect();
            let is_changed = swap(&mut order);
            self.order.extend(order.into_iter().zip(0..));
            is_changed
        };
        self.revision += u64::from(is_changed);
    }

    /// Sets the filter of the tracks' names. Counters are not filtered.
    pub fn set_filter(&mut self, text: &str) {
        if text != self.filter.text() {
            self.filter.set(text);
            self.revision += 1;
        }
    }

    /// Folds a process, or unfolds it.
    pub fn toggle_process(&mut self, process: u32) {
        toggle(&mut self.processes, process);
        self.revision += 1;
    }

    /// Folds a track, or unfolds it.
    pub fn toggle_track(&mut self, track: u32) {
        toggle(&mut self.tracks, track);
        self.revision += 1;
    }

    /// Hides a track.
    pub fn hide(&mut self, track: u32) {
        self.hidden.insert(track);
        self.revision += 1;
    }

    /// Shows the hidden tracks.
    pub fn show_all(&mut self) {
        self.hidden.clear();
        self.revision += 1;
    }

    /// Applies an address.
    pub fn go_to(&mut self, params: &Params) {
        self.set_params(params);
        self.revision += 1;
    }

    /// Unfolds and shows a track's lanes for a search or a link.
    pub fn reveal(&mut self, store: &Store, track: u32) {
        let Some(t) = store.tracks().get(track as usize) else { return };
        let host = store.processes().get(t.process as usize).map_or("", |p| &p.host);
        let is_removed = [
            self.hosts.remove(host),
            self.processes.remove(&t.process),
            self.tracks.remove(&track),
            self.hidden.remove(&track),
        ];
        self.revision += u64::from(is_removed.contains(&true));
        if !self.filter.matches(&t.name) {
            self.set_filter("");
        }
    }

    /// Incremented with every change.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

/// Index of the normal height in [`HEIGHTS`].
const NORMAL_HEIGHT: u32 = 1;

fn toggle(set: &mut BTreeSet<u32>, row: u32) {
    if !set.remove(&row) {
        set.insert(row);
    }
}
