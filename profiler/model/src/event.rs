//! An event by value: what a source hands to a store, and what a store gives back of a slice.

use crate::args::NO_ARGS;

/// "No node", as a producer writes it.
pub const NO_NODE: u32 = u32::MAX;

/// What an event is; the producers' kinds, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Something that lasted from `start` to `end`.
    Slice,
    /// Something that happened at `start`.
    Instant,
    /// `arg` holds the bits of an `f64`: the value from `start` on.
    Counter,
    /// An arrow leaves here; `correlation` pairs it with its other end.
    FlowOut,
    /// An arrow arrives here.
    FlowIn,
    /// `arg` bytes were allocated.
    Alloc,
    /// `arg` bytes were freed.
    Free,
}

/// One event. On its way to a store its times are nanoseconds of CLOCK_MONOTONIC_RAW and its names the process's own ids; in a
/// store times count from the trace's origin and names are rows of the store's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is.
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
    /// Meaning by category (docs/formats/trace-format.md); for `op`: the node whose end made it ready, or [`NO_NODE`].
    pub correlation: u32,
    /// Meaning by category; for `op`: step id << 32 | queue wait, in ns once it is in a store.
    pub arg: u64,
    /// What [`Batch::args`](crate::Batch::args) gave for its arguments, or [`NO_ARGS`]; in a store the row of `Store::args`.
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

    /// Something at one time, without node, numbers and arguments.
    #[inline]
    #[must_use]
    pub const fn at(kind: EventKind, site: u32, time: i64) -> Event {
        Event { kind, ..Event::slice(site, time, time) }
    }

    /// How long it lasted.
    #[inline]
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}
