//! Why a rank came last: what it did longer than the rank that came first, since the last collective that both took
//! part in.
//!
//! That collective ended for both at nearly the same time. The way from there to the next one is walked back on both
//! ranks; what took longer on the one that came last is the reason.

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

/// The two sums of a reason: of the rank that came last, and of the one that came first.
type Reasons = FxHashMap<DoingKey, (DoingTime, i64)>;

/// Sets how much of each delay came with the collective before. Returns the reasons by process, those of most time first.
pub(super) fn explain(deps: &Deps<'_>, exchanges: &mut [ExchangeRow]) -> FxHashMap<u32, Vec<Doing>> {
    let by_process = exchanges_by_process(exchanges);
    for row in 0..exchanges.len() {
        exchanges[row].carried_ns = carried_ns(exchanges, &by_process, row).unwrap_or(0);
    }
    reasons(deps, exchanges, &by_process)
}

/// How much of the delay of the last rank was there already when the collective before ended.
fn carried_ns(exchanges: &[ExchangeRow], by_process: &FxHashMap<u32, Vec<usize>>, row: usize) -> Option<i64> {
    let exchange = &exchanges[row];
    let (first, last) = (exchange.participants.first()?, exchange.participants.last()?);
    let before = &exchanges[exchange_before(by_process, row, first.process, last.process)?];
    let (first_end, last_end) = before.ends(first, last)?;
    Some((last_end - first_end).clamp(0, exchange.late_ns()))
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
    let late = exchanges.par_iter().enumerate().filter(|(_, e)| e.is_waited_for() && e.late_ns() >= MIN_LATE_NS);
    let explained: Vec<(u32, DoingTimes, DoingTimes)> = late
        .filter_map(|(row, exchange)| {
            let (first, last) = (exchange.participants.first()?, exchange.participants.last()?);
            let before = exchange_before(by_process, row, first.process, last.process).map(|row| &exchanges[row]);
            let (first_times, last_times) = compare(deps, &pieces, before, first, last)?;
            Some((last.process, first_times, last_times))
        })
        .collect();
    let mut sums: FxHashMap<u32, Reasons> = FxHashMap::default();
    for (process, first, last) in explained {
        let reasons = sums.entry(process).or_default();
        for (key, time) in &last {
            reasons.entry(*key).or_default().0.merge(time);
        }
        for (key, time) in &first {
            reasons.entry(*key).or_default().1 += time.ns;
        }
    }
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

/// What the rank that came first did, and the one that came last.
fn compare(
    deps: &Deps<'_>,
    pieces: &FxHashMap<SliceId, PieceId>,
    before: Option<&ExchangeRow>,
    first: &Participant,
    last: &Participant,
) -> Option<(DoingTimes, DoingTimes)> {
    let way = |to: &Participant, from: i64| Some(on_the_way_to(deps, *pieces.get(&to.slice)?, &(from..to.start)));
    let Some(before) = before else {
        return Some((DoingTimes::default(), way(last, first.start)?));
    };
    let (first_end, last_end) = before.ends(first, last)?;
    let (mut first_times, mut last_times) = (way(first, first_end)?, way(last, last_end)?);
    let later = last_end - first_end;
    let (times, ns) = if later > 0 { (&mut last_times, later) } else { (&mut first_times, -later) };
    times.entry(DoingKey::CollectiveBefore).or_default().add(ns, None);
    Some((first_times, last_times))
}

/// What took longest, less what it took on the rank that came first.
fn longest(deps: &Deps<'_>, reasons: Reasons) -> Vec<Doing> {
    let mut found: Vec<_> = reasons.into_iter().filter(|(_, (own, first))| own.ns > *first).collect();
    found.sort_by_key(|(key, (own, first))| (Reverse(own.ns - first), *key));
    let doing = |(key, (own, first)): (DoingKey, (DoingTime, i64))| Doing {
        text: key.text(deps.store),
        ns: own.ns,
        other_ns: first,
        slice: own.slice,
    };
    found.into_iter().take(MAX_REASONS).map(doing).collect()
}
