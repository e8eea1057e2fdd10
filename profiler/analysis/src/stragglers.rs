//! Stragglers: the processes that came last to collectives and steps, and the time that the other processes waited.

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
    /// The delay after the first process, ns.
    pub late_ns: i64,
    /// The sum of the other processes' waits, ns.
    pub waited_ns: i64,
}

/// A process that came last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Straggler {
    /// Row of the processes.
    pub process: u32,
    /// Number of exchanges and steps to which the process came last.
    pub times_last: u64,
    /// The sum of its delays after the first process, ns.
    pub late_ns: i64,
    /// The sum of the other processes' waits for it, ns.
    pub waited_ns: i64,
}

/// The processes that came last to collectives and to steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stragglers {
    /// Collectives that several processes took part in.
    pub collectives: Vec<LateArrival>,
    /// Steps of the same number that several processes ran, compared by their ends.
    pub steps: Vec<LateArrival>,
    /// The totals by process, the process with the longest waits for it first.
    pub processes: Vec<Straggler>,
}

/// The stragglers of a range.
pub(crate) fn find_stragglers(deps: &Deps<'_>, range: &Range<i64>) -> Stragglers {
    let lines = &deps.lines;
    let exchanges = deps.exchanges.synchronising().map(|exchange| {
        let calls = deps.exchanges.calls_of(exchange);
        last_arrival(calls.map(|call| (call.start, call.process, lines.slice(call.piece_id).id)))
    });
    let mut stragglers = Stragglers { collectives: exchanges.flatten().collect(), ..Stragglers::default() };
    stragglers.steps = steps(deps.store, range);
    let mut processes: FxHashMap<u32, Straggler> = FxHashMap::default();
    for late in stragglers.collectives.iter().chain(&stragglers.steps) {
        let process = late.process;
        let empty = Straggler { process, times_last: 0, late_ns: 0, waited_ns: 0 };
        let row = processes.entry(process).or_insert(empty);
        row.times_last += 1;
        row.late_ns += late.late_ns;
        row.waited_ns += late.waited_ns;
    }
    stragglers.processes = processes.into_values().collect();
    stragglers.processes.sort_by_key(|p| (std::cmp::Reverse(p.waited_ns), p.process));
    stragglers
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
        .filter_map(|steps| last_arrival(steps.iter().map(|s| (s.end, process(s), s.slice))))
        .collect();
    late.sort_by_key(|l| (std::cmp::Reverse(l.late_ns), l.slice));
    late
}

/// The last of the arrivals (time, process, slice).
fn last_arrival(arrivals: impl Iterator<Item = (i64, u32, SliceId)> + Clone) -> Option<LateArrival> {
    let (last, process, slice) = arrivals.clone().max_by_key(|(time, process, _)| (*time, *process))?;
    let first = arrivals.clone().map(|(time, ..)| time).min()?;
    let waited_ns = arrivals.map(|(time, ..)| last - time).sum();
    Some(LateArrival { slice, process, late_ns: last - first, waited_ns })
}
