//! An event by value, as a source passes it to a store and a store returns a slice.

use crate::args::NO_ARGS;

/// The node id that stands for no node.
pub const NO_NODE: u32 = u32::MAX;

/// Stands for the step of an op that no executor of a graph scheduled: a program's instruction, an op that is run
/// eagerly. Such an op waits for no node, only for what its thread waits for.
pub const NO_STEP: u32 = u32::MAX;

/// The kind of an event: those of the producers' records, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An interval from `start` to `end`.
    Slice,
    /// An event without duration at `start`.
    Instant,
    /// A value from `start` on; `arg` has the bits of an `f64`.
    Counter,
    /// A flow begins; `correlation` pairs this event with the flow's other end.
    FlowOut,
    /// A flow ends.
    FlowIn,
    /// `arg` bytes were allocated.
    Alloc,
    /// `arg` bytes were freed.
    Free,
}

/// One event. In a batch, times are nanoseconds of CLOCK_MONOTONIC_RAW and names are ids of the process; in a store,
/// times count from the trace's origin and names are rows of the store's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind, which gives the other fields their meaning.
    pub kind: EventKind,
    /// Nesting depth at which the producer emitted it; the lane that is tried first.
    pub depth: u8,
    /// Begin.
    pub start: i64,
    /// End (not included), not before `start`; equal to it for everything but slices.
    pub end: i64,
    /// Call site.
    pub site: u32,
    /// Graph node or [`NO_NODE`].
    pub node: u32,
    /// Meaning by category (docs/formats/trace-format.md); for `op`: the node whose end readied the op, or [`NO_NODE`].
    pub correlation: u32,
    /// Meaning by category; for `op`: step id << 32 | queue wait, which is in ns in a store and in ticks in a batch.
    pub arg: u64,
    /// The number that [`Batch::args`](crate::Batch::args) returned for the arguments, or [`NO_ARGS`]; in a store a row
    /// of `Store::args`.
    pub args: u32,
}

impl Event {
    /// A slice without node, numbers and arguments.
    #[inline]
    #[must_use]
    pub const fn slice(site: u32, start: i64, end: i64) -> Event {
        let (kind, depth, node, correlation, arg, args) = (EventKind::Slice, 0, NO_NODE, 0, 0, NO_ARGS);
        Event { kind, depth, start, end, site, node, correlation, arg, args }
    }

    /// An event at one time, without node, numbers and arguments.
    #[inline]
    #[must_use]
    pub const fn at(kind: EventKind, site: u32, time: i64) -> Event {
        Event { kind, ..Event::slice(site, time, time) }
    }

    /// Duration, ns.
    #[inline]
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}
