//! Stalls: for each gap on a busy track, why nothing ran there, and which slice is to blame.
//!
//! A gap is an interval in which a track does no work: a worker in a step, a stream between two kernels, a host's
//! thread that waits. A gap is divided into parts, each with one cause. The parts follow each other and add up to the
//! gap exactly; time that cannot be explained is a part of its own. The parts are found by a backward walk, from the
//! slice after the gap to its last-arriving predecessor, and on from there, until the gap's start is reached (`crate::walk`).
//!
//! Pure functions over the store; docs/use/analysis.md has the definitions.

mod blame;
pub mod cause;
mod gaps;
mod stall;

use crate::deps::Deps;
pub use cause::Cause;
use rayon::prelude::*;
pub use stall::Stall;
use std::cmp::Reverse;
use std::ops::Range;
use trace_model::radix::{self, KeyedRow};
use trace_store::Store;

/// All stalls of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// The number of stalls.
    pub count: u64,
    /// The sum of the stalls' durations, ns.
    pub total_ns: i64,
}

/// The stalls that touch the half-open range, longest first. Gaps are not cut at the range: a worker's gap extends to
/// the ends of its steps, the gap of a stream or a thread at most one length of the range beyond it.
#[must_use]
pub fn stalls(store: &Store, range: Range<i64>) -> Vec<Stall> {
    let deps = Deps::new(store, &widen_to_steps(store, &range));
    stalls_of(&deps, range)
}

/// As [`stalls`], from an existing index. The lines are divided among all cores.
pub(crate) fn stalls_of(deps: &Deps<'_>, range: Range<i64>) -> Vec<Stall> {
    let windows = gaps::Windows::new(deps, &range);
    let explain_line = |(blame, gaps): &mut (blame::Blame<'_, '_>, Vec<gaps::Gap>), line: u32| {
        windows.find_gaps(deps, line, &range, gaps);
        for gap in gaps.drain(..) {
            blame.explain_gap(&gap);
        }
        blame.explain_collectives(line, &range);
        std::mem::take(&mut blame.stalls)
    };
    let lines = (0..deps.lines.lines.len() as u32).into_par_iter();
    let found: Vec<Vec<Stall>> =
        lines.map_init(|| (blame::Blame::new(deps, &windows), Vec::new()), explain_line).collect();
    longest_first(&found)
}

/// Sorts by length, stably. Since a stall has a hundred bytes, only the lengths are sorted, and each stall is cloned
/// once.
fn longest_first(stalls_by_line: &[Vec<Stall>]) -> Vec<Stall> {
    let stalls: Vec<&Stall> = stalls_by_line.iter().flatten().collect();
    let mut order: Vec<KeyedRow> = stalls.iter().map(|stall| radix::key(!stall.dur())).zip(0..).collect();
    radix::sort(&mut order, &mut Vec::new());
    order.into_par_iter().map(|(_, i)| stalls[i as usize].clone()).collect()
}

/// The range widened by its length on each side, and to the ends of the steps that touch it.
pub(crate) fn widen_to_steps(store: &Store, range: &Range<i64>) -> Range<i64> {
    let length = range.end.saturating_sub(range.start);
    let wide = range.start.saturating_sub(length)..range.end.saturating_add(length);
    let steps = store.steps().iter().filter(|s| s.start < range.end && s.end > range.start);
    steps.fold(wide, |wide, step| wide.start.min(step.start)..wide.end.max(step.end))
}

/// The stalls' number and total duration by cause, the largest total first.
#[must_use]
pub fn by_cause(stalls: &[Stall]) -> Vec<CauseTotal> {
    let total = |cause: &Cause| CauseTotal { cause: *cause, count: 0, total_ns: 0 };
    let mut totals: Vec<CauseTotal> = Cause::ALL.iter().map(total).collect();
    for stall in stalls {
        let total = &mut totals[stall.cause as usize];
        total.count += 1;
        total.total_ns += stall.dur();
    }
    let mut totals: Vec<CauseTotal> = totals.into_iter().filter(|t| t.count > 0).collect();
    totals.sort_by_key(|t| (Reverse(t.total_ns), t.cause));
    totals
}

#[cfg(test)]
mod planted;
#[cfg(test)]
mod tests;
