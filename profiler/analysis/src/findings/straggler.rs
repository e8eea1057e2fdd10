//! The finding about the rank that others wait for in collectives: how late it is, and what it does meanwhile.

use super::facts::{Facts, Finding, MAX_SLICES, shorten};
use crate::communication::{Doing, ExchangeRow, RankRow};
use crate::intervals::union_ns;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use text::bytes;
use trace_model::Process;

/// The exchanges to which a rank came last, with its own delay.
type LateExchanges<'a> = Vec<(i64, &'a ExchangeRow)>;

/// The finding about the rank that came last by most, without delays that came with the collective before: those are
/// another rank's, or the devices'.
pub(super) fn finding(facts: &Facts<'_>) -> Option<Finding> {
    let mut by_process: FxHashMap<u32, LateExchanges<'_>> = FxHashMap::default();
    for exchange in facts.communication.exchanges.iter().filter(|exchange| exchange.is_waited_for()) {
        if let Some(last) = exchange.participants.last().filter(|last| last.own_late_ns() > 0) {
            by_process.entry(last.process).or_default().push((last.own_late_ns(), exchange));
        }
    }
    let late_ns = |late: &LateExchanges<'_>| late.iter().map(|(ns, _)| ns).sum::<i64>();
    let (process, mut late) =
        by_process.into_iter().min_by_key(|(process, late)| (Reverse(late_ns(late)), *process))?;
    let rank = facts.communication.ranks.iter().find(|rank| rank.process == process)?;
    late.sort_by_key(|(ns, exchange)| (Reverse(*ns), exchange.participants.first().map(|first| first.start)));
    // Waits for collectives of several streams may overlap; their time is counted once.
    let waits = late.iter().filter_map(|(ns, exchange)| {
        let last = exchange.participants.last()?.start;
        Some((last - ns, last))
    });
    let saves_ns = union_ns(waits.collect());
    let longest = late.first()?.1.participants.last()?;
    let slices = late.iter().take(MAX_SLICES).filter_map(|(_, exchange)| Some(exchange.participants.last()?.slice));
    let mut found = facts.finding("straggler", saves_ns, longest.start..longest.end, slices.collect());
    found.text = text(facts, rank, &late)?;
    Some(found)
}

fn text(facts: &Facts<'_>, rank: &RankRow, late: &[(i64, &ExchangeRow)]) -> Option<String> {
    let process = facts.store.processes().get(rank.process as usize)?;
    let carried_ns = rank.late_ns - rank.own_late_ns;
    let carried = if carried_ns > 0 {
        format!(" (and {} more, already late from the collective before)", facts.per_step(carried_ns))
    } else {
        String::new()
    };
    let mut text = format!(
        "{} was last in {} of {} collectives: {} late{carried}. The others waited {} for it. {}",
        title(process),
        rank.times_last,
        rank.exchanges,
        facts.per_step(rank.own_late_ns),
        facts.per_step(rank.waited_ns),
        most_affected(facts, late),
    );
    // The collective before is in the sentence already.
    let reason = rank.reasons.iter().find(|reason| reason.slice.is_some());
    if let Some(reason) = reason.filter(|reason| 4 * (reason.ns - reason.other_ns) > rank.own_late_ns) {
        text += &format!(" Since the collective before it spent {}.", longer(facts, reason));
    }
    if let Some(unlike) = rank.unlike_others.first() {
        text += &format!(" Over the whole step its host spent {}.", longer(facts, unlike));
    }
    Some(text)
}

/// `Rank 3, python (662),`.
fn title(process: &Process) -> String {
    match process.rank() {
        Some(rank) => format!("Rank {rank}, {},", process.title()),
        None => format!("{} on {}", process.title(), process.host),
    }
}

/// The sentence about the collective that came late by most.
fn most_affected(facts: &Facts<'_>, late: &[(i64, &ExchangeRow)]) -> String {
    let mut sums: FxHashMap<usize, i64> = FxHashMap::default();
    for (ns, exchange) in late {
        *sums.entry(exchange.collective).or_default() += ns;
    }
    let most = sums.into_iter().min_by_key(|(row, ns)| (Reverse(*ns), *row));
    let row = most.and_then(|(row, ns)| Some((facts.communication.collectives.get(row)?, ns)));
    let Some((row, ns)) = row else { return String::new() };
    let size = row.bytes.map_or_else(String::new, |n| format!(" of {}", bytes(n)));
    let group = row.group.and_then(|group| facts.communication.groups.get(group));
    let group = group.map_or_else(String::new, |group| format!(" in `{}`", group.title()));
    format!("Most of the delay was before `{}`{size}{group}: {}.", shorten(&row.name), facts.per_step(ns))
}

/// A rank's time for what it did, and how much more that is than the others'.
fn longer(facts: &Facts<'_>, doing: &Doing) -> String {
    let more = facts.per_step(doing.ns - doing.other_ns);
    let more = more.trim_end_matches(" a step");
    format!("{} in {}, {more} more than others", facts.per_step(doing.ns), shorten(&doing.text))
}
