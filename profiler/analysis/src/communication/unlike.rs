//! What a rank's host does that the others' hosts do not, whether or not anything waits for it.

use super::doing::{Doing, DoingKey, DoingTime, DoingTimes};
use crate::activity::Activity;
use crate::deps::Deps;
use crate::lines::{Line, LineKind};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::ops::Range;

/// The least time that is reported: its share of the range, and ns.
const MIN_SHARE: i64 = 200;
const MIN_NS: i64 = 100_000;
/// What is kept of each rank.
const MAX_DOINGS: usize = 3;

/// By process: what its threads that launch work did more than twice as long as the median of the other processes.
pub(super) fn unlike_others(deps: &Deps<'_>, range: &Range<i64>, processes: &[u32]) -> FxHashMap<u32, Vec<Doing>> {
    if processes.len() < 2 {
        return FxHashMap::default();
    }
    let least_ns = ((range.end - range.start) / MIN_SHARE).max(MIN_NS);
    let of_process = |process: &u32| (*process, host_times(deps, range, *process));
    let times: Vec<(u32, DoingTimes)> = processes.par_iter().map(of_process).collect();
    let is_long = |(_, time): &(&DoingKey, &DoingTime)| time.ns >= least_ns;
    let keys: FxHashSet<DoingKey> =
        times.iter().flat_map(|(_, times)| times.iter().filter(is_long).map(|(key, _)| *key)).collect();
    let mut unlike: FxHashMap<u32, Vec<(DoingKey, DoingTime, i64)>> = FxHashMap::default();
    for key in keys {
        let ns_of = |(_, times): &(u32, DoingTimes)| times.get(&key).map_or(0, |time| time.ns);
        let mut sorted: Vec<i64> = times.iter().map(ns_of).collect();
        sorted.sort_unstable();
        for (process, own) in times.iter().filter_map(|(process, times)| Some((*process, times.get(&key)?))) {
            let median = median_of_others(&sorted, own.ns);
            if own.ns > 2 * median && own.ns - median >= least_ns {
                unlike.entry(process).or_default().push((key, *own, median));
            }
        }
    }
    let longest = |(process, mut found): (u32, Vec<(DoingKey, DoingTime, i64)>)| {
        found.sort_by_key(|(key, own, median)| (Reverse(own.ns - median), *key));
        let doing = |(key, own, median): (DoingKey, DoingTime, i64)| Doing {
            text: key.text(deps.store),
            ns: own.ns,
            other_ns: median,
            slice: own.slice,
        };
        (process, found.into_iter().take(MAX_DOINGS).map(doing).collect())
    };
    unlike.into_iter().map(longest).collect()
}

/// The median of sorted numbers without one that is `own`; of two in the middle the larger.
fn median_of_others(sorted: &[i64], own: i64) -> i64 {
    let middle = (sorted.len() - 1) / 2;
    let own_at = sorted.partition_point(|ns| *ns < own);
    let at = if own_at <= middle { middle + 1 } else { middle };
    sorted.get(at).copied().unwrap_or(0)
}

/// The self times of what the threads that launch work ran, and the times between their slices.
fn host_times(deps: &Deps<'_>, range: &Range<i64>, process: u32) -> DoingTimes {
    let mut times = DoingTimes::default();
    let is_host = |line: &&Line| line.process == process && line.kind == LineKind::Host;
    let launches = |line: &&Line| line.pieces.iter().any(|piece| piece.activity == Activity::Launch);
    for line in deps.lines.lines.iter().filter(is_host).filter(launches) {
        add_line(line, range, &mut times);
    }
    times
}

fn add_line(line: &Line, range: &Range<i64>, times: &mut DoingTimes) {
    let inside = |start: i64, end: i64| (end.min(range.end) - start.max(range.start)).max(0);
    let first = line.pieces.partition_point(|piece| piece.end <= range.start);
    let mut before = None;
    for piece in line.pieces[first..].iter().take_while(|piece| piece.start < range.end) {
        let slice = line.slice(piece);
        if let Some((site, id, end)) = before
            && inside(end, piece.start) > 0
        {
            times.entry(DoingKey::Untraced(Some(site))).or_default().add(inside(end, piece.start), Some(id));
        }
        if piece.activity.is_work() && piece.activity != Activity::Profiler {
            times.entry(DoingKey::Ran(slice.site)).or_default().add(inside(piece.start, piece.end), Some(slice.id));
        }
        before = Some((slice.site, slice.id, piece.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_leaves_out_ones_own() {
        assert_eq!(median_of_others(&[0, 10], 10), 0);
        assert_eq!(median_of_others(&[0, 10], 0), 10);
        assert_eq!(median_of_others(&[1, 2, 9], 9), 2);
        assert_eq!(median_of_others(&[1, 2, 9], 1), 9);
        assert_eq!(median_of_others(&[1, 2, 3, 9], 9), 2);
    }
}
