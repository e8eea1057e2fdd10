//! Why a rank came late: what it did longer than the rank that came in the middle, since the last collective that both
//! took part in.
//!
//! That collective ended for both at nearly the same time. The way from there to the next one is walked back on both
//! ranks; what took longer on the late one is the reason.

use super::doing::{Doing, DoingKey, DoingTime, DoingTimes, on_the_way_to};
use super::exchange::{ExchangeRow, Participant};
use crate::deps::Deps;
use crate::lines::PieceId;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use trace_model::SliceId;

/// Delays below this are not explained: launches take as long.
const MIN_LATE_NS: i64 = 10_000;
/// The reasons that are kept of each rank.
const MAX_REASONS: usize = 3;
/// Exchanges of a rank that are looked through for one that another rank took part in too.
const MAX_EXCHANGES_BACK: usize = 256;

/// Late ranks of one exchange that are explained, the latest ones.
const MAX_EXPLAINED: usize = 4;

/// The two sums of a reason: of the late rank, and of the one in the middle.
type Reasons = FxHashMap<DoingKey, (DoingTime, i64)>;

/// Sets how much of each delay came with the collective before. Returns the reasons by process, those of most time first.
pub(super) fn explain(deps: &Deps<'_>, exchanges: &mut [ExchangeRow]) -> FxHashMap<u32, Vec<Doing>> {
    let by_process = exchanges_by_process(exchanges);
    for row in 0..exchanges.len() {
        for at in 0..exchanges[row].participants.len() {
            let carried_ns = carried_ns(exchanges, &by_process, row, at).unwrap_or(0);
            exchanges[row].participants[at].carried_ns = carried_ns;
        }
    }
    reasons(deps, exchanges, &by_process)
}

/// How much of a participant's delay was there already when the collective before ended.
fn carried_ns(
    exchanges: &[ExchangeRow],
    by_process: &FxHashMap<u32, Vec<usize>>,
    row: usize,
    at: usize,
) -> Option<i64> {
    let late = exchanges[row].participants.get(at).filter(|late| late.late_ns > 0)?;
    let middle = exchanges[row].middle()?;
    let before = &exchanges[exchange_before(by_process, row, middle.process, late.process)?];
    let (middle_end, late_end) = before.ends(middle, late)?;
    Some((late_end - middle_end).clamp(0, late.late_ns))
}

fn reasons(
    deps: &Deps<'_>,
    exchanges: &[ExchangeRow],
    by_process: &FxHashMap<u32, Vec<usize>>,
) -> FxHashMap<u32, Vec<Doing>> {
    let pieces: FxHashMap<SliceId, PieceId> = {
        let calls = deps.exchanges.calls.rows.iter();
        calls.map(|call| (deps.lines.slice(call.piece_id).id, call.piece_id)).collect()
    };
    let explain = |(row, exchange): (usize, &ExchangeRow)| -> Vec<(u32, DoingTimes, DoingTimes)> {
        let Some(middle) = exchange.middle().filter(|_| exchange.is_waited_for()) else { return Vec::new() };
        let late = exchange.participants.iter().rev().take(MAX_EXPLAINED).filter(|late| late.late_ns >= MIN_LATE_NS);
        let compare = |late: &Participant| {
            let before = exchange_before(by_process, row, middle.process, late.process).map(|row| &exchanges[row]);
            let (middle_times, late_times) = compare(deps, &pieces, before, middle, late)?;
            Some((late.process, middle_times, late_times))
        };
        late.filter_map(compare).collect()
    };
    let add = |mut sums: FxHashMap<u32, Reasons>, (process, middle, late): (u32, DoingTimes, DoingTimes)| {
        let reasons = sums.entry(process).or_default();
        for (key, time) in &late {
            reasons.entry(*key).or_default().0.merge(time);
        }
        for (key, time) in &middle {
            reasons.entry(*key).or_default().1 += time.ns;
        }
        sums
    };
    let merge = |mut sums: FxHashMap<u32, Reasons>, others: FxHashMap<u32, Reasons>| {
        for (process, others) in others {
            let reasons = sums.entry(process).or_default();
            for (key, (late, middle_ns)) in others {
                let reason = reasons.entry(key).or_default();
                reason.0.merge(&late);
                reason.1 += middle_ns;
            }
        }
        sums
    };
    // What is explained is summed at once: of many ranks it would be large.
    let explained = exchanges.par_iter().enumerate().flat_map_iter(explain);
    let sums = explained.fold(FxHashMap::default, add).reduce(FxHashMap::default, merge);
    sums.into_iter().map(|(process, reasons)| (process, longest(deps, reasons))).collect()
}

/// By process: its exchanges, in order.
fn exchanges_by_process(exchanges: &[ExchangeRow]) -> FxHashMap<u32, Vec<usize>> {
    let mut rows: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for (row, exchange) in exchanges.iter().enumerate().filter(|(_, exchange)| exchange.synchronises) {
        for participant in &exchange.participants {
            rows.entry(participant.process).or_default().push(row);
        }
    }
    rows
}

/// The last exchange before `row` that both processes took part in.
fn exchange_before(by_process: &FxHashMap<u32, Vec<usize>>, row: usize, a: u32, b: u32) -> Option<usize> {
    let before = |process: u32| {
        let rows = by_process.get(&process).map_or(&[][..], Vec::as_slice);
        rows[..rows.partition_point(|other| *other < row)].iter().rev().take(MAX_EXCHANGES_BACK)
    };
    let (mut of_a, mut of_b) = (before(a).peekable(), before(b).peekable());
    loop {
        let (next_a, next_b) = (**of_a.peek()?, **of_b.peek()?);
        match next_a.cmp(&next_b) {
            std::cmp::Ordering::Equal => return Some(next_a),
            std::cmp::Ordering::Greater => _ = of_a.next(),
            std::cmp::Ordering::Less => _ = of_b.next(),
        }
    }
}

/// What the rank in the middle did, and the late one.
fn compare(
    deps: &Deps<'_>,
    pieces: &FxHashMap<SliceId, PieceId>,
    before: Option<&ExchangeRow>,
    middle: &Participant,
    late: &Participant,
) -> Option<(DoingTimes, DoingTimes)> {
    let way = |to: &Participant, from: i64| Some(on_the_way_to(deps, *pieces.get(&to.slice)?, &(from..to.start)));
    let Some(before) = before else {
        return Some((DoingTimes::default(), way(late, middle.start)?));
    };
    let (middle_end, late_end) = before.ends(middle, late)?;
    let (mut middle_times, mut late_times) = (way(middle, middle_end)?, way(late, late_end)?);
    let later = late_end - middle_end;
    let (times, ns) = if later > 0 { (&mut late_times, later) } else { (&mut middle_times, -later) };
    times.entry(DoingKey::CollectiveBefore).or_default().add(ns, None);
    Some((middle_times, late_times))
}

/// What took longest, less what it took on the rank in the middle.
fn longest(deps: &Deps<'_>, reasons: Reasons) -> Vec<Doing> {
    let mut found: Vec<_> = reasons.into_iter().filter(|(_, (own, middle))| own.ns > *middle).collect();
    found.sort_by_key(|(key, (own, middle))| (Reverse(own.ns - middle), *key));
    let doing = |(key, (own, middle)): (DoingKey, (DoingTime, i64))| Doing {
        text: key.text(deps.store),
        ns: own.ns,
        other_ns: middle,
        slice: own.slice,
    };
    found.into_iter().take(MAX_REASONS).map(doing).collect()
}
