//! A track: a thread's (later a stream's, a CPU's) slices in lanes, and what else it reported.

use super::lane::Lane;
use trace_model::{Event, InstantEvent, MAX_LANES, OpenSlice, SiteInfo, SliceId, TrackId, TrackKey, TrackKind};

/// A row of the timeline with its lanes.
#[derive(Debug, Default)]
pub struct Track {
    /// Row of [`Store::tracks`](super::Store::tracks).
    pub id: TrackId,
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
    pub(crate) fn new(id: TrackId, key: TrackKey, process: u32) -> Track {
        Track { id, key, process, name: format!("thread {}", key.ring), ..Track::default() }
    }

    /// Number of retained slices.
    #[must_use]
    pub fn n_slices(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum()
    }

    /// Puts a slice into the lane of its depth, or the next one in which it overlaps nothing; never drops it.
    pub(crate) fn push(&mut self, mut slice: Event, sites: &[SiteInfo]) -> SliceId {
        let depth = usize::from(slice.depth);
        let mut lane = depth;
        while self.lanes.get(lane).is_some_and(|l| l.free_from() > slice.start) {
            lane += 1;
        }
        // What runs on no thread overlaps as it likes.
        if lane != depth && self.kind != TrackKind::Async {
            self.overlapped += 1;
        }
        if lane >= MAX_LANES {
            lane = MAX_LANES - 1;
            self.clipped += 1;
            slice.start = slice.start.max(self.lanes[lane].free_from());
            slice.end = slice.end.max(slice.start);
        }
        if self.lanes.is_empty() {
            // Most tracks have a few lanes, and there may be many tracks.
            self.lanes.reserve_exact(lane + 1);
        }
        while self.lanes.len() <= lane {
            self.lanes.push(Lane::new(self.id.0, self.lanes.len() as u32));
        }
        self.lanes[lane].push(&slice, sites)
    }
}
