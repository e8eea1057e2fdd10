//! Makes a store from the contents of a sealed or remote trace, and drains a store whose rows are being sealed.

use super::lane::Lane;
use super::side::{Counters, Flows, Warnings};
use super::stacks::Stacks;
use super::table::{Table, node_key, site_key};
use super::track::Track;
use super::transfers::Transfers;
use super::{Store, StoreOptions};
use std::ops::Range;
use std::sync::Arc;
use trace_model::{
    Args, ColdLane, Flow, Frame, InstantEvent, MAX_LANES, MemoryEvent, NO_ARGS, NodeInfo, PageLoader, Point, Process,
    SiteInfo, SliceRef, Stack, Step, TrackId, Transfer, Warning,
};

/// The rows from which a store is made.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) origin: i64,
    pub(crate) range: Range<i64>,
    pub(crate) processes: Vec<Process>,
    pub(crate) sites: Vec<SiteInfo>,
    pub(crate) nodes: Vec<NodeInfo>,
    pub(crate) tracks: Vec<Track>,
    pub(crate) steps: Vec<Step>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) points: Vec<Point>,
    pub(crate) memory: Vec<MemoryEvent>,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) warnings: Vec<Warning>,
    /// The arguments of instants.
    pub(crate) args: Args,
    pub(crate) pager: Option<Arc<dyn PageLoader>>,
}

/// An instant with its track and the text of its arguments.
#[derive(Debug)]
pub(crate) struct PlacedInstant {
    pub(crate) track: TrackId,
    pub(crate) event: InstantEvent,
    pub(crate) args: Option<Box<str>>,
}

/// Rows other than slices that were drained from a store.
#[derive(Debug, Default)]
pub(crate) struct SideRows {
    pub(crate) instants: Vec<PlacedInstant>,
    pub(crate) points: Vec<Point>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) memory: Vec<MemoryEvent>,
    pub(crate) transfers: Vec<Transfer>,
}

impl Contents {
    /// Sets a lane whose slices are not in memory. Does nothing for an unknown track, and for a lane from
    /// [`MAX_LANES`] on.
    pub(crate) fn set_lane(&mut self, track: u32, lane: u32, slices: impl FnOnce() -> Box<dyn ColdLane>) {
        let Some(lanes) = self.tracks.get_mut(track as usize).map(|track| &mut track.lanes) else { return };
        if lane as usize >= MAX_LANES {
            return;
        }
        while lanes.len() <= lane as usize {
            lanes.push(Lane::new(track, lanes.len() as u32));
        }
        lanes[lane as usize] = Lane::from_cold(track, lane, slices());
    }
}

impl Store {
    /// Returns a store with these contents and without a budget.
    pub(crate) fn from_contents(mut contents: Contents) -> Store {
        let mut args = Args::with_pager(contents.pager.clone());
        let first_args = args.append(&contents.args);
        for instant in contents.tracks.iter_mut().flat_map(|t| &mut t.instants).filter(|i| i.args != NO_ARGS) {
            instant.args = instant.args.saturating_add(first_args);
        }
        let mut counters = Counters::default();
        for Point { key, time, value } in contents.points {
            counters.push(key, time, value, usize::MAX);
        }
        let has_events = contents.tracks.iter().any(|t| t.n_slices() > 0 || !t.instants.is_empty())
            || !(contents.flows.is_empty() && contents.memory.is_empty() && counters.rows().is_empty());
        Store {
            options: StoreOptions::UNBOUNDED,
            origin: (has_events || contents.origin != 0).then_some(contents.origin),
            range: has_events.then_some(contents.range),
            process_rows: contents.processes.iter().enumerate().map(|(row, p)| (p.pid, row as u32)).collect(),
            processes: contents.processes,
            sites: Table::from_rows(contents.sites, site_key),
            nodes: Table::from_rows(contents.nodes, node_key),
            track_rows: contents.tracks.iter().map(|t| (t.key, t.id.0)).collect(),
            slices_total: contents.tracks.iter().map(|t| t.n_slices() as u64).sum(),
            tracks: contents.tracks,
            steps: contents.steps,
            counters,
            flows: Flows::from_rows(contents.flows),
            transfers: Transfers::from_rows(contents.transfers),
            memory: contents.memory.into(),
            args,
            stacks: Stacks::from_rows(contents.frames, contents.stacks),
            warnings: Warnings::from_rows(contents.warnings),
            pager: contents.pager,
            ..Store::default()
        }
    }

    /// Returns the store with these warnings added.
    pub(crate) fn with_warnings(mut self, warnings: impl Iterator<Item = Warning>) -> Store {
        for warning in warnings {
            self.warnings.set(warning);
        }
        self
    }

    /// Replaces the contents by those of another store, within the budget of this one.
    pub(super) fn replace_contents(&mut self, other: Store) {
        let (options, version, generation) = (self.options, self.version, self.generation + 1);
        *self = Store { options, version, generation, ..other };
        self.enforce_side_budget();
        (0..self.tracks.len() as u32).for_each(|track| self.enforce_budget(track));
    }

    /// Passes all slices in memory to `take`, lane by lane, with the texts of their arguments, and removes them.
    /// Removes all arguments, so [`Store::drain_side`] has to be called before.
    pub(crate) fn drain_slices(&mut self, mut take: impl FnMut(SliceRef, Option<&str>)) {
        let args = std::mem::take(&mut self.args);
        for lane in self.tracks.iter_mut().flat_map(|track| &mut track.lanes) {
            lane.drain(|slice| take(slice, args.get(slice.args).as_deref()));
        }
    }

    /// Removes and returns the rows other than slices. The last `n_pending` flows and transfers stay, since their other
    /// end may still arrive.
    pub(crate) fn drain_side(&mut self, n_pending: usize) -> SideRows {
        let mut rows = SideRows::default();
        for track in &mut self.tracks {
            let id = track.id;
            rows.instants.extend(track.instants.drain(..).map(|event| {
                let args = self.args.get(event.args).map(Into::into);
                PlacedInstant { track: id, event, args }
            }));
        }
        rows.points = self.counters.drain();
        rows.flows = self.flows.drain(n_pending);
        rows.transfers = self.transfers.drain(n_pending);
        rows.memory = self.memory.drain(..).collect();
        rows
    }
}
