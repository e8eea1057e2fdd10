//! A batch: names, events and warnings that a source has read, for the store to apply.
//!
//! A batch is filled without a lock, because reading, checking and converting take long; `Store::apply`, which needs
//! the lock, is quick. Ids in a batch are those of the producer, unique in a process; the store maps them to rows of
//! its tables, so a source need not know the store.

use crate::args::Args;
use crate::event::Event;
use crate::names::ClockOffset;
use crate::stack::Function;
use crate::track::{OpenSlice, TrackKey, TrackKind};
use crate::warning::Warning;
use rustc_hash::FxHashMap;

/// A name that a process registered.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    /// The process itself.
    Process {
        /// The process's id.
        pid: u32,
        /// The host's name.
        host: String,
        /// The process's command.
        name: String,
        /// Nanoseconds per tick of the process's clock, to convert the queue waits of op slices.
        ns_per_tick: f64,
    },
    /// A thread that emits to a ring.
    Thread {
        /// Process and ring.
        key: TrackKey,
        /// The thread's name.
        name: String,
        /// The kernel's thread id.
        tid: u32,
    },
    /// A track of a CPU, a device's stream or a network link, or of a thread with further properties.
    Track {
        /// Process and a number that no ring of the process has.
        key: TrackKey,
        /// Kind of the track.
        kind: TrackKind,
        /// The track's name.
        name: String,
        /// The kernel's thread id, 0 if the track is not a thread.
        tid: u32,
        /// The device (`/device:gpu:0`, `GPU 0`), empty if the track has none.
        device: String,
        /// The stream's number on the device.
        stream: Option<u64>,
        /// Position among the tracks of the process, ascending.
        order: i32,
    },
    /// The system's id of a process that has another number in the batches, because an earlier process had the same id.
    Pid {
        /// The number in the batches.
        process: u32,
        /// The system's id.
        pid: u32,
    },
    /// A process that is recorded from outside. The process's own [`Name::Process`] takes precedence.
    Other {
        /// The process's id.
        pid: u32,
        /// The host's name.
        host: String,
        /// The process's command.
        name: String,
    },
    /// The process that owns a track, if another process reports the track.
    Owner {
        /// The track.
        key: TrackKey,
        /// The owner.
        pid: u32,
    },
    /// How the times of a process were converted to the trace's clock.
    Clock {
        /// The process.
        pid: u32,
        /// Offset and error bound; `None` if nothing is known of the clock.
        clock: Option<ClockOffset>,
    },
    /// A location in code.
    Frame {
        /// The process that reports it.
        pid: u32,
        /// The frame's id in that process.
        id: u32,
        /// The executable or library.
        module: String,
        /// The address in the module.
        address: u64,
    },
    /// A function of a frame; of functions that are inlined into each other, the outer one comes first.
    Function {
        /// The process that reports it.
        pid: u32,
        /// The frame's id.
        frame: u32,
        /// The function.
        function: Function,
    },
    /// A call stack: its caller's and one more frame.
    Stack {
        /// The process that reports it.
        pid: u32,
        /// The stack's id in that process.
        id: u32,
        /// The caller's stack, or `u32::MAX`.
        parent: u32,
        /// The frame's id.
        frame: u32,
    },
    /// A call site.
    Site {
        /// The process's id.
        pid: u32,
        /// The site's id in that process.
        id: u32,
        /// Category: `op`, `step`, `wait`, ... or a `tracing` target.
        category: String,
        /// Name of the slices and counters.
        name: String,
    },
    /// A graph node.
    Node {
        /// The process's id.
        pid: u32,
        /// The node's id in that process.
        id: u32,
        /// Full name with scopes.
        name: String,
        /// Op type.
        op: String,
        /// Device on which the node was placed.
        device: String,
    },
}

/// The events of one track since the previous batch.
#[derive(Clone, Debug, Default)]
pub struct TrackEvents {
    /// Events in the order in which they were emitted.
    pub events: Vec<Event>,
    /// The total number of events that the producer could not store, if known.
    pub dropped: Option<u64>,
    /// The slices that are open now, if known, with times and ids as those of events.
    pub open: Option<Vec<OpenSlice>>,
}

/// Everything that was read since the previous batch.
#[derive(Debug, Default)]
pub struct Batch {
    /// Names that processes registered.
    pub names: Vec<Name>,
    /// Arguments of the events.
    pub args: Args,
    /// Events by track.
    pub tracks: FxHashMap<TrackKey, TrackEvents>,
    /// Problems that the user has to know about. Counts are totals; a warning replaces an earlier one with the same
    /// kind and source.
    pub warnings: Vec<Warning>,
    /// The proposed origin, ns of CLOCK_MONOTONIC_RAW.
    pub origin: Option<i64>,
    /// Bytes on disk that the source has read so far, in total.
    pub disk_bytes: u64,
    /// Whether the source is still being written; `None` if that did not change.
    pub live: Option<bool>,
    /// Whether the source has more than fits into one batch.
    pub more: bool,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Registers a name. Names apply before all events of the batch.
    pub fn name(&mut self, name: Name) {
        self.names.push(name);
    }

    /// The events of a track, to append to.
    pub fn track(&mut self, key: TrackKey) -> &mut TrackEvents {
        self.tracks.entry(key).or_default()
    }

    /// Adds arguments, the text of a JSON object. Returns the number for [`Event::args`].
    pub fn args(&mut self, json: &str) -> u32 {
        self.args.push(json)
    }

    /// Proposes the trace's origin (ns of CLOCK_MONOTONIC_RAW). The store takes the first proposal; without one, the
    /// earliest start in the first batch that has events.
    pub fn set_origin(&mut self, origin: i64) {
        self.origin.get_or_insert(origin);
    }

    /// Whether the source has more than fits into one batch, so that it should be read again at once.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.more
    }
}
