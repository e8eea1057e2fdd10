//! The store: everything that a trace reported, in columns, with names, steps, counters, flows and warnings.
//!
//! * Times are `i64` ns from the origin ([`Store::origin_ns`]), intervals half-open.
//! * A finished trace is [sealed](crate::seal): its slices stay on disk, and are loaded on demand.
//! * Rows are added by [`Store::apply`] with a [`Batch`] only, which also evicts old slices to stay within the budget
//!   of [`StoreOptions`]. Views share the store as `Arc<RwLock<Store>>`: the loader fills batches without the lock and
//!   applies each under it (about 3 ms for the 65,536 records of a full batch).
//! * No slice is dropped: a slice that overlaps its lane goes to the next one. Evicted slices are counted and reported.

mod apply;
mod contents;
mod lane;
mod lane_slices;
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
    Args, Batch, Category, Counter, Flow, Frame, InstantEvent, MemoryEvent, NO_STEP, NodeInfo, PageLoader, Process,
    SiteInfo, SliceId, SliceRef, Stack, Step, ThreadState, TrackId, TrackKey, Transfer, Warning,
};
use transfers::Transfers;

/// The budget of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Slices that each lane retains at least; older ones are evicted a [`SEGMENT`](trace_model::layout::SEGMENT) at a
    /// time.
    pub slices_per_lane: usize,
    /// Instants per track, points per counter, flows, transfers and memory events that are retained.
    pub events_per_kind: usize,
    /// Steps that are retained.
    pub steps: usize,
}

impl StoreOptions {
    /// No limits: for a finished trace.
    pub const UNBOUNDED: StoreOptions =
        StoreOptions { slices_per_lane: usize::MAX, events_per_kind: usize::MAX, steps: usize::MAX };
}

impl Default for StoreOptions {
    /// The budget for a live trace: the last 4 million slices of each lane, 160 MB for a lane that has as many.
    fn default() -> Self {
        StoreOptions { slices_per_lane: 4 << 20, events_per_kind: 1 << 20, steps: 1 << 20 }
    }
}

/// Slices of a remote trace that are fetched for an analysis, at most: about 30 MB.
const MAX_REMOTE_SLICES: u64 = 2 << 20;

/// Residency of slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residency {
    /// All slices are in memory, or on this machine's disk.
    #[default]
    Resident,
    /// Some slices are in another process, and requested.
    Loading,
    /// The slices are in another process, and too many to be fetched.
    TooLarge,
}

/// Counts and sizes of a store.
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
    /// Slices that overlapped their lane and were put on another.
    pub overlapped: u64,
    /// Bytes of memory of the columns with their pyramids.
    pub memory_bytes: u64,
    /// Bytes of memory of the pyramids alone.
    pub lod_bytes: u64,
    /// Bytes read from disk.
    pub disk_bytes: u64,
}

/// Changes to a store that a source has read: new contents (of a sealed or remote trace), and a batch to apply to them.
#[derive(Debug, Default)]
pub struct Update {
    /// Replaces all contents of the store, before the batch is applied.
    pub(crate) replacement: Option<Box<Store>>,
    pub(crate) batch: Batch,
}

impl Update {
    /// Whether the source has more than fits into one update, so that it should be read again at once.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.batch.has_more()
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
    is_live: bool,
    processes: Vec<Process>,
    /// Rows of processes by their numbers.
    process_rows: FxHashMap<u32, u32>,
    sites: Table<SiteInfo>,
    nodes: Table<NodeInfo>,
    tracks: Vec<Track>,
    track_rows: FxHashMap<TrackKey, u32>,
    steps: Vec<Step>,
    /// Steps that began before the last of [`Store::steps`], until they are merged into them.
    late_steps: Vec<Step>,
    counters: Counters,
    flows: Flows,
    transfers: Transfers,
    memory: VecDeque<MemoryEvent>,
    args: Args,
    stacks: Stacks,
    warnings: Warnings,
    pager: Option<Arc<dyn PageLoader>>,
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

    /// An empty store with a budget.
    #[must_use]
    pub fn with_options(options: StoreOptions) -> Store {
        Store { options, ..Store::default() }
    }

    /// Applies a batch or an update. Returns whether anything that a view shows has changed.
    pub fn apply(&mut self, update: impl Into<Update>) -> bool {
        let changed = self.apply_update(update.into());
        self.version += u64::from(changed);
        changed
    }

    /// A number that grows with every change: results that a view computed are valid while the number stays the same.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version + self.pager.as_ref().map_or(0, |pager| pager.version())
    }

    /// The number of times that all contents were replaced: rows and identities are valid within one generation.
    #[must_use]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The loader of slices of a sealed or remote trace. A window lets a thread call [`PageLoader::load_requested`],
    /// without the store's lock.
    #[must_use]
    pub fn pager(&self) -> Option<&Arc<dyn PageLoader>> {
        self.pager.as_ref()
    }

    /// Splits a range of time into consecutive parts whose slices fit into memory. A caller that needs all lanes of a
    /// long range reads them part by part. There is one part if no slices are on disk.
    #[must_use]
    pub fn parts(&self, range: Range<i64>) -> Vec<Range<i64>> {
        let mut cuts = self.pager.as_ref().map_or_else(Vec::new, |pager| pager.part_starts());
        cuts.retain(|cut| range.start < *cut && *cut < range.end);
        cuts.extend([range.start, range.end]);
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|cut| cut[0]..cut[1]).collect()
    }

    /// Residency of the slices that touch a range, for a caller that needs all of them. Requests missing slices of a
    /// remote trace, unless they are too many.
    #[must_use]
    pub fn residency(&self, range: &Range<i64>) -> Residency {
        let lanes = || self.tracks.iter().flat_map(|track| &track.lanes).filter_map(Lane::cold);
        let n_blocks: u64 = lanes().map(|lane| lane.remote_blocks(range)).map(|blocks| blocks.end - blocks.start).sum();
        if n_blocks * BLOCK > MAX_REMOTE_SLICES {
            return Residency::TooLarge;
        }
        // `has_block` requests a missing block, so it is called for every block.
        let n_missing =
            lanes().flat_map(|lane| lane.remote_blocks(range).filter(|block| !lane.has_block(*block))).count();
        if n_missing == 0 { Residency::Resident } else { Residency::Loading }
    }

    /// The origin of all times, ns of CLOCK_MONOTONIC_RAW on the trace's host. 0 until the first event.
    #[must_use]
    pub fn origin_ns(&self) -> i64 {
        self.origin.unwrap_or(0)
    }

    /// The range from the first start to the last end of all events; `0..0` without events.
    #[must_use]
    pub fn range(&self) -> Range<i64> {
        self.range.clone().unwrap_or(0..0)
    }

    /// Whether the trace is still being written.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// All tracks. A track's row is its [`TrackId`], which does not change.
    #[must_use]
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The track with an id.
    #[must_use]
    pub fn track(&self, id: TrackId) -> Option<&Track> {
        self.tracks.get(id.0 as usize)
    }

    /// Processes, which [`Track::process`] indexes.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Steps, ordered by start.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step with this id that covers `time`, else the last step with this id.
    #[must_use]
    pub fn step(&self, step_id: u32, time: i64) -> Option<&Step> {
        let mut last_with_id = None;
        for step in self.steps.iter().rev().filter(|s| s.id == step_id) {
            if (step.start..step.end).contains(&time) {
                return Some(step);
            }
            last_with_id.get_or_insert(step);
        }
        last_with_id
    }

    /// Graph nodes, which [`Event::node`](trace_model::Event::node) indexes.
    #[must_use]
    pub fn nodes(&self) -> &[NodeInfo] {
        self.nodes.rows()
    }

    /// Sites, which [`Event::site`](trace_model::Event::site) indexes.
    #[must_use]
    pub fn sites(&self) -> &[SiteInfo] {
        self.sites.rows()
    }

    /// Counters, each with its points.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        self.counters.rows()
    }

    /// The title of a counter: its name, and the thread for a counter of one thread.
    #[must_use]
    pub fn counter_title(&self, counter: &Counter) -> String {
        let name = self.sites().get(counter.site as usize).map_or("?", |site| &site.name);
        match counter.track.and_then(|id| self.track(id)) {
            Some(track) => format!("{name}, {}", track.name),
            None => name.to_owned(),
        }
    }

    /// Flows, in the order in which their first ends were read.
    pub fn flows(&self) -> impl DoubleEndedIterator<Item = &Flow> + '_ {
        self.flows.rows().iter()
    }

    /// Values sent from device to device, in the order in which their first stamps were read. Each is one of
    /// [`Store::flows`] too.
    #[must_use]
    pub fn transfers(&self) -> &VecDeque<Transfer> {
        self.transfers.rows()
    }

    /// Bytes allocated and freed, in the order in which the events were read.
    #[must_use]
    pub fn memory(&self) -> &VecDeque<MemoryEvent> {
        &self.memory
    }

    /// The arguments of slices and instants: texts of JSON objects, by [`Event::args`](trace_model::Event::args).
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// Call stacks. The `arg` of an instant of category `sample` is a row, or [`NO_STACK`](trace_model::NO_STACK).
    #[must_use]
    pub fn stacks(&self) -> &[Stack] {
        self.stacks.stacks()
    }

    /// Frames of call stacks, which [`Stack::frame`] indexes.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        self.stacks.frames()
    }

    /// Problems that the user has to know about, in the order of their first report.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.rows()
    }

    /// The slice with this identity; `None` if it was evicted.
    #[must_use]
    pub fn slice(&self, id: SliceId) -> Option<SliceRef> {
        let lane = self.tracks.get(id.track as usize)?.lanes.get(id.lane as usize)?;
        lane.slice(lane.index_of(id)?)
    }

    /// The category of a slice, which says what its numbers mean.
    #[must_use]
    pub fn category(&self, slice: &SliceRef) -> Category {
        self.sites().get(slice.site as usize).map_or(Category::Other, |s| s.category)
    }

    /// The thread state that a slice of category [`Category::OffCpu`] or [`Category::Running`] stands for; `None` for
    /// other slices, and for an unknown state.
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

    /// The name of a slice: the node's full name, else the site's name. A device's work has the site's name unless that is
    /// the node's op type: a kernel that a node was compiled to has a name of its own.
    #[must_use]
    pub fn slice_name(&self, slice: &SliceRef) -> &str {
        let site = self.sites().get(slice.site as usize);
        let is_device =
            |site: &&SiteInfo| matches!(site.category, Category::Kernel | Category::Copy | Category::Collective);
        match (self.node_of(slice), site) {
            (Some(node), Some(site)) if is_device(&site) && site.name != node.op => &site.name,
            (Some(node), _) => &node.name,
            (None, site) => site.map_or("?", |site| &site.name),
        }
    }

    /// The id of the step in which a slice ran; `None` for a category whose numbers have no step.
    #[must_use]
    pub fn step_id_of(&self, slice: &SliceRef) -> Option<u32> {
        match self.category(slice) {
            Category::Op | Category::Shard => Some((slice.arg >> 32) as u32).filter(|step| *step != NO_STEP),
            Category::Step | Category::Wait | Category::Parked => Some(slice.correlation),
            _ => None,
        }
    }

    /// The time that an `op` slice was ready before it ran, ns; 0 for other slices.
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
