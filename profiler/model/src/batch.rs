//! What a source of events hands to the store: names, events with times in nanoseconds, warnings.
//!
//! A batch is filled without any lock (reading, checking and converting take long), and then given to
//! `Store::apply`, which is quick: house rule "stage privately, commit briefly".
//! Ids in a batch are the producer's own (unique in a process); the store maps them to its tables, so
//! that the source of a batch needs no knowledge of the store.

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
        /// Its id.
        pid: u32,
        /// Its host's name.
        host: String,
        /// Its command.
        name: String,
        /// Nanoseconds per tick of its clock: converts the queue waits in op slices.
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
    /// What is not a thread, or not only: a CPU, a device's stream, a network link.
    Track {
        /// Process and a number that no ring of the process has.
        key: TrackKey,
        /// What it stands for.
        kind: TrackKind,
        /// Its name.
        name: String,
        /// The kernel's thread id, 0 where it is no thread.
        tid: u32,
        /// The device (`/device:gpu:0`, `GPU 0`), empty where it is none's.
        device: String,
        /// The stream's number on the device.
        stream: Option<u64>,
        /// Among the tracks of its process the smaller comes first.
        order: i32,
    },
    /// The system's id of a process whose number in the batches is another one: a later process that got the same id.
    Pid {
        /// The number in the batches.
        process: u32,
        /// The system's id.
        pid: u32,
    },
    /// A process that is recorded from outside; what it reports itself counts more.
    Other {
        /// Its id.
        pid: u32,
        /// Its host's name.
        host: String,
        /// Its command.
        name: String,
    },
    /// A track shows a thread of another process than the one that reports it.
    Owner {
        /// The track.
        key: TrackKey,
        /// The process whose it is.
        pid: u32,
    },
    /// How the times of a process were laid on the trace's clock.
    Clock {
        /// The process.
        pid: u32,
        /// How, and how wrong that may be; `None` where nothing is known of its clock.
        clock: Option<ClockOffset>,
    },
    /// A place in code.
    Frame {
        /// The process that reports it.
        pid: u32,
        /// The frame's id in that process.
        id: u32,
        /// The file of code.
        module: String,
        /// The address in it.
        address: u64,
    },
    /// The function of a frame; of those inlined into each other the outer one first.
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
        /// Name.
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
        /// Device it was placed on.
        device: String,
    },
}

/// What one track got since the batch before.
#[derive(Clone, Debug, Default)]
pub struct TrackEvents {
    /// Events in the order in which they were emitted.
    pub events: Vec<Event>,
    /// If known: the total of events that the producer could not store, since its beginning.
    pub dropped: Option<u64>,
    /// If known: the slices that are open now, with times and ids as those of events.
    pub open: Option<Vec<OpenSlice>>,
}

/// Everything that was read since the batch before.
#[derive(Debug, Default)]
pub struct Batch {
    /// Names that processes registered.
    pub names: Vec<Name>,
    /// Arguments of the events.
    pub args: Args,
    /// Events by track.
    pub tracks: FxHashMap<TrackKey, TrackEvents>,
    /// What the user has to know: its counts are totals since the beginning, and one of the same kind and source takes the place of the one
    /// before.
    pub warnings: Vec<Warning>,
    /// The proposed origin, ns of CLOCK_MONOTONIC_RAW.
    pub origin: Option<i64>,
    /// Bytes on disk that the source has read so far, in total.
    pub disk_bytes: u64,
    /// Whether the source is still being written; `None` if that did not change.
    pub live: Option<bool>,
    /// Whether the source had more than fits.
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

    /// Keeps arguments, a JSON object's text; gives the number for [`Event::args`].
    pub fn args(&mut self, json: &str) -> u32 {
        self.args.push(json)
    }

    /// Proposes the trace's origin (ns of CLOCK_MONOTONIC_RAW). The first proposal that reaches the store wins;
    /// without any it is the earliest start of the first batch that has events.
    pub fn set_origin(&mut self, origin: i64) {
        self.origin.get_or_insert(origin);
    }

    /// Whether the source had more than fits into one batch: ask again at once.
    #[must_use]
    pub fn more(&self) -> bool {
        self.more
    }
}
