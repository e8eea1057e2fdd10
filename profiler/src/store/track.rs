//! A track: a thread's (later a stream's, a CPU's) slices in lanes, and what else it told.

use super::SliceId;
use super::lane::{Lane, Row};
use crate::batch::TrackKey;

/// Lanes of a track; beyond it a slice is clipped to fit the last one (a hostile trace must not make lanes without end). An import gives
/// what needs more to further tracks first.
pub(crate) const MAX_LANES: usize = 256;

/// What kind of thing a track stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrackKind {
    /// A thread that has run no op and no shard.
    Thread,
    /// A thread that runs ops or shards of them.
    Worker,
    /// A CPU: its slices are the threads that ran on it.
    Cpu,
    /// A device's stream: kernels and copies in order.
    Stream,
    /// A copy engine (DMA).
    Copy,
    /// A network link.
    Network,
    /// Operations of a process that begin and end on no thread of their own.
    Async,
}

impl TrackKind {
    const NAMES: [(TrackKind, &'static str); 7] = [
        (TrackKind::Thread, "thread"),
        (TrackKind::Worker, "worker"),
        (TrackKind::Cpu, "cpu"),
        (TrackKind::Stream, "stream"),
        (TrackKind::Copy, "copy"),
        (TrackKind::Network, "network"),
        (TrackKind::Async, "async"),
    ];

    /// What it is called in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("thread", |(_, name)| name)
    }

    /// The inverse of [`TrackKind::name`]; `None` where the name is of a later version.
    pub(crate) fn from_name(name: &str) -> Option<TrackKind> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind)
    }

    /// Whether it stands for a thread.
    #[must_use]
    pub fn is_thread(self) -> bool {
        matches!(self, TrackKind::Thread | TrackKind::Worker)
    }
}

/// A slice that has begun and not ended: no end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSlice {
    /// Begin, ns from the origin.
    pub start: i64,
    /// Row of the sites.
    pub site: u32,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
    /// Nesting depth: the lane to draw it in.
    pub depth: u8,
}

/// Something that happened at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantEvent {
    /// When, ns from the origin.
    pub time: i64,
    /// Row of the sites.
    pub site: u32,
    /// The number that came with it.
    pub arg: u64,
    /// Row of [`Store::args`](super::Store::args): a log message's text; `u32::MAX` for none.
    pub args: u32,
}

/// A row of the timeline with its lanes.
#[derive(Debug)]
pub struct Track {
    /// Row of [`Store::tracks`](super::Store::tracks).
    pub id: super::TrackId,
    /// Whose events.
    pub key: TrackKey,
    /// Row of [`Store::processes`](super::Store::processes).
    pub process: u32,
    /// The thread's name.
    pub name: String,
    /// The kernel's thread id, 0 where unknown.
    pub tid: u32,
    /// What it stands for.
    pub kind: TrackKind,
    /// The device whose track it is, empty where it is none's.
    pub device: String,
    /// The stream's number on the device.
    pub stream: Option<u64>,
    /// Among the tracks of its process the smaller comes first.
    pub order: i32,
    /// Lanes, outermost nesting first. May hold empty ones.
    pub lanes: Vec<Lane>,
    /// What is running now.
    pub open: Vec<OpenSlice>,
    /// Instants, in the order emitted.
    pub instants: Vec<InstantEvent>,
    /// Events that its producer could not store.
    pub dropped: u64,
    /// Slices that overlapped their lane and took another one.
    pub overlapped: u64,
    /// Slices that were clipped because all lanes were taken.
    pub clipped: u64,
}

impl Track {
    pub(crate) fn new(id: super::TrackId, key: TrackKey, process: u32) -> Track {
        Track {
            id,
            key,
            process,
            name: format!("thread {}", key.ring),
            tid: 0,
            kind: TrackKind::Thread,
            device: String::new(),
            stream: None,
            order: 0,
            lanes: Vec::new(),
            open: Vec::new(),
            instants: Vec::new(),
            dropped: 0,
            overlapped: 0,
            clipped: 0,
        }
    }

    /// Number of retained slices.
    #[must_use]
    pub fn n_slices(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum()
    }

    /// Puts a slice into lane `depth`, or the next one in which it overlaps nothing; never drops it.
    pub(crate) fn push(&mut self, depth: usize, mut row: Row) -> SliceId {
        let mut lane = depth;
        while self.lanes.get(lane).is_some_and(|l| l.free_from() > row.start) {
            lane += 1;
        }
        // What runs on no thread overlaps as it likes.
        if lane != depth && self.kind != TrackKind::Async {
            self.overlapped += 1;
        }
        if lane >= MAX_LANES {
            lane = MAX_LANES - 1;
            self.clipped += 1;
            row.start = row.start.max(self.lanes[lane].free_from());
            row.end = row.end.max(row.start);
        }
        if self.lanes.is_empty() {
            // Most tracks have a few lanes, and there may be many tracks.
            self.lanes.reserve_exact(lane + 1);
        }
        while self.lanes.len() <= lane {
            self.lanes.push(Lane::new(self.id.0, self.lanes.len() as u32));
        }
        self.lanes[lane].push(row)
    }
}
