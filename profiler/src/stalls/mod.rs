//! Stalls: for each gap on a busy track, why nothing ran there, and which slice is to blame.
//!
//! A gap is a time in which a track does no work: a worker in a step, a stream between two kernels, a host's thread that
//! waits. It is divided into parts, each with one cause; the parts of a gap follow each other and add up to it exactly, and
//! what cannot be explained is a part of its own. The walk is backward, from what ran after the gap to its last-arriving
//! predecessor, and on to that one's predecessor, until the gap's beginning is reached (`analysis::walk`).
//!
//! Pure functions over the store; docs/use/analysis.md has the definitions.

mod blame;
mod gaps;
mod queue;
mod text;

use crate::analysis::deps::Deps;
use crate::radix::{self, Keyed};
use crate::store::{SliceId, SliceRef, Store, TrackId};
pub(crate) use ::text::duration;
pub use queue::{QueueWait, queue_waits};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::ops::Range;

/// Why nothing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// An input was still being computed; the culprit is the op, kernel or loader that did.
    InputLate,
    /// The host had not launched the work: it ran something else.
    HostLate,
    /// Another process was not there yet; the culprit is what it did.
    PeerLate,
    /// A value was on its way between processes, or a collective ran with all its peers.
    Network,
    /// Memory was being copied to, from or between devices.
    Dma,
    /// A host or a stream waited for a device: what it waited for, and the wait's own time.
    Synchronisation,
    /// The operating system did not run the thread.
    ScheduledOut,
    /// An op waited for a row of a queue: whoever fills it is late. The culprit is the wait.
    QueueEmpty,
    /// An op waited for room in a queue: whoever takes from it is late. The culprit is the wait.
    QueueFull,
    /// An op waited for what another step holds or has to bring. The culprit is the wait.
    OtherStep,
    /// From the launching call to the begin of the device's work.
    Launch,
    /// Work was ready and the worker awake, or an op on the way there started late: the executor's own time.
    Dispatch,
    /// Memory was being taken or given back.
    Memory,
    /// Work was ready while the worker slept.
    WakeUp,
    /// The step had nothing more for this worker while other ops ran; the culprit is the longest of them.
    NothingReady,
    /// Before the step's first op: feeds, the plan.
    StepBegin,
    /// After the step's last op: fetches, cleaning up.
    StepEnd,
    /// The trace does not tell.
    Unexplained,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 18] = [
        Cause::InputLate,
        Cause::HostLate,
        Cause::PeerLate,
        Cause::Network,
        Cause::Dma,
        Cause::Synchronisation,
        Cause::ScheduledOut,
        Cause::QueueEmpty,
        Cause::QueueFull,
        Cause::OtherStep,
        Cause::Launch,
        Cause::Dispatch,
        Cause::Memory,
        Cause::WakeUp,
        Cause::NothingReady,
        Cause::StepBegin,
        Cause::StepEnd,
        Cause::Unexplained,
    ];

    /// One or two words for tables: `input late`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::InputLate => "input late",
            Cause::HostLate => "host late",
            Cause::PeerLate => "peer late",
            Cause::Network => "network",
            Cause::Dma => "DMA",
            Cause::Synchronisation => "synchronisation",
            Cause::ScheduledOut => "scheduled out",
            Cause::QueueEmpty => "queue empty",
            Cause::QueueFull => "queue full",
            Cause::OtherStep => "other step",
            Cause::Launch => "launch overhead",
            Cause::Dispatch => "dispatch",
            Cause::Memory => "memory",
            Cause::WakeUp => "wake-up",
            Cause::NothingReady => "nothing ready",
            Cause::StepBegin => "step begins",
            Cause::StepEnd => "step ends",
            Cause::Unexplained => "unexplained",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A part of a gap, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Where.
    pub track: TrackId,
    /// The step's id, where the track works in steps.
    pub step_id: Option<u32>,
    /// The gap of which this is a part.
    pub gap: Range<i64>,
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// Why.
    pub cause: Cause,
    /// The slice that is to blame: draw an arrow from it.
    pub culprit: Option<SliceId>,
    /// What ran after the gap: the arrow's head.
    pub blocked: Option<SliceId>,
}

impl Stall {
    /// How long.
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }

    /// The cause as a sentence.
    #[must_use]
    pub fn text(&self, store: &Store) -> String {
        text::stall(store, self)
    }
}

/// All stalls of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseTotal {
    /// Which.
    pub cause: Cause,
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total_ns: i64,
}

/// The stalls that touch the half-open range, longest first. Gaps are whole, not cut at the range: a worker's to the ends of
/// its steps, a stream's or a thread's as far as one length of the range beyond it.
#[must_use]
pub fn stalls(store: &Store, range: Range<i64>) -> Vec<Stall> {
    let deps = Deps::new(store, &around(store, &range));
    stalls_of(&deps, range)
}

/// As [`stalls`], from an index that is there already. Lines are looked at on all cores.
pub(crate) fn stalls_of(deps: &Deps<'_>, range: Range<i64>) -> Vec<Stall> {
    let windows = gaps::Windows::new(deps, &range);
    let of_line = |(blame, gaps): &mut (blame::Blame<'_, '_>, Vec<gaps::Gap>), line: u32| {
        windows.gaps(deps, line, &range, gaps);
        for gap in gaps.drain(..) {
            blame.gap(&gap);
        }
        blame.peers(line, &range);
        std::mem::take(&mut blame.stalls)
    };
    let lines = (0..deps.lines.lines.len() as u32).into_par_iter();
    let found: Vec<Vec<Stall>> = lines.map_init(|| (blame::Blame::new(deps, &windows), Vec::new()), of_line).collect();
    longest_first(&found)
}

/// Of equal ones the first stays first. A stall is a hundred bytes: lengths are sorted, and each stall is moved once.
fn longest_first(of_lines: &[Vec<Stall>]) -> Vec<Stall> {
    let stalls: Vec<&Stall> = of_lines.iter().flatten().collect();
    let mut order: Vec<Keyed> = stalls.iter().map(|stall| radix::key(!stall.dur())).zip(0..).collect();
    radix::sort(&mut order, &mut Vec::new());
    order.into_par_iter().map(|(_, i)| stalls[i as usize].clone()).collect()
}

/// The range with its steps, and as much again on each side.
pub(crate) fn around(store: &Store, range: &Range<i64>) -> Range<i64> {
    let length = range.end.saturating_sub(range.start);
    let wide = range.start.saturating_sub(length)..range.end.saturating_add(length);
    let steps = store.steps().iter().filter(|s| s.start < range.end && s.end > range.start);
    steps.fold(wide, |wide, step| wide.start.min(step.start)..wide.end.max(step.end))
}

/// Sums by cause, the largest first.
#[must_use]
pub fn by_cause(stalls: &[Stall]) -> Vec<CauseTotal> {
    let mut totals = Cause::ALL.map(|cause| CauseTotal { cause, count: 0, total_ns: 0 });
    for stall in stalls {
        let total = &mut totals[stall.cause as usize];
        total.count += 1;
        total.total_ns += stall.dur();
    }
    let mut totals: Vec<CauseTotal> = totals.into_iter().filter(|t| t.count > 0).collect();
    totals.sort_by_key(|t| (Reverse(t.total_ns), t.cause));
    totals
}

/// How much of the range a slice covers.
fn overlap(slice: &SliceRef, range: &Range<i64>) -> i64 {
    (slice.end.min(range.end) - slice.start.max(range.start)).max(0)
}

#[cfg(test)]
mod planted;
#[cfg(test)]
mod tests;
