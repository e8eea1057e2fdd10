//! A track: the slices of a thread, stream, CPU or device in lanes, and its instants.

use super::lane::Lane;
use trace_model::{Event, InstantEvent, MAX_LANES, OpenSlice, SiteInfo, SliceId, TrackId, TrackKey, TrackKind};

/// A track of the timeline with its lanes.
#[derive(Debug, Default)]
pub struct Track {
    /// Row of [`Store::tracks`](super::Store::tracks).
    pub id: TrackId,
    /// Process and ring that report the track's events.
    pub key: TrackKey,
    /// Row of [`Store::processes`](super::Store::processes).
    pub process: u32,
    /// Name of the thread, stream or CPU.
    pub name: String,
    /// The kernel's thread id, 0 where unknown.
    pub tid: u32,
    /// Kind of the track.
    pub kind: TrackKind,
    /// Device of the track, empty if it has none.
    pub device: String,
    /// Number of the stream on the device.
    pub stream: Option<u64>,
    /// Position among the tracks of the process, ascending.
    pub order: i32,
    /// Lanes, the outermost nesting first. Some may be empty.
    pub lanes: Vec<Lane>,
    /// Slices that have begun and not ended.
    pub open: Vec<OpenSlice>,
    /// Instants, in the order emitted.
    pub instants: Vec<InstantEvent>,
    /// Events that the producer could not store.
    pub dropped: u64,
    /// Slices that overlapped their lane and were put on another.
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

    /// Appends a slice to the lane of its depth, or to the next lane in which it overlaps no slice; never drops it.
    pub(crate) fn push(&mut self, mut slice: Event, sites: &[SiteInfo]) -> SliceId {
        let depth = usize::from(slice.depth);
        let mut lane = depth;
        while self.lanes.get(lane).is_some_and(|l| l.free_from() > slice.start) {
            lane += 1;
        }
        // Slices of asynchronous tracks are expected to overlap.
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
