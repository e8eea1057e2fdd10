//! The store: everything that a trace reported, in columns, with names, steps, counters, flows and warnings.
//!
//! * Times are `i64` ns from the origin ([`Store::origin_ns`]), intervals half-open.
//! * A finished trace is [sealed](crate::seal): its slices stay on disk, and come when somebody looks at them.
//! * The only way in is [`Store::apply`] with a [`Batch`]; the only other mutation is evicting old slices to
//!   stay in the budget of [`StoreOptions`]. Views share it as `Arc<RwLock<Store>>`: the loader fills batches
//!   without the lock and applies each under it (about 3 ms for the 65,536 records of a full batch).
//! * No slice is dropped: one that overlaps its lane takes the next; what is evicted is counted and reported.

mod apply;
mod contents;
mod lane;
mod queue;
mod segment;
mod side;
mod stacks;
mod table;
mod track;
mod transfers;

pub(crate) use contents::{Contents, PlacedInstant, SideRows};
pub use lane::Lane;
pub(crate) use lane::segment_parts;
pub use track::Track;

use rustc_hash::FxHashMap;
use side::{Counters, Flows, Warnings};
use stacks::Stacks;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use table::Table;
use trace_model::layout::BLOCK;
use trace_model::{
    Args, Batch, Category, Counter, Flow, Frame, InstantEvent, MemoryEvent, NodeInfo, Pages, Process, SiteInfo,
    SliceId, SliceRef, Stack, Step, ThreadState, TrackId, TrackKey, Transfer, Warning,
};
use transfers::Transfers;

/// How much to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Slices that each lane keeps at least; older ones are evicted a [`SEGMENT`](trace_model::layout::SEGMENT) at a time.
    pub slices_per_lane: usize,
    /// Instants per track, points per counter, flows and memory events that are kept.
    pub events_per_kind: usize,
    /// Steps that are kept.
    pub steps: usize,
}

impl StoreOptions {
    /// Keeps everything: for a finished trace.
    pub const UNBOUNDED: StoreOptions =
        StoreOptions { slices_per_lane: usize::MAX, events_per_kind: usize::MAX, steps: usize::MAX };
}

impl Default for StoreOptions {
    /// For a window on a run that goes on: the last 4 million slices of each lane (160 MB where a lane gets there).
    fn default() -> Self {
        StoreOptions { slices_per_lane: 4 << 20, events_per_kind: 1 << 20, steps: 1 << 20 }
    }
}

/// Slices of a remote trace that are fetched for an analysis, at most: about 30 MB.
const MAX_REMOTE_SLICES: u64 = 2 << 20;

/// Residency of slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residency {
    /// All are in memory, or on this machine's disk.
    #[default]
    Resident,
    /// They are in another process, and requested.
    Loading,
    /// They are in another process, and too many to be fetched.
    TooLarge,
}

/// What the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Slices retained.
    pub slices: u64,
    /// Slices ever applied.
    pub slices_total: u64,
    /// Events that producers could not store.
    pub dropped: u64,
    /// Slices and events evicted to stay in the budget.
    pub evicted: u64,
    /// Slices that overlapped their lane and took another.
    pub overlapped: u64,
    /// Bytes of memory of the columns with their pyramids.
    pub memory_bytes: u64,
    /// Of these, the pyramids.
    pub lod_bytes: u64,
    /// Bytes read from disk.
    pub disk_bytes: u64,
}

/// What a source has read for a store: new contents, where it is a sealed or remote trace, and a batch that applies to them.
#[derive(Debug, Default)]
pub struct Update {
    /// Takes the place of everything that the store has, before the batch applies.
    pub(crate) replacement: Option<Box<Store>>,
    pub(crate) batch: Batch,
}

impl Update {
    /// Whether the source had more than fits into one update: ask again at once.
    #[must_use]
    pub fn more(&self) -> bool {
        self.batch.more()
    }
}

impl From<Batch> for Update {
    fn from(batch: Batch) -> Update {
        Update { replacement: None, batch }
    }
}

/// A trace: its slices, names, steps, counters, flows and warnings.
#[derive(Debug, Default)]
pub struct Store {
    options: StoreOptions,
    origin: Option<i64>,
    range: Option<Range<i64>>,
    version: u64,
    generation: u64,
    live: bool,
    processes: Vec<Process>,
    process_of: FxHashMap<u32, u32>,
    sites: Table<SiteInfo>,
    nodes: Table<NodeInfo>,
    tracks: Vec<Track>,
    track_of: FxHashMap<TrackKey, u32>,
    steps: Vec<Step>,
    /// Steps that began before the last of [`Store::steps`], until they are put at their places.
    late_steps: Vec<Step>,
    counters: Counters,
    flows: Flows,
    transfers: Transfers,
    memory: VecDeque<MemoryEvent>,
    args: Args,
    stacks: Stacks,
    warnings: Warnings,
    pager: Option<Arc<dyn Pages>>,
    slices_total: u64,
    evicted: u64,
    disk_bytes: u64,
}

impl Store {
    /// An empty store with the default [`StoreOptions`].
    #[must_use]
    pub fn new() -> Store {
        Store::default()
    }

    /// An empty store that keeps as much as `options` say.
    #[must_use]
    pub fn with_options(options: StoreOptions) -> Store {
        Store { options, ..Store::default() }
    }

    /// Applies a batch, or an update. True if anything that a view shows has changed.
    pub fn apply(&mut self, update: impl Into<Update>) -> bool {
        let changed = self.apply_update(update.into());
        self.version += u64::from(changed);
        changed
    }

    /// Grows with every change: what a view computed for one version holds while it stays.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version + self.pager.as_ref().map_or(0, |pager| pager.version())
    }

    /// How often all contents were replaced: rows and identities are those of one generation.
    #[must_use]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Of a sealed or remote trace: what brings its slices. Who shows the store lets a thread call
    /// [`Pages::load_requested`] without the store's lock.
    #[must_use]
    pub fn pager(&self) -> Option<&Arc<dyn Pages>> {
        self.pager.as_ref()
    }

    /// Parts of a range of time, in order, of which each is small enough that its slices stay in memory while it is
    /// looked at: who needs all lanes of a long range goes through it part by part. One part where nothing is on disk.
    #[must_use]
    pub fn parts(&self, range: Range<i64>) -> Vec<Range<i64>> {
        let mut cuts = self.pager.as_ref().map_or_else(Vec::new, |pager| pager.part_starts());
        cuts.retain(|cut| range.start < *cut && *cut < range.end);
        cuts.extend([range.start, range.end]);
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|cut| cut[0]..cut[1]).collect()
    }

    /// Residency of the slices that touch a range, for who needs all of them. Those of a remote trace that are not here are requested,
    /// unless they are too many.
    #[must_use]
    pub fn residency(&self, range: &Range<i64>) -> Residency {
        let lanes = || self.tracks.iter().flat_map(|track| &track.lanes).filter_map(Lane::cold);
        let n: u64 = lanes().map(|lane| lane.remote_blocks(range)).map(|blocks| blocks.end - blocks.start).sum();
        if n * BLOCK > MAX_REMOTE_SLICES {
            return Residency::TooLarge;
        }
        // Each is asked, so that all that are missing are requested.
        let missing =
            lanes().flat_map(|lane| lane.remote_blocks(range).filter(|block| !lane.has_block(*block))).count();
        if missing == 0 { Residency::Resident } else { Residency::Loading }
    }

    /// Zero of all times, ns of CLOCK_MONOTONIC_RAW on the trace's host. 0 until the first event.
    #[must_use]
    pub fn origin_ns(&self) -> i64 {
        self.origin.unwrap_or(0)
    }

    /// From the first start to the last end of anything; `0..0` without events.
    #[must_use]
    pub fn range(&self) -> Range<i64> {
        self.range.clone().unwrap_or(0..0)
    }

    /// Whether the trace is still being written.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// All tracks; the row is the [`TrackId`]. Rows stay.
    #[must_use]
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// One track.
    #[must_use]
    pub fn track(&self, id: TrackId) -> Option<&Track> {
        self.tracks.get(id.0 as usize)
    }

    /// Processes; [`Track::process`] is a row.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Steps by start.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step with this id that covers `time`, or with this id at all where none covers it.
    #[must_use]
    pub fn step(&self, step_id: u32, time: i64) -> Option<&Step> {
        let mut found = None;
        for step in self.steps.iter().rev().filter(|s| s.id == step_id) {
            if (step.start..step.end).contains(&time) {
                return Some(step);
            }
            found.get_or_insert(step);
        }
        found
    }

    /// Graph nodes; [`Event::node`](trace_model::Event::node) is a row.
    #[must_use]
    pub fn nodes(&self) -> &[NodeInfo] {
        self.nodes.rows()
    }

    /// Call sites; [`Event::site`](trace_model::Event::site) is a row.
    #[must_use]
    pub fn sites(&self) -> &[SiteInfo] {
        self.sites.rows()
    }

    /// Counters, each with its points.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        self.counters.rows()
    }

    /// What a counter is called: of a thread's with the thread.
    #[must_use]
    pub fn counter_title(&self, counter: &Counter) -> String {
        let name = self.sites().get(counter.site as usize).map_or("?", |site| &site.name);
        match counter.track.and_then(|id| self.track(id)) {
            Some(track) => format!("{name}, {}", track.name),
            None => name.to_owned(),
        }
    }

    /// Arrows, in the order in which their first end came.
    pub fn flows(&self) -> impl DoubleEndedIterator<Item = &Flow> + '_ {
        self.flows.rows().iter()
    }

    /// Values that went from device to device, in the order in which their first stamps came. The arrow of each is among
    /// the [`Store::flows`] too.
    #[must_use]
    pub fn transfers(&self) -> &VecDeque<Transfer> {
        self.transfers.rows()
    }

    /// Memory taken and freed, in the order read.
    #[must_use]
    pub fn memory(&self) -> &VecDeque<MemoryEvent> {
        &self.memory
    }

    /// The arguments of slices: JSON objects' texts, by [`Event::args`](trace_model::Event::args).
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// Call stacks; the `arg` of an instant in category `sample` is a row, or [`NO_STACK`](trace_model::NO_STACK).
    #[must_use]
    pub fn stacks(&self) -> &[Stack] {
        self.stacks.stacks()
    }

    /// Places in code; [`Stack::frame`] is a row.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        self.stacks.frames()
    }

    /// What the user has to know, first reported first.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.rows()
    }

    /// The slice with this identity; `None` when it was evicted.
    #[must_use]
    pub fn slice(&self, id: SliceId) -> Option<SliceRef> {
        let lane = self.tracks.get(id.track as usize)?.lanes.get(id.lane as usize)?;
        lane.slice(lane.index_of(id)?)
    }

    /// What a slice's numbers mean.
    #[must_use]
    pub fn category(&self, slice: &SliceRef) -> Category {
        self.sites().get(slice.site as usize).map_or(Category::Other, |s| s.category)
    }

    /// The state of a thread that a slice of category [`Category::OffCpu`] or [`Category::Running`] stands for; `None` for all others, and where
    /// the trace does not say.
    #[must_use]
    pub fn thread_state(&self, slice: &SliceRef) -> Option<ThreadState> {
        let site = self.sites().get(slice.site as usize)?;
        match site.category {
            Category::Running => Some(ThreadState::Running),
            Category::OffCpu => ThreadState::from_code(slice.arg).or_else(|| ThreadState::from_name(&site.name)),
            _ => None,
        }
    }

    /// The node of a slice.
    #[must_use]
    pub fn node_of(&self, slice: &SliceRef) -> Option<&NodeInfo> {
        self.nodes().get(slice.node as usize)
    }

    /// What to write on a slice: the node's full name, else the site's name.
    #[must_use]
    pub fn slice_name(&self, slice: &SliceRef) -> &str {
        match self.node_of(slice) {
            Some(node) => &node.name,
            None => self.sites().get(slice.site as usize).map_or("?", |s| &s.name),
        }
    }

    /// The id of the step in which a slice ran, as far as its category says one.
    #[must_use]
    pub fn step_id_of(&self, slice: &SliceRef) -> Option<u32> {
        match self.category(slice) {
            Category::Op | Category::Shard => Some((slice.arg >> 32) as u32),
            Category::Step | Category::Wait | Category::Parked => Some(slice.correlation),
            _ => None,
        }
    }

    /// How long an `op` slice was ready before it ran, ns; 0 for others.
    #[must_use]
    pub fn queue_wait_ns(&self, slice: &SliceRef) -> i64 {
        match self.category(slice) {
            Category::Op => slice.arg as u32 as i64,
            _ => 0,
        }
    }

    /// Counts and sizes.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let mut stats = StoreStats {
            slices_total: self.slices_total,
            evicted: self.evicted,
            disk_bytes: self.disk_bytes,
            ..StoreStats::default()
        };
        for track in &self.tracks {
            stats.slices += track.n_slices() as u64;
            stats.dropped += track.dropped;
            stats.overlapped += track.overlapped;
            stats.memory_bytes += (track.instants.capacity() * size_of::<InstantEvent>()) as u64;
            for lane in &track.lanes {
                stats.memory_bytes += lane.bytes() as u64;
                stats.lod_bytes += lane.lod_bytes() as u64;
            }
        }
        stats.memory_bytes += (self.memory.capacity() * size_of::<MemoryEvent>()) as u64;
        stats.memory_bytes += (self.steps.capacity() * size_of::<Step>()) as u64;
        stats.memory_bytes += self.counters.bytes() as u64 + self.flows.bytes() as u64;
        stats.memory_bytes += self.transfers.bytes() as u64 + self.args.bytes() as u64;
        stats.memory_bytes += self.pager.as_ref().map_or(0, |pager| pager.memory_bytes() as u64);
        stats.memory_bytes += self.stacks.bytes() as u64;
        stats
    }
}
