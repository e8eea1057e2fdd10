//! Rows of a trace other than slices: steps, counters, flows, transfers, memory.

use crate::slice::SliceId;
use crate::track::TrackId;
use std::collections::VecDeque;

/// One execution of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The execution's id (`StepId`), unique in the process.
    pub id: u32,
    /// The step on the axis of summaries, as the caller gave it; independent of the id.
    pub summary_step: i64,
    /// Row of the sites; its name is the caller's label (`train`).
    pub site: u32,
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// The step's slice.
    pub slice: SliceId,
}

/// A value over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Row of the processes.
    pub process: u32,
    /// Row of the sites: category and name.
    pub site: u32,
    /// A track of the thread, for a counter of one thread.
    pub track: Option<TrackId>,
    /// Times of the values, ns from the origin, in order.
    pub time: VecDeque<i64>,
    /// The value from each time on.
    pub value: VecDeque<f64>,
}

/// The key of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CounterKey {
    /// Row of the processes.
    pub process: u32,
    /// Row of the sites.
    pub site: u32,
    /// A track of the thread, for a counter of one thread.
    pub track: Option<TrackId>,
}

impl Counter {
    /// The key of the counter.
    pub fn key(&self) -> CounterKey {
        CounterKey { process: self.process, site: self.site, track: self.track }
    }
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// Track of the end.
    pub track: TrackId,
    /// Time, ns from the origin.
    pub time: i64,
}

/// An arrow from a time on one track to a time on another. An end that was not reported (yet) is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Row of the process in which `correlation` is unique; `u32::MAX` if it is unique in the entire trace.
    pub scope: u32,
    /// Row of the sites.
    pub site: u32,
    /// The number that pairs the two ends.
    pub correlation: u32,
    /// Where the arrow begins.
    pub from: Option<FlowEnd>,
    /// Where the arrow ends.
    pub to: Option<FlowEnd>,
}

/// Memory of a device that was allocated or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// Time, ns from the origin.
    pub time: i64,
    /// Track of the allocating thread.
    pub track: TrackId,
    /// Row of the sites: its name is the device.
    pub site: u32,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
    /// Bytes allocated; negative for bytes freed.
    pub bytes: i64,
}

/// The transfer of a value from one device to another. Stamps are ns from the origin; those not reported (yet) are
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Row of the process in which `number` is unique; `u32::MAX` for a transfer between processes.
    pub scope: u32,
    /// The number that joins the events of the transfer; between processes it is unique in a step.
    pub number: u32,
    /// The step's id.
    pub step_id: u32,
    /// Bytes sent; `u32::MAX` for as many or more.
    pub bytes: u32,
    /// Row of the nodes: the `_Send`; `u32::MAX` if no `_Send` was reported.
    pub sender: u32,
    /// Row of the nodes: the `_Recv`.
    pub receiver: u32,
    /// Track on which the value left.
    pub from: Option<TrackId>,
    /// Track on which the consumers were unblocked.
    pub to: Option<TrackId>,
    /// When the value was ready to be sent.
    pub enqueued: Option<i64>,
    /// When the send began.
    pub sent: Option<i64>,
    /// When the value left.
    pub left: Option<i64>,
    /// When the value arrived at the receiver.
    pub arrived: Option<i64>,
    /// When the receiver's consumers were unblocked.
    pub unblocked: Option<i64>,
}

/// A point of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The counter.
    pub key: CounterKey,
    /// Time, ns from the origin.
    pub time: i64,
    /// The value from then on.
    pub value: f64,
}

/// The position in a ring of a trace folder up to which its records are in a sealed trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPosition {
    /// The process.
    pub pid: u32,
    /// The ring's number in the process.
    pub ring: u32,
    /// Distinguishes rings with the same number.
    pub made: u64,
    /// Sequence number of the next record.
    pub next: u64,
    /// Records that the ring could not take.
    pub dropped: u64,
}
