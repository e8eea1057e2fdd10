//! Rows of a trace other than slices: steps, counters, flows, transfers, memory.

use crate::slice::SliceId;
use crate::track::TrackId;
use std::collections::VecDeque;

/// One execution of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The execution's id (`StepId`), unique in the process.
    pub id: u32,
    /// The step on the summaries' axis that the caller gave, another thing than the id.
    pub summary_step: i64,
    /// Row of the sites; its name is the caller's label (`train`).
    pub site: u32,
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// Its slice.
    pub slice: SliceId,
}

/// A value over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Row of the processes.
    pub process: u32,
    /// Row of the sites: category and name.
    pub site: u32,
    /// Of a counter of one thread: a track of that thread.
    pub track: Option<TrackId>,
    /// When, ns from the origin, in order.
    pub time: VecDeque<i64>,
    /// The value from then on.
    pub value: VecDeque<f64>,
}

/// Key of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CounterKey {
    /// Row of the processes.
    pub process: u32,
    /// Row of the sites.
    pub site: u32,
    /// Of a counter of one thread: a track of that thread.
    pub track: Option<TrackId>,
}

impl Counter {
    /// The key by which counters are distinguished.
    pub fn key(&self) -> CounterKey {
        CounterKey { process: self.process, site: self.site, track: self.track }
    }
}

/// One end of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// Where.
    pub track: TrackId,
    /// When, ns from the origin.
    pub time: i64,
}

/// An arrow from one place in time to another. The other end may not have come (yet).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Row of the processes in which `correlation` is unique; `u32::MAX` where it is in the whole trace.
    pub scope: u32,
    /// Row of the sites.
    pub site: u32,
    /// What pairs the two ends.
    pub correlation: u32,
    /// Tail.
    pub from: Option<FlowEnd>,
    /// Head.
    pub to: Option<FlowEnd>,
}

/// Memory of a device that was taken or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// When, ns from the origin.
    pub time: i64,
    /// Which thread did it.
    pub track: TrackId,
    /// Row of the sites: its name is the device.
    pub site: u32,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
    /// Bytes taken; negative when freed.
    pub bytes: i64,
}

/// A value's way from one device to another. Stamps are ns from the origin; what did not come (yet) is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Row of the processes in which `number` joins its events; `u32::MAX` where it went from one process to another.
    pub scope: u32,
    /// What joins its events: unique in the process, and in the step where it went to another one.
    pub number: u32,
    /// The step's id.
    pub step_id: u32,
    /// Bytes that travelled; `u32::MAX` where there were as many or more.
    pub bytes: u32,
    /// Row of the nodes: the `_Send`, `u32::MAX` where it did not come.
    pub sender: u32,
    /// Row of the nodes: the `_Recv`.
    pub receiver: u32,
    /// Where the value left.
    pub from: Option<TrackId>,
    /// Where its consumers were unblocked.
    pub to: Option<TrackId>,
    /// The value was there to be sent.
    pub enqueued: Option<i64>,
    /// The send began.
    pub sent: Option<i64>,
    /// The value left.
    pub left: Option<i64>,
    /// The value came to the receiver.
    pub arrived: Option<i64>,
    /// The receiver's consumers were unblocked.
    pub unblocked: Option<i64>,
}

/// A point of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The counter.
    pub key: CounterKey,
    /// When, ns from the origin.
    pub time: i64,
    /// The value from then on.
    pub value: f64,
}

/// How far the rings of a trace folder are in a sealed trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPosition {
    /// The process.
    pub pid: u32,
    /// The ring's number in the process.
    pub ring: u32,
    /// Distinguishes rings of one number.
    pub made: u64,
    /// Sequence number of the next record.
    pub next: u64,
    /// Records that the ring could not take.
    pub dropped: u64,
}
