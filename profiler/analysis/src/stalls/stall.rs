//! A stall: a part of a gap with its cause, and the sentence that describes it.

use super::cause::Cause;
use std::ops::Range;
use text::duration;
use trace_model::{SliceId, SliceRef, TrackId};
use trace_store::Store;

/// A part of a gap, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The track that did no work.
    pub track: TrackId,
    /// The step's id, if the track works in steps.
    pub step_id: Option<u32>,
    /// The gap of which this is a part.
    pub gap: Range<i64>,
    /// Start, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// The cause.
    pub cause: Cause,
    /// The slice that is to blame, from which the window draws an arrow.
    pub culprit: Option<SliceId>,
    /// The slice that ran after the gap, to which the arrow points.
    pub blocked: Option<SliceId>,
}

impl Stall {
    /// The duration, ns.
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }

    /// The cause as a sentence.
    #[must_use]
    pub fn text(&self, store: &Store) -> String {
        let slice = |id: Option<SliceId>| id.and_then(|id| store.slice(id));
        let (culprit, next) = (slice(self.culprit), slice(self.blocked));
        let this_track = track(store, self.track.0);
        let next = next.map_or_else(|| "the next work".to_owned(), |n| op(store, &n));
        let other = culprit.map(|c| format!("{} on {}", op(store, &c), track(store, c.id.track)));
        let time = duration(self.dur());
        let step = || {
            let step = self.step_id.and_then(|id| store.step(id, self.start));
            let label = step.and_then(|s| store.sites().get(s.site as usize)).map_or("the", |s| s.name.as_str());
            step.map_or_else(|| "the step".to_owned(), |s| format!("{label} step {}", s.summary_step))
        };
        match (self.cause, other) {
            (Cause::InputLate, Some(other)) => format!("{this_track} waited for {other}"),
            (Cause::InputLate, None) => format!("{this_track} waited for an input of {next}"),
            (Cause::HostLate, Some(other)) => {
                format!("{this_track} had no work: its host ran {other} before it launched {next}")
            }
            (Cause::HostLate, None) => {
                format!(
                    "{this_track} had no work: its host ran code without slices of its own before it launched {next}"
                )
            }
            (Cause::PeerLate, None) => {
                format!("{this_track} waited {time} for a peer, which left no slice of what it did")
            }
            (Cause::PeerLate, Some(_)) => {
                let (what, who) =
                    culprit.map_or_else(Default::default, |c| (op(store, &c), process(store, c.id.track)));
                format!("{this_track} waited for a peer: {who} was at {what}")
            }
            (Cause::Network, Some(other)) => format!("{this_track} waited {time} for data on the way from {other}"),
            (Cause::Network, None) => format!("{this_track} waited {time} for data on the way"),
            (Cause::Dma, Some(other)) => format!("{this_track} waited for memory to be copied: {other}"),
            (Cause::Dma, None) => format!("{this_track} waited {time} for memory to be copied"),
            (Cause::Synchronisation, Some(other)) => format!("{this_track} waited in a synchronisation: {other}"),
            (Cause::Synchronisation, None) => format!("{this_track} waited {time} for a synchronisation to return"),
            (Cause::ScheduledOut, _) => {
                let thread = scheduled_out_thread(store, self);
                format!("{this_track} waited {time} while the operating system did not run {thread}")
            }
            (Cause::QueueEmpty | Cause::QueueFull | Cause::OtherStep, _) => {
                let site = culprit.and_then(|c| store.sites().get(c.site as usize)).map_or("?", |s| &s.name);
                let waiting = culprit.map_or_else(|| "an op".to_owned(), |c| op(store, &c));
                format!("{this_track} had nothing to do while {waiting} waited {time}: {site}")
            }
            (Cause::Launch, Some(other)) => format!("{next} began {time} after its launch, {other}"),
            (Cause::Launch, None) => format!("{this_track} took {time} to begin {next}, which was launched"),
            (Cause::Dispatch, Some(other)) if culprit.is_some_and(|c| c.end <= self.start) => {
                format!("{this_track} took {time} to start {next}, which {other} had made ready")
            }
            (Cause::Dispatch, Some(other)) if culprit.is_some_and(|c| c.start < self.end) => {
                format!("{next} was ready, and queued behind {other}")
            }
            (Cause::Dispatch, Some(other)) => {
                format!("{this_track} waited for {other}, which was ready {time} before it started")
            }
            (Cause::Dispatch, None) => format!("{this_track} took {time} to start {next}, which was ready"),
            (Cause::Memory, other) => {
                format!("{this_track} waited for memory: {}", other.unwrap_or_else(|| time.clone()))
            }
            (Cause::WakeUp, _) => format!("{this_track} slept for {time} while {next} was ready"),
            (Cause::NothingReady, Some(other)) => {
                format!("{this_track} had no op to run: the longest of what ran was {other}")
            }
            (Cause::NothingReady, None) => format!("{this_track} had no op to run"),
            (Cause::StepBegin, _) => format!("{} had not started its first op", step()),
            (Cause::StepEnd, _) => format!("{} had no op left", step()),
            (Cause::Unexplained, _) => format!("{this_track} ran nothing for {time}, and the trace does not say why"),
        }
    }
}

/// `MatMul layer2/MatMul`, or the name alone where there is no node.
fn op(store: &Store, slice: &SliceRef) -> String {
    match store.node_of(slice) {
        Some(node) if node.op != node.name => format!("{} `{}`", node.op, node.name),
        _ => format!("`{}`", store.slice_name(slice)),
    }
}

fn track(store: &Store, id: u32) -> &str {
    store.tracks().get(id as usize).map_or("?", |t| &t.name)
}

/// `NAME on HOST (PID)`.
fn process(store: &Store, track: u32) -> String {
    let found = store.tracks().get(track as usize).and_then(|t| store.processes().get(t.process as usize));
    found.map_or_else(|| "?".to_owned(), |p| format!("{} on {} ({})", p.name, p.host, p.pid))
}

/// The thread that was off the CPU.
fn scheduled_out_thread<'a>(store: &'a Store, stall: &Stall) -> &'a str {
    track(store, stall.culprit.map_or(stall.track.0, |c| c.track))
}
