//! Stragglers: the processes that came last to collectives and steps, and how long the others waited.

use super::deps::Deps;
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{SliceId, Step};
use trace_store::Store;

/// One exchange or step, and the process that came last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateArrival {
    /// The slice that came last: a collective's, or a step's.
    pub slice: SliceId,
    /// The slice's process, a row of the processes.
    pub process: u32,
    /// How much later than the first process it came, ns.
    pub late_ns: i64,
    /// The sum of the others' waits, ns.
    pub waited_ns: i64,
}

/// A process, and how often it was last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Straggler {
    /// Row of the processes.
    pub process: u32,
    /// Exchanges and steps to which it came last.
    pub times_last: u64,
    /// The sum of its delays against the first process, ns.
    pub late_ns: i64,
    /// The sum of the others' waits for it, ns.
    pub waited_ns: i64,
}

/// The processes that came last to collectives and to steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stragglers {
    /// Collectives that several processes took part in.
    pub collectives: Vec<LateArrival>,
    /// Steps of the same number that several processes ran, compared by their ends.
    pub steps: Vec<LateArrival>,
    /// By process, the one that the others waited longest for first.
    pub processes: Vec<Straggler>,
}

/// The stragglers of a range.
pub(crate) fn find_stragglers(deps: &Deps<'_>, range: &Range<i64>) -> Stragglers {
    let lines = &deps.lines;
    let exchanges = deps.exchanges.rows.iter().map(|peers| {
        let arrivals = peers.iter().map(|at| {
            let line = lines.line(at.line);
            (lines.piece(*at).start, line.process, lines.slice(*at).id)
        });
        last_of(arrivals)
    });
    let mut found = Stragglers { collectives: exchanges.flatten().collect(), ..Stragglers::default() };
    found.steps = steps(deps.store, range);
    let mut processes: FxHashMap<u32, Straggler> = FxHashMap::default();
    for late in found.collectives.iter().chain(&found.steps) {
        let process = late.process;
        let empty = Straggler { process, times_last: 0, late_ns: 0, waited_ns: 0 };
        let row = processes.entry(process).or_insert(empty);
        row.times_last += 1;
        row.late_ns += late.late_ns;
        row.waited_ns += late.waited_ns;
    }
    found.processes = processes.into_values().collect();
    found.processes.sort_by_key(|p| (std::cmp::Reverse(p.waited_ns), p.process));
    found
}

/// Steps of the same number in several processes.
fn steps(store: &Store, range: &Range<i64>) -> Vec<LateArrival> {
    let mut by_id: FxHashMap<u32, Vec<&Step>> = FxHashMap::default();
    for step in store.steps().iter().filter(|s| s.start < range.end && s.end > range.start) {
        by_id.entry(step.id).or_default().push(step);
    }
    let process = |step: &Step| store.tracks().get(step.slice.track as usize).map_or(u32::MAX, |t| t.process);
    let mut late: Vec<LateArrival> = by_id
        .into_values()
        .filter(|steps| {
            let mut processes: Vec<u32> = steps.iter().map(|s| process(s)).collect();
            processes.sort_unstable();
            processes.windows(2).all(|pair| pair[0] != pair[1]) && processes.len() > 1
        })
        .filter_map(|steps| last_of(steps.iter().map(|s| (s.end, process(s), s.slice))))
        .collect();
    late.sort_by_key(|l| (std::cmp::Reverse(l.late_ns), l.slice));
    late
}

/// The last of the arrivals (time, process, slice).
fn last_of(arrivals: impl Iterator<Item = (i64, u32, SliceId)> + Clone) -> Option<LateArrival> {
    let (last, process, slice) = arrivals.clone().max_by_key(|(time, process, _)| (*time, *process))?;
    let first = arrivals.clone().map(|(time, ..)| time).min()?;
    let waited_ns = arrivals.map(|(time, ..)| last - time).sum();
    Some(LateArrival { slice, process, late_ns: last - first, waited_ns })
}
